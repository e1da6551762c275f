"""Allowing: what is gone from a log, held against the records that allow it to be; and what these say is gone, held
against the log.

| what is gone | who allows it |
|---|---|
| all of a record, below its session's tombstone | the tombstone, but for what living forks need |
| cells | the records that say what is erased, by position and number |
| pages of old snapshots | that there are `KEPT` newer ones of the session, or a tombstone |
| archived cells and deeds of cranks | the records that name what goes to an archive, until it is brought back |
| what a salvage has left out | its record in the store's chain |

The one rule: what nobody allows was taken out by a hand, however well all checksums fit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from heapq import merge
from typing import Any, NamedTuple

from dataspace.catalog.catalog import Catalog
from dataspace.catalog.lookups import LATEST
from dataspace.catalog.remains import last_done, left_out, needed, remains, said_by, salvaged, tombstones
from dataspace.drafts import read_deeds
from dataspace.errors import KeeveError
from dataspace.log.frames import Type
from dataspace.log.gone import Missing
from dataspace.log.leaving import DEEDS, Named
from dataspace.log.segments import SegmentStore
from dataspace.log.store import Erasure
from dataspace.records import STORE_UID, Header, Kind
from dataspace.values.encoding import BadEncoding
from vat.heap.reaching import KEPT

_ARCHIVING = "archiving", "archived", "brought-back"
_ANEW = frozenset((Kind.SALVAGED,))
_ALL = 1 << 30
"""As many snapshots as there are."""


class Taken(NamedTuple):
    """Something that is not as records say: of which record (its header and address), and what, in words. `kinds` are
    those of which a record of the store's own, if there was one, would allow all of it."""

    header: Header
    address: int
    what: str
    kinds: frozenset[Kind] = frozenset()


class Allowing:
    """What the records of a log allow to be gone. `catalog` is made of all of them; `end` is the position up to which
    the log had come when it was looked at. Costs memory for each session that is asked for, what names archived
    content (some 3 bytes for each record), and a reading of each record that something is gone of."""

    def __init__(self, store: SegmentStore, catalog: Catalog, end: int) -> None:
        self._catalog = catalog
        self._erased = store.withheld
        self._sessions: dict[bytes, tuple[int, int, int]] = {}
        self._snapshots: dict[bytes, dict[int, int]] = {}
        self._salvaged = salvaged(catalog)
        self._left_out = _read(catalog, self._salvaged) if self._salvaged else {}
        self._archived, self._unnamed = _archived(catalog, self._salvaged, end)

    def taken(self, gone: Iterable[Missing]) -> Iterator[Taken]:
        """What of this nobody allows to be gone, a record at a time, in order."""
        at, header, address = 0, None, 0
        found: list[Missing] = []
        for each in gone:
            if each.position > self._catalog.head.position:
                break  # it came after what is known here, and what allows it may have as well
            if each.position != at:
                if header is not None and found:
                    yield _told(header, address, found)
                stored = self._catalog.stored(each.position)
                at, header, address, found = each.position, stored.header, stored.address, []
            assert header is not None
            if not self._allows(header, each):
                found.append(each)
        if header is not None and found:
            yield _told(header, address, found)

    def _allows(self, header: Header, each: Missing) -> bool:
        living, tombstone, born = self._session(header.uid)
        if max(living, born) < header.seq < tombstone:
            return True
        salvaged = header.position < self._salvaged
        if salvaged and self._left_out is None:
            return True  # it was done when salvages did not say what they leave out
        if each.was == Type.RECORD:
            left_out = salvaged and -1 in (self._left_out or {}).get(header.position, ())
            return left_out or (each.archived and self._archives(header, each))
        if each.was == Type.PAGE:
            return salvaged or bool(tombstone) or self._superseded(header)
        return self._archives(header, each) if each.archived else self._erased.has(header.position, each.number)

    def _archives(self, header: Header, each: Missing) -> bool:
        """Whether it went to an archive."""
        number = DEEDS if each.was == Type.RECORD else each.number
        named = self._archived.has(header.position, number)
        return header.kind == Kind.CRANK and (named or header.position in self._unnamed)

    def _session(self, uid: bytes) -> tuple[int, int, int]:
        """Up to which seq living forks need a session, the seq of its tombstone (0 while it lives), and the seq of its
        parent that it goes back to."""
        found = self._sessions.get(uid)
        if found is None:
            row = self._catalog.by_uid(uid)
            found = 0, 0, 0
            if row is not None and row.deleted:
                found = needed(self._catalog, uid), self._catalog.stored(row.deleted).header.seq, row.parent_seq
            self._sessions[uid] = found
        return found

    def _superseded(self, header: Header) -> bool:
        """Whether a record is a snapshot of a session that has `KEPT` newer ones."""
        own = self._snapshots.get(header.uid)
        if own is None:
            seqs = [each.seq for each in self._catalog.snapshots(header.uid, LATEST, _ALL) if each.uid == header.uid]
            own = self._snapshots[header.uid] = {seq: nth for nth, seq in enumerate(seqs)}
        return own.get(header.seq, 0) >= KEPT


def _read(catalog: Catalog, position: int) -> dict[int, frozenset[int]] | None:
    try:
        return left_out(said_by(catalog.stored(position)))
    except (KeeveError, BadEncoding, TypeError, ValueError):
        return {}  # what cannot be read allows nothing


def _archived(catalog: Catalog, after: int, end: int) -> tuple[Named, range]:
    """What records after a position say is in archives: what they name; and the positions among which anything may be,
    since it was archived when they did not name it yet."""
    names: list[tuple[bytes, int]] = []
    unnamed = range(0)
    for position in merge(*(catalog.positions(STORE_UID, label, after) for label in _ARCHIVING)):
        match _said(catalog, position):
            case {"names": bytes(data)}:
                names.append((data, 0))
            case {"upto": int(upto)} if position <= end:  # what came back later was away when the log was looked at
                names = [(data, max(back, upto)) for data, back in names]
                unnamed = range(max(unnamed.start, upto + 1), unnamed.stop)
            case {"into": str(), **other} if "named" not in other:
                unnamed = range(1, position)
    return Named(names), unnamed


def _said(catalog: Catalog, position: int) -> Any:
    """The message of a record that tells of archives; None for any other, and for what cannot be read."""
    stored = catalog.stored(position)
    try:
        return read_deeds(stored.body().deeds).message if stored.header.kind == Kind.ARCHIVED else None
    except (KeeveError, BadEncoding, TypeError, ValueError):
        return None


def _name(each: Missing) -> str:
    if each.was == Type.RECORD and each.archived:
        return "its message and operations (archived, it says)"
    part = "its body" if each.was == Type.RECORD else f"{'page' if each.was == Type.PAGE else 'cell'} {each.number}"
    return f"{part} (archived, it says)" if each.archived else part


def _kinds(header: Header, each: Missing) -> frozenset[Kind]:
    """The kinds of records of the store's own that can say of this that it is to be gone."""
    if each.archived:
        return _ANEW | {Kind.ARCHIVED} if header.kind == Kind.CRANK else _ANEW
    return _ANEW | {Kind.ERASE} if each.was == Type.CELL else _ANEW


def _told(header: Header, address: int, found: list[Missing]) -> Taken:
    names = ", ".join(map(_name, found))
    what = (
        f"{names}: gone, and no record says that it was erased, deleted or archived: somebody took it out; "
        "put a backup of this segment back"
    )
    return Taken(header, address, what, frozenset.intersection(*(_kinds(header, each) for each in found)))


def returned(store: SegmentStore, catalog: Catalog, *, deleted: bool = True) -> Iterator[Erasure]:
    """What records say is gone from the files, and is there: an older file of a segment was put back.

    Costs a look at each record of which anything was erased and, with `deleted`, at each of deleted sessions.
    """
    for each in looked_for(store, catalog, deleted=deleted):
        if each is not None:
            yield each


def looked_for(store: SegmentStore, catalog: Catalog, *, deleted: bool = True) -> Iterator[Erasure | None]:
    """The same, with None for each record of which nothing is there."""
    upto, _ = last_done(catalog)
    for position, numbers in store.withheld.every():
        left = sorted(set(numbers) - store.withheld.of(position))
        address = catalog.at(position)
        if left and address is not None:
            one = Erasure(address, left, body=False)
            yield one if _whole(store, one) else None
    if not deleted:
        return
    pending: set[int] = set()
    for place in tombstones(catalog, upto.deleted):
        for each in remains(catalog, place):
            pending.add(each.address)
            yield None
    for place in tombstones(catalog, 0):
        if place > upto.deleted:
            break
        for each in remains(catalog, place):
            yield each if each.address not in pending and _whole(store, each) else None


def in_doubt(store: SegmentStore, catalog: Catalog) -> tuple[int, int]:
    """Of how many records of deleted sessions nobody can tell whether they may be there, and the position of the record
    that says it, as it cannot be read: how far the log was reclaimed. Costs a look at each of those."""
    known, unread = last_done(catalog)
    places = [place for place in tombstones(catalog, known.deleted) if place < unread]
    return len({each.address for place in places for each in remains(catalog, place) if _whole(store, each)}), unread


def _whole(store: SegmentStore, each: Erasure) -> bool:
    try:
        return any(True for _ in store.read(each.address).frames(each.parts, each.body))
    except KeeveError:
        return False  # damage, which is told as that


def told(store: SegmentStore, found: Iterable[Erasure]) -> Iterator[Taken]:
    """What came back, in words: each record of a living session, and of others the first with how many there are."""
    counts: Counter[bytes] = Counter()
    firsts: dict[bytes, tuple[Header, int]] = {}
    for each in found:
        header = store.read(each.address).header
        if each.body:
            counts[header.uid] += 1
            firsts.setdefault(header.uid, (header, each.address))
        else:
            numbers = ", ".join(map(str, each.parts or ()))
            what = (
                f"cell {numbers}: erased, and in the file again: an older file of this segment was put back; "
                "nobody is given it, and keeve gc takes it out"
            )
            yield Taken(header, each.address, what)
    for uid, (header, address) in firsts.items():
        what = (
            f"deleted and gone, and {counts[uid]} records of it are in the files again: an older file of a segment was "
            "put back; keeve gc takes them out"
        )
        yield Taken(header, address, what)
