"""Twins: the same tree once more, for a heap that goes its own way from here.

A draft that settles puts the names of pages into the very nodes that it wrote. Two heaps that shared such a node
would then share a page that only one of them has, under a name that means something else in the other. So a twin
has nodes of its own wherever nothing is written yet, and shares the rest.

The one rule: between twins nothing is shared that a draft may still change.
"""

from __future__ import annotations

from typing import Any, TypeVar

from snapshots.handle import Tree
from snapshots.nodes import KeyedBranch, KeyedLeaf, ListBranch, ListLeaf, MapLeaf, Node

_AnyTree = TypeVar("_AnyTree", bound=Tree)


def twin(tree: _AnyTree, made: dict[int, Any] | None = None) -> _AnyTree:
    """The tree once more. Costs what is not written yet.

    Trees that have nodes in common are given one `made` for all, so that their twins have them in common too.
    """
    return type(tree)(_node({} if made is None else made, tree.root), tree.count)


def _node(made: dict[int, Any], node: Any) -> Any:
    if not isinstance(node, Node) or node.ref is not None:
        return node
    # The original stands beside its twin, so that its id stays its own.
    known = made.get(id(node))
    if known is None:
        known = made[id(node)] = (node, _copied(made, node))
    return known[1]


def _copied(made: dict[int, Any], node: Node) -> Node:
    if isinstance(node, ListBranch):
        return ListBranch([_node(made, child) for child in node.children], node.ends)
    if isinstance(node, KeyedBranch):
        return KeyedBranch([_node(made, child) for child in node.children], node.order, node.bounds)
    if isinstance(node, ListLeaf):
        return ListLeaf([_item(made, item) for item in node.items])
    assert isinstance(node, KeyedLeaf)
    if isinstance(node, MapLeaf):
        return MapLeaf(node.order, [(key, _item(made, value)) for key, value in node.entries])
    return type(node)(node.order, node.entries)


def _item(made: dict[int, Any], item: Any) -> Any:
    """An item with the trees in it twinned; the very same when there are none."""
    if isinstance(item, Tree):
        return twin(item, made)
    changed: Any
    if isinstance(item, dict):
        changed = {key: _item(made, inner) for key, inner in item.items()}
        same = all(changed[key] is inner for key, inner in item.items())
    elif isinstance(item, list | tuple):
        changed = [_item(made, inner) for inner in item]
        same = all(map(lambda new, old: new is old, changed, item))
    else:
        return item
    return item if same else type(item)(changed)
