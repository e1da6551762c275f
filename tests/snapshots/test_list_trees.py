"""Lists as trees: shape, cost and refusals."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snapshots import ListTree, OutOfRange, write
from snapshots.memory import MemoryPages
from snapshots.nodes import WIDTH, NoLoader, PageRef

BIG = 32 * 32 * 32 + 5


def shape(node):
    """What a tree in memory is made of."""
    if node is None:
        return None
    return node.items if hasattr(node, "items") else [node.ends, *map(shape, node.children)]


@given(st.lists(st.integers(0, 1200), max_size=4))
def test_extending_gives_the_shape_of_appending_one_by_one(runs):
    extended = appended = ListTree()
    for run in runs:
        extended = extended.extend(range(run))
        for item in range(run):
            appended = appended.append(item)
    assert shape(extended.root) == shape(appended.root)


def test_extending_by_nothing_gives_the_same_tree():
    tree = ListTree().append(1)
    assert tree.extend([]) is tree
    assert ListTree().extend([]).root is None


def test_inserting_at_the_end_is_appending():
    tree = ListTree().extend(range(40))
    assert shape(tree.insert(40, "x").root) == shape(tree.append("x").root)


def test_a_change_leaves_the_old_tree_as_it_was():
    tree = ListTree().extend(range(100))
    for changed in (
        tree.append(1),
        tree.insert(5, 1),
        tree.set(5, 1),
        tree.delete(5),
        tree.extend(range(99)),
    ):
        assert list(changed.iterate()) != list(range(100))
    assert list(tree.iterate()) == list(range(100))


def test_a_list_that_only_grows_fills_its_pages():
    pages = MemoryPages()
    write(ListTree().extend(range(10_000)), pages)
    assert len(pages.data) == 313 + 10 + 1


@pytest.mark.parametrize("count", [WIDTH + 1, WIDTH * WIDTH + 1, WIDTH * WIDTH + WIDTH + 1])
def test_a_list_that_was_grown_can_be_emptied_from_its_end(count):
    tree = ListTree().extend(range(count))
    while tree.count:
        tree = tree.delete(tree.count - 1)
        assert list(tree.iterate(max(0, tree.count - 3))) == list(range(max(0, tree.count - 3), tree.count))
        assert shape(tree.root) == shape(ListTree().extend(range(tree.count)).root)
    assert tree.root is None


def test_a_list_can_be_emptied_from_its_start():
    tree = ListTree().extend(range(1100))
    for first in range(1100):
        assert tree.get(0) == first
        tree = tree.delete(0)
    assert tree.root is None


@pytest.mark.parametrize(("count", "levels"), [(10_000, 3), (BIG, 4)])
def test_an_append_writes_one_page_a_level(count, levels):
    pages = MemoryPages()
    tree = write(ListTree().extend(range(count)), pages)
    before = len(pages.data)
    write(tree.append("one more", pages.load), pages)
    assert len(pages.data) - before == levels


@pytest.mark.parametrize(("count", "new"), [(WIDTH, 2), (WIDTH * WIDTH, 3), (WIDTH * 7, 2), (WIDTH**2 * 2, 3)])
def test_what_is_full_is_not_written_again_when_the_next_begins(count, new):
    pages = MemoryPages()
    tree = write(ListTree().extend(range(count)), pages)
    before = len(pages.data)
    tree = write(tree.append("one more", pages.load), pages)
    assert len(pages.data) - before == new
    assert tree.get(count, pages.load) == "one more"


@pytest.mark.parametrize(("count", "levels"), [(1000, 2), (10_000, 3), (BIG, 4)])
def test_a_lookup_loads_one_page_a_level(count, levels):
    """Invariant 36: what it costs grows with the height alone."""
    pages = MemoryPages()
    tree = write(ListTree().extend(range(count)), pages)
    for index in (0, count // 2, count - 1):
        pages.loads = 0
        assert tree.get(index, pages.load) == index
        assert pages.loads == levels


@pytest.mark.parametrize("operation", ["set", "insert", "delete"])
def test_a_change_in_the_middle_costs_a_few_pages_a_level(operation):
    pages = MemoryPages()
    tree = write(ListTree().extend(range(10_000)), pages)
    before = len(pages.data)
    pages.loads = 0
    arguments = (5000, pages.load) if operation == "delete" else (5000, "new", pages.load)
    write(getattr(tree, operation)(*arguments), pages)
    assert pages.loads <= 6
    assert len(pages.data) - before <= 6


def test_a_slice_loads_the_pages_that_it_lies_on():
    pages = MemoryPages()
    tree = write(ListTree().extend(range(10_000)), pages)
    pages.loads = 0
    assert list(tree.iterate(9_990, None, pages.load)) == list(range(9_990, 10_000))
    assert pages.loads <= 5


def test_bounds_of_a_slice_are_cut_to_the_list():
    tree = ListTree().extend(range(40))
    assert list(tree.iterate(38, 99)) == [38, 39]
    assert list(tree.iterate(50)) == list(tree.iterate(7, 7)) == list(ListTree().iterate()) == []


@pytest.mark.parametrize("index", [-1, 40])
def test_an_index_that_is_not_there_is_refused(index):
    tree = ListTree().extend(range(40))
    for operation in (tree.get, tree.delete, lambda at: tree.set(at, 1)):
        with pytest.raises(OutOfRange, match=f"index {index} is out of range: the list holds 40") as caught:
            operation(index)
        assert isinstance(caught.value, IndexError)
    with pytest.raises(OutOfRange):
        tree.insert(-1, 1)


def test_a_written_tree_without_a_loader_says_what_to_do():
    tree = write(ListTree().append(1), MemoryPages(seq=7))
    with pytest.raises(NoLoader, match=r"page 7\.1 is not in memory: pass a loader"):
        tree.get(0)


def test_a_tree_says_where_it_is():
    tree = ListTree().append(1)
    assert repr(ListTree()) == "<ListTree of 0, in nothing>"
    assert repr(tree) == "<ListTree of 1, in memory>"
    assert repr(ListTree(PageRef(3, 4, bytes(32)), 9)) == "<ListTree of 9, in page 3.4>"
