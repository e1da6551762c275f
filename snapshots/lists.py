"""A list as a persistent tree: by index, O(log n) for everything, and quick at its end.

Indexes count from 0 and are never negative. Each call that may meet a written page takes a `loader`; a tree
that was never written needs none.

The one rule: items are stored values and are not looked at.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import Any

from dataspace.errors import KeeveError
from snapshots.nodes import (
    WIDTH,
    Child,
    ListBranch,
    ListLeaf,
    Loader,
    PageRef,
    Path,
    next_leaf,
    nowhere,
)
from snapshots.shape import extended, grown, shrunk
from snapshots.tree import Tree


class OutOfRange(KeeveError, IndexError, quotes=False):
    """There is no such index."""

    usage = True

    def __init__(self, index: int, count: int) -> None:
        super().__init__(f"index {index} is out of range: the list holds {count} items, counted from 0")
        self.index = index
        self.count = count


class ListTree(Tree):
    """An immutable list: `append` and its kin give another one, sharing all that did not change."""

    __slots__ = ()
    kind = 0

    def append(self, item: Any, loader: Loader = nowhere) -> ListTree:
        """With `item` at the end."""
        node: Any = self.root
        if node is None:
            return ListTree(ListLeaf([item]), 1)
        spine = []
        if type(node) is PageRef:
            node = loader(node)
        while type(node) is ListBranch:
            spine.append(node)
            node = node.children[-1]
            if type(node) is PageRef:
                node = loader(node)
        items = node.items
        if len(items) >= WIDTH:
            return self.extend((item,), loader)
        # The common case by hand: the right edge copied, with one more item under each of its branches.
        node = ListLeaf([*items, item])
        spine.reverse()
        for branch in spine:
            children = branch.children.copy()
            children[-1] = node
            ends = branch.ends.copy()
            ends[-1] += 1
            node = ListBranch(children, ends)
        return ListTree(node, self.count + 1)

    def extend(self, items: Iterable[Any], loader: Loader = nowhere) -> ListTree:
        """With `items` at the end, in the shape that appending them one by one gives. O(log n + items)."""
        more = list(items)
        if not more:
            return self
        root = self.root
        if root is None:
            return ListTree(ListLeaf(more[:1]), 1).extend(more[1:])
        path, leaf, _ = self._place(self.count, loader)
        room = WIDTH - len(leaf.items)
        if room:
            filled = grown(path, ListLeaf(leaf.items + more[:room]), ListBranch)
            return ListTree(filled, self.count + len(more[:room])).extend(more[room:], loader)
        return ListTree(extended(path, root, leaf, ListLeaf(more), ListBranch), self.count + len(more))

    def insert(self, index: int, item: Any, loader: Loader = nowhere) -> ListTree:
        """With `item` before what stands at `index`, which may be the length. Raises `OutOfRange`."""
        if index == self.count:
            return self.append(item, loader)
        self._check(index)
        path, leaf, at = self._place(index, loader)
        items = leaf.items.copy()
        items.insert(at, item)
        return ListTree(grown(path, ListLeaf(items), ListBranch), self.count + 1)

    def set(self, index: int, item: Any, loader: Loader = nowhere) -> ListTree:
        """With `item` in place of what stands at `index`. Raises `OutOfRange`."""
        self._check(index)
        path, leaf, at = self._place(index, loader)
        items = leaf.items.copy()
        items[at] = item
        node: Child = ListLeaf(items)
        for branch, place in reversed(path):
            children = branch.children.copy()
            children[place] = node
            node = ListBranch(children, branch.ends)
        return ListTree(node, self.count)

    def delete(self, index: int, loader: Loader = nowhere) -> ListTree:
        """Without what stands at `index`. Raises `OutOfRange`."""
        self._check(index)
        path, leaf, at = self._place(index, loader)
        items = leaf.items.copy()
        del items[at]
        return ListTree(shrunk(path, ListLeaf(items), loader), self.count - 1)

    def get(self, index: int, loader: Loader = nowhere) -> Any:
        """The item at `index`. Raises `OutOfRange`."""
        self._check(index)
        node: Any = self.root
        if type(node) is PageRef:
            node = loader(node)
        while type(node) is ListBranch:
            ends = node.ends
            at = bisect_right(ends, index)
            if at:
                index -= ends[at - 1]
            node = node.children[at]
            if type(node) is PageRef:
                node = loader(node)
        return node.items[index]

    def iterate(self, start: int = 0, stop: int | None = None, loader: Loader = nowhere) -> Iterator[Any]:
        """The items from `start` to before `stop` (default: the end), loading pages as it comes to them.

        Bounds beyond the length are cut to it, as in a slice.
        """
        stop = self.count if stop is None else min(stop, self.count)
        if not 0 <= start < stop:
            return
        path, leaf, at = self._place(start, loader)
        left = stop - start
        while True:
            items = leaf.items[at : at + left]
            yield from items
            left -= len(items)
            if not left:
                return
            leaf, at = next_leaf(path, loader), 0

    def walked(self, loader: Loader = nowhere) -> Iterator[Any]:
        return self.iterate(loader=loader)

    def _check(self, index: int) -> None:
        if not 0 <= index < self.count:
            raise OutOfRange(index, self.count)

    def _place(self, index: int, loader: Loader) -> tuple[Path, ListLeaf, int]:
        """The path to the leaf of `index`, the leaf, and the place in it; for the length, past the last item.

        There must be a root.
        """
        path: Path = []
        node: Any = self.root
        while True:
            if type(node) is PageRef:
                node = loader(node)
            if type(node) is not ListBranch:
                return path, node, index
            ends = node.ends
            at = bisect_right(ends, index)
            if at == len(ends):
                at -= 1
            if at:
                index -= ends[at - 1]
            path.append((node, at))
            node = node.children[at]
