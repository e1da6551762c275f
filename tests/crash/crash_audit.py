"""What is in a store, read from its log alone: the chains, what the heaps are, and who did what.

A heap is read twice: from its newest snapshot and from its first record; the two must be the same. `dump` gives a heap
in plain values, so that two of them can be compared.

The one rule: nothing here asks a host. What it says is what a stranger with the folder would find.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs

from dataspace.catalog.lookups import Leg, SnapshotRow
from dataspace.drafts import Assertion, read_deeds, read_statements
from dataspace.errors import KeeveError
from dataspace.log.store import Store, Stored
from dataspace.records import STORE_UID, Kind
from keeve.api import open_store
from snapshots.cache import PageCache
from snapshots.lists import ListTree
from snapshots.tree import Tree
from vat.heap.heap import Heap
from vat.heap.operations import Op
from vat.heap.restore import Index, Lineage, restore

CONSTANT = b"\x07"


def constant(count: int) -> bytes:
    """Randomness that is always the same, so that two runs make the same records."""
    return CONSTANT * count


def standing() -> int:
    """A clock that stands."""
    return 1_700_000_000_000_000


@attrs.define
class Chain:
    """A session's own records: the seq before the first, and the hashes from there."""

    uid: bytes
    base: int
    hashes: list[bytes]
    id: str
    parent: bytes | None = None
    deleted: bool = False

    @property
    def seq(self) -> int:
        """The seq of the newest record."""
        return self.base + len(self.hashes)


@attrs.define
class Audit:
    """What a log says. Effects are known by their ids, messages by their sender's uid and number."""

    chains: dict[bytes, Chain] = attrs.field(factory=dict)
    hashes: dict[int, str] = attrs.field(factory=dict)
    """The hash of each record, by its position."""
    heaps: dict[bytes, dict[str, Any]] = attrs.field(factory=dict)
    """The heap of each living session, in plain values."""
    requests: dict[tuple[bytes, str], Any] = attrs.field(factory=dict)
    """What each request was answered: (whether it succeeded, value), or None while it is not."""
    forks: dict[bytes, tuple[bytes, int]] = attrs.field(factory=dict)
    """By the child's uid, what the parents' records say of forks: the parent, and at which seq."""
    sent: dict[tuple[bytes, int], int] = attrs.field(factory=dict)
    received: dict[tuple[bytes, int], int] = attrs.field(factory=dict)
    wanted: dict[str, tuple[str, Any]] = attrs.field(factory=dict)
    """Effects by id: the device, and what it is called with."""
    started: set[str] = attrs.field(factory=set)
    ended: set[str] = attrs.field(factory=set)

    def by_id(self, id: str) -> Chain | None:
        """The chain of a session."""
        return next((chain for chain in self.chains.values() if chain.id == id), None)


def audited(folder: Path, spare: Path) -> Audit:
    """What the store in `folder` holds once it is recovered. A copy at `spare` is opened, so the folder stays."""
    shutil.rmtree(spare, ignore_errors=True)
    if folder.exists():
        shutil.copytree(folder, spare)
    try:
        store, catalog = open_store(spare, clock=standing, entropy=constant)
    except KeeveError as error:
        raise AssertionError(f"the store cannot be opened: {error}") from error
    try:
        assert store.fault is None, store.fault
        return audit(store, catalog)
    finally:
        catalog.close()
        store.close()


def audit(store: Store, index: Index, *, heaps: bool = True) -> Audit:
    """What an open store holds. `index` is its catalog. Without `heaps` no session is restored."""
    found = Audit()
    effects: dict[tuple[bytes, int], str] = {}
    for stored in store.scan():
        header = stored.header
        found.hashes[header.position] = header.hash.hex()
        if header.uid == STORE_UID:
            continue
        deeds = read_deeds(stored.body().deeds)
        said = deeds.message
        chain = found.chains.get(header.uid)
        if chain is None:
            assert header.kind in (Kind.SPAWN, Kind.FORKED)
            chain = found.chains[header.uid] = Chain(header.uid, header.seq - 1, [], said["id"], said.get("parent"))
        chain.hashes.append(header.hash)
        assert chain.seq == header.seq
        if header.kind == Kind.DELETE:
            chain.deleted = True
        if header.kind == Kind.FORK:
            found.forks[said["child"]] = (header.uid, _forked_at(stored))
        for operation in deeds.operations:
            _note(found, effects, header.uid, header.position, operation)
    for chain in found.chains.values():
        if heaps and not chain.deleted:
            heap = restored(store, index, chain.uid, chain.seq)
            found.heaps[chain.uid] = dump(heap)
            for key, (_, promise, succeeded, payload) in heap.system["requests"].items(loader=heap.memory.page):
                answer = None if promise is not None else (succeeded, plain(heap, payload))
                found.requests[chain.uid, key.partition("\0")[2]] = answer
    return found


def _forked_at(stored: Stored) -> int:
    """The seq that a fork's record states."""
    (fork,) = read_statements(stored.body().facts, lambda cell: stored.cell(cell.number))
    assert isinstance(fork, Assertion)
    at: int = fork.fact.keywords["at"]
    return at


def _note(found: Audit, effects: dict[Any, str], uid: bytes, position: int, operation: Any) -> None:
    kind = operation[0]
    if kind == Op.SENT:
        found.sent[uid, operation[1]] = position
    elif kind == Op.RECEIVED:
        assert (operation[1], operation[2]) not in found.received, "a message was recorded twice"
        found.received[operation[1], operation[2]] = position
    elif kind == Op.WANTED:
        effects[uid, operation[1]] = operation[2].hex()
        found.wanted[operation[2].hex()] = operation[3], operation[5]
    elif kind in (Op.STARTED, Op.ENDED):
        # A fork lets its parent's effects go, so only its own are here.
        (found.started if kind == Op.STARTED else found.ended).add(effects[uid, operation[1]])


class _WithoutSnapshots:
    """An index that knows of no snapshots."""

    def __init__(self, index: Index) -> None:
        self._index = index

    def lineage(self, uid: bytes) -> list[Leg]:
        return self._index.lineage(uid)

    def locate(self, uid: bytes, seq: int) -> int | None:
        return self._index.locate(uid, seq)

    def snapshots(self, uid: bytes, upto: int) -> list[SnapshotRow]:
        return []


def restored(store: Store, index: Index, uid: bytes, seq: int) -> Heap:
    """The heap of a session as of a seq, the same from its newest snapshot and from the beginning."""
    heaps = []
    for how in (index, _WithoutSnapshots(index)):
        found = restore(Lineage(uid, how, store.read), how, PageCache(1 << 20), seq)
        assert not found.passed_over
        heaps.append(found.heap)
    assert dump(heaps[0]) == dump(heaps[1])
    return heaps[0]


def dump(heap: Heap) -> dict[str, Any]:
    """All of a heap in plain values, in a fixed order."""
    actors = {}
    for actor in heap.actors():
        state = heap.state(actor)
        fields = {name: plain(heap, value) for name, value in sorted(state.fields.items())}
        actors[actor] = [state.type, state.version, fields]
    system = {name: plain(heap, tree) for name, tree in heap.system.items()}
    return {
        "actors": actors,
        "system": system,
        "counters": dict(heap.counters),
        "time": heap.time,
        "forking": heap.forking,
    }


def plain(heap: Heap, value: Any) -> Any:
    """A stored value in plain ones: trees as lists or sorted pairs, cells as their content."""
    if isinstance(value, Tree):
        return [plain(heap, item) for item in _items(value, heap.memory.page)]
    if isinstance(value, Mapping):
        return {key: plain(heap, item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(heap, item) for item in value]
    return heap.read(value)


def without(value: Any, key: str) -> Any:
    """A value with no `key` in any of its dicts."""
    if isinstance(value, dict):
        return {name: without(item, key) for name, item in value.items() if name != key}
    return [without(item, key) for item in value] if isinstance(value, list) else value


def _items(tree: Any, page: Callable[..., Any]) -> Iterator[Any]:
    if isinstance(tree, ListTree) or not hasattr(tree, "items"):
        return iter(tree.iterate(loader=page))
    return iter(tree.items(loader=page))


def check_messages(found: Audit) -> None:
    """Invariants 7 and 9: what was received had been sent, durably, and in the order in which it was sent."""
    for message, position in found.received.items():
        assert found.sent[message] < position, f"message {message} was received before it was sent"


def check_forks(found: Audit) -> None:
    """Invariant 2: a fork is whole or absent."""
    children = {chain.uid: (chain.parent, chain.base) for chain in found.chains.values() if chain.parent is not None}
    assert children == found.forks
