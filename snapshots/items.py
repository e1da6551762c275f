"""What stands in the leaves of a tree, and the trees that stand inside of that.

The one rule: an item in which nothing changes stays the very same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from dataspace.values import CelledDict, CelledList, FrozenDict, FrozenList, with_items
from snapshots.keyed import MapTree, SetTree
from snapshots.lists import ListTree
from snapshots.nodes import KeyedLeaf, ListLeaf, MapLeaf, Node

_TREES: Final[frozenset[type]] = frozenset({ListTree, MapTree, SetTree})
_DICTS: Final[frozenset[type]] = frozenset({FrozenDict, CelledDict, dict})
_LISTS: Final[frozenset[type]] = frozenset({FrozenList, CelledList, list, tuple})
_HOLDERS: Final = _TREES | _DICTS | _LISTS


def contents(leaf: Node) -> Iterable[Any]:
    """The items of a list's leaf, the keys and values of a map's, the keys of a set's."""
    if isinstance(leaf, ListLeaf):
        return leaf.items
    if isinstance(leaf, MapLeaf):
        return [part for entry in leaf.entries for part in entry]
    assert isinstance(leaf, KeyedLeaf)
    return leaf.entries


def with_trees(item: Any, change: Callable[[Any], Any]) -> Any:
    """An item with `change` of each tree in it."""
    kind: Any = type(item)
    if kind in _TREES:
        return change(item)
    if kind in _DICTS:
        if _HOLDERS.isdisjoint(map(type, item.values())):
            return item
    elif kind in _LISTS:
        if _HOLDERS.isdisjoint(map(type, item)):
            return item
    else:
        return item
    return with_items(item, lambda inner: with_trees(inner, change), kind, kind)
