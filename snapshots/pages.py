"""Pages: nodes as bytes, and back.

A page is the canonical encoding of one array, and stands for one node all of whose children are written:

    [0, items]                                    list leaf
    [1, ends, seqs, numbers, digests, leads]      list branch: ends counts the items up to and with each child
    [2, keys, values]                             map leaf
    [3, keys]                                     set leaf
    [4, bounds, seqs, numbers, digests, leads]    map or set branch: bounds are keys, one for each child

`digests` are the children's, 32 bytes each, one after the other; bit i of the integer `leads` says whether a ref
or promise stands somewhere under child i. A tree among the items or values is ext type 8 over
`[kind, count, seq, number, digest, leads]` of its root, with `leads` a boolean, or over `[kind, 0]` when it is
empty; kinds are 0 list, 1 map, 2 set.

The one rule: **what is decoded is a node that could have been encoded**, whoever wrote the page; anything
else is a `BadPage`. That the bytes are those that were meant is for the loader to check, by their digest.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import lt
from typing import Any, Protocol

from dataspace.errors import KeeveError
from dataspace.values import NotAValue, Promise, Ref, scalar_key
from dataspace.values.encoding import BadEncoding, decode, encode
from snapshots.keyed import MapTree, SetTree
from snapshots.lists import ListTree
from snapshots.nodes import WIDTH, Child, KeyedBranch, ListBranch, ListLeaf, MapLeaf, Node, PageRef, SetLeaf
from snapshots.tree import Tree

DIGEST_BYTES = 32
TREES: dict[int, type[Tree]] = {tree.kind: tree for tree in (ListTree, MapTree, SetTree)}


class BadPage(KeeveError, ValueError):
    """Bytes that are no page; says what is wrong with them."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"not a heap page: {reason}; run `keeve verify` to see which snapshots are touched")
        self.reason = reason


class Writer(Protocol):
    """Where pages go."""

    def put(self, data: bytes) -> PageRef:
        """Takes a page and gives the name that it can be loaded by."""


def encode_node(node: Node) -> bytes:
    """The page of a node. Raises `Unwritten` when a child, or a tree among its items, is not written."""
    if isinstance(node, ListLeaf):
        return encode([0, node.items])
    if isinstance(node, ListBranch):
        return encode([1, node.ends, *_columns(node.children)])
    if isinstance(node, MapLeaf):
        return encode([2, [entry[0] for entry in node.entries], [entry[1] for entry in node.entries]])
    if isinstance(node, SetLeaf):
        return encode([3, node.entries])
    assert isinstance(node, KeyedBranch)
    return encode([4, node.bounds, *_columns(node.children)])


def decode_node(
    data: bytes,
    *,
    ref: Callable[[bytes | None, int], Any] = Ref,
    promise: Callable[[int], Any] = Promise,
) -> Node:
    """The node of a page; `ref` and `promise` make what refers to actors and promises. Raises `BadPage`."""
    try:
        content = decode(data, ref=ref, promise=promise, tree=decode_tree)
        node = _node(content)
    except BadEncoding as error:
        raise BadPage(error.reason) from error
    except NotAValue as error:
        raise BadPage(str(error)) from error
    if not 0 < node.width() <= WIDTH:
        raise BadPage(f"a node of {node.width()} parts instead of 1 to {WIDTH}")
    return node


def decode_tree(data: bytes) -> Tree:
    """The handle that `Tree.__tree_ext__` named. Raises `BadEncoding`."""
    match decode(data):
        case [int(kind), 0] if kind in TREES:
            return TREES[kind]()
        case [int(kind), int(count), int(seq), int(number), bytes(digest), bool(leads)] if (
            kind in TREES and count > 0 and len(digest) == DIGEST_BYTES
        ):
            return TREES[kind](PageRef(seq, number, digest, leads), count)
    raise BadEncoding("a tree's root that is none")


def _columns(children: list[Child]) -> tuple[list[int], list[int], bytes, int]:
    refs: list[Any] = [child if type(child) is PageRef else child.ref for child in children]  # type: ignore[union-attr]  # mypy narrows no union by `type() is`
    leads = sum(1 << at for at, ref in enumerate(refs) if ref.leads)
    return [ref.seq for ref in refs], [ref.number for ref in refs], b"".join([ref.digest for ref in refs]), leads


def _node(content: Any) -> Node:
    match content:
        case [0, list(items)]:
            return ListLeaf(list(items))
        case [1, list(ends), list(seqs), list(numbers), bytes(digests), leads]:
            children = _children(ends, seqs, numbers, digests, leads)
            if {int}.issuperset(map(type, ends)) and _ascending([0, *ends]):
                return ListBranch(children, list(ends))
            raise BadPage("counts that do not add up")
        case [2, list(keys), list(values)] if len(keys) == len(values):
            return MapLeaf(_order(keys), list(zip(keys, values, strict=True)))
        case [3, list(keys)]:
            return SetLeaf(_order(keys), list(keys))
        case [4, list(bounds), list(seqs), list(numbers), bytes(digests), leads]:
            return KeyedBranch(_children(bounds, seqs, numbers, digests, leads), _order(bounds), list(bounds))
    raise BadPage("it has the form of no kind of node")


def _children(marks: list[Any], seqs: list[Any], numbers: list[Any], digests: bytes, leads: Any) -> list[Child]:
    count = len(marks)
    if not count == len(seqs) == len(numbers) or len(digests) != DIGEST_BYTES * count:
        raise BadPage("columns of different lengths")
    if not {int}.issuperset(map(type, [*seqs, *numbers])):
        raise BadPage("a child without a name")
    if type(leads) is not int or not 0 <= leads < 1 << count:
        raise BadPage("marks of more children than there are")
    starts = range(0, len(digests), DIGEST_BYTES)
    marked = [bool(leads >> at & 1) for at in range(count)]
    return list(map(PageRef, seqs, numbers, [digests[at : at + DIGEST_BYTES] for at in starts], marked))


def _order(keys: list[Any]) -> list[Any]:
    order = list(map(scalar_key, keys))
    if not _ascending(order):
        raise BadPage("keys out of order")
    return order


def _ascending(order: list[Any]) -> bool:
    return all(map(lt, order, order[1:]))
