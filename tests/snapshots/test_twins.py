"""Twins: two heaps that part share no node that a draft may still change."""

from __future__ import annotations

from dataspace.values import FrozenDict
from snapshots import ListTree, MapTree, MemoryPages, PageDraft, SetTree, twin, write


def test_writing_a_tree_leaves_its_twin_alone():
    """Invariant 27: the pages of one are never taken for pages of the other."""
    seen = ListTree().extend(range(100))
    table = MapTree().put(1, FrozenDict({"seen": seen, "tags": SetTree().add("a")}))
    copy = twin(table)
    pages = MemoryPages(seq=9)
    write(table, pages)
    mine = MemoryPages(seq=9)  # the same names, other pages
    written = write(copy.put(2, "another", mine.load), mine)
    inside = written.get(1, loader=mine.load)
    assert list(inside["seen"].iterate(loader=mine.load)) == list(range(100))
    assert list(inside["tags"].iterate(loader=mine.load)) == ["a"]


def test_a_draft_that_settles_later_does_not_reach_the_twin():
    tree = ListTree().extend(range(40))
    pages = MemoryPages()
    draft = PageDraft(pages)
    draft.write(tree)
    copy = twin(tree)
    draft.settle()
    assert list(copy.iterate()) == list(range(40)), "it needs no loader: its nodes are its own"


def test_written_nodes_are_shared():
    pages = MemoryPages()
    tree = write(ListTree().extend(range(1_000)), pages)
    grown = tree.append("more", pages.load)
    copy = twin(grown)
    before = len(pages.data)
    write(copy, pages)
    assert len(pages.data) - before == 2


def test_what_trees_have_in_common_their_twins_have_in_common():
    shared = ListTree().extend(range(40))
    made = {}
    one, other = twin(shared, made), twin(shared.append(1), made)
    assert one.root.children[0] is other.root.children[0]
    assert one.root.children[0] is not shared.root.children[0]
