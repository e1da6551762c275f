"""Loading: a session's vat from what is stored, at its head or as far as it can be read.

What cannot be read is remembered for as long as the host runs: a snapshot with a bad page is passed over, and a
session with a damaged record is loaded up to the record before it and takes no more input.

The one rule: loading writes nothing and runs no user code; it may be done at any time, and again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeVar

from dataspace.catalog.catalog import Catalog
from dataspace.catalog.recent import SessionRow as Row
from dataspace.drafts import read_deeds
from dataspace.errors import KeeveError
from dataspace.in_logs import in_log
from dataspace.log.archives import Archived
from dataspace.log.marks import Damage
from dataspace.log.near import Near
from dataspace.log.segments import SegmentStore
from dataspace.log.store import NoSuchRecord, Store
from dataspace.log.verdicts import PastDamaged, SessionDamaged
from dataspace.observe.dataspace import living
from snapshots.cache import PageCache
from vat.crank.upgrading import outdated
from vat.crank.vat import Powers, Vat
from vat.heap.memory import BadSnapshotPage, VatMemory
from vat.heap.past import StoredPast
from vat.heap.restore import BrokenChain, Lineage, Restored, must_be_there, reading
from vat.host.residents import Resident
from vat.objects.types import Types

log = logging.getLogger("keeve")
T = TypeVar("T")


class Loader:
    """Loads the vats of a store."""

    def __init__(
        self,
        store: Store,
        catalog: Catalog,
        types: Types,
        powers: Powers,
        cache: PageCache,
        durable: Callable[[bytes], int],
        over: Callable[[bytes, SessionDamaged], None] = lambda uid, why: None,
    ) -> None:
        self._store = store
        self._catalog = catalog
        self._types = types
        self._powers = powers
        self.cache = cache
        self._durable = durable
        """How far the records of a session in memory are durable."""
        self._over = over
        """Is told of each session that takes no more input, when it is loaded."""
        self._damaged: dict[bytes, SessionDamaged] = {}
        self._bad_from: dict[bytes, int] = {}

    def load(self, resident: Resident) -> Vat:
        """Load the vat of a resident.

        Raises `NoSuchSession`, `Deleted`, `UnknownActorType`, `NewerVersion`, `BrokenChain` or what the store raises.
        Costs a snapshot's root and the records after it.
        """
        row = self.row(resident.uid)
        if not row.type:  # the catalog could not read its first record either, which tells why
            self.first_message(row)
        self._types[row.type]
        restored = self._restored(row)
        for problem in restored.passed_over:
            log.warning("session %s: restored without %s", row.id, problem)
        heap = restored.heap
        outdated(heap, self._types)
        past = self.past(row.uid, restored.memory)
        vat = Vat(row.uid, row.id, heap, restored.seq, restored.hash, self._types, self._powers, past)
        vat.snapshot_seq = restored.snapshot
        vat.records_since_snapshot = restored.records
        resident.install(vat, restored.memory)
        resident.durable = vat.seq
        resident.released = heap.counters["message"]
        resident.snapshot, resident.records = restored.snapshot, restored.records
        resident.damage = damage = self._damage(row)
        if damage is not None:
            self._over(row.uid, damage)
        return vat

    def past(self, uid: bytes, memory: VatMemory) -> StoredPast:
        """Where a vat finds its earlier records."""
        return StoredPast(
            lambda: Lineage(uid, self._catalog, partial(self._store.read, near=Near())),
            self._catalog,
            self.cache,
            memory,
            durable=lambda: self._durable(uid),
            without=lambda: self._bad_from.get(uid),
            name=self._catalog.name,
        )

    def memory(self, uid: bytes) -> VatMemory:
        """Where the pages and cells of a session come from."""
        return VatMemory(self.lineage(uid), self.cache)

    def row(self, uid: bytes) -> Row:
        """What the catalog says of a session. Raises `NoSuchSession` or `Deleted`."""
        return living(self._catalog.headed(uid), uid.hex())

    def lineage(self, uid: bytes) -> Lineage:
        """The records of a session and its ancestors."""
        return Lineage(uid, self._catalog, self._store.read)

    def point(self, uid: bytes, seq: int) -> tuple[bytes, int]:
        """The hash of a session's record, and how much was pending after it: from where a fork may go on.

        In a store with archives the records are looked at that a restore there would read: who is born of what is away
        could never be loaded. Raises `Archived` then.
        """
        stored = self._doubting(lambda: self.lineage(uid).at(seq))
        if isinstance(self._store, SegmentStore) and self._store.archives.places:
            try:
                without = self._bad_from.get(uid)
                must_be_there(self.lineage(uid), self._catalog, self.cache, seq, without=without)
            except Archived:
                raise
            except KeeveError:
                pass  # damage is told to who loads it
        rest = stored.rest()
        pending = read_deeds(stored.body().deeds).pending if rest is None else rest.pending
        return stored.header.hash, pending

    def first_message(self, row: Row) -> Mapping[str, Any]:
        """What a session's first record says: who asked for it, and with which request."""
        stored = self._doubting(lambda: self.lineage(row.uid).at(row.parent_seq + 1))
        said: Mapping[str, Any] = read_deeds(stored.body().deeds).message
        return said

    def trouble(self, uid: bytes, error: Exception) -> Exception | None:
        """Something of a session could not be read. Gives what to tell, or None when it can be done without.

        A snapshot can: what it says is in the records before it. Who is the first to meet damage is told; from then on
        the session is loaded up to there.
        """
        session = self._catalog.name(uid)
        if isinstance(error, SessionDamaged):
            known = self._damaged.get(uid)
            if known is None or error.seq < known.seq:
                self._damaged[uid] = error
            named = SessionDamaged(session, error.seq, error.position, error.what)
            log.warning("%s", named.logged)
            return named
        log.warning("session %s: %s", session, in_log(error))
        if isinstance(error, BadSnapshotPage):
            self._bad_from[uid] = min(error.ref.seq, self._bad_from.get(uid, error.ref.seq))
            return None
        return error

    def _restored(self, row: Row) -> Restored:
        """As much as can be read of a session. Raises `SessionDamaged` for damage that nobody knew of."""
        damage = self._damage(row)
        upto = row.seq if damage is None else min(row.seq, damage.seq - 1)
        if damage is not None and not upto:
            self._over(row.uid, damage)
            raise damage
        try:
            return self.restored(row.uid, upto)
        except SessionDamaged as error:
            raise self.trouble(row.uid, error) or error from error

    def restored(self, uid: bytes, upto: int) -> Restored:
        """A session's heap as of a seq, from what is stored."""
        return self.read(uid, upto, lambda restored: restored)

    def read(self, uid: bytes, upto: int, read: Callable[[Restored], T]) -> T:
        """What is read of that heap, whichever snapshot can be read that far: `read` is called once or more."""
        without = self._bad_from.get(uid)
        return self._doubting(lambda: reading(self.lineage(uid), self._catalog, self.cache, upto, read, without))

    def _doubting(self, read: Callable[[], T]) -> T:
        """What is read where the catalog leads; if that cannot be, where it leads when it was made anew."""
        try:
            return read()
        except (BrokenChain, NoSuchRecord):
            # Either the log is broken, or the catalog, which has led here.
            if not self._catalog.doubt():
                raise
        return read()

    def damage_before(self, uid: bytes, at: int) -> PastDamaged | None:
        """The first damage that is known of what a session goes back to at a seq, its own or an ancestor's; for who
        would have it forked there."""
        found: list[Damage | SessionDamaged] = []
        for leg in self._catalog.lineage(uid):
            known = (self._damaged.get(leg.uid), self._store.damaged.get(leg.uid))
            found += [each for each in known if each is not None and each.seq <= min(leg.upto, at)]
        first = min(found, key=lambda each: each.seq, default=None)
        return None if first is None else PastDamaged(self._catalog.name(uid), first.seq, first.position, first.what)

    def _damage(self, row: Row) -> SessionDamaged | None:
        met = self._damaged.get(row.uid)
        found = self._store.damaged.get(row.uid)
        if found is not None and (met is None or found.seq < met.seq):
            return SessionDamaged(row.id, found.seq, found.position, found.what)
        return None if met is None else SessionDamaged(row.id, met.seq, met.position, met.what)
