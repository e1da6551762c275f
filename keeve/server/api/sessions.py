"""Sessions: made, listed, shown, forked, snapshotted, deleted.

The one rule: a list, a page and a row are read from what is stored. Only what asks a session itself loads it.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import Any, Final

import attrs

from actors import WaitingCall
from dataspace.catalog.recent import SessionRow
from dataspace.observe.events import Event
from keeve.faces import ENDS, TELLING, face, fork_face, turns_of, utc_time, value_of
from keeve.looking import (
    PAGE,
    FieldPlace,
    NoMessages,
    Room,
    approval_face,
    effect_face,
    fields_of,
    messages_of,
    page_of,
    reading_of,
    rows_of,
    waiting_calls,
    weight,
)
from keeve.server.api.faces import row_face
from keeve.server.api.table import Asked, Document
from keeve.server.beginning import beginning, kinds_of, may_be_same
from keeve.server.errors import Refusal, there_are
from keeve.server.finding import before_turn
from keeve.server.status import status_there
from keeve.wire.verbs import TURN, verb_of
from vat.crank.upgrading import UpgradeFailed
from vat.heap.heap import ROOT_ACTOR
from vat.heap.pending import effects_in
from vat.host.host import Host
from vat.host.outside import HostRef, place
from vat.host.repetitions import is_known, made_for, sent
from vat.host.within import dataspace_of
from vat.objects.types import NewerVersion, UnknownActorType

GOES_ON: Final = ("model-output", "turn-done", "turn-failed")
"""What a turn states that is under way, and that no turn before it is."""


async def list_sessions(asked: Asked) -> Document:
    """Those that who asks can reach, among so many that are looked at."""
    serving, query = asked.serving, asked.query
    principal, auth = serving.principal(asked.request), serving.auth
    listed, reaches = auth.listed(principal), partial(auth.reaches, principal)
    found, following = await rows_of(listed, reaches, query.prefix, query.after, query.limit, query.deleted)
    return {"sessions": [row_face(serving.host, row) for row in found], "next": following}


async def create_session(asked: Asked) -> Document:
    """With the host's tools, unless it is told which."""
    serving, body = asked.serving, asked.body
    kinds = kinds_of(serving)
    kind = kinds.get(body.type)
    if kind is None:
        what = f"there is no type {body.type!r:.100} here; {there_are(kinds)}"
        raise Refusal(422, "unknown_actor_type", what, "start the server with the module that has it", "type")
    given = {name: values(item, f"fields.{name}") for name, item in body.fields.items()}
    request = sent(asked.key, "spawn", body.type, body.id, given)
    ref, there = made_for(asked.host, request), made_for(asked.host, asked.key)
    if ref is None and there is not None and may_be_same(serving, kind, body.id, given, there):
        ref = there
    fields = given if ref is not None else await beginning(serving, kind, given, there)
    async with serving.quota.room(serving.principal(asked.request), made=there is not None):
        try:
            ref = ref or await asked.host.spawn(kind, body.id, request=request, **fields)
        except TypeError as error:
            raise Refusal(422, "bad_fields", str(error), "see what this type begins with", "fields") from error
    return made(asked, ref)


def made(asked: Asked, ref: HostRef[Any]) -> Document:
    """What who has made a session is given of it. It is not loaded for that: it is there, whatever its code does."""
    host = asked.serving.host
    return row_face(host, host.row(uid_of(ref)))


async def show_session(asked: Asked) -> Document:
    """Its head, how far it is, what waits for what."""
    host, ref, row = await reached(asked, "read")
    forks: list[dict[str, Any]] = []
    truncated: list[str] = []
    async for event in host.observe("(fork _ #:into ?into #:at ?at)", session=row.uid, until="head"):
        if len(forks) == PAGE:
            truncated.append("forks")
            break
        into = event.captures["into"]
        forks.append(fork_face(into, event.captures["at"], dataspace_of(host).catalog.session(into)))
    status = None
    with suppress(UnknownActorType, NewerVersion, UpgradeFailed):  # what is stored is there for all that
        status = face(await status_there(host, ref))
    effects, more_effects = await effects_of(host, row)
    approvals, more_approvals = await approvals_of(host, row)
    truncated += [what for what, more in (("effects", more_effects), ("approvals", more_approvals)) if more is not None]
    said = {**row_face(host, host.row(row.id)), "status": status, "forks": forks}
    return {**said, "effects": effects, "approvals": approvals, "truncated": truncated}


async def effects_of(host: Host, row: SessionRow, after: str = "", limit: int = PAGE) -> Any:
    """A page of the effects of a session that have no outcome, and what `after` is for the next one."""
    heap = host.look(row.id, lambda now: now.heap)
    state_of = reading_of(host, exact=True).state_of()
    return await page_of(
        effects_in(heap, row),
        lambda effect: effect_face(effect, state_of(effect)),
        lambda effect: (effect.number,),
        *(after, limit),
    )


async def approvals_of(host: Host, row: SessionRow, after: str = "", limit: int = PAGE) -> Any:
    """A page of the calls of a session that wait for a person, and what `after` is for the next one."""
    waiting = sorted(waiting_calls(host, row.id), key=_asked)
    return await page_of(waiting, approval_face, _asked, after, limit)


def _asked(call: WaitingCall) -> tuple[int, int]:
    """Where a call stands among those that wait: by their actors, and in which order they were asked for."""
    return call.actor, call.promise


async def show_state(asked: Asked) -> Document:
    """Read from what is stored, as of then: nothing is run."""
    host, _, row = await reached(asked, "read")
    past = host.look(row.id, lambda past: past, asked.query.at)
    heap = past.heap
    said = {"session": row.id, "type": heap.state(ROOT_ACTOR).type, "seq": past.seq, "hash": past.hash.hex()}
    page = await fields_of(heap, FieldPlace.parse(asked.query.after))
    told = {"fields": page.fields, "parts": page.parts, "next": page.next}
    return {**said, "time": utc_time(heap.time), **told}


async def list_turns(asked: Asked) -> Document:
    """Put together from what it has stated, its ancestors' turns among them."""
    host, _, row = await reached(asked, "read")
    events, more = await events_of(host, row, asked.query.after + 1, asked.query.limit)
    page = turns_of(events)
    return {"turns": [turn.face for turn in page], "next": page[-1].number if page and more else None}


async def events_of(host: Host, row: SessionRow, first: int, limit: int) -> tuple[list[Event], bool]:
    """What was stated of at most `limit` turns from `first` on, or fewer if that is much, and whether there are more.

    Costs a search for the first one, and what was recorded until all of them are over, or a later one is under way.
    """
    page = TurnsPage(first, Room(limit))
    after = before_turn(host, row, first) if first > 1 else 0
    async for event in host.observe("(_ _ . _)", after=after, session=row.uid, lineage=True, until="head"):
        if not page.take(event):
            break
    return page.events, page.more


@attrs.define
class TurnsPage:
    """What was stated of the turns from `first` on, for which there is room; `more`: others came behind them."""

    first: int
    room: Room
    events: list[Event] = attrs.field(factory=list)
    more: bool = False
    _numbers: set[int] = attrs.field(factory=set)
    _open: set[int] = attrs.field(factory=set)
    """Those of them that are not over."""

    def take(self, event: Event) -> bool:
        """One event more; gives whether those that follow can belong to it."""
        label, number = event.value.label, event.value.fields[0]
        if label not in TELLING or type(number) is not int or number < self.first:
            return True
        if label == "turn" and number not in self._numbers:
            self._accepted(number)
        if number in self._numbers:
            self.events.append(event)
            self.room.grows(weight(event.value.keywords))
            if label in ENDS:
                self._open.discard(number)
        elif label in GOES_ON and number > max(self._numbers, default=self.first):
            return False  # one turn runs at a time: what is not over by now never is
        return bool(self._open) or not self.more

    def _accepted(self, number: int) -> None:
        self.more = self.more or not self.room
        if not self.more:
            self._numbers.add(number)
            self._open.add(number)
            self.room.take(0)


async def list_messages(asked: Asked) -> Document:
    """The whole conversation, by pages."""
    host, _, row = await reached(asked, "read")
    page = await messages_of(host.look(row.id, lambda now: now.heap), asked.query.after, asked.query.limit)
    if page is None:
        raise NoMessages(row.id, row.type)
    return page


async def delete_session(asked: Asked) -> Document:
    """For ever."""
    host, _, row = await reached(asked, "manage")
    await host.delete(row.id, force=asked.query.force)
    return {"session": row.id, "deleted": True}


async def snapshot_session(asked: Asked) -> Document:
    """A small value that names it as it is now."""
    _, ref, _ = await reached(asked, "manage")
    named = await ref.snapshot(request=asked.key)
    return {"session": named.session, "seq": named.seq, "root": named.root, "hash": named.hash}


async def fork_session(asked: Asked) -> Document:
    """A new session, which shares the past up to there."""
    host, ref, row = await reached(asked, "manage")
    body = asked.body
    if body.at is not None and body.turn is not None:
        raise Refusal(
            422, "two_places", "both at and turn were given", "a fork has one place: give one of them", "turn"
        )
    at, request = body.at, sent(asked.key, "fork", body.turn, body.into)
    known = await is_known(host, ref, asked.key)
    if body.turn is not None and not (known and await is_known(host, ref, request)):
        at = await end_of(host, row, body.turn)
    async with asked.serving.quota.room(asked.serving.principal(asked.request), made=known):
        child = await ref.fork(at=at, into=body.into, request=asked.key if body.turn is None else request)
    return made(asked, child)


async def end_of(host: Host, row: SessionRow, number: int) -> int:
    """The seq of the record with which a turn was over. Raises a `Refusal`."""
    pattern = f"(_ {number} . _)"
    after = before_turn(host, row, number) if number > 1 else 0
    async for event in host.observe(pattern, after=after, session=row.uid, lineage=True, until="head"):
        if event.value.label in ENDS:
            return event.seq
    what = f"turn {number} of session {row.id!r} is not over, or not there"
    raise Refusal(422, "no_such_turn", what, "GET its turns: they say which are over", "turn")


async def reached(asked: Asked, verb: str) -> tuple[Host, HostRef[Any], SessionRow]:
    """The host as this principal asks it, and the session in the path, which it has to reach."""
    serving = asked.serving
    row = serving.auth.row(serving.principal(asked.request), asked.id, verb)
    host = asked.host
    return host, await host.get(row.id), row


async def asked_for(asked: Asked, method: str) -> tuple[Host, HostRef[Any], SessionRow]:
    """The same, to have that method called: who asks has to be allowed what that needs in the type of the session."""
    host, ref, row = await reached(asked, TURN)
    asked.serving.principal(asked.request).must(verb_of(host, ref, method))
    return host, ref, row


def values(given: Any, param: str) -> Any:
    """The value that this is the face of. Raises a `Refusal`."""
    try:
        return value_of(given)
    except ValueError as error:
        raise Refusal(422, "not_a_value", str(error), "docs/json.md has how such values are written", param) from None


def uid_of(ref: HostRef[Any]) -> bytes:
    """The uid of the session behind a ref."""
    return place(ref)[0]
