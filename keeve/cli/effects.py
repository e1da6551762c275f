"""`keeve effects` and `keeve resolve`: what waits, for what, and giving an outcome to what nobody will finish.

An effect that has started, in a store that no process owns, has an outcome that nobody knows. The next host breaks it
with `OutcomeUnknown`, unless somebody who knows better settles it first.

The one rule: `resolve` settles what it was told to and takes up nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from actors import WaitingCall
from dataspace.errors import KeeveError
from keeve.cli.output import Output
from keeve.cli.owning import owning
from keeve.cli.reading import Reading
from keeve.cli.text import local_time, shortened
from keeve.cli.waiting import (
    UnreadSession,
    Waits,
    all_waits,
    approval_face,
    due,
    effect_face,
    fiber_face,
    since,
    state_in_words,
    waits_for,
)
from keeve.faces import face
from vat.errors import Failed
from vat.heap.pending import OpenEffect
from vat.host.resolving import EffectStatus, NoSuchEffect


class NotJSONText(KeeveError, ValueError):
    """A text on the command line (`option`) that is not JSON."""

    usage = True

    def __init__(self, option: str, problem: str) -> None:
        super().__init__(f"{option} is not JSON ({problem}): give a text its quotes, as in {option} '\"done\"'")


class NoOutcome(KeeveError, ValueError):
    """Not exactly one of `--value` and `--error` was given."""

    usage = True

    def __init__(self) -> None:
        super().__init__("an outcome is a value or an error: give either --value (as JSON) or --error (in words)")


class ManyEffects(KeeveError, LookupError):
    """The ids of several open effects begin so."""

    usage = True

    def __init__(self, prefix: str, ids: Sequence[str]) -> None:
        super().__init__(f"{len(ids)} open effects begin with {prefix!r}: {', '.join(ids[:5])}; give more of it")


def list_effects(store: Reading, output: Output) -> int:
    """Tell of the effects that have no outcome yet, and of what else waits, of all sessions.

    Gives 1 when one of these could not be read.
    """
    owner = store.owner
    found: list[Waits] = []
    unread: list[UnreadSession] = []
    for each in all_waits(store):
        if isinstance(each, UnreadSession):
            unread.append(each)
        else:
            found.append(each)
    effects = [effect for waits in found for effect in waits.effects]
    approvals = [call for waits in found for call in waits.approvals]
    if output.as_json:
        output.document(
            {
                "owner": owner,
                "effects": [effect_face(effect, owner) for effect in effects],
                "approvals": [approval_face(call) for call in approvals],
                "fibers": [fiber_face(fiber, waits, store) for waits in found for fiber in waits.fibers],
                "unreadable": [{"session": each.session, "what": str(each.error)} for each in unread],
            }
        )
    else:
        tables = (
            (("EFFECT", "SESSION", "STATE", "CALL", "ARGUMENTS"), _effect_rows(effects, owner)),
            (("APPROVAL", "SESSION", "SINCE", "CALL", "ARGUMENTS"), _approval_rows(approvals)),
            (("FIBER", "SESSION", "SINCE", "METHOD", "WAITS FOR"), _fiber_rows(found, store)),
        )
        told = [table for table in tables if table[1]]
        for number, (columns, rows) in enumerate(told):
            if number:
                output.say()
            output.table(columns, rows)
        if not told and not unread:
            output.note("nothing waits for an outcome")
    for each in unread:
        output.note(f"session {each.session}: its effects cannot be read: {each.error}", "red")
    return 1 if unread else 0


def _effect_rows(effects: Sequence[OpenEffect], owner: int | None) -> list[tuple[str, ...]]:
    return [
        (
            effect.id,
            effect.session,
            state_in_words(effect, owner),
            f"{effect.device}.{effect.method}",
            local_time(due(effect)) or shortened(_given(effect), 200),
        )
        for effect in effects
    ]


def _given(effect: OpenEffect) -> str:
    """What an effect was given: a list in JSON, and the keywords by name."""
    named = [f"{name}={_as_text(value)}" for name, value in effect.keywords.items()]
    return " ".join([*([_as_text(effect.args)] if effect.args or not named else []), *named])


def _approval_rows(approvals: Sequence[WaitingCall]) -> list[tuple[str, ...]]:
    return [
        (call.id, call.session, local_time(since(call)), call.name, shortened(_arguments(call), 200))
        for call in approvals
    ]


def _fiber_rows(found: Sequence[Waits], store: Reading) -> list[tuple[str, ...]]:
    return [
        (str(fiber.number), fiber.session, local_time(fiber.since), fiber.method, waits_for(fiber, waits, store))
        for waits in found
        for fiber in waits.fibers
    ]


def _arguments(call: WaitingCall) -> str:
    return call.arguments if isinstance(call.arguments, str) else _as_text(call.arguments)


def _as_text(value: Any) -> str:
    return json.dumps(face(value), ensure_ascii=False)


async def resolve_effect(
    folder: Path, output: Output, prefix: str, *, value: str | None, error: str | None, actors: Sequence[str]
) -> None:
    """Settle the one effect whose id begins with `prefix`, with a value (JSON) or an error.

    Raises `NoOutcome`, `NotJSONText`, `NotAValue`, `NoSuchEffect`, `ManyEffects`, `StoreOwned`, `NoSuchActors`;
    `UnknownActorType` for the effect of a session whose code is not here: that takes the outcome at once.
    """
    outcome: dict[str, Any]
    if (value is None) == (error is None):
        raise NoOutcome
    if error is not None:
        outcome = {"error": Failed("Resolved", error)}
    else:
        outcome = {"value": parsed("--value", value or "")}
    async with owning(folder, actors) as host:
        effect = _begins_with(prefix, host.effects())
        await host.resolve(effect.id, **outcome)
    if output.as_json:
        settled = "error" if error is not None else "value"
        output.document({"id": effect.id, "session": effect.session, "settled": settled})
    else:
        output.say(f"settled {effect.id}")
        output.note(f"the next host that opens this store goes on with {effect.session}")


def _begins_with(prefix: str, effects: Sequence[EffectStatus]) -> EffectStatus:
    found = [effect for effect in effects if prefix and effect.id.startswith(prefix)]
    if not found:
        raise NoSuchEffect(prefix)
    if len(found) > 1:
        raise ManyEffects(prefix, [effect.id for effect in found])
    return found[0]


def parsed(option: str, text: str) -> Any:
    """The value of a JSON text. Raises `NotJSONText`."""
    try:
        return json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise NotJSONText(option, str(error)) from None


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")
