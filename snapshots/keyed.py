"""Maps and sets as persistent trees: by key, in key order, O(log n).

Keys are scalars, ordered by `scalar_key`, which tells `1`, `1.0` and `True` apart. Each call that may meet a
written page takes a `loader`; a tree that was never written needs none. Values are stored values and are not
looked at.

The one rule: keys are compared by their sort keys alone, so that no content is loaded to compare them.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import Any, Final, Self

from dataspace.errors import KeeveError
from dataspace.values import render, scalar_key
from snapshots.nodes import (
    WIDTH,
    Child,
    KeyedBranch,
    KeyedLeaf,
    Loader,
    MapLeaf,
    PageRef,
    Path,
    SetLeaf,
    next_leaf,
    nowhere,
)
from snapshots.shape import extended, grown, shrunk
from snapshots.tree import Tree

_OF_INT: Final = scalar_key(0)[0]

OPEN: Final[Any] = object()
"""No bound: None is a key."""


class NoSuchKey(KeeveError, KeyError):
    """The key is not there."""

    usage = True

    def __init__(self, key: Any) -> None:
        super().__init__(f"there is no key {render(key)}")
        self.key = key

    __str__ = Exception.__str__


class _KeyedTree(Tree):
    """What maps and sets have in common: entries found by sort key."""

    __slots__ = ()
    leaf: type[KeyedLeaf]

    def contains(self, key: Any, loader: Loader = nowhere) -> bool:
        """Whether `key` is there."""
        return self._entry(scalar_key(key), loader) is not OPEN

    def discard(self, key: Any, loader: Loader = nowhere) -> Self | None:
        """Without `key`, or None when it is not there."""
        return self._without((_OF_INT, key) if type(key) is int else scalar_key(key), loader)

    def _entry(self, sort: Any, loader: Loader) -> Any:
        """The entry under a sort key, or OPEN."""
        node: Any = self.root
        if node is None:
            return OPEN
        if type(node) is PageRef:
            node = loader(node)
        while type(node) is KeyedBranch:
            at = bisect_right(node.order, sort) - 1
            if at < 0:
                return OPEN
            node = node.children[at]
            if type(node) is PageRef:
                node = loader(node)
        order = node.order
        at = bisect_left(order, sort)
        return node.entries[at] if at < len(order) and order[at] == sort else OPEN

    def _put(self, sort: Any, entry: Any, loader: Loader) -> Self:
        root = self.root
        if root is None:
            return type(self)(self.leaf([sort], [entry]), 1)
        path, leaf, at = self._place(sort, loader)
        order = leaf.order
        if at < len(order) and order[at] == sort:
            entries = leaf.entries.copy()
            entries[at] = entry
            new = self.leaf(order, entries)
            return type(self)(_with_child(path, new) if path else new, self.count)
        if at == WIDTH and all(place == len(branch.children) - 1 for branch, place in path):
            more = self.leaf([sort], [entry])
            return type(self)(extended(path, root, leaf, more, KeyedBranch), self.count + 1)
        order = order.copy()
        order.insert(at, sort)
        entries = leaf.entries.copy()
        entries.insert(at, entry)
        new = self.leaf(order, entries)
        if len(order) <= WIDTH and at:
            # No node is added and no bound is lowered: the branches change in nothing but the child.
            return type(self)(_with_child(path, new) if path else new, self.count + 1)
        return type(self)(grown(path, new, KeyedBranch), self.count + 1)

    def _without(self, sort: Any, loader: Loader) -> Self | None:
        """The tree without the entry under a sort key, or None when there is no such entry."""
        if self.root is None:
            return None
        path, leaf, at = self._place(sort, loader)
        if at == len(leaf.order) or leaf.order[at] != sort:
            return None
        if not path and len(leaf.order) == 1:
            return type(self)()
        order = leaf.order.copy()
        del order[at]
        entries = leaf.entries.copy()
        del entries[at]
        if not path:
            return type(self)(self.leaf(order, entries), self.count - 1)
        return type(self)(shrunk(path, self.leaf(order, entries), loader), self.count - 1)

    def _between(self, start: Any, stop: Any, loader: Loader) -> Iterator[Any]:
        """The entries from key `start` to before key `stop`, loading pages as it comes to them."""
        if self.root is None:
            return
        first = () if start is OPEN else scalar_key(start)
        last = None if stop is OPEN else scalar_key(stop)
        path, leaf, at = self._place(first, loader)
        while True:
            if last is not None and leaf.order[-1] >= last:
                yield from leaf.entries[at : bisect_left(leaf.order, last)]
                return
            yield from leaf.entries[at:] if at else leaf.entries
            leaf, at = next_leaf(path, loader), 0
            if leaf is None:
                return

    def _place(self, sort: Any, loader: Loader) -> tuple[Path, KeyedLeaf, int]:
        """The path to the leaf where a sort key is or belongs, the leaf, and the place in it.

        There must be a root.
        """
        path: Path = []
        node: Any = self.root
        if type(node) is self.leaf:  # the common case: a small one
            return path, node, bisect_left(node.order, sort)
        while True:
            if type(node) is PageRef:
                node = loader(node)
            if type(node) is not KeyedBranch:
                return path, node, bisect_left(node.order, sort)
            at = bisect_right(node.order, sort) - 1
            if at < 0:
                at = 0
            path.append((node, at))
            node = node.children[at]


def _with_child(path: Path, node: Child) -> Child:
    """The root after `node` took the place where `path` ends, when nothing else changes."""
    for branch, at in reversed(path):
        children = branch.children.copy()
        children[at] = node
        node = KeyedBranch(children, branch.order, branch.bounds)
    return node


class MapTree(_KeyedTree):
    """An immutable map: `put` and `remove` give another one, sharing all that did not change."""

    __slots__ = ()
    kind = 1
    leaf = MapLeaf

    def put(self, key: Any, value: Any, loader: Loader = nowhere) -> MapTree:
        """With `value` under `key`, in place of what was there."""
        sort = (_OF_INT, key) if type(key) is int else scalar_key(key)
        node: Any = self.root
        if type(node) is MapLeaf:
            # The common case by hand, as in `get`: the entry of a small map that is in memory changes.
            order = node.order
            at = bisect_left(order, sort)
            if at < len(order) and order[at] == sort:
                entries = node.entries.copy()
                entries[at] = (key, value)
                return MapTree(MapLeaf(order, entries), self.count)
        return self._put(sort, (key, value), loader)

    def remove(self, key: Any, loader: Loader = nowhere) -> MapTree:
        """Without `key`. Raises `NoSuchKey`."""
        tree = self._without(scalar_key(key), loader)
        if tree is None:
            raise NoSuchKey(key)
        return tree

    def get(self, key: Any, default: Any = None, loader: Loader = nowhere) -> Any:
        """The value under `key`, or `default`."""
        node: Any = self.root
        if type(node) is not MapLeaf:
            entry = self._entry(scalar_key(key), loader)
            return default if entry is OPEN else entry[1]
        # The common case by hand: a small map that is in memory, by number.
        sort = (_OF_INT, key) if type(key) is int else scalar_key(key)
        order = node.order
        at = bisect_left(order, sort)
        return node.entries[at][1] if at < len(order) and order[at] == sort else default

    def items(self, start: Any = OPEN, stop: Any = OPEN, loader: Loader = nowhere) -> Iterator[tuple[Any, Any]]:
        """Pairs (key, value) from key `start` to before key `stop`, in key order."""
        return self._between(start, stop, loader)

    def walked(self, loader: Loader = nowhere) -> Iterator[tuple[Any, Any]]:
        return self._between(OPEN, OPEN, loader)


class SetTree(_KeyedTree):
    """An immutable set of scalars: `add` and `remove` give another one, sharing all that did not change."""

    __slots__ = ()
    kind = 2
    leaf = SetLeaf

    def add(self, key: Any, loader: Loader = nowhere) -> SetTree:
        """With `key`; the same tree when it is there already."""
        sort = scalar_key(key)
        return self._put(sort, key, loader) if self._entry(sort, loader) is OPEN else self

    def remove(self, key: Any, loader: Loader = nowhere) -> SetTree:
        """Without `key`. Raises `NoSuchKey`."""
        tree = self._without(scalar_key(key), loader)
        if tree is None:
            raise NoSuchKey(key)
        return tree

    def iterate(self, start: Any = OPEN, stop: Any = OPEN, loader: Loader = nowhere) -> Iterator[Any]:
        """The keys from `start` to before `stop`, in key order."""
        return self._between(start, stop, loader)

    def walked(self, loader: Loader = nowhere) -> Iterator[Any]:
        return self._between(OPEN, OPEN, loader)
