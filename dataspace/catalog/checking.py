"""The catalog held against the log that it was made from.

The one rule: what is right is what a scan of the log gives; nothing is put right here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from dataspace.catalog.catalog import Catalog
from dataspace.catalog.lookups import LATEST, SnapshotRow
from dataspace.catalog.recall import UNREADABLE, Notable, noted
from dataspace.catalog.recent import SessionRow, made_by
from dataspace.catalog.tree import HASH, STEP, WIDTH
from dataspace.log.store import Store

_PLACES = 1000
"""Positions that are looked up in one step."""
_FACTS = 100_000
"""Positions among which the facts of a label are looked for in one step."""


class Right:
    """What the log says, for a catalog to be held against: a catalog made anew, in memory, and all labels.

    Costs a scan of the log, in the thread that makes it; raises what a scan raises. Close `catalog` at the end.
    """

    def __init__(self, store: Store) -> None:
        self.labels: set[str] = set()
        self.catalog = _Anew(store, self.labels)


class _Anew(Catalog):
    """A catalog in memory, which puts the labels of what it notes into `labels`."""

    def __init__(self, store: Store, labels: set[str]) -> None:
        self._labels = labels
        super().__init__(None, store)

    def note(self, records: Sequence[Notable]) -> None:
        for record in records:
            for statement in record.statements:
                if hasattr(statement, "fact"):
                    self._labels.add(statement.fact.label)
        super().note(records)


def check_catalog(catalog: Catalog, right: Right) -> Iterator[list[str]]:
    """Where the catalog says something else than the log, a step at a time: a session, some positions, a label.

    Between two steps the log may go on, since each begins by bringing both to one head.
    """
    truth = right.catalog
    _level(catalog, truth)
    if catalog.head != truth.head:
        yield [f"the catalog ends at position {catalog.head.position}, the log at {truth.head.position}"]
    yield from _sessions(catalog, truth)
    for first in range(1, truth.head.position + 1, _PLACES):
        wrong = _places(catalog, truth, range(first, min(first + _PLACES, truth.head.position + 1)))
        yield wrong
        if wrong:
            break
    yield _tree(catalog, truth)
    for label in sorted(right.labels):
        what = "records whose facts cannot be read" if label == UNREADABLE else f"facts with the label {label!r}"
        _level(catalog, truth)
        for after in range(0, truth.head.position, _FACTS):
            there = set(truth.positions(None, label, after, after + _FACTS))
            if _said(truth, there.difference(catalog.positions(None, label, after, after + _FACTS))):
                yield [f"the catalog does not find all {what}"]
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


def _sessions(catalog: Catalog, truth: Catalog) -> Iterator[list[str]]:
    after = ""
    while True:
        _level(catalog, truth)
        page = [row.id for row in truth.sessions(after=after, limit=500, deleted=True)]
        listed = [row.id for row in catalog.sessions(after=after, limit=500, deleted=True)]
        if not page:
            break
        if [id for id in listed if id <= page[-1]] != page:
            yield [f"the catalog lists other sessions than the log, after {after!r}"]
        for id in page:
            _level(catalog, truth)
            yield _session(catalog, truth, id)
        after = page[-1]
    if listed:
        yield [f"the catalog lists session {listed[0]!r}, which the log does not have"]


def _session(catalog: Catalog, truth: Catalog, id: str) -> list[str]:
    row = truth.session(id)
    assert row is not None
    said = catalog.by_uid(row.uid)
    if said is None:
        return [f"the catalog does not know session {id!r}"]
    if said != row:
        differing = [name for name in row._fields if getattr(said, name) != getattr(row, name)]
        return [f"the catalog has another {', '.join(differing)} for session {id!r} than the log"]
    if not row.deleted and not catalog.owned(row.uid, by := _made_by(truth, row)):
        return [f"the catalog does not find session {id!r} among those that {by or 'nobody who is known'} had made"]
    listed, told = set(catalog.positions(row.uid)), set(truth.positions(row.uid))
    # What is reclaimed of a deleted session says nothing any more, and may be listed until the catalog is made anew.
    if _said(truth, told - listed) if row.deleted else told != listed:
        return [f"the catalog has other records for session {id!r} than the log"]
    if _snapshots(catalog, row.uid) != _snapshots(truth, row.uid):
        return [f"the catalog has other snapshots, or bases, for session {id!r} than the log"]
    return []


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
