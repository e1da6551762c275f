"""`keeve create`, `turn`, `queue`, `steer`, `interrupt`, `snapshot`, `facts`: what a session is asked for, once.

The one rule: an input has a request id, by which what the session states of it is found. Who stops waiting changes
nothing.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

import trio

from dataspace.errors import KeeveError
from dataspace.observe.cursor import Cursor
from dataspace.patterns import parse
from dataspace.remedies import command
from keeve.cli.effects import parsed
from keeve.cli.log import stated
from keeve.cli.output import Output
from keeve.cli.outside import LOOK, WaitsOutside, missing
from keeve.cli.own import Own
from keeve.cli.sessions import in_words
from keeve.cli.stores import Acts, Looks
from keeve.cli.text import local_time, time_said
from keeve.cli.where import Where
from keeve.looking import Input, end_turn, outcome, taken_face


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
    where: Where, output: Output, id: str | None, *, type: str, fields: Mapping[str, Any], own: Own
) -> None:
    """Make a session, and say its id. The store is made if there is none."""
    async with where.acting(own, makes=True) as store:
        ref = await store.spawn(type, id, fields)
        row = await store.look("row", id=await store.name(ref))
    if output.as_json:
        output.document(row)
    else:
        output.say(row["id"])


async def take_turn(where: Where, output: Output, id: str, text: str, request: str | None = None, *, own: Own) -> None:
    """Say something, once with one `request`, and tell what is answered.

    Raises what the turn does, and `WaitsOutside`.
    """
    async with where.acting(own, talking=True) as store:
        ref, input = await _ready(store, id, request)
        with again_by(output, input.request):
            said = await _answer(store, ref, input, text)
    if output.as_json:
        output.document(said)
    else:
        output.say(in_words(said["output"]))
        if said["limit"] is not None:
            tells = f"{command('show', id)} tells how far it came"
            output.note(f"turn {said['turn']} ended at its limit of {said['limit']}: {tells}")


async def accept(
    where: Where, output: Output, method: str, id: str, text: str, request: str | None = None, *, own: Own
) -> None:
    """Have an input accepted, durably, without waiting for what comes of it. `method` is `turn` or `steer`."""
    async with where.acting(own, talking=True) as store:
        ref, input = await _ready(store, id, request)
        with again_by(output, input.request):
            said = taken_face(id, await input.accepted(ref, method, text))
        alone = store.alone
    if output.as_json:
        output.document(said)
        return
    output.say(f"joins turn {said['turn']}" if said["joins"] else f"turn {said['turn']}")
    if alone:
        output.note(f"the next host that opens this store goes on with {id}")


async def interrupt(where: Where, output: Output, id: str, turn: int | None, *, own: Own) -> None:
    """End the turn of that number, or the one that runs."""
    async with where.acting(own) as store:
        ended = await end_turn(await store.get(id), id, turn)
    if output.as_json:
        output.document(ended)
    elif "answer" in ended:
        output.say(f"its interrupt() gave {json.dumps(ended['answer'], ensure_ascii=False)}")
    else:
        output.say("no turn was to end" if ended["turn"] is None else f"turn {ended['turn']} was interrupted")


async def snapshot(where: Where, output: Output, id: str, *, own: Own) -> None:
    """Take a snapshot, and tell the value that names it."""
    async with where.acting(own) as store:
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


@contextmanager
def again_by(output: Output, request: str) -> Iterator[None]:
    """Where the server goes away meanwhile, say how the same is said again."""
    try:
        yield
    except BaseException as error:
        gone = error.split(ConnectionError)[0] if isinstance(error, BaseExceptionGroup) else error
        if isinstance(gone, ConnectionError | BaseExceptionGroup):
            output.note(f"with --request-id {request} it is said once, however often, and answered as it was")
        raise


async def _answer(store: Acts, ref: Any, said: Input, text: str) -> dict[str, Any]:
    """What a turn came to."""
    async with trio.open_nursery() as nursery:
        if store.alone:
            nursery.start_soon(_see_what_is_missing, store, said)
        output = await outcome(ref.turn(text, request=said.request))
        nursery.cancel_scope.cancel()
    return await said.told(output)


async def _ready(store: Acts, id: str, request: str | None) -> tuple[Any, Input]:
    """The ref to a session, and an input that it is to be given, of which nothing is stated yet unless it has a
    `request` of before."""
    ref = await store.get(id)
    head = Cursor.parse((await store.look("end", until=None))["cursor"])
    again, request = request is not None, request or f"cli-{secrets.token_hex(12)}"
    return ref, Input(observe=store.observe, session=id, id=id, request=request, head=head, again=again)


async def _see_what_is_missing(store: Acts, said: Input) -> None:
    """Raise `WaitsOutside` when a session waits for what nobody here gives."""
    before = ""
    while True:
        await trio.sleep(LOOK)
        now = await missing(store, said.id)
        if now and now == before:  # twice, since it may just be about to go on
            accepted = await said.stated("turn")
            raise WaitsOutside(now, None if accepted is None else accepted.captures["n"])
        before = now
