"""`keeve fork`: another session from one that is there.

The one rule: nothing else happens to the store. The parent's pending work stays as it is, for the host that can do it.
"""

from __future__ import annotations

from functools import partial
from typing import Annotated

import trio
from cyclopts import Parameter
from cyclopts.validators import Number

from dataspace.errors import KeeveError
from dataspace.observe.events import Event
from dataspace.patterns import parse
from dataspace.remedies import command
from keeve.cli.again import chat_with
from keeve.cli.options import OWNER_OPTIONS, OwnerOptions
from keeve.cli.output import Output
from keeve.cli.own import Own
from keeve.cli.stores import Acts
from keeve.cli.where import Where
from keeve.faces import turns_of
from vat.host.host import IdInUse


def fork(
    session: str,
    /,
    *,
    at: Annotated[int | None, Parameter(validator=Number(gte=1))] = None,
    turn: Annotated[int | None, Parameter(validator=Number(gte=1))] = None,
    into: str | None = None,
    common: OwnerOptions = OWNER_OPTIONS,
) -> int:
    """Make a new session from another, as it is now, or was after a turn or at a seq. Says the new one's id.

    ```
    keeve fork s1
    keeve fork s1 --turn 3 --into s1-before-the-mistake
    ```

    Parameters
    ----------
    session
        The id of the session to fork.
    at
        The seq of the last record that both have in common; `keeve show` tells the seqs of the turns.
    turn
        The number of the last turn that both have in common.
    into
        The id of the new session.
    """
    trio.run(partial(fork_session, common.where, common.output, session, at=at, turn=turn, into=into, own=common.own))
    return 0


class NoSuchTurn(KeeveError, LookupError):
    """A session has no turn of that number that is over."""

    usage = True

    def __init__(self, id: str, turn: int, over: list[int]) -> None:
        if over:
            there = f"those that are over are {over[0]} to {over[-1]}): {command('show', id)}"
        else:  # a type of one's own may have had many, and states none
            there = f"it has stated of none that it is over): give --at, a seq that {command('chain', id)} tells"
        super().__init__(f"turn {turn} of session {id!r} is not over, or not there ({there}")


class TwoPlaces(KeeveError, ValueError):
    """Both `--at` and `--turn` were given."""

    usage = True

    def __init__(self) -> None:
        super().__init__("a fork has one place: give either --at (a seq) or --turn (which turn is its last one)")


class IdTaken(IdInUse):
    """A session has the id of `--into` already; says how to talk to that one."""

    def __init__(self, id: str, where: Where) -> None:
        super().__init__(id)
        chat = chat_with(id, where.folder, server=where.server)
        self.args = (
            f"there is a session {id!r} already: talk to it with `{chat}`, or choose another id, or none, with --into",
        )


async def fork_session(
    where: Where, output: Output, id: str, *, at: int | None, turn: int | None, into: str | None, own: Own
) -> None:
    """Fork a session at a seq (its head), or after a turn.

    Raises `NoSuchSession`, `Deleted`, `NoSuchPoint`, `NoSuchTurn`, `TwoPlaces`, `IdTaken`, `StoreOwned`.
    """
    if at is not None and turn is not None:
        raise TwoPlaces
    async with where.acting(own) as store:
        if turn is not None:
            at = await _end_of(store, id, turn)
        parent = await store.get(id)
        try:
            child = await parent.fork(at=at, into=into)
        except IdInUse as error:
            raise IdTaken(into or "", where) from error
        row = await store.look("row", id=await store.name(child))
    if output.as_json:
        output.document({"session": row["id"], "uid": row["uid"], "from": id, "at": row["forked_from"]["at"]})
    else:
        output.say(row["id"])


async def _end_of(store: Acts, id: str, number: int) -> int:
    """The seq of the record with which a turn was over."""
    events = store.events(parse("(_ . _)"), after="start", until=None, session=id, lineage=True, follow=False)
    told = [event async for event in events if isinstance(event, Event)]
    over = {turn.number: turn.end for turn in turns_of(told) if turn.end}
    if number not in over:
        raise NoSuchTurn(id, number, sorted(over))
    return over[number]
