"""The tree over a log as the catalog keeps it: the same as one made of all records, whatever was written when."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import apsw
import pytest
from worlds import World

import dataspace.catalog.tree
from dataspace.catalog.catalog import Catalog
from dataspace.catalog.checking import Right, check_catalog
from dataspace.catalog.tree import LogTree
from dataspace.facts import fact
from dataspace.log.store import Store
from dataspace.proofs import merkle
from dataspace.proofs.merkle import Tree, extends, includes, leaf_hash


def whole(store: Store) -> Tree:
    return Tree(leaf_hash(stored.header.hash) for stored in store.scan())


def said(world: World, count: int) -> None:
    for number in range(count):
        world.say("ada", fact("shop.note", number))


def agree(catalog: Catalog, store: Store) -> None:
    right = whole(store)
    size = catalog.head.position
    assert size == right.size
    for at in {1, 2, 31, 32, 33, 64, size // 2, size - 1, size} & set(range(1, size + 1)):
        assert catalog.tree.root(at) == right.root(at), at
        for position in {1, 30, 32, 33, at // 2, at - 1, at} & set(range(1, at + 1)):
            leaf = leaf_hash(store.read(position).header.hash)
            assert includes(right.root(at), at, leaf, position - 1, catalog.tree.inclusion(position, at))
        for old in {1, 31, 32, 33, at // 2, at - 1, at} & set(range(1, at + 1)):
            proof = catalog.tree.consistency(old, at)
            assert extends(old, right.root(old), at, right.root(at), proof)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "catalog.sqlite"


@pytest.mark.parametrize("every", [1, 7, 31, 32, 33, 100, 1000])
def test_it_is_the_same_however_often_it_is_written(path: Path, every: int):
    world = World(path)
    world.spawn("ada")
    for number in range(140):
        world.say("ada", fact("shop.note", number))
        if number % every == 0:
            world.catalog.flush()
    agree(world.catalog, world.store)
    world.catalog.tree.forget()
    agree(world.catalog, world.store)
    world.catalog.close()


def test_it_is_the_same_after_a_reopening_and_goes_on(path: Path):
    world = World(path)
    world.spawn("ada")
    for _ in range(4):
        said(world, 37)
        world = world.reopen()
        agree(world.catalog, world.store)
    world.catalog.close()


def test_it_is_the_same_without_the_file_and_in_memory(path: Path):
    """Invariant 21: the tree is derived."""
    world = World(path)
    world.spawn("ada")
    said(world, 100)
    world.catalog.flush()
    right = world.catalog.tree.root(90)
    world.catalog.close()
    path.unlink()
    for catalog in (Catalog(path, world.store), Catalog(None, world.store)):
        agree(catalog, world.store)
        assert catalog.tree.root(90) == right
        catalog.close()


def test_it_grows_beyond_a_thousand_records(path: Path):
    world = World(path)
    world.spawn("ada")
    for _ in range(3):
        said(world, 400)
        world.catalog.flush()
    agree(world.catalog, world.store)
    world = world.reopen()
    agree(world.catalog, world.store)
    assert len(world.catalog.nodes(10, 0)) == 32
    world.catalog.close()


def test_while_records_are_being_written_they_are_there(path: Path):
    world = World(path)
    world.spawn("ada")
    said(world, 50)
    flush = world.catalog.begin()
    said(world, 50)
    agree(world.catalog, world.store)
    assert flush is not None
    flush.write()
    world.catalog.finish(flush)
    world.catalog.tree.forget()
    agree(world.catalog, world.store)
    world.catalog.close()


@pytest.mark.parametrize("every", [7, 32, 33])
def test_it_is_the_same_with_nodes_that_were_made_before_they_are_written(path: Path, every: int):
    world = World(path)
    world.spawn("ada")
    for number in range(140):
        world.say("ada", fact("shop.note", number))
        if number % 3 == 0:
            world.catalog.tree.root(number // 2 + 1 if number % 9 else number)
        if number % every == 0:
            world.catalog.flush()
    world.catalog.tree.forget()
    agree(world.catalog, world.store)
    world.catalog.close()


def test_what_was_hashed_for_a_checkpoint_is_not_hashed_again_to_be_written(
    path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Invariant 36: a signer costs little more than the signatures."""
    world = World(path)
    world.spawn("ada")
    said(world, 299)
    size = world.store.head.position
    world.catalog.tree.root(size)
    hashed = []
    monkeypatch.setattr(merkle, "sha256", lambda data: hashed.append(data) or sha256(data))
    world.catalog.flush()
    assert len(hashed) == size % 32  # the leaves after the last node that is whole
    world.catalog.close()


def test_rows_that_are_missing_are_made_again(path: Path):
    """Invariant 21: a damaged file gives the same answers."""
    world = World(path)
    world.spawn("ada")
    said(world, 100)
    world.catalog.close()
    db = apsw.Connection(str(path))
    db.execute("DELETE FROM tree")
    db.close()
    world.catalog = Catalog(path, world.store)
    agree(world.catalog, world.store)
    said(world, 40)
    world.catalog = Catalog(None, world.store)
    agree(world.catalog, world.store)


class Counting:
    """A catalog that counts what its tree asks for."""

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self.written = catalog.written
        self.asked = 0

    def nodes(self, level: int, n: int) -> bytes:
        self.asked += 1
        return self.catalog.nodes(level, n)

    def hashes(self, first: int, last: int) -> list[bytes]:
        self.asked += last - first
        return self.catalog.hashes(first, last)


def test_a_proof_costs_the_same_few_reads_in_a_long_log_as_in_a_short_one(path: Path):
    """Invariant 36: what a proof costs does not grow with the log, but for its logarithm."""
    costs = []
    world = World(path)
    world.spawn("ada")
    for count in (200, 1500):
        said(world, count)
        world.catalog.flush()
        ground = Counting(world.catalog)
        LogTree(ground).inclusion(100, world.store.head.position)
        costs.append(ground.asked)
    assert costs[0] <= 70  # the records of two nodes, and two rows
    assert costs[1] <= costs[0] + 4
    world.catalog.close()


def test_what_is_remembered_of_a_long_log_is_bounded(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(dataspace.catalog.tree, "_KEPT", 2)
    world = World(None)
    world.spawn("ada")
    said(world, 199)
    agree(world.catalog, world.store)
    assert len(world.catalog.tree._low) <= 2


def test_a_wrong_node_is_found_by_who_looks_at_everything(path: Path):
    world = World(path)
    world.spawn("ada")
    said(world, 100)
    world.catalog.flush()
    right = Right(world.store)
    assert not [what for step in check_catalog(world.catalog, right) for what in step]
    world.catalog._tables._writer.execute("UPDATE tree SET nodes = zeroblob(length(nodes)) WHERE level = 5")
    assert [what for step in check_catalog(world.catalog, right) for what in step] == [
        "the catalog has other nodes of the tree than the log, at level 5"
    ]
    right.catalog.close()
    world.catalog.close()
