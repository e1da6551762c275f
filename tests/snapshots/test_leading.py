"""Finding refs in trees: nothing is missed, and what leads nowhere is not loaded."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from dataspace.values import FrozenDict, FrozenList, Promise, Ref
from dataspace.values.encoding import encode
from snapshots import ListTree, MapTree, MemoryPages, PageRef, SetTree, leading, write


def refs(tree, pages):
    """All refs and promises that `leading` comes by, trees in trees included."""
    found, todo = [], [tree]
    while todo:
        here = todo.pop()
        if isinstance(here, ListTree | MapTree | SetTree):
            todo.extend(leading(here, pages.load))
        elif isinstance(here, dict):
            todo.extend(here.values())
        elif isinstance(here, list | tuple):
            todo.extend(here)
        elif isinstance(here, Ref | Promise):
            found.append(here)
    return found


def test_pages_without_refs_are_passed_by():
    pages = MemoryPages()
    tree = write(ListTree().extend([f"line {n}" for n in range(5_000)]), pages)
    tree = write(tree.set(4_000, Ref(None, 7), pages.load), pages)
    pages.loads = 0
    assert refs(tree, pages) == [Ref(None, 7)]
    assert pages.loads == 3, "the path to the one leaf"


def test_a_page_read_again_says_the_same_of_its_children():
    pages = MemoryPages()
    tree = write(ListTree().extend([*range(100), Ref(None, 1)]), pages)
    marks = [child.leads for child in pages.load(tree.root).children]
    assert marks == [False, False, False, True]


def test_a_change_beside_a_written_page_keeps_what_its_name_says():
    pages = MemoryPages()
    tree = write(ListTree().extend([Ref(None, 1), *range(100)]), pages)
    tree = write(tree.append("more", pages.load), pages)
    pages.loads = 0
    assert refs(tree, pages) == [Ref(None, 1)]
    assert pages.loads == 2


def test_keys_refer_as_well():
    pages = MemoryPages()
    held = write(MapTree().put(Ref(None, 2), "x"), pages)
    members = write(SetTree().add(Ref(None, 3)), pages)
    assert refs(held, pages) == [Ref(None, 2)]
    assert refs(members, pages) == [Ref(None, 3)]


def test_a_tree_in_a_tree_leads_on_exactly_if_something_in_it_does():
    pages = MemoryPages()
    inner = ListTree().append(Promise(4))
    outer = write(
        MapTree().put(1, FrozenDict({"seen": inner})).put(2, FrozenDict({"seen": ListTree().append(0)})), pages
    )
    assert refs(outer, pages) == [Promise(4)]
    plain = write(MapTree().put(2, FrozenDict({"seen": ListTree().append(0)})), pages)
    assert isinstance(plain.root, PageRef)
    assert not plain.root.leads


items = st.recursive(
    st.one_of(st.integers(0, 9), st.builds(Ref, st.none(), st.integers(0, 9)), st.builds(Promise, st.integers(0, 9))),
    lambda inner: st.lists(inner, max_size=3).map(FrozenList),
    max_leaves=4,
)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 200), items), max_size=150), st.integers(0, 150))
def test_nothing_that_refers_is_missed(entries, written):
    pages = MemoryPages()
    tree = MapTree()
    for at, (key, item) in enumerate(entries):
        tree = tree.put(key, item, pages.load)
        if at == written:
            tree = write(tree, pages)
    held = ListTree().extend(value for _, value in tree.items(loader=pages.load))
    everything = sorted(refs(held, pages), key=repr)
    assert sorted(refs(tree, pages), key=repr) == everything
    assert sorted(refs(write(tree, pages), pages), key=repr) == everything


def test_a_page_that_is_named_again_and_again_is_looked_at_once():
    """Invariant 42: forty small pages, each naming the one below 32 times, stand for more items than there is time."""
    pages = MemoryPages()
    page, count = pages.put(encode([0, [Ref(None, 1)] * 32])), 32
    for _ in range(40):
        ends = [count * (at + 1) for at in range(32)]
        page = pages.put(encode([1, ends, [page.seq] * 32, [page.number] * 32, page.digest * 32, (1 << 32) - 1]))
        count *= 32
    assert list(leading(ListTree(page, count), pages.load)) == [Ref(None, 1)] * 32
    assert pages.loads == 41
