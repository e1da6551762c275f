"""Writing and walking trees: nested ones, shared ones, and drafts that come to nothing."""

from __future__ import annotations

import pytest

from dataspace.values import CelledDict, CellRef, FrozenDict, FrozenList
from snapshots import ListTree, MapTree, PageDraft, PageRef, SetTree, WholeDraft, write
from snapshots.memory import MemoryPages
from snapshots.nodes import ListLeaf
from snapshots.pages import encode_node


def heap(actors=3, said=50):
    """A heap such as a vat has: actors by id, their fields holding trees."""
    tree = MapTree()
    for actor in range(actors):
        seen = ListTree().extend(range(said))
        tree = tree.put(actor, FrozenDict({"type": "chat.counter", "count": actor, "seen": seen}))
    return tree


def seen_of(tree, actor, pages):
    return tree.get(actor, loader=pages.load)["seen"]


def test_trees_in_items_are_written_before_them_and_come_back_as_handles():
    pages = MemoryPages()
    tree = write(heap(), pages)
    fields = tree.get(1, loader=pages.load)
    assert type(fields) is FrozenDict
    assert type(fields["seen"].root) is PageRef
    assert list(fields["seen"].iterate(loader=pages.load)) == list(range(50))


def test_a_tree_may_stand_anywhere_in_a_value():
    pages = MemoryPages()
    deep = SetTree().add("deep")
    item = FrozenDict({"a": FrozenList([1, FrozenDict({"b": FrozenList([deep])})]), "c": SetTree()})
    tree = write(ListTree().append(item).append(ListTree().append(deep)), pages)
    read = tree.get(0, pages.load)
    assert read["a"][1]["b"][0].contains("deep", pages.load)
    assert len(read["c"]) == 0
    assert tree.get(1, pages.load).get(0, pages.load).contains("deep", pages.load)


def test_a_stored_form_with_cells_keeps_its_type_around_a_written_tree():
    draft = PageDraft(MemoryPages())
    draft.write(ListTree().append(CelledDict({"text": CellRef(1, 1), "of": ListTree().append(1)})))
    node = draft.pages[-1].node
    assert isinstance(node, ListLeaf)
    assert type(node.items[0]) is CelledDict


def test_an_item_without_new_trees_is_kept_as_it_is():
    item = FrozenDict({"old": write(ListTree().append(1), MemoryPages()), "list": FrozenList([FrozenDict()])})
    draft = PageDraft(MemoryPages())
    draft.write(ListTree().append(item))
    node = draft.pages[0].node
    assert isinstance(node, ListLeaf)
    assert node.items[0] is item


def test_what_did_not_change_is_not_written():
    """Invariant 37: one actor of a thousand says one thing more."""
    pages = MemoryPages()
    tree = write(heap(actors=1000), pages)
    before = dict(pages.data)
    fields = tree.get(500, loader=pages.load)
    seen = fields["seen"].append("more", pages.load)
    tree = write(tree.put(500, FrozenDict({**fields, "seen": seen}), pages.load), pages)
    assert len(pages.data) - len(before) == 2 + 2
    assert list(seen_of(tree, 500, pages).iterate(48, None, pages.load)) == [48, 49, "more"]
    assert list(seen_of(tree, 501, pages).iterate(48, None, pages.load)) == [48, 49]


def test_writing_what_is_written_writes_nothing():
    pages = MemoryPages()
    tree = write(heap(), pages)
    before = len(pages.data)
    assert write(tree, pages) is tree
    assert write(ListTree(), pages).root is None
    assert len(pages.data) == before


def test_a_tree_that_stands_in_two_places_is_written_once():
    pages = MemoryPages()
    seen = ListTree().extend(range(100))
    write(ListTree().append(FrozenDict({"one": seen, "other": seen, "same": ListTree(seen.root, 100)})), pages)
    assert len(pages.data) == 5 + 1


def test_versions_of_a_tree_share_their_pages():
    pages = MemoryPages()
    old = ListTree().extend(range(10_000))
    new = old.append("more")
    draft = PageDraft(pages)
    draft.write(old)
    count = len(pages.data)
    draft.write(new)
    assert len(pages.data) - count == 3


def test_a_version_made_before_the_draft_settles_writes_only_what_is_new():
    pages = MemoryPages()
    tree = ListTree().extend(range(10_000))
    draft = PageDraft(pages)
    draft.write(tree)
    newer = tree.append("more")
    draft.settle()
    count = len(pages.data)
    newer = write(newer, pages)
    assert len(pages.data) - count == 3
    assert newer.get(10_000, pages.load) == "more"


def test_a_draft_changes_nothing_until_it_is_settled():
    tree = heap()
    root = tree.root
    seen = tree.get(0)["seen"]
    draft = PageDraft(MemoryPages())
    written = draft.write(tree)
    assert tree.root is root
    assert tree.get(0)["seen"].root is seen.root
    assert type(seen.root) is not PageRef
    draft.settle()
    assert tree.root == written.root
    assert type(seen.root) is PageRef


def test_a_writer_that_fails_leaves_the_trees_as_they_were():
    """Invariant 5: nothing of a failed write is taken for written."""

    class Full(MemoryPages):
        def put(self, data):
            if len(self.data) == 4:
                raise OSError("no space left")
            return super().put(data)

    tree = heap()
    with pytest.raises(OSError, match="no space left"):
        write(tree, Full())
    pages, fresh = MemoryPages(), MemoryPages()
    write(tree, pages)
    write(heap(), fresh)
    assert pages.data == fresh.data


def test_a_settled_tree_lets_go_of_its_nodes():
    pages = MemoryPages()
    tree = ListTree().extend(range(2000))
    top = tree.root
    middle = top.children[0]
    write(tree, pages)
    assert type(tree.root) is PageRef
    assert all(type(child) is PageRef for child in [*top.children, *middle.children])


def test_a_draft_has_the_nodes_that_loading_its_pages_gives():
    pages = MemoryPages()
    draft = PageDraft(pages)
    draft.write(heap())
    assert len(draft.pages) == len(pages.data)
    for page in draft.pages:
        assert type(page.node) is type(pages.load(page.ref))
        assert encode_node(page.node) == encode_node(pages.load(page.ref))
        assert page.size == len(pages.data[page.ref.seq, page.ref.number])


def test_the_pages_are_the_same_whatever_was_loaded_meanwhile():
    first, second = MemoryPages(), MemoryPages()
    write(heap(actors=200), first)
    tree = heap(actors=200)
    list(tree.items())
    write(tree, second)
    assert first.data == second.data


def test_a_whole_draft_leads_to_no_page_but_its_own_and_leaves_the_trees_as_they_are():
    """Invariant 21: With nested trees, pages that two have in common, and nodes that are not written yet."""
    old = MemoryPages(1)
    written = write(heap(actors=3, said=2000), old)
    shared = seen_of(written, 0, old)
    tree = written.put(1, FrozenDict({"seen": shared.append("more", old.load), "again": shared}), old.load)
    new = MemoryPages(2)
    draft = WholeDraft(new, old.load)
    copy = draft.write(tree)
    draft.settle()
    assert draft.write(ListTree()).root is None

    def said(tree, pages):
        lists = [value for _, fields in tree.items(loader=pages.load) for value in fields.values()]
        return [list(each.iterate(loader=pages.load)) for each in lists if isinstance(each, ListTree)]

    assert said(copy, new) == said(tree, old)  # of the new pages alone: the old ones are not there
    assert {seq for seq, _ in new.data} == {2}
    assert type(tree.root) is not PageRef
    assert copy.get(0, loader=new.load)["seen"].root == copy.get(1, loader=new.load)["again"].root
    assert len(new.data) < 2 * len(old.data)
