"""The past of a session: its records by seq, and its heap as it was before any of them.

The one rule: what is not durable has no past. Who asks for it is told `NotYet`, and asks again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, Protocol

from dataspace.drafts import read_deeds
from snapshots.cache import PageCache
from snapshots.pages import decode_tree
from vat.heap.heap import Heap
from vat.heap.memory import VatMemory
from vat.heap.operations import follow
from vat.heap.refs import Promise, Ref
from vat.heap.restore import Index, Lineage, checked_body, restore

NEAR: Final = 16
"""So many records are applied to a heap without looking for a snapshot."""


class NotYet(Exception):
    """What is asked for is recorded and not durable yet: who asks does so again when it is.

    settled: where another session records it, has a function called when that is durable, or is not going to be.
    """

    def __init__(self, settled: Callable[[Callable[[], None]], None] | None = None) -> None:
        super().__init__()
        self.settled = settled


class Recorded(NamedTuple):
    """A record, as far as running something of it again needs it. `id` is what its session is called."""

    uid: bytes
    id: str
    seq: int
    kind: int
    time: int
    previous: bytes
    message: Any
    operations: Sequence[Sequence[Any]]
    facts: bytes


class Past(Protocol):
    """A session's past. Both raise what reading raises, and `NotYet`."""

    def record(self, seq: int) -> Recorded:
        """The record of a seq."""

    def before(self, seq: int, heap: Heap | None, at: int) -> Heap:
        """The heap before the record of a seq; `heap`, which is the one after the record `at`, may become it."""

    def let_go(self) -> None:
        """Keep nothing of what was read."""


class StoredPast:
    """The past of a session in a store. Reads the records that are asked for, and those between a heap and the next."""

    def __init__(
        self,
        make_lineage: Callable[[], Lineage],
        index: Index,
        cache: PageCache,
        memory: VatMemory,
        *,
        durable: Callable[[], int],
        without: Callable[[], int | None],
        name: Callable[[bytes], str],
    ) -> None:
        self._make_lineage = make_lineage
        self._made: Lineage | None = None
        self._names: dict[bytes, str] = {}
        self._index = index
        self._cache = cache
        self._memory = memory
        self._durable = durable
        self._without = without
        self._name = name

    def record(self, seq: int) -> Recorded:
        """The record of a seq, its body checked against its header."""
        if seq > self._durable():
            raise NotYet
        return self._read(seq)

    @property
    def _lineage(self) -> Lineage:
        if self._made is None:
            self._made = self._make_lineage()
        return self._made

    def _read(self, seq: int) -> Recorded:
        stored = self._lineage.at(seq)
        header, body = stored.header, checked_body(stored)
        deeds = read_deeds(body.deeds, ref=Ref, promise=Promise, tree=decode_tree)
        uid = header.uid
        id = self._names.get(uid)
        if id is None:
            id = self._names[uid] = self._name(uid)
        return Recorded(
            uid,
            id,
            seq,
            header.kind,
            header.time,
            header.previous,
            deeds.message,
            deeds.operations,
            body.facts,
        )

    def before(self, seq: int, heap: Heap | None, at: int) -> Heap:
        """The heap before the record of a seq. Costs the records since `at`, or since a snapshot that is nearer."""
        if heap is not None and at == seq - 1:
            return heap
        upto = seq - 1
        if upto > self._durable():
            raise NotYet
        lineage, without = self._lineage, self._without()
        if heap is not None and (upto - at <= NEAR or not self._snapshot_since(at, upto, without)):
            for between in range(at + 1, seq):
                recorded = self._read(between)
                follow(heap, recorded.kind, recorded.operations, recorded.time)
            return heap
        return restore(lineage, self._index, self._cache, upto, without=without, memory=self._memory).heap

    def let_go(self) -> None:
        """Keep nothing of what was read: another question reads anew."""
        self._made = None

    def _snapshot_since(self, at: int, upto: int, without: int | None) -> bool:
        newest = self._index.snapshots(self._lineage.uid, upto if without is None else min(upto, without - 1))
        return bool(newest) and newest[0].seq > at
