"""Bases: a session's whole heap is written, so that what its older records did need not be at hand any more.

A session is restored from a snapshot and the records after it. Before the deeds of old records (message and operations)
go to an archive, each session that goes back to these records has a base after them: a snapshot that leads to no page
of another record. A fork goes back to its parent's records, and so has a base of its own, or one of its parent's that
comes before it left.

A base is made of what the records say, from the base before it on or from the beginning: not of what is in memory, and
of no snapshot. Then it is read again, every page of it, and held against what it was made of.

The one rule: **no deeds go that a living session would be restored with.** Who cannot write a base keeps all since the
last one that stands.
"""

from __future__ import annotations

import logging
from array import array
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final, TypeVar, TypeVarTuple

import attrs
import trio

from dataspace.catalog.lookups import LATEST, SnapshotRow
from dataspace.catalog.recent import SessionRow
from dataspace.in_logs import in_log
from dataspace.log.files import SyncFailed, WriteFailed
from dataspace.log.segments import SegmentStore
from dataspace.log.store import StoreFailed
from vat.crank.vat import HeapPages, Step, Vat, whole
from vat.heap.checking import replayed, stands
from vat.heap.heap import Heap
from vat.heap.past import NotYet
from vat.heap.restore import Lineage, Restored, bases, go_on, newest_base
from vat.host.asking import NotRunning
from vat.host.engine import Engine
from vat.host.thinning import families

log = logging.getLogger("keeve")

_Given = TypeVarTuple("_Given")
_Got = TypeVar("_Got")

WORTH: Final = 1 << 12
"""Bytes of deeds for which a session writes a base; for fewer they stay."""
ROUNDS: Final = 8
"""How often what a session has done meanwhile is replayed before its heap is written, however much is left."""
TRIES: Final = 3
"""How often a heap is written beside a session that goes on, before the host waits for it."""


class Deeds:
    """The deeds of one chain in some segments: seqs, and bytes."""

    __slots__ = ("_seqs", "_sizes")

    def __init__(self) -> None:
        self._seqs = array("Q")
        self._sizes = array("Q")

    def add(self, seq: int, size: int) -> None:
        """Those of the next record."""
        self._seqs.append(seq)
        self._sizes.append(size)

    def size(self, after: int, upto: int) -> int:
        """Bytes of those after a seq and up to another."""
        first, last = bisect_right(self._seqs, after), bisect_right(self._seqs, upto)
        return sum(self._sizes[first:last])


@attrs.define
class _Draft:
    """A heap that was made of records, and the pages of it for the one after these."""

    given: Restored
    pages: HeapPages
    taken: bool | None = None
    """Whether a base was made of it; None while it is not known, since the session had gone on."""


@attrs.define
class Needs:
    """Which deeds the living sessions need: after which seq, and up to which, of whose chain."""

    kept: dict[bytes, list[tuple[int, int]]] = attrs.field(factory=dict)
    asked: set[bytes] = attrs.field(factory=set)
    """The sessions of which that is known."""
    whole: set[bytes] = attrs.field(factory=set)
    """The sessions that could write no base."""
    made: dict[bytes, int] = attrs.field(factory=dict)
    """The bases that were written for it: their seqs."""

    def leaves(self, uid: bytes, seq: int) -> bool:
        """Whether the deeds of a record are needed by nobody. Of whom nobody goes back to, nothing is known."""
        ranges = self.kept.get(uid)
        return ranges is not None and not any(after < seq <= upto for after, upto in ranges)


class Basing:
    """Has the sessions of an engine's store write bases."""

    def __init__(self, engine: Engine, store: SegmentStore) -> None:
        self._engine = engine
        self._store = store
        self._catalog = engine.dataspace.catalog
        self._limiter = trio.CapacityLimiter(1)

    async def needs(self, segments: Sequence[int]) -> Needs:
        """Which deeds of these sealed segments are needed, once each session has a base for which that is worth it.

        Loads the sessions that write one. Costs a pass over the segments, for each session a walk through its base, and
        for a new one its records and some walks through its heap, beside the host; 16 bytes of memory for each record.
        Raises what the disk refuses.
        """
        deeds = await self._do(self._deeds, segments)
        found = Needs()
        for family in families(self._catalog):
            for row in family:
                base = 0
                if any(leg.uid in deeds for leg in self._catalog.lineage(row.uid)):
                    base = await self._base(row, deeds, found)
                self._keep(row, base, found)
        return found

    async def again(self, found: Needs) -> None:
        """Ask those who were born since, before anything goes: a fork may have left its parent before a base."""
        for row in self._catalog.all_sessions():
            if row.uid not in found.asked:
                base = await self._do(self._standing, row.uid)
                self._keep(row, 0 if base is None else base.seq, found)

    def _keep(self, row: SessionRow, base: int, found: Needs) -> None:
        found.asked.add(row.uid)
        for leg in self._catalog.lineage(row.uid):
            found.kept.setdefault(leg.uid, []).append((base, leg.upto))

    async def _base(self, row: SessionRow, deeds: Mapping[bytes, Deeds], found: Needs) -> int:
        """The seq of the base from which a session is restored; 0 for none. Has one written if that is worth it."""
        known = await self._do(self._standing, row.uid)
        before = 0 if known is None else known.seq
        legs = self._catalog.lineage(row.uid)
        if sum(deeds[leg.uid].size(before, leg.upto) for leg in legs if leg.uid in deeds) < WORTH:
            return before
        try:
            heap = await self._written(row.uid, await self._do(self._given, row, known))
            made = None if heap is None else await self._do(self._made, row.uid, heap)
        except (WriteFailed, SyncFailed, StoreFailed, NotRunning):
            raise
        except Exception as error:  # noqa: BLE001  # damage, a type that is not here: the others need not wait for it
            now = self._catalog.by_uid(row.uid)
            if now is None or now.deleted:
                return before
            log.warning("session %s: it can write no base, and keeps what its records did: %s", row.id, in_log(error))
            made = None
        if made is None or made.seq <= before:
            found.whole.add(row.uid)
            return before
        found.made[row.uid] = made.seq
        return made.seq

    async def _written(self, uid: bytes, given: Restored) -> Heap | None:
        """The heap of which a session has written a base, durably. None where a fiber waits: that is made again of what
        came before.

        Its pages are written beside the session, which may go on, and with it the host. They are those of its next
        record as long as it has not; if it has, that is done again, and at last while all wait.
        """
        for last in (*[False] * (TRIES - 1), True):
            given = await self._near(uid, given)
            if given.heap.system["fibers"].count:
                return None  # and nobody loads it for this
            draft = _Draft(given, await self._do(whole, given.heap, given.seq + 1, self._engine.entropy))
            await self._engine.done(uid, partial(self._record, uid, draft, last))
            if draft.taken is not None:
                break
        return draft.given.heap if draft.taken else None

    def _record(self, uid: bytes, draft: _Draft, last: bool, vat: Vat) -> Sequence[Step]:
        """What a vat does for its base. If it has gone on and this is not the `last` try, nothing."""
        if vat.heap.system["fibers"].count:
            draft.taken = False
            return ()
        if vat.seq > self._engine.residents.durable(uid):
            raise NotYet
        if draft.pages.seq != vat.seq + 1:
            if not last:
                return ()
            draft.given = go_on(self._lineage(uid), draft.given, vat.seq)
            draft.pages = whole(draft.given.heap, vat.seq + 1, self._engine.entropy)
        draft.taken = True
        return (vat.base(draft.pages),)

    async def _near(self, uid: bytes, given: Restored) -> Restored:
        """A heap brought on beside a session that goes on, to where that is, or close to it."""
        for _ in range(ROUNDS):
            row = self._catalog.by_uid(uid)
            if row is None or row.deleted or row.seq <= given.seq:
                break
            given = await self._do(go_on, self._lineage(uid), given, row.seq)
        return given

    def _given(self, row: SessionRow, base: SnapshotRow | None) -> Restored:
        return replayed(self._lineage(row.uid), self._catalog, base, row.seq)

    def _standing(self, uid: bytes) -> SnapshotRow | None:
        """The newest base of a session that stands. Costs a walk through it, and through any newer one."""
        lineage = self._lineage(uid)
        return next((each for each in bases(lineage, self._catalog, LATEST) if self._stands(lineage, each)), None)

    def _made(self, uid: bytes, of: Heap) -> SnapshotRow | None:
        """A session's newest base, if that stands and is the heap that it was made of."""
        lineage = self._lineage(uid)
        base = newest_base(lineage, self._catalog, LATEST)
        return base if base is not None and self._stands(lineage, base, of) else None

    def _stands(self, lineage: Lineage, base: SnapshotRow, made_of: Heap | None = None) -> bool:
        return stands(lineage, self._catalog, base, made_of)

    def _lineage(self, uid: bytes) -> Lineage:
        return Lineage(uid, self._catalog, self._store.read)

    def _deeds(self, segments: Sequence[int]) -> dict[bytes, Deeds]:
        found: dict[bytes, Deeds] = {}
        for segment in segments:
            for uid, seq, size in self._store.deeds(segment):
                own = found.get(uid)
                if own is None:
                    own = found[uid] = Deeds()
                own.add(seq, size)
        return found

    async def _do(self, act: Callable[[*_Given], _Got], *arguments: *_Given) -> _Got:
        return await trio.to_thread.run_sync(act, *arguments, limiter=self._limiter)
