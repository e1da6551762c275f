"""`keeve effects` and `keeve resolve`: what waits for an outcome, and giving one to what nobody will finish.

An effect that has started, in a store that no process owns, has an outcome that nobody knows. The next host breaks it
with `OutcomeUnknown`, unless somebody who knows better settles it first.

The one rule: `resolve` settles what it was told to and takes up nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dataspace.errors import KeeveError
from keeve.cli.faces import face
from keeve.cli.output import Output
from keeve.cli.owning import owning
from keeve.cli.reading import Reading
from keeve.cli.text import shortened
from snapshots.cache import PageCache
from vat.errors import Failed
from vat.heap.pending import OpenEffect, Unread, open_effects
from vat.host.host import EffectStatus, NoSuchEffect


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


def state_of(effect: OpenEffect, owner: int | None) -> str:
    """How far an open effect is, as `EffectStatus.state` says it; `owner` is the process that has the store."""
    return ("unknown" if owner is None else "running") if effect.started else "wanted"


def effect_face(effect: OpenEffect, owner: int | None) -> dict[str, Any]:
    """An open effect in JSON: the fields of `EffectStatus`."""
    return {
        "id": effect.id,
        "session": effect.session,
        "device": effect.device,
        "method": effect.method,
        "args": face(effect.args),
        "keywords": face(effect.keywords),
        "state": state_of(effect, owner),
    }


def list_effects(store: Reading, output: Output) -> int:
    """Tell of the effects that have no outcome yet, of all sessions. Gives 1 when one of these could not be read."""
    owner = store.owner
    effects: list[OpenEffect] = []
    unread: list[Unread] = []
    for each in open_effects(store.catalog, store.store.read, PageCache(8 << 20)):
        if isinstance(each, Unread):
            unread.append(each)
        else:
            effects.append(each)
    if output.as_json:
        output.document(
            {
                "owner": owner,
                "effects": [effect_face(effect, owner) for effect in effects],
                "unreadable": [{"session": each.session, "what": str(each.error)} for each in unread],
            }
        )
    elif effects:
        _tell(effects, owner, output)
    elif not unread:
        output.note("no effect waits for an outcome")
    for each in unread:
        output.note(f"session {each.session}: its effects cannot be read: {each.error}", "red")
    return 1 if unread else 0


def _tell(effects: Sequence[OpenEffect], owner: int | None, output: Output) -> None:
    rows = [
        (
            effect.id,
            effect.session,
            state_of(effect, owner),
            f"{effect.device}.{effect.method}",
            shortened(json.dumps(face([*effect.args, *effect.keywords.values()]), ensure_ascii=False), 200),
        )
        for effect in effects
    ]
    output.table(("EFFECT", "SESSION", "STATE", "CALL", "ARGUMENTS"), rows)


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
