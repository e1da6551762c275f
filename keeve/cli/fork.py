"""`keeve fork`: another session from one that is there.

The one rule: nothing else happens to the store. The parent's pending work stays as it is, for the host that can do it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dataspace.errors import KeeveError
from keeve.cli.again import chat_with
from keeve.cli.output import Output
from keeve.cli.owning import owning
from keeve.cli.reading import Reading, must_be_there, reading
from keeve.faces import turns_of
from vat.host.host import IdInUse
from vat.host.outside import place


class NoSuchTurn(KeeveError, LookupError):
    """A session has no turn of that number that is over."""

    usage = True

    def __init__(self, id: str, turn: int, over: list[int]) -> None:
        there = f"those that are over are {over[0]} to {over[-1]}" if over else "none is over"
        super().__init__(f"turn {turn} of session {id!r} is not over, or not there ({there}): keeve show {id}")


class TwoPlaces(KeeveError, ValueError):
    """Both `--at` and `--turn` were given."""

    usage = True

    def __init__(self) -> None:
        super().__init__("a fork has one place: give either --at (a seq) or --turn (which turn is its last one)")


class IdTaken(IdInUse):
    """A session has the id of `--into` already; says how to talk to that one."""

    def __init__(self, id: str, folder: Path) -> None:
        super().__init__(id)
        self.args = (
            f"there is a session {id!r} already: talk to it with `{chat_with(id, folder)}`, or choose another id, or "
            "none, with --into",
        )


async def fork_session(
    folder: Path, output: Output, id: str, *, at: int | None, turn: int | None, into: str | None, actors: Sequence[str]
) -> None:
    """Fork a session at a seq (its head), or after a turn.

    Raises `NoSuchSession`, `Deleted`, `NoSuchPoint`, `NoSuchTurn`, `TwoPlaces`, `IdTaken`, `StoreOwned`.
    """
    if at is not None and turn is not None:
        raise TwoPlaces
    if turn is not None:
        must_be_there(folder)
        with reading(folder) as store:
            at = _end_of(store, id, turn)
    async with owning(folder, actors) as host:
        parent = await host.get(id)
        try:
            uid, _ = place(await parent.fork(at=at, into=into))
        except IdInUse as error:
            raise IdTaken(error.id, folder) from error
    with reading(folder) as store:
        row = store.catalog.by_uid(uid)
        assert row is not None
        if output.as_json:
            output.document({"session": row.id, "uid": uid.hex(), "from": id, "at": row.parent_seq})
        else:
            output.say(row.id)


def _end_of(store: Reading, id: str, number: int) -> int:
    """The seq of the record with which a turn was over."""
    uid = store.session(id).uid
    over = {
        turn.number: turn.end for turn in turns_of(store.space.query("(_ . _)", session=uid, lineage=True)) if turn.end
    }
    if number not in over:
        raise NoSuchTurn(id, number, sorted(over))
    return over[number]
