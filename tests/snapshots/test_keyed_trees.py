"""Maps and sets as trees: keys, order, cost and refusals."""

from __future__ import annotations

import math
import random

import pytest

from dataspace.values import NotAValue, Ref, Symbol
from snapshots import MapTree, NoSuchKey, SetTree, write
from snapshots.memory import MemoryPages

SCALARS = [None, False, True, -1, 0, 2**80, -math.inf, 0.5, math.nan, "", "a", b"a", Symbol("a"), Ref(None, 1)]


def map_of(pairs):
    tree = MapTree()
    for key, value in pairs:
        tree = tree.put(key, value)
    return tree


def test_keys_that_python_takes_for_equal_are_told_apart():
    tree = map_of([(1, "int"), (1.0, "float"), (True, "bool"), ("1", "str"), (0.0, "plus"), (-0.0, "minus")])
    assert len(tree) == 6
    assert [tree.get(key) for key in (1, 1.0, True, 0.0, -0.0)] == ["int", "float", "bool", "plus", "minus"]


def test_every_scalar_can_be_a_key_and_survives_being_written():
    pages = MemoryPages()
    tree = write(map_of((key, at) for at, key in enumerate(SCALARS)), pages)
    keys = write(SetTree().add(None).add(math.nan), pages)
    assert [tree.get(key, loader=pages.load) for key in SCALARS] == list(range(len(SCALARS)))
    assert keys.contains(None, pages.load)
    assert keys.contains(math.nan, pages.load)


def test_what_is_no_scalar_cannot_be_a_key():
    with pytest.raises(NotAValue):
        MapTree().put(["list"], 1)
    with pytest.raises(NotAValue):
        SetTree().add(object())


def test_a_map_iterates_in_key_order_whatever_the_order_of_puts():
    keys = list(range(2000))
    random.Random(1).shuffle(keys)
    assert [key for key, _ in map_of((key, None) for key in keys).items()] == list(range(2000))


def test_a_range_goes_from_start_to_before_stop():
    tree = map_of((key, -key) for key in range(0, 400, 2))
    assert list(tree.items(99, 104)) == [(100, -100), (102, -102)]
    assert list(tree.items(stop=3)) == [(0, 0), (2, -2)]
    assert list(tree.items(397)) == [(398, -398)]
    assert list(tree.items("after all numbers")) == list(tree.items(stop=None)) == list(MapTree().items()) == []


def test_a_range_loads_the_pages_that_it_lies_on():
    pages = MemoryPages()
    tree = write(map_of((key, key) for key in range(10_000)), pages)
    pages.loads = 0
    assert len(list(tree.items(5000, 5010, pages.load))) == 10
    assert pages.loads <= 4


@pytest.mark.parametrize(("count", "levels"), [(1000, 2), (10_000, 3)])
def test_a_lookup_loads_one_page_a_level_at_most(count, levels):
    """Invariant 36."""
    pages = MemoryPages()
    tree = write(map_of((key, key) for key in range(count)), pages)
    for key in (0, count // 2, count - 1, count):
        pages.loads = 0
        assert tree.get(key, "absent", pages.load) == (key if key < count else "absent")
        assert pages.loads <= levels


def test_ids_that_count_up_fill_their_pages():
    pages = MemoryPages()
    write(map_of((key, key) for key in range(10_000)), pages)
    assert len(pages.data) == 313 + 10 + 1


def test_a_put_writes_one_page_a_level():
    pages = MemoryPages()
    tree = write(map_of((key, key) for key in range(10_000)), pages)
    for key in (17, 10_000):
        before = len(pages.data)
        write(tree.put(key, "new", pages.load), pages)
        assert len(pages.data) - before == 3


def test_a_key_below_all_others_is_found_after_splits():
    tree = map_of((key, key) for key in range(0, -1500, -1))
    assert [key for key, _ in tree.items()] == list(range(-1499, 1))
    assert all(tree.contains(key) for key in range(-1499, 1))


def test_removing_all_leaves_nothing():
    tree = map_of((key, key) for key in range(1500))
    for key in random.Random(2).sample(range(1500), 1500):
        tree = tree.remove(key)
    assert tree.root is None
    assert len(tree) == 0


def test_a_key_that_is_not_there_is_named():
    with pytest.raises(NoSuchKey) as caught:
        MapTree().put("a", 1).remove("b")
    assert str(caught.value) == 'there is no key "b"'
    assert isinstance(caught.value, KeyError)
    with pytest.raises(NoSuchKey):
        SetTree().remove(1)


def test_a_missing_key_reads_as_the_default():
    tree = map_of((key, key) for key in range(0, 100, 2))
    assert tree.get(-5, "none") == tree.get(51, "none") == MapTree().get(1, "none") == "none"
    assert tree.get(51) is None


def test_adding_what_is_there_gives_the_same_set():
    keys = SetTree().add(1)
    assert keys.add(1) is keys
    assert len(keys.add(True)) == 2
    assert list(keys.add(True).iterate()) == [True, 1]
