"""The cache of pages: what it keeps, what it drops, and whom it serves."""

from __future__ import annotations

from snapshots import ListTree, write
from snapshots.cache import PageCache
from snapshots.memory import MemoryPages
from snapshots.nodes import ListLeaf, PageRef

ONE, OTHER = b"1" * 16, b"2" * 16
NODE = ListLeaf([1])


def ref(number, digest=bytes(32)):
    return PageRef(1, number, digest)


def test_the_least_recently_used_page_goes_first():
    cache = PageCache(30)
    for number in (1, 2, 3):
        cache.put(ONE, ref(number), NODE, 10)
    cache.get(ONE, ref(1))
    cache.put(ONE, ref(4), NODE, 10)
    assert [number for number in (1, 2, 3, 4) if cache.get(ONE, ref(number))] == [1, 3, 4]


def test_it_never_holds_more_than_its_capacity():
    """Invariant 39."""
    cache = PageCache(1000)
    for number in range(500):
        cache.put(bytes([number % 7]), ref(number), NODE, number % 90)
        assert cache.statistics().size <= 1000
    cache.put(ONE, ref(9), NODE, 1001)
    assert cache.get(ONE, ref(9)) is None


def test_a_page_that_is_put_again_counts_once():
    cache = PageCache(100)
    for _ in range(5):
        cache.put(ONE, ref(1), NODE, 60)
    statistics = cache.statistics()
    assert (statistics.entries, statistics.size) == (1, 60)


def test_pages_of_the_same_name_belong_to_their_owners():
    cache = PageCache(100)
    other = ListLeaf([2])
    cache.put(ONE, ref(1), NODE, 1)
    cache.put(OTHER, ref(1), other, 1)
    assert cache.get(ONE, ref(1)) is NODE
    assert cache.get(OTHER, ref(1)) is other


def test_a_page_is_given_only_for_its_own_digest():
    cache = PageCache(100)
    cache.put(ONE, ref(1), NODE, 1)
    assert cache.get(ONE, ref(1, b"x" * 32)) is None


def test_a_page_is_loaded_once_while_it_is_kept():
    pages = MemoryPages()
    cache = PageCache(100_000)

    def load(ref):
        node = cache.get(ONE, ref)
        if node is None:
            node = pages.load(ref)
            cache.put(ONE, ref, node, len(pages.data[ref[:2]]))
        return node

    tree = write(ListTree().extend(range(100)), pages)
    for index in range(100):
        assert tree.get(index, load) == index
    statistics = cache.statistics()
    assert pages.loads == statistics.misses == statistics.entries == 5
    assert statistics.hits == 200 - 5
    assert statistics.size == sum(map(len, pages.data.values()))
