"""Remains: what of deleted sessions, and of erased content, lies in a log and nobody living needs.

A fork needs the records of its ancestors up to where it left them, its deleted ancestors' too. So what a deletion sets
free is what lies above the highest point that a living fork goes back to; and of each deleted ancestor what only the
deleted one had needed.

The one rule: it follows from the log, so it can be asked again after any crash, and what is gone is named again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from dataspace.catalog.checked import Checked
from dataspace.catalog.lookups import LATEST
from dataspace.drafts import read_deeds
from dataspace.errors import KeeveError
from dataspace.log.erasing import by_segment
from dataspace.log.frames import place
from dataspace.log.store import Erasure, Store, Stored
from dataspace.log.unsound import NoFrame
from dataspace.log.verdicts import SessionDamaged
from dataspace.records import STORE_UID, Kind
from dataspace.values.encoding import BadEncoding

DELETED: Final = "deleted"
ERASED: Final = "erased"
RECLAIMED: Final = "reclaimed"
SALVAGED: Final = "salvaged"
"""The labels of what tombstones, erasures, reclaiming and salvage state."""


ENOUGH: Final = 1 << 20
"""Bytes of a segment that make it worth ending for what is to go of it: or there would be a file for each deletion."""


class Done(NamedTuple):
    """The positions up to which tombstones and erasures are seen to."""

    deleted: int = 0
    erased: int = 0


def done(store: Store, catalog: Checked) -> Done:
    """How far a log has been reclaimed. Where that cannot be read, nothing has."""
    known, unread = last_done(catalog)
    return Done() if unread else known


def last_done(catalog: Checked) -> tuple[Done, int]:
    """How far a log has been reclaimed, by the newest record of that which can be read; and the position of the newest
    one of all, if that one cannot, else 0."""
    unread = 0
    for position in reversed([*catalog.positions(STORE_UID, RECLAIMED)]):
        stored = _there(catalog, position)
        if stored is None:
            unread = unread or position
            continue
        if stored.header.kind != Kind.RECLAIMED:
            continue  # one that cannot be read is found under every label
        try:
            return far(stored), unread
        except (KeeveError, BadEncoding):
            unread = unread or position
    return Done(), unread


def far(stored: Stored) -> Done:
    """How far a record says that a log has been reclaimed. Raises what reading it raises."""
    return done_in(said_by(stored))


def done_in(message: Any) -> Done:
    """The same, by what that record says."""
    match message:
        case {"deleted": int(deleted), "erased": int(erased)}:
            return Done(deleted, erased)
    return Done()


def tombstones(catalog: Checked, after: int) -> Iterator[int]:
    """The positions of the tombstones after `after`."""
    for position in catalog.positions(None, DELETED, after):
        stored = _there(catalog, position)
        if stored is not None and stored.header.kind == Kind.DELETE and stored.header.uid != STORE_UID:
            yield position


def erasures(catalog: Checked, after: int) -> Iterator[int]:
    """The positions of the records after `after` that say what is erased."""
    for position in catalog.positions(STORE_UID, ERASED, after):
        stored = _there(catalog, position)
        if stored is not None and stored.header.kind == Kind.ERASE:
            yield position


def salvaged(catalog: Checked) -> int:
    """The position of the newest record that says that a log was made anew, or 0: what those before it say of positions
    is said of another log."""
    last = 0
    for position in catalog.positions(STORE_UID, SALVAGED):
        stored = _there(catalog, position)
        if stored is not None and stored.header.kind == Kind.SALVAGED:
            last = position
    return last


def _there(catalog: Checked, position: int) -> Stored | None:
    """The record at a position that a catalog has noted; None where no sound frame is left of it, as a flipped bit in a
    header does it. Whose that was is damaged, and known to be; the rest of the log is asked all the same."""
    try:
        return catalog.stored(position)
    except (SessionDamaged, NoFrame):
        return None


def said_by(stored: Stored) -> Any:
    """What a record of the runtime's own says. Raises what reading it raises."""
    return read_deeds(stored.body().deeds).message


def left_out(message: Any) -> dict[int, frozenset[int]] | None:
    """What a record that says that a log was made anew says is not there: the numbers of cells (-1: the body of the
    record), by the positions of their records. None where it does not say."""
    said = message.get("erased")
    return None if said is None else {place: frozenset(numbers) for place, numbers in said}


def erased(catalog: Checked, position: int) -> Iterator[Erasure]:
    """What the record at `position` says is erased, of what is in the log. Raises what reading it raises."""
    for said, numbers in erased_cells(said_by(catalog.stored(position))).items():
        address = catalog.at(said)
        if address is not None:
            yield Erasure(address, sorted(numbers), body=False)


def erased_cells(message: Any) -> dict[int, frozenset[int]]:
    """The cells that a record of the store's own says are erased: their numbers, by the positions of their records."""
    return {place: frozenset(numbers) for place, numbers in message["cells"]}


def remains(catalog: Checked, tombstone: int) -> Iterator[Erasure]:
    """What the session whose tombstone is at that position leaves to nobody: its records, and those of ancestors."""
    for leg in reversed(catalog.lineage(catalog.stored(tombstone).header.uid)):
        row = catalog.by_uid(leg.uid)
        if row is None or not row.deleted:
            return  # a living ancestor needs all that is its own, and its ancestors'
        upto = min(leg.upto, row.seq - 1)  # its tombstone stays: that keeps the id
        for seq in range(max(needed(catalog, leg.uid), row.parent_seq) + 1, upto + 1):
            address = catalog.locate(leg.uid, seq)
            if address is not None:  # else it is a parent's, and no record that can be read says whose
                yield Erasure(address)


def steps(erasures: Iterable[Erasure]) -> list[list[Erasure]]:
    """Erasures as they go together: each list costs a store the copy of one file."""
    return list(by_segment(erasures).values())


def unfinished(store: Store, erasures: Iterable[Erasure]) -> bool:
    """Whether any of these lies where the store writes now, and has not written `ENOUGH` yet."""
    mark = store.mark
    if mark.offset >= ENOUGH:
        return False
    return any(place(erasure.address)[0] == mark.segment for erasure in erasures)


def needed(catalog: Checked, uid: bytes) -> int:
    """The seq up to which living forks need a session's own records; 0 when none does. O(the forks of forks)."""
    most = 0
    met: dict[bytes, int] = {}
    todo = [(uid, LATEST)]
    while todo:
        at, bound = todo.pop()
        for fork in catalog.forks(at):
            upto = min(bound, fork.parent_seq)
            if upto <= max(most, met.get(fork.uid, 0)):
                continue
            met[fork.uid] = upto
            if fork.deleted:
                todo.append((fork.uid, upto))
            else:
                most = upto
    return most
