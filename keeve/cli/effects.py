"""`keeve effects` and `keeve resolve`: what waits, for what, and giving an outcome to what nobody will finish.

An effect that has started, in a store that no process owns, has an outcome that nobody knows. The next host breaks it
with `OutcomeUnknown`, unless somebody who knows better settles it first.

The one rule: `resolve` settles what it was told to and takes up nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from shlex import quote
from typing import Annotated, Any

import trio
from cyclopts import Parameter
from cyclopts.validators import Number

from dataspace.errors import KeeveError
from keeve.cli.options import OPTIONS, OWNER_OPTIONS, Flag, Options, OwnerOptions
from keeve.cli.output import Output
from keeve.cli.own import Own
from keeve.cli.stores import Looks
from keeve.cli.text import as_given, local_time, shortened, time_said
from keeve.cli.waiting import Told, state_in_words, waits_for, with_words
from keeve.cli.where import Where
from keeve.looking import KINDS, PAGE, NoSuchLook
from vat.host.resolving import NoSuchEffect


def effects(
    *,
    session: str | None = None,
    ids: Annotated[bool, Flag] = False,
    calls: Annotated[bool, Flag] = False,
    after: str = "",
    limit: Annotated[int | None, Parameter(validator=Number(gte=1))] = None,
    common: Options = OPTIONS,
) -> int:
    """List what has no outcome yet: calls of models and tools, timers, what a person is to approve, fibers that wait.
    Of a session that waits for none of these, promises: what another session or an actor of its own owes.

    One that has *started* while no process owns the store is of unknown outcome.

    ```
    keeve effects
    keeve effects --session s1
    keeve effects --limit 20 --json
    ```

    Parameters
    ----------
    session
        Only what this session waits for.
    ids
        Only the ids of effects, one on each line.
    calls
        Only the ids of calls that wait for a person, one on each line.
    after
        Only what follows: `next` of a page gives the next one.
    limit
        At most so many of all of these.
    """
    how: dict[str, Any] = {"session": session, "ids": ids, "calls": calls, "after": after, "limit": limit}
    return common.looked_at(partial(list_effects, output=common.output, **how))


def resolve(
    effect: str,
    /,
    *,
    value: str | None = None,
    error: str | None = None,
    again: Annotated[bool, Flag] = False,
    common: OwnerOptions = OWNER_OPTIONS,
) -> int:
    """Settle a call whose outcome nobody knows, with what you have found out; or have it called again.

    ```
    keeve resolve 3f2a… --value '"the mail was sent"'
    keeve resolve 3f2a… --error 'the mail was not sent'
    keeve resolve 3f2a… --again
    ```

    Parameters
    ----------
    effect
        The id of the effect, as `keeve effects` tells it, or the beginning of it.
    value
        What it returned, as JSON.
    error
        Why it failed, in words.
    again
        Have it called once more, by the server that holds it (`keeve serve --unknown hold`).
    """
    how: dict[str, Any] = {"value": value, "error": error, "again": again, "own": common.own}
    trio.run(partial(resolve_effect, common.where, common.output, effect, **how))
    return 0


class NotJSONText(KeeveError, ValueError):
    """A text on the command line (`option`) that is not JSON."""

    usage = True

    def __init__(self, option: str, problem: str, text: str = "done", name: str = "") -> None:
        meant = json.dumps(text if 0 < len(text) <= 100 else "done", ensure_ascii=False)
        super().__init__(
            f"{option}{f' {name}' if name else ''} is not JSON ({problem}): give a text its quotes, as in "
            f"{option} {quote(f'{name}={meant}' if name else meant)}"
        )


class NoOutcome(KeeveError, ValueError):
    """Not exactly one of `--value`, `--error` and `--again` was given."""

    usage = True

    def __init__(self) -> None:
        super().__init__(
            "an outcome is a value or an error, or it is called again: give one of --value (as JSON), --error (in "
            "words) and --again"
        )


class ManyEffects(KeeveError, LookupError):
    """The ids of several open effects begin so."""

    usage = True

    def __init__(self, prefix: str, ids: Sequence[str]) -> None:
        super().__init__(f"{len(ids)} open effects begin with {prefix!r}: {', '.join(ids[:5])}; give more of it")


async def list_effects(
    store: Looks,
    output: Output,
    *,
    session: str | None = None,
    ids: bool = False,
    calls: bool = False,
    after: str = "",
    limit: int | None = None,
) -> int:
    """Tell of the effects that have no outcome yet, and of what else waits, of all sessions or of one.

    ids: of the effects nothing but their ids; calls: of the calls that wait for a person. after, limit: a page of it.
    Gives 1 when one of the sessions could not be read.
    """
    only = [kind for kind, alone in (("effects", ids), ("approvals", calls)) if alone]
    how: dict[str, Any] = {"kinds": ["unreadable", *only]} if only else {}
    if session is not None:
        how["id"] = session
    told = with_words(await _all(store, "waiting" if session is None else "waits", after, limit, **how))
    if output.as_json:
        output.document(told)
    elif ids or calls:
        for each in [*(told["effects"] if ids else ()), *(told["approvals"] if calls else ())]:
            output.say(each["id"])
    else:
        tables = (
            (("EFFECT", "SESSION", "STATE", "CALL", "ARGUMENTS"), _effect_rows(told["effects"], told["owner"])),
            (("APPROVAL", "SESSION", "SINCE", "CALL", "ARGUMENTS"), _approval_rows(told["approvals"])),
            (("FIBER", "SESSION", "SINCE", "METHOD", "WAITS FOR"), _fiber_rows(told["fibers"])),
            (("PROMISE", "SESSION", "WAITS FOR"), _promise_rows(told["promises"])),
        )
        shown = [table for table in tables if table[1]]
        for number, (columns, rows) in enumerate(shown):
            if number:
                output.say()
            output.table(columns, rows)
        if told["next"] is not None:
            output.note(f"there may be more: --after {quote(told['next'])}")
        if not shown and not told["unreadable"]:
            output.note("nothing waits for an outcome")
    for each in told["unreadable"]:
        away = each.get("away", False)
        said = "what it waits for is not here" if away else "its effects cannot be read"
        output.note(f"session {each['session']}: {said}: {each['what']}", "yellow" if away else "red")
    return 1 if told["unreadable"] else 0


async def _all(store: Looks, what: str, after: str = "", limit: int | None = None, **how: Any) -> dict[str, Any]:
    """All pages of what waits, or as many as have `limit` items, as one."""
    told = await store.look(what, after=after, limit=_some(limit), **how)
    while told["next"] is not None and (limit is None or _count(told) < limit):
        left = None if limit is None else limit - _count(told)
        page = await store.look(what, after=told["next"], limit=_some(left), **how)
        told = {**page, **{kind: told[kind] + page[kind] for kind in KINDS}}
    return told


def _count(told: Told) -> int:
    return sum(len(told[kind]) for kind in KINDS)


def _some(limit: int | None) -> int:
    return PAGE if limit is None else min(limit, PAGE)


def _effect_rows(effects: Sequence[Told], owner: int | None) -> list[tuple[str, ...]]:
    return [
        (
            effect["id"],
            effect["session"],
            state_in_words(effect, owner),
            f"{effect['device']}.{effect['method']}",
            local_time(time_said(effect["due"])) if effect["due"] else shortened(_given(effect), 200),
        )
        for effect in effects
    ]


def _given(effect: Told) -> str:
    """What an effect was given: a list in JSON, and the keywords by name."""
    keywords = effect["keywords"]
    if "$object" in keywords:  # one of the names begins with a dollar sign
        keywords = dict(keywords["$object"])
    named = [f"{name}={_json(value)}" for name, value in keywords.items()]
    return " ".join([*([_json(effect["args"])] if effect["args"] or not named else []), *named])


def _json(value: Any) -> str:
    """The same as `as_given`, with the quotes of a text: it stands among others."""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else as_given(value)


def _approval_rows(approvals: Sequence[Told]) -> list[tuple[str, ...]]:
    return [
        (call["id"], call["session"], _local(call["since"]), call["name"], shortened(as_given(call["arguments"]), 200))
        for call in approvals
    ]


def _fiber_rows(fibers: Sequence[Told]) -> list[tuple[str, ...]]:
    return [
        (str(fiber["fiber"]), fiber["session"], _local(fiber["since"]), fiber["method"], waits_for(fiber))
        for fiber in fibers
    ]


def _promise_rows(promises: Sequence[Told]) -> list[tuple[str, ...]]:
    return [(str(each["promise"]), each["session"], each["waits_for"][0]["what"]) for each in promises]


def _local(time: str) -> str:
    return local_time(time_said(time))


async def resolve_effect(
    where: Where,
    output: Output,
    prefix: str,
    *,
    value: str | None = None,
    error: str | None = None,
    again: bool = False,
    own: Own,
) -> None:
    """Settle the one effect whose id begins with `prefix`, with a value (JSON) or an error, or have it called `again`.

    Raises `NoOutcome`, `NotJSONText`, `NotAValue`, `NoSuchEffect`, `ManyEffects`, `StoreOwned`, `NoSuchActors`;
    `UnknownActorType` for the effect of a session whose code is not here: that takes the outcome at once; `BadOutcome`
    where nobody would call it again, as a host of this command.
    """
    if (value is not None) + (error is not None) + again != 1:
        raise NoOutcome
    outcome: dict[str, Any] = {"error": error} if error is not None else {"again": True}
    if value is not None:
        outcome = {"value": parsed("--value", value)}
    async with where.acting(own) as store:
        effect = await _open_effect(store, prefix)
        await store.resolve(effect["session"], effect["id"], outcome)
        passing = store.passing
    if output.as_json:
        output.document({"id": effect["id"], "session": effect["session"], "settled": next(iter(outcome))})
    elif again:
        output.say(f"called again {effect['id']}")
    else:
        output.say(f"settled {effect['id']}")
        if passing:
            output.note(f"the next host that opens this store goes on with {effect['session']}")


async def _open_effect(store: Looks, prefix: str) -> Told:
    effects = (await _all(store, "waiting", effect=prefix, kinds=["effects"]))["effects"]
    found = [effect for effect in effects if prefix and effect["id"].startswith(prefix)]
    if not found:
        became = await _became(store, prefix) if prefix else {}
        raise NoSuchEffect(became.get("id", prefix), became.get("became", ""))
    if len(found) > 1:
        raise ManyEffects(prefix, [effect["id"] for effect in found])
    effect: Told = found[0]
    return effect


async def _became(store: Looks, prefix: str) -> Told:
    """What became of an effect that is not open; nothing where a server of an earlier version cannot tell."""
    try:
        return await store.look("settled", effect=prefix)
    except NoSuchLook:
        return {}


def parsed(option: str, text: str, name: str = "") -> Any:
    """The value of a JSON text, which an option gives (that of a `name`, as `name=text`). Raises `NotJSONText`."""
    try:
        return json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise NotJSONText(option, str(error), text, name) from None


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")
