"""The calls of a session that wait for a person, and their word on one: at whichever of its actors it waits. And what
nobody knows, settled.

It is a session's own approvals, a toolbox of an agent, or whatever else asks people: all doors come through here.

The one rule: what is said takes the same way into the log as from a program.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from actors import NothingWaits, WaitingCall, approvals_in, asking_people
from dataspace.errors import KeeveError
from dataspace.patterns import ANY, pattern
from keeve.faces import utc_time
from vat.crank.vat import RequestConflict
from vat.devices.outcomes import OutcomeUnknown
from vat.errors import Failed
from vat.host.host import Host
from vat.host.outside import beside
from vat.host.repetitions import sent
from vat.host.resolving import BadOutcome, EffectStatus
from vat.host.settling import settle

BECAME: Final = {
    "approval-given": "it was approved of",
    "approval-refused": "it was refused",
    "approval-withdrawn": "it was withdrawn, and not made,",
}
"""What became of a call that waits no more, by the label of the fact that says so."""


class SeveralWait(KeeveError, LookupError):
    """Several actors of a session have a call of the same id that waits."""

    usage: ClassVar[bool] = True

    def __init__(self, session: str, id: str, several: int) -> None:
        super().__init__(
            f"{several} calls {id!r} of session {session!r} wait, each at an actor of its own: have a program "
            "approve or refuse through a ref to the one that is meant"
        )


def waiting_calls(host: Host, session: str) -> list[WaitingCall]:
    """The calls of a session that wait for a person, at whichever of its actors. Nothing is loaded or recorded.

    Costs a restore, of one that has ever asked. Raises `NoSuchSession`, `Deleted`, and what a restore raises.
    """
    if next(host.query("(approval-wanted . _)", session=host.row(session).uid, lineage=True), None) is None:
        return []
    return host.look(session, lambda now: list(approvals_in(now.heap, session)))


async def say_word(host: Host, session: str, call: str, refused: str | None, request: str | None = None) -> None:
    """Approve of a call, or refuse it for a reason. Asked again with its `request` id it is as it was the first time.

    Raises `NoSuchSession`, `Deleted`, `NothingWaits`, `SeveralWait`; `RequestConflict` for an id of something else;
    `UnknownActorType` for a session whose code is not here: that takes the word at once.
    """
    actors = _waiting_at(host, session, call)
    if request is not None:  # whoever has taken the word with this id by now says so, though nothing waits there
        known = host.look(session, lambda now: list(asking_people(now.heap)))
        actors += [actor for actor in known if actor not in actors]
    if not actors:
        raise _nothing_waits(host, session, call)
    ref, conflict = await host.get(session), None
    for actor in actors:
        approvals = beside(ref, actor)
        try:
            if refused is None:
                await approvals.approve(call, request=request)
            else:
                await approvals.refuse(call, refused, request=request)
            return
        except RequestConflict as error:
            conflict = error
        except NothingWaits:  # since it was looked: the session was loaded for the word, and may have come to know
            raise _nothing_waits(host, session, call) from None
    assert conflict is not None, "the last one has answered, or had another word"
    raise conflict


def _nothing_waits(host: Host, session: str, call: str) -> NothingWaits:
    """That a call does not wait, and what became of it by what its session has stated, the newest last."""
    words, newest = "", 0
    for label, became in BECAME.items():
        asked = pattern(label, ANY, ANY, call, ...)
        for event in host.query(asked, session=host.row(session).uid, lineage=True):
            if event.position > newest:
                words, newest = f"{became} on {utc_time(event.time)}{_about(event.value.keywords)}", event.position
    return NothingWaits(call, tuple(each.id for each in waiting_calls(host, session)), words)


def _about(said: Mapping[str, Any]) -> str:
    """Who has said so, and why."""
    by, reason, error = said.get("by"), said.get("reason"), said.get("error")
    if isinstance(error, Mapping):
        reason = f"{error.get('error')}: {error.get('message')}"
    who = f" by {by}" if isinstance(by, str) else ""
    due = said.get("due")
    if isinstance(due, float):
        who = f", since its time was over on {utc_time(round(due * 1_000_000))}{who}"
    return f"{who}: {reason}" if isinstance(reason, str) and reason else who


async def resolve(host: Host, session: str, effect: str, given: Mapping[str, Any], request: str | None = None) -> None:
    """Settle an effect of a session by exactly one of these: a `value`, an `error` in words, `again`, or `unknown`.

    With `unknown` it is settled as what it is: what waits for it breaks with `OutcomeUnknown`. Asked again with its
    `request` id it is as it was the first time. Raises `NoSuchSession`, `Deleted`, `BadOutcome`, `NoSuchEffect`;
    `RequestConflict` for an id of something else.
    """
    kinds = {name for name in ("value", "error", "again", "unknown") if name in given}
    if len(kinds) != 1 or len(given) != 1 or any(given[name] is not True for name in kinds & {"again", "unknown"}):
        raise BadOutcome("give one of value, error, again and unknown")

    def outcome(found: EffectStatus) -> Mapping[str, Any]:
        if "error" in given:
            return {"error": Failed("Resolved", str(given["error"]))}
        if "unknown" in given:
            return {"error": OutcomeUnknown(f"{found.device}.{found.method}", effect)}
        return given

    await settle(host, session, effect, sent(request, "resolve", effect, dict(given)), outcome)


def _waiting_at(host: Host, session: str, call: str) -> list[int]:
    """The number of the actor at which a call waits, if it does."""
    found = [each.actor for each in waiting_calls(host, session) if each.id == call]
    if len(found) > 1:
        raise SeveralWait(session, call, len(found))
    return found
