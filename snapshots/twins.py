"""Twins: the same tree once more, for a heap that goes its own way from here.

A draft that settles puts the names of pages into the very nodes that it wrote. Two heaps that shared such a node
would then share a page that only one of them has, under a name that means something else in the other. So a twin
has nodes of its own wherever nothing is written yet, and shares the rest.

The one rule: between twins nothing is shared that a draft may still change.
"""

from __future__ import annotations

from typing import Any, TypeVar

from snapshots.items import with_trees
from snapshots.nodes import Node
from snapshots.tree import Tree

_AnyTree = TypeVar("_AnyTree", bound=Tree)


def twin(tree: _AnyTree, made: dict[int, Any] | None = None) -> _AnyTree:
    """The tree once more. Costs what is not written yet.

    Trees that have nodes in common are given one `made` for all, so that their twins have them in common too.
    """
    made = {} if made is None else made

    def node(of: Any) -> Any:
        if not isinstance(of, Node) or of.ref is not None:
            return of
        # The original stands beside its twin, so that its id stays its own.
        known = made.get(id(of))
        if known is None:
            known = made[id(of)] = (of, of.mapped(node, item))
        return known[1]

    def item(of: Any) -> Any:
        return with_trees(of, again)

    def again(of: Tree) -> Tree:
        return twin(of, made)

    return type(tree)(node(tree.root), tree.count)
