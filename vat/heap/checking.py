"""Snapshots held against the log: does each give the heap that the records give? And do these give a heap at all?

The one rule: a snapshot is held against the one before it, which was checked already, and the records between the
two; so each record is read once, and the first snapshot is held against the session's beginning. Where what these did
is in an archive that is not here, or cannot be read, the next snapshot that can be read whole is taken for that
beginning.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from typing import Any, NamedTuple

from dataspace.catalog.lookups import Leg, SnapshotRow
from dataspace.errors import KeeveError
from dataspace.log.archives import Archived
from dataspace.log.store import BodyErased
from dataspace.log.verdicts import SessionDamaged
from dataspace.values import Value
from dataspace.values.encoding import encode
from snapshots.cache import PageCache
from snapshots.nodes import Node, PageRef
from snapshots.tree import Tree
from vat.heap.heap import Heap
from vat.heap.memory import BadSnapshotPage, VatMemory, read_page
from vat.heap.reaching import KEPT
from vat.heap.restore import BrokenChain, Index, Lineage, Restored, let_go, newest_base, restore, root_of


def fingerprint(heap: Heap) -> bytes:
    """A digest of all that a heap holds, whatever the shape of its pages. Costs all of it; O(1) memory."""
    digest = sha256(encode([heap.counters, heap.time, heap.forking]))
    for name, tree in heap.trees().items():
        digest.update(encode([name, _tree_digest(tree, heap)]))
    return digest.digest()


def _tree_digest(tree: Tree, heap: Heap) -> bytes:
    digest = sha256(encode([tree.kind, tree.count]))
    page = heap.memory.page
    # A map gives pairs, a list and a set their items.
    items: Any = tree.items(loader=page) if hasattr(tree, "items") else tree.iterate(loader=page)  # type: ignore[attr-defined]  # each kind has one of them
    for item in items:
        digest.update(encode(_expanded(item, heap)))
    return digest.digest()


def _expanded(item: Value, heap: Heap) -> Value:
    """A stored value in which each tree is the digest of what it holds."""
    if isinstance(item, Tree):
        return [item.count, _tree_digest(item, heap)]
    if isinstance(item, dict):
        return {key: _expanded(value, heap) for key, value in item.items()}
    if isinstance(item, list | tuple):
        return [_expanded(value, heap) for value in item]
    return item


class _Only:
    """An index that knows of these snapshots and no others."""

    def __init__(self, index: Index, snapshots: list[SnapshotRow]) -> None:
        self._index = index
        self._snapshots = snapshots

    def lineage(self, uid: bytes) -> list[Leg]:
        return self._index.lineage(uid)

    def locate(self, uid: bytes, seq: int) -> int | None:
        return self._index.locate(uid, seq)

    def snapshots(self, uid: bytes, upto: int) -> list[SnapshotRow]:
        return [snapshot for snapshot in self._snapshots if snapshot.seq <= upto]


class Unfit(NamedTuple):
    """What is wrong with a session's snapshots or records.

    `what` in words; `snapshot` is the one that it is about (None: the heap at the end). If a page of that cannot be
    read, `page` is which; if a record cannot, `record` is whose (a uid in hex) and at which seq. `restored`: whether
    there is a heap without it. `cut`: whether there may be pages of it that were not looked at.
    """

    what: str
    snapshot: SnapshotRow | None = None
    page: tuple[int, int] | None = None
    record: tuple[str, int] | None = None
    restored: bool = False
    cut: bool = False


def check_snapshots(lineage: Lineage, index: Index, seq: int) -> Iterator[Unfit]:
    """What is wrong with the snapshots of a session up to `seq` that a restore may begin from, in order; and with the
    heap there.

    Costs a replay of all its records, and a walk through the heap for each snapshot. What is wrong with one of the
    records is said once.
    """
    found: list[Unfit] = []
    sound: list[SnapshotRow] = []
    base = newest_base(lineage, index, seq)
    begins = {each.seq: each for each in (*index.snapshots(lineage.uid, seq), *([] if base is None else [base]))}
    for _, snapshot in sorted(begins.items()):
        if let_go(lineage, snapshot.seq):
            continue  # it was let go, and is no snapshot any more
        replayed: Restored | None = None
        try:
            replayed = _restored(lineage, _Only(index, sound), snapshot.seq)
        except (Archived, BodyErased):
            pass  # there is nothing to hold it against; who looks at the log says whether that was to be
        except (SessionDamaged, BrokenChain) as error:
            found.append(Unfit(f"the records before it cannot be read: {error}", snapshot, None, _record(error)))
        try:
            digest = fingerprint(_loaded(lineage, snapshot))
        except BodyErased:
            continue
        except KeeveError as error:
            newer = sum(seq > snapshot.seq for seq in begins)
            if newer < KEPT or not isinstance(error.__cause__, BodyErased):  # those of older ones may go
                found.append(_unread(snapshot, error))
            continue
        if replayed is None or digest == fingerprint(replayed.heap):
            sound = [snapshot]
        else:
            found.append(Unfit("it is not the heap that the records give", snapshot))
    restored = False
    try:
        _restored(lineage, _Only(index, sound), seq)
        restored = True
    except (BodyErased, Archived):
        pass
    except Exception as error:  # noqa: BLE001  # operations that nobody can have written may do anything
        found.append(Unfit(f"its records up to seq {seq} give no heap: {error}", record=_record(error)))
    met: set[tuple[str, int]] = set()
    cut = {each.snapshot for each in found if each.cut}
    for each in found:
        if each.record is None or each.record not in met:
            yield each._replace(restored=restored, cut=each.snapshot in cut)
        if each.record is not None:
            met.add(each.record)


def _loaded(lineage: Lineage, snapshot: SnapshotRow) -> Heap:
    """The heap of a snapshot, of its pages alone. Raises `BadSnapshotPage`, and what reading its record raises."""
    memory = VatMemory(lineage, PageCache(8 << 20))
    stored = lineage.at(snapshot.seq)
    root = root_of(stored)
    try:
        return Heap.load(read_page(lineage, root), memory)
    except BodyErased:
        raise
    except SessionDamaged as error:
        raise BadSnapshotPage(root, error.what) from error
    except KeeveError as error:
        raise error if isinstance(error, BadSnapshotPage) else BadSnapshotPage(root, str(error)) from error


def _unread(snapshot: SnapshotRow, error: KeeveError) -> Unfit:
    """A snapshot that cannot be read."""
    if isinstance(error, BadSnapshotPage):
        return Unfit(f"heap page {error.ref.seq}.{error.ref.number}: {error.what}", snapshot, error.ref[:2], cut=True)
    return Unfit(f"it cannot be read: {error}", snapshot, None, _record(error), cut=True)


def _record(error: Exception) -> tuple[str, int] | None:
    """The record that an error is about."""
    return (error.session, error.seq) if isinstance(error, SessionDamaged | BrokenChain) else None


def stands(lineage: Lineage, index: Index, base: SnapshotRow, made_of: Heap | None = None) -> bool:
    """Whether a base can be read whole, of its own pages alone; and is the heap that it was `made_of`.

    Costs a walk through each.
    """
    try:
        memory = _OwnPages(lineage, base.seq)
        loaded = restore(lineage, _Only(index, [base]), PageCache(0), base.seq, memory=memory)
        if loaded.passed_over:
            return False
        found = fingerprint(loaded.heap)
        return made_of is None or found == fingerprint(made_of)
    except KeeveError:
        return False


def replayed(lineage: Lineage, index: Index, base: SnapshotRow | None, seq: int) -> Restored:
    """The heap that the records up to a seq give: those after a base that stands, or all of them; whatever snapshots
    there are. Raises as `restore` does."""
    found = _restored(lineage, _Only(index, [] if base is None else [base]), seq)
    if base is not None and found.snapshot != base.seq:
        raise BrokenChain(lineage.uid.hex(), base.seq, "is a base that cannot be read")
    return found


class _OwnPages(VatMemory):
    """The pages of one record, and no others."""

    __slots__ = ("_seq",)

    def __init__(self, lineage: Lineage, seq: int) -> None:
        super().__init__(lineage, PageCache(8 << 20))
        self._seq = seq

    def page(self, ref: PageRef) -> Node:
        """The node of a page. Raises `BadSnapshotPage`, also for one of another record."""
        if ref.seq != self._seq:
            raise BadSnapshotPage(ref, f"it is not of the base at seq {self._seq}")
        return super().page(ref)


def _restored(lineage: Lineage, index: Index, seq: int) -> Restored:
    # A cache of its own: a page that some other reading put into memory is not what the disk holds.
    return restore(lineage, index, PageCache(8 << 20), seq)
