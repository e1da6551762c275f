"""`keeve create`, `turn`, `queue`, `steer`, `interrupt`, `snapshot`, `facts`: what a session is asked for, once.

The one rule: an input has a request id, by which what the session states of it is found. Who stops waiting changes
nothing.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from typing import Any, ClassVar, Final

import trio

from dataspace.errors import KeeveError
from dataspace.observe.cursor import Cursor
from dataspace.observe.events import Event
from dataspace.patterns import parse
from keeve.cli.effects import parsed
from keeve.cli.log import stated
from keeve.cli.output import Output
from keeve.cli.outside import LOOK, WaitsOutside
from keeve.cli.sessions import in_words
from keeve.cli.stores import Acts, Looks
from keeve.cli.text import local_time, time_said
from keeve.cli.where import Where
from keeve.faces import face
from keeve.looking import StatesNoTurns, must_state_turns
from vat.errors import Failed

ACCEPTED: Final = ("turn", "steer")
"""What a session states of an input that it takes: as a turn of its own, or as a part of the one that runs."""


class BadField(KeeveError, ValueError):
    """What a session is to begin with is no field and its value."""

    usage: ClassVar[bool] = True

    def __init__(self, given: str) -> None:
        super().__init__(f"--field {given!r:.100} is no field: write a name, =, and JSON, as in --field 'max_steps=5'")


def fields_of(given: Sequence[str], system: str | None, model: str | None) -> dict[str, Any]:
    """What a session is to begin with. Raises `BadField`, `NotJSONText`.

    >>> fields_of(["max_steps=5"], "Be brief.", None)
    {'max_steps': 5, 'system': 'Be brief.'}
    """
    fields: dict[str, Any] = {}
    for each in given:
        name, equals, text = each.partition("=")
        if not equals or not name.isidentifier():
            raise BadField(each)
        fields[name] = parsed("--field", text, name)
    given_names = {"system": system, "model": model}
    return fields | {name: value for name, value in given_names.items() if value is not None}


async def create_session(
    where: Where, output: Output, id: str | None, *, type: str, fields: Mapping[str, Any], actors: Sequence[str]
) -> None:
    """Make a session, and say its id. The store is made if there is none."""
    async with where.acting(actors, makes=True) as store:
        ref = await store.spawn(type, id, fields)
        row = await store.look("row", id=await store.name(ref))
    if output.as_json:
        output.document(row)
    else:
        output.say(row["id"])


async def take_turn(where: Where, output: Output, id: str, text: str, *, actors: Sequence[str]) -> None:
    """Say something, and tell what is answered. Raises what the turn does, and `WaitsOutside`."""
    async with where.acting(actors, talking=True) as store:
        said = await _answer(store, id, text)
    if output.as_json:
        output.document(said)
    else:
        output.say(in_words(said["output"]))


async def accept(where: Where, output: Output, method: str, id: str, text: str, *, actors: Sequence[str]) -> None:
    """Have an input accepted, durably, without waiting for what comes of it. `method` is `turn` or `steer`."""
    async with where.acting(actors, talking=True) as store:
        event = await _accepted(store, method, id, text)
        alone = store.alone
    said = {"session": id, "turn": event.captures["n"], "joins": event.value.label == "steer"}
    if output.as_json:
        output.document({**said, "seq": event.seq, "cursor": str(event.cursor)})
        return
    output.say(f"joins turn {said['turn']}" if said["joins"] else f"turn {said['turn']}")
    if alone:
        output.note(f"the next host that opens this store goes on with {id}")


async def interrupt(where: Where, output: Output, id: str, turn: int | None, *, actors: Sequence[str]) -> None:
    """End the turn of that number, or the one that runs."""
    async with where.acting(actors) as store:
        ended = await (await store.get(id)).interrupt(turn=turn)
    if output.as_json:
        output.document({"session": id, "turn": ended})
    else:
        output.say("no turn was to end" if ended is None else f"turn {ended} was interrupted")


async def snapshot(where: Where, output: Output, id: str, *, actors: Sequence[str]) -> None:
    """Take a snapshot, and tell the value that names it."""
    async with where.acting(actors) as store:
        named = await (await store.get(id)).snapshot()
    if output.as_json:
        output.document({"session": named.session, "seq": named.seq, "root": named.root, "hash": named.hash})
    else:
        output.say(f"{named.session} at seq {named.seq}, hash {named.hash}")


async def list_facts(
    store: Looks, output: Output, pattern: str, *, at: int | None, session: str | None, lineage: bool
) -> None:
    """Tell of the facts that match and hold, now or at a position."""
    asked = parse(pattern)
    found: list[Mapping[str, Any]] = []
    after: str | None = "0"
    while after is not None:
        part = await store.look("facts", pattern=str(asked), at=at, session=session, lineage=lineage, after=after)
        found += part["facts"]
        at, after = part["at"], part["next"]
    if output.as_json:
        output.document({"facts": found})
        return
    for fact in found:
        where = f"{fact['position']:>6}  {local_time(time_said(fact['time']))}  {fact['session'] or '(the store)'}"
        output.say(f"{where}  {stated('assert', fact['text'])}")
    if not found:
        output.note(f"no fact holds that matches {asked}")


# An input on its way.


async def _answer(store: Acts, id: str, text: str) -> dict[str, Any]:
    """What a turn came to."""
    ref, request, head = await _ready(store, id)
    async with trio.open_nursery() as nursery:
        if store.alone:
            nursery.start_soon(_see_what_is_missing, store, id, request, head)
        try:
            output = await ref.turn(text, request=request)
        except KeeveError:
            raise
        except Exception as error:
            raise Failed(type(error).__name__, str(error)) from error
        nursery.cancel_scope.cancel()
    number, done = await _turn_of(store, id, request, head)
    said: Mapping[str, Any] = done or {}
    result = {"session": id, "turn": number, "output": face(output)}
    return {**result, "usage": face(said.get("usage")), "limit": said.get("limit")}


async def _turn_of(store: Acts, id: str, request: str, after: Cursor) -> tuple[int | None, Mapping[str, Any] | None]:
    """The number of the turn that an input is, and what was stated when that was done; None for what is not there."""
    number, done = None, None
    events = store.events(parse("(_ ?n . _)"), after=after, until=None, session=id, lineage=False, follow=False)
    async for event in events:
        if not isinstance(event, Event):
            continue
        label, keywords = event.value.label, event.value.keywords
        if label == "turn" and keywords.get("request") == request:
            number = event.captures["n"]
        elif label == "turn-done" and number is not None and event.captures["n"] == number:
            done = keywords
    return number, done


async def _accepted(store: Acts, method: str, id: str, text: str) -> Event:
    """The event with which a session has taken an input."""
    ref, request, head = await _ready(store, id)
    await must_state_turns(ref, id)
    pattern = parse(f'(_ ?n _ #:request "{request}" . _)')
    found: list[Event] = []

    async def hear(follow: bool) -> None:
        told = store.events(pattern, after=head, until=None, session=id, lineage=False, follow=follow)
        async with aclosing(told) as events:
            async for event in events:
                if isinstance(event, Event) and event.value.label in ACCEPTED:
                    found.append(event)
                    return

    async with trio.open_nursery() as nursery:

        async def wait() -> None:
            await hear(True)
            nursery.cancel_scope.cancel()

        nursery.start_soon(wait)
        try:
            await getattr(ref, method)(text, request=request)
        except Exception:
            # It was refused; or else it was accepted, and its turn has failed meanwhile.
            await hear(False)
            if not found:
                raise
        else:
            await hear(False)
        nursery.cancel_scope.cancel()
    if not found:  # of a type that tells a status as conversations have it, and states nothing
        raise StatesNoTurns(id)
    return found[0]


async def _ready(store: Acts, id: str) -> tuple[Any, str, Cursor]:
    """The ref to a session, an id for a request, and where the log ends before it."""
    ref = await store.get(id)
    head = Cursor.parse((await store.look("end", until=None))["cursor"])
    return ref, f"cli-{secrets.token_hex(12)}", head


async def _see_what_is_missing(store: Acts, id: str, request: str, head: Cursor) -> None:
    """Raise `WaitsOutside` when a session waits for what nobody here gives."""
    before = ""
    while True:
        await trio.sleep(LOOK)
        now = _missing(await store.look("waits", id=id))
        if now and now == before:  # twice, since it may just be about to go on
            raise WaitsOutside(now, (await _turn_of(store, id, request, head))[0])
        before = now


def _missing(waits: Mapping[str, Any]) -> str:
    effects = [effect for effect in waits["effects"] if not effect["due"]]
    if any(effect["state"] == "running" for effect in effects):
        return ""
    calls = [f"keeve approve {call['session']} {call['id']}" for call in waits["approvals"]]
    return "; ".join(
        [f"a person has to approve: {call} (or keeve refuse, with a reason)" for call in calls]
        + [
            f"{effect['device']}.{effect['method']} is {effect['state']}: keeve resolve {effect['id']} settles it"
            for effect in effects
        ]
    )
