"""Reaching: which pages and which contents a session needs, and so which of those in its log nobody does.

A session needs what its heap leads to, and the pages of the snapshots that a restore would begin from: the newest ones,
and its newest base, since what the records before that did may be away. Everything else can be done without: an older
snapshot is made of records.

The one rule: **who cannot be read needs everything.** `needs` gives None then, and for a session in which a fiber
waits, since that is made again on heaps of the past.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

import attrs

from dataspace.catalog.lookups import LATEST, SnapshotRow
from dataspace.errors import KeeveError
from dataspace.values import CelledBlob, CellRef
from snapshots.cache import PageCache
from snapshots.leading import through
from snapshots.nodes import PageRef
from snapshots.tree import Tree
from vat.heap.entries import KEPT as SETTLED
from vat.heap.entries import STATE
from vat.heap.heap import Heap
from vat.heap.memory import VatMemory
from vat.heap.restore import Index, Lineage, newest_base, restore, root_of, snapshot_heap

KEPT: Final = 2
"""Snapshots that a session keeps: the newest, and the one before it, should a page of that be bad."""


class Place(NamedTuple):
    """Where a page or cell lies: whose record it is (a uid), its seq, the number."""

    uid: bytes
    seq: int
    number: int


@attrs.define
class Needed:
    """What some sessions need. `waits`: whether one of them waits for something, which may be a person's word."""

    pages: set[Place] = attrs.field(factory=set)
    cells: set[Place] = attrs.field(factory=set)
    waits: bool = False

    def add(self, other: Needed) -> None:
        """Need what another one needs, too."""
        self.pages |= other.pages
        self.cells |= other.cells
        self.waits = self.waits or other.waits


def needs(lineage: Lineage, index: Index, seq: int, stay: Iterable[SnapshotRow] = ()) -> Needed | None:
    """What the session of a lineage needs, whose newest record is `seq`, and what snapshots have that `stay`; None for
    all that there is.

    Costs a restore, and a walk through its whole heap.
    """
    cache = PageCache(8 << 20)
    try:
        restored = restore(lineage, index, cache, seq)
        if restored.heap.system["fibers"].count:
            return None
        walk = _Walk(lineage, restored.memory)
        walk.found.waits = is_waiting(restored.heap)
        walk.trees(restored.heap)
        walk.cells = False  # nothing of an older heap is read: what came of it is in the records after it
        base = newest_base(lineage, index, LATEST)
        begins = [*index.snapshots(lineage.uid, LATEST)[:KEPT], *([] if base is None else [base]), *stay]
        for snapshot in dict.fromkeys(begins):
            stored = lineage.at(snapshot.seq)
            walk.page(root_of(stored))
            walk.trees(snapshot_heap(lineage, stored, restored.memory))
    except KeeveError:
        return None
    return walk.found


def is_waiting(heap: Heap) -> bool:
    """Whether anything in a session is not settled yet: a call of which a person has to approve, a timer, an effect,
    what another session or an actor owes, an input that is queued. Costs all promises."""
    return heap.may_have("effects") or any(entry[STATE] < SETTLED for _, entry in heap.entries("promises"))


class _Walk:
    """One walk through heaps, in which each page is passed once."""

    def __init__(self, lineage: Lineage, memory: VatMemory) -> None:
        self.found = Needed()
        self.cells = True
        """Whether cells count, or pages alone."""
        self._lineage = lineage
        self._memory = memory

    def page(self, ref: PageRef) -> bool:
        """Put a page down; whether it was not met before."""
        place = Place(self._lineage.owner(ref.seq), ref.seq, ref.number)
        new = place not in self.found.pages
        self.found.pages.add(place)
        return new

    def trees(self, heap: Heap) -> None:
        todo = list(heap.trees().values())
        while todo:
            for value in through(todo.pop(), self.page, self._memory.page):
                self._value(value, todo)

    def _value(self, value: Any, trees: list[Tree]) -> None:
        left = [value]
        while left:
            value = left.pop()
            if isinstance(value, dict):
                left.extend(value.values())
            elif isinstance(value, list | tuple):
                left.extend(value)
            elif isinstance(value, CelledBlob):
                left.append(value.content)
            elif isinstance(value, CellRef) and self.cells:
                self.found.cells.add(Place(self._lineage.owner(value.seq), value.seq, value.number))
            elif isinstance(value, Tree):
                trees.append(value)
