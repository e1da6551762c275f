"""Restore: a session's heap from what is stored, as of any seq.

    1. the newest snapshot (or base, which is one) at or before that seq whose record, root page and place in the chain
       fit; a bad one is reported and passed over
    2. no snapshot: from the session's first record
    3. the operations of the records after it, in order, each checked against the chain

The same operations build live and restored state; nothing here runs user code, calls a device or wakes anyone.

The one rule: a record is applied only when it follows the one before it, hash by hash.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol, TypeVar

import attrs

from dataspace.catalog.lookups import Leg, SnapshotRow
from dataspace.drafts import read_deeds
from dataspace.errors import KeeveError
from dataspace.in_logs import in_log
from dataspace.log.store import BodyErased, NoSuchPart, Stored
from dataspace.log.unsound import NoFrame
from dataspace.log.verdicts import SessionDamaged
from dataspace.records import ZERO_HASH, Body, Kind
from dataspace.values import Erased
from dataspace.values.encoding import BadEncoding
from snapshots.cache import PageCache
from snapshots.nodes import PageRef
from snapshots.pages import BadPage, decode_tree
from vat.heap.heap import Heap
from vat.heap.memory import BadSnapshotPage, VatMemory, read_page
from vat.heap.operations import follow
from vat.heap.refs import Promise, Ref

T = TypeVar("T")


class BrokenChain(KeeveError, quotes=False):
    """A session's records do not follow one another: what is stored is not what was written."""

    def __init__(self, session: str, seq: int, what: str) -> None:
        super().__init__(
            f"session {session}: the record at seq {seq} {what}; nothing after it can be trusted. "
            "Run `keeve verify`, and restore the store from a copy"
        )
        self.session = session
        self.seq = seq


class NoSuchPoint(KeeveError, LookupError, quotes=False):
    """A session has no state at that seq."""

    usage = True

    def __init__(self, session: str, seq: int, first: int, last: int) -> None:
        super().__init__(f"session {session} has no seq {seq}: it goes from {first} to {last}; choose one of those")
        self.session = session
        self.seq = seq


class Index(Protocol):
    """What restore asks the catalog."""

    def lineage(self, uid: bytes) -> list[Leg]: ...
    def locate(self, uid: bytes, seq: int) -> int | None: ...
    def snapshots(self, uid: bytes, upto: int) -> list[SnapshotRow]: ...


@attrs.frozen
class Restored:
    """A heap as it was after the record `seq`, and how it was come by.

    `snapshot` is the seq of the snapshot that it began from, 0 for the beginning; `records` how many records were
    read after it; `passed_over` what was wrong with newer snapshots.
    """

    heap: Heap
    memory: VatMemory
    seq: int
    hash: bytes
    snapshot: int
    records: int
    passed_over: tuple[str, ...] = ()


class Lineage:
    """The records of a session's lineage, by seq (`vat.heap.memory.Records`).

    The one read last is kept until `let_go`: what is read of a snapshot are most often pages of one record.
    """

    def __init__(self, uid: bytes, index: Index, read: Callable[[int], Stored]) -> None:
        self.uid = uid
        self._legs = index.lineage(uid)
        self._index = index
        self._read = read
        self._last: tuple[int, Stored] | None = None

    def owner(self, seq: int) -> bytes:
        """The uid of the chain that the record of that seq belongs to."""
        for leg in self._legs:
            if seq <= leg.upto:
                return leg.uid
        return self.uid

    def at(self, seq: int) -> Stored:
        """The record of that seq. Raises `BrokenChain` when there is none, and `SessionDamaged` where its frame is
        not sound."""
        last = self._last
        if last is not None and last[0] == seq:
            return last[1]
        address = self._index.locate(self.uid, seq)
        if address is None:
            raise BrokenChain(self.uid.hex(), seq, "is missing")
        try:
            stored = self._read(address)
        except NoFrame as error:
            raise error.damage(self.owner(seq), seq) or error from error
        except SessionDamaged as error:
            if (error.session, error.seq) != (self.owner(seq).hex(), seq):
                raise BrokenChain(self.uid.hex(), seq, "is not where it should be") from error
            raise
        if (stored.header.uid, stored.header.seq) != (self.owner(seq), seq):
            raise BrokenChain(self.uid.hex(), seq, "is not where it should be")
        self._last = seq, stored
        return stored

    def let_go(self) -> None:
        """Keep no record."""
        self._last = None


def restore(
    lineage: Lineage,
    index: Index,
    cache: PageCache,
    upto: int,
    *,
    without: int | None = None,
    memory: VatMemory | None = None,
) -> Restored:
    """The heap as it was after seq `upto`, which must be there; `without` the snapshots from that seq on.

    Its pages and cells come from `memory`, if that is given. A snapshot of which the records after it come to a page
    that cannot be read is passed over, too; what they do not come to is read later (`reading`).

    Raises `SessionDamaged`, `BrokenChain`, or what the store raises. Costs one snapshot's root and the records
    after it; collections load when they are touched.
    """
    memory = memory or VatMemory(lineage, cache)
    trouble, bad = memory.trouble, list[str]()
    while True:
        heap, snapshot, hash, passed_over = _begin(lineage, index, memory, upto, without)
        try:
            return _replay(lineage, heap, memory, snapshot, hash, upto, (*bad, *passed_over))
        except BadSnapshotPage as error:
            memory.trouble = trouble
            without = older(error, without)
            bad.append(f"snapshot {snapshot}: {error}")


def reading(
    lineage: Lineage,
    index: Index,
    cache: PageCache,
    upto: int,
    read: Callable[[Restored], T],
    without: int | None = None,
) -> T:
    """What is read of the heap as it was after seq `upto`. Where that comes to a page that cannot be read, it is read
    again from an older snapshot; so `read` is called once or more. Raises what `restore` raises."""
    while True:
        try:
            return read(restore(lineage, index, cache, upto, without=without))
        except BadSnapshotPage as error:
            without = older(error, without)


def older(bad: BadSnapshotPage, without: int | None) -> int:
    """From which seq on snapshots are passed over, as a page is bad that those before that seq cannot have."""
    if without is not None and bad.ref.seq >= without:
        raise bad
    return bad.ref.seq


def must_be_there(lineage: Lineage, index: Index, cache: PageCache, upto: int, *, without: int | None = None) -> None:
    """See that `restore` would need nothing that is away. Raises `Archived` else, and what reading raises.

    Costs one snapshot's root and a look at each record after it, and reads those whose deeds were archived.
    """
    _, snapshot, _, _ = _begin(lineage, index, VatMemory(lineage, cache), upto, without)
    for seq in range(snapshot + 1, upto + 1):
        stored = lineage.at(seq)
        if stored.rest() is not None:
            stored.body()


def _begin(
    lineage: Lineage, index: Index, memory: VatMemory, upto: int, without: int | None
) -> tuple[Heap, int, bytes, tuple[str, ...]]:
    """From which heap on records are followed, after which seq and hash; and what was passed over."""
    passed_over: list[str] = []
    if without is not None:
        passed_over.append(f"snapshots from seq {without} on: a page of them cannot be read")
    for snapshot in newest_first(index, lineage.uid, upto if without is None else min(upto, without - 1)):
        try:
            stored = lineage.at(snapshot.seq)
            heap = snapshot_heap(lineage, stored, memory)
        except BodyErased:
            continue  # it was let go (`let_go`)
        except (BadSnapshotPage, BadPage, BadEncoding, BrokenChain, NoSuchPart, SessionDamaged) as error:
            passed_over.append(f"snapshot {snapshot.seq}: {in_log(error)}")
            continue
        return heap, snapshot.seq, stored.header.hash, tuple(passed_over)
    return Heap(memory), 0, ZERO_HASH, tuple(passed_over)


def go_on(lineage: Lineage, found: Restored, upto: int) -> Restored:
    """A heap brought on to a seq that is not before its own, by the records between. Raises as `restore` does."""
    later = _replay(lineage, found.heap, found.memory, found.seq, found.hash, upto, found.passed_over)
    return attrs.evolve(later, snapshot=found.snapshot, records=found.records + later.records)


def newest_first(index: Index, uid: bytes, upto: int) -> Iterator[SnapshotRow]:
    """All snapshots up to a seq, bases among them. The index gives some at a time; most often the first will do."""
    while found := list(index.snapshots(uid, upto)):
        yield from found
        upto = found[-1].seq - 1


def bases(lineage: Lineage, index: Index, upto: int) -> Iterator[SnapshotRow]:
    """The bases up to a seq that were not let go, newest first. Pages of them, the root too, may be damaged: nothing is
    taken for gone that is not. Costs what the index knows of each snapshot after it, and reads none but bases."""
    for snapshot in newest_first(index, lineage.uid, upto):
        if not snapshot.base:
            continue
        try:
            is_one = lineage.at(snapshot.seq).header.kind == Kind.BASE and not let_go(lineage, snapshot.seq)
        except KeeveError:
            continue  # as a restore would
        if is_one:
            yield snapshot


def newest_base(lineage: Lineage, index: Index, upto: int) -> SnapshotRow | None:
    """The newest of the `bases` up to a seq; None when there is none."""
    return next(bases(lineage, index, upto), None)


def let_go(lineage: Lineage, seq: int) -> bool:
    """Whether a snapshot is none any more, since its root page was erased: the last one, of those that its record
    brings."""
    try:
        stored = lineage.at(seq)
        return isinstance(stored.part(stored.attachments - 1), Erased)
    except KeeveError:
        return False


def root_of(stored: Stored) -> PageRef:
    """The root page that a snapshot's record names."""
    number, digest = read_deeds(checked_body(stored).deeds).message["root"]
    return PageRef(stored.header.seq, number, digest)


def snapshot_heap(lineage: Lineage, stored: Stored, memory: VatMemory) -> Heap:
    """The heap of the snapshot that a record brings. Raises what reading its root raises."""
    return Heap.load(read_page(lineage, root_of(stored)), memory)


def _replay(
    lineage: Lineage,
    heap: Heap,
    memory: VatMemory,
    snapshot: int,
    hash: bytes,
    upto: int,
    passed_over: tuple[str, ...],
) -> Restored:
    for seq in range(snapshot + 1, upto + 1):
        stored = lineage.at(seq)
        header = stored.header
        if header.previous != hash or header.seq != seq:
            raise BrokenChain(header.uid.hex(), seq, "does not follow the record before it")
        deeds = read_deeds(checked_body(stored).deeds, ref=Ref, promise=Promise, tree=decode_tree)
        if header.kind == Kind.FORKED and deeds.message["seq"] != seq - 1:
            raise BrokenChain(header.uid.hex(), seq, "is not the fork of the record before it")
        follow(heap, header.kind, deeds.operations, header.time)
        hash = header.hash
    lineage.let_go()
    return Restored(heap, memory, upto, hash, snapshot, upto - snapshot, passed_over)


def checked_body(stored: Stored) -> Body:
    """The body of a record, which must be the one that its header names. Raises `BrokenChain` and what reading does."""
    body = stored.body()
    header = stored.header
    if body.digest != header.body_digest:
        raise BrokenChain(header.uid.hex(), header.seq, "has a body that its hash does not cover")
    return body
