"""The catalog held against the log that it was made from.

What a record has said that cannot be read any more, the log does not give; a catalog that was made before knows it,
and is not wrong by that. So of such records nothing is held against it but that they are there, and where they lie.

The one rule: what is right is what a scan of the log gives; nothing is put right here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from dataspace.catalog.catalog import Catalog
from dataspace.catalog.lookups import LATEST, SnapshotRow
from dataspace.catalog.recall import ANYTHING, Notable, noted
from dataspace.catalog.recent import SessionRow, made_by
from dataspace.catalog.tree import HASH, STEP, WIDTH
from dataspace.drafts import Handle, Retraction
from dataspace.log.store import Store
from dataspace.log.verdicts import SessionDamaged
from dataspace.records import Kind

_PLACES = 1000
"""Positions that are looked up in one step."""
_FACTS = 100_000
"""Positions among which the facts of a label are looked for in one step."""


_NAMING = frozenset((Kind.SPAWN, Kind.FORKED, Kind.DELETE))
"""Kinds of records that say what a session is called, and of what type it is."""
_NAMES = frozenset(("id", "type", "parent", "parent_seq"))


class Right:
    """What the log says, for a catalog to be held against: a catalog made anew, in memory, all labels, the positions of
    the records that cannot be read (`unread`), and the sessions of which these may have said what they are (`unnamed`).

    Costs a scan of the log, in the thread that makes it; raises what a scan raises. Close `catalog` at the end.
    """

    def __init__(self, store: Store) -> None:
        self.labels: set[str] = set()
        self.unread: set[int] = set()
        self.unnamed: set[bytes] = set()
        self.catalog = _Anew(store, self)

    def meet(self, record: Notable) -> None:
        """A record that the catalog notes and that cannot be read."""
        self.unread.add(record.position)
        if record.kind in _NAMING:
            self.unnamed.add(record.uid)

    def nameless(self, row: SessionRow) -> bool:
        """Whether what a session is called, its type and its parent are in records that cannot be read."""
        return row.uid in self.unnamed and row.id == row.uid.hex()

    def unknown(self, uid: bytes, handle: Handle) -> bool:
        """Whether what a handle of a session names cannot be read, or cannot be told since a parent is not known."""
        try:
            found = self.catalog.asserted(uid, handle)
        except SessionDamaged:
            return True
        return found is None and self.torn(uid)

    def torn(self, uid: bytes) -> bool:
        """Whether a session's past cannot be told, since the record that says what it is, or that of one that it was
        forked from, cannot be read."""
        return any(leg.uid in self.unnamed for leg in self.catalog.lineage(uid))


class _Anew(Catalog):
    """A catalog in memory, which tells `right` of what it notes."""

    def __init__(self, store: Store, right: Right) -> None:
        self._right = right
        self._labels = right.labels
        super().__init__(None, store)

    def take_in(self, records: Sequence[Notable]) -> None:
        for record in records:
            if record.statements is ANYTHING:
                self._right.meet(record)
                continue
            for statement in record.statements:
                if hasattr(statement, "fact"):
                    self._labels.add(statement.fact.label)
        super().take_in(records)


def check_catalog(catalog: Catalog, right: Right) -> Iterator[list[str]]:
    """Where the catalog says something else than the log, a step at a time: a session, some positions, a label.

    Between two steps the log may go on, since each begins by bringing both to one head.
    """
    truth = right.catalog
    _level(catalog, truth)
    if catalog.head != truth.head:
        yield [f"the catalog ends at position {catalog.head.position}, the log at {truth.head.position}"]
    yield from _sessions(catalog, right)
    for first in range(1, truth.head.position + 1, _PLACES):
        wrong = _places(catalog, truth, range(first, min(first + _PLACES, truth.head.position + 1)))
        yield wrong
        if wrong:
            break
    yield _tree(catalog, truth)
    for label in sorted(right.labels):
        _level(catalog, truth)
        for after in range(0, truth.head.position, _FACTS):
            there = set(truth.positions(None, label, after, after + _FACTS)) - right.unread
            if _said(truth, there.difference(catalog.positions(None, label, after, after + _FACTS))):
                yield [f"the catalog does not find all facts with the label {label!r}"]
                break
            yield []


def _tree(catalog: Catalog, truth: Catalog) -> list[str]:
    truth.flush()
    written = min(catalog.written, truth.written)
    for level in range(STEP, written.bit_length(), STEP):
        whole = written >> level
        for n in range((whole + WIDTH - 1) // WIDTH):
            size = min(whole - n * WIDTH, WIDTH) * HASH
            if catalog.nodes(level, n)[:size] != truth.nodes(level, n)[:size]:
                return [f"the catalog has other nodes of the tree than the log, at level {level}"]
    return []


def _level(catalog: Catalog, truth: Catalog) -> None:
    head = max(catalog.head.position, truth.head.position)
    catalog.catch_up(head)
    truth.catch_up(head)


def _sessions(catalog: Catalog, right: Right) -> Iterator[list[str]]:
    truth, after = right.catalog, ""
    unnamed: set[bytes] = set()
    for row in truth.all_sessions(deleted=True):
        if right.nameless(row):
            unnamed.add(row.uid)
    while True:
        _level(catalog, truth)
        page = truth.sessions(after=after, limit=500, deleted=True)
        there = catalog.sessions(after=after, limit=500 + len(unnamed), deleted=True)
        listed = [row.id for row in there if row.uid not in unnamed]
        if not page:
            break
        if [id for id in listed if id <= page[-1].id] != [row.id for row in page if row.uid not in unnamed]:
            yield [f"the catalog lists other sessions than the log, after {after!r}"]
        for each in page:
            _level(catalog, truth)
            yield _session(catalog, right, each.uid)
        after = page[-1].id
    if listed:
        yield [f"the catalog lists session {listed[0]!r}, which the log does not have"]


def _session(catalog: Catalog, right: Right, uid: bytes) -> list[str]:
    truth = right.catalog
    row = truth.by_uid(uid)
    assert row is not None
    nameless = right.nameless(row)
    said = catalog.by_uid(uid)
    if said is None:
        return [f"the catalog does not know session {row.id!r}"]
    name = said.id if nameless else row.id
    unsaid = {*(_NAMES if nameless else ()), *(("pending",) if row.position in right.unread else ())}
    differing = [field for field in row._fields if field not in unsaid and getattr(said, field) != getattr(row, field)]
    if differing:
        return [f"the catalog has another {', '.join(differing)} for session {name!r} than the log"]
    if not (row.deleted or nameless) and not catalog.owned(uid, by := _made_by(truth, row)):
        return [f"the catalog does not find session {name!r} among those that {by or 'nobody who is known'} had made"]
    listed, told = (set(each.positions(uid)) - right.unread for each in (catalog, truth))
    # What is reclaimed of a deleted session says nothing any more, and may be listed until the catalog is made anew.
    lost, more = told - listed, listed - told
    if _said(truth, lost) if row.deleted else lost or not all(_takes_back_unread(right, each) for each in more):
        return [f"the catalog has other records for session {name!r} than the log"]
    if _snapshots(catalog, uid) != _snapshots(truth, uid):
        return [f"the catalog has other snapshots, or bases, for session {name!r} than the log"]
    return []


def _takes_back_unread(right: Right, position: int) -> bool:
    """Whether a record does nothing but take back what nobody can read any more."""
    truth = right.catalog
    stored = truth.stored(position)
    statements = noted(stored).statements
    return bool(statements) and all(
        isinstance(each, Retraction) and right.unknown(stored.header.uid, each.handle) for each in statements
    )


def _snapshots(catalog: Catalog, uid: bytes) -> list[SnapshotRow]:
    """A session's own snapshots, and which of them are bases."""
    found: list[SnapshotRow] = []
    upto = LATEST
    while page := catalog.snapshots(uid, upto):
        own = [each for each in page if each.uid == uid]
        found += own
        if len(own) < len(page):
            break
        upto = page[-1].seq - 1
    return found


def _made_by(truth: Catalog, row: SessionRow) -> str:
    """Who had a session made, by its first record; "" where that cannot be read."""
    position = truth.position(row.uid, row.parent_seq + 1)
    return made_by(None if position is None else noted(truth.stored(position)).message)


def _said(truth: Catalog, lost: Iterable[int]) -> bool:
    """Whether a record at one of these positions says something: what is reclaimed may have gone after `truth` read it,
    and before the other one did."""
    return any(noted(truth.stored(position)).statements for position in lost)


def _places(catalog: Catalog, truth: Catalog, positions: range) -> list[str]:
    for position in positions:
        if catalog.at(position) != truth.at(position):
            return [f"the catalog does not know where position {position} lies"]
    return []
