"""Pages: every node survives its page, and nothing else is taken for one."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataspace.values import CellRef, FrozenDict, FrozenList, Ref, Symbol
from dataspace.values.encoding import BadEncoding, decode, encode
from snapshots import ListTree, MapTree, SetTree, Unwritten, write
from snapshots.memory import MemoryPages
from snapshots.nodes import KeyedBranch, ListBranch, ListLeaf, MapLeaf, Node, PageRef, SetLeaf
from snapshots.pages import BadPage, decode_node, decode_tree, encode_node

REFS = [PageRef(1, 2, bytes(32), leads=True), PageRef(300, 4, b"\1" * 32, leads=False)]
NODES = [
    ListLeaf([None, 1, FrozenDict({"role": "user", "content": CellRef(3, 1)}), ListTree(REFS[0], 40)]),
    ListBranch(list(REFS), [32, 40]),
    MapLeaf([(2, 5), (4, "a")], [(5, FrozenList([SetTree()])), ("a", MapTree(REFS[1], 2))]),
    SetLeaf([(2, 1), (6, "go")], [1, Symbol("go")]),
    KeyedBranch(list(REFS), [(2, 1), (4, "m")], [1, "m"]),
]


def parts(node):
    """A node's slots, with handles as what is encoded of them."""
    if isinstance(node, ListLeaf):
        return [encode(item) for item in node.items]
    if isinstance(node, ListBranch):
        return [node.children, node.ends]
    if isinstance(node, KeyedBranch):
        return [node.children, node.order, node.bounds]
    return [node.order, [encode(entry) for entry in node.entries]]


@pytest.mark.parametrize("node", NODES, ids=lambda node: type(node).__name__)
def test_a_node_survives_its_page(node):
    read = decode_node(encode_node(node))
    assert type(read) is type(node)
    assert parts(read) == parts(node)


def test_the_bytes_of_a_page_stay_what_they_are():
    assert encode_node(NODES[3]).hex() == "92039201d502676f"
    assert encode_node(NODES[1]).hex() == "96019220289201cd012c920204c440" + "00" * 32 + "01" * 32 + "01"


def test_a_tree_in_a_value_comes_back_as_a_handle_on_its_root_page():
    value = decode(encode({"seen": ListTree(REFS[0], 40), "none": [MapTree()]}), tree=decode_tree)
    seen, none = value["seen"], value["none"][0]
    assert (type(seen), seen.root, seen.count) == (ListTree, REFS[0], 40)
    assert (type(none), none.root, none.count) == (MapTree, None, 0)


def test_a_tree_that_is_not_written_cannot_be_encoded():
    tree = ListTree().append(1)
    with pytest.raises(Unwritten, match="a tree of 1 items is not written yet"):
        encode([tree])
    write(tree, MemoryPages())
    encode([tree])


def test_refs_are_made_by_the_one_who_asks():
    class Far(Ref):
        pass

    read = decode_node(encode_node(ListLeaf([Ref(None, 3)])), ref=Far)
    assert isinstance(read, ListLeaf)
    assert type(read.items[0]) is Far


@pytest.mark.parametrize(
    "content",
    [
        None,
        [],
        [0],
        [9, [1]],
        [0, []],
        [0, list(range(33))],
        [0, [1], 2],
        [1, [32, 32], [1, 1], [1, 2], bytes(64), 0],
        [1, [0], [1], [1], bytes(32), 0],
        [1, [True], [1], [1], bytes(32), 0],
        [1, ["32"], [1], [1], bytes(32), 0],
        [1, [32], ["1"], [1], bytes(32), 0],
        [1, [32, 64], [1], [1, 2], bytes(64), 0],
        [1, [32], [1], [1], bytes(31), 0],
        [1, [32], [1], [1], bytes(32)],
        [1, [32], [1], [1], bytes(32), 2],
        [1, [32], [1], [1], bytes(32), -1],
        [1, [32], [1], [1], bytes(32), True],
        [2, [1, 2], [1]],
        [2, [2, 1], [0, 0]],
        [2, [[]], [0]],
        [3, [1, 1]],
        [3, [{"a": 1}]],
        [4, [2, 1], [1, 1], [1, 2], bytes(64), 0],
    ],
    ids=repr,
)
def test_what_no_node_gives_is_no_page(content):
    with pytest.raises(BadPage, match="not a heap page: "):
        decode_node(encode(content))


@pytest.mark.parametrize(
    "content",
    [
        *(None, [], [7, 0], [0, 1], [0, 0, 1]),
        *([0, -1, 1, 1, bytes(32), True], [0, 5, 1, 1, b"short", True], [0, 5, 1, 1, bytes(32), 1]),
    ],
)
def test_what_names_no_root_is_no_tree(content):
    with pytest.raises(BadEncoding, match="a tree's root that is none"):
        decode_tree(encode(content))


def node_or_bad_page(data):
    try:
        return isinstance(decode_node(data), Node)
    except BadPage:
        return True


@settings(max_examples=300, deadline=None)
@given(st.sampled_from([encode_node(node) for node in NODES]), st.integers(0, 200), st.binary(max_size=6), st.data())
def test_damaged_pages_give_a_node_or_a_bad_page_and_nothing_else(page, at, junk, data):
    """Invariant 42."""
    at %= len(page)
    assert node_or_bad_page(page[:at] + junk + page[at + data.draw(st.integers(0, 6)) :])


@given(st.binary(max_size=60))
def test_noise_gives_a_node_or_a_bad_page_and_nothing_else(noise):
    """Invariant 42."""
    assert node_or_bad_page(noise)
