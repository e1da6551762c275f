"""The nodes of a persistent tree.

A node never changes once a tree holds it: a change copies the nodes from the root to the place, and shares
all the others with the tree that it came from. A child is either a node in memory or, once written, the
`PageRef` of its page, which a loader turns into a node whenever somebody passes through.

The one rule: **the lists in a node are never changed**, since nodes share them. `children` alone is never shared,
and a draft that settles puts the pages' names in it in place of the nodes; what it stands for stays the same.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate
from typing import Any, NamedTuple, Self, TypeAlias

from dataspace.errors import KeeveError

WIDTH = 32
HALF = WIDTH // 2


class PageRef(NamedTuple):
    """The name of a written page: the record whose snapshot wrote it, a number there, and its digest.

    `seq` and `number` count from where the writer likes; `digest` is 32 bytes. Whoever loads the page
    checks it against the digest. `leads` says whether a ref, a promise, or a tree in which there is one, stands
    anywhere under the page, so that whoever looks for those passes by the pages without any.
    """

    seq: int
    number: int
    digest: bytes
    leads: bool = True


class NoLoader(KeeveError, TypeError, quotes=False):
    """A page had to be loaded and no loader was passed."""

    usage = True

    def __init__(self, ref: PageRef) -> None:
        super().__init__(f"page {ref.seq}.{ref.number} is not in memory: pass a loader to this call")
        self.ref = ref


class Node:
    """A piece of a tree. `ref` is set once its page is written and can be loaded."""

    __slots__ = ("ref",)
    ref: PageRef | None

    def width(self) -> int:
        """How many things it holds: items of a leaf, children of a branch."""
        raise NotImplementedError

    def cut(self, start: int, stop: int) -> Self:
        """A node of its things from `start` to before `stop`."""
        raise NotImplementedError

    def join(self, after: Self) -> Self:
        """A node of its things and then those of `after`."""
        raise NotImplementedError

    def mapped(self, child: Callable[[Child], Child], item: Callable[[Any], Any]) -> Node:
        """A node with `child` of each child, or `item` of each item or value. Keys stay as they are."""
        raise NotImplementedError


Child: TypeAlias = Node | PageRef
Loader: TypeAlias = Callable[[PageRef], Node]


def nowhere(ref: PageRef) -> Node:
    """The loader of whoever has none: trees that were never written need none."""
    raise NoLoader(ref)


class Branch(Node):
    """A node over other nodes."""

    __slots__ = ("children",)
    children: list[Child]

    def width(self) -> int:
        return len(self.children)

    def replaced(self, start: int, stop: int, nodes: list[Any]) -> Self:
        """The same with `nodes` where the children from `start` to before `stop` stood."""
        raise NotImplementedError

    @classmethod
    def over(cls, nodes: list[Any]) -> Self:
        """A branch over nodes of one height."""
        raise NotImplementedError


Path: TypeAlias = list[tuple[Any, int]]
"""The branches from a root down to a leaf, each with the place of the child that was taken."""


def next_leaf(path: Path, loader: Loader) -> Any:
    """The leaf after the one where `path` ends, to which `path` then leads; None, and no path, after the last."""
    while path and path[-1][1] == len(path[-1][0].children) - 1:
        path.pop()
    if not path:
        return None
    node, at = path.pop()
    at += 1
    while isinstance(node, Branch):
        path.append((node, at))
        node = node.children[at]
        if type(node) is PageRef:
            node = loader(node)
        at = 0
    return node


class ListLeaf(Node):
    """Items of a list, in order."""

    __slots__ = ("items",)

    def __init__(self, items: list[Any]) -> None:
        self.items = items
        self.ref = None

    def width(self) -> int:
        return len(self.items)

    def count(self) -> int:
        return len(self.items)

    def cut(self, start: int, stop: int) -> ListLeaf:
        return ListLeaf(self.items[start:stop])

    def join(self, after: ListLeaf) -> ListLeaf:
        return ListLeaf(self.items + after.items)

    def mapped(self, child: Callable[[Child], Child], item: Callable[[Any], Any]) -> ListLeaf:
        return ListLeaf([item(each) for each in self.items])


class ListBranch(Branch):
    """`ends[i]` is how many items the children up to and with `i` hold."""

    __slots__ = ("ends",)

    def __init__(self, children: list[Child], ends: list[int]) -> None:
        self.children = children
        self.ends = ends
        self.ref = None

    def count(self) -> int:
        return self.ends[-1]

    def cut(self, start: int, stop: int) -> ListBranch:
        before = self.ends[start - 1] if start else 0
        return ListBranch(self.children[start:stop], [end - before for end in self.ends[start:stop]])

    def join(self, after: ListBranch) -> ListBranch:
        before = self.ends[-1]
        return ListBranch(self.children + after.children, self.ends + [before + end for end in after.ends])

    def mapped(self, child: Callable[[Child], Child], item: Callable[[Any], Any]) -> ListBranch:
        return ListBranch([child(each) for each in self.children], self.ends)

    def replaced(self, start: int, stop: int, nodes: list[Any]) -> ListBranch:
        before = self.ends[start - 1] if start else 0
        middle = list(accumulate((node.count() for node in nodes), initial=before))
        shift = middle[-1] - self.ends[stop - 1]
        return ListBranch(
            self.children[:start] + nodes + self.children[stop:],
            self.ends[:start] + middle[1:] + [end + shift for end in self.ends[stop:]],
        )

    @classmethod
    def over(cls, nodes: list[Any]) -> ListBranch:
        return cls(nodes, list(accumulate(node.count() for node in nodes)))


class KeyedLeaf(Node):
    """Entries in the order of their keys; `order[i]` is the sort key of `entries[i]`."""

    __slots__ = ("entries", "order")

    def __init__(self, order: list[Any], entries: list[Any]) -> None:
        self.order = order
        self.entries = entries
        self.ref = None

    def bound(self) -> Any:
        """The key of the first entry."""
        raise NotImplementedError

    def width(self) -> int:
        return len(self.order)

    def cut(self, start: int, stop: int) -> Self:
        return type(self)(self.order[start:stop], self.entries[start:stop])

    def join(self, after: KeyedLeaf) -> Self:
        return type(self)(self.order + after.order, self.entries + after.entries)


class MapLeaf(KeyedLeaf):
    """Its entries are pairs (key, value)."""

    __slots__ = ()

    def bound(self) -> Any:
        return self.entries[0][0]

    def mapped(self, child: Callable[[Child], Child], item: Callable[[Any], Any]) -> MapLeaf:
        return MapLeaf(self.order, [(key, item(value)) for key, value in self.entries])


class SetLeaf(KeyedLeaf):
    """Its entries are the keys."""

    __slots__ = ()

    def bound(self) -> Any:
        return self.entries[0]

    def mapped(self, child: Callable[[Child], Child], item: Callable[[Any], Any]) -> SetLeaf:
        return SetLeaf(self.order, self.entries)


class KeyedBranch(Branch):
    """`bounds[i]` is a key not above any in child `i` and above all in the child before it.

    `order` holds their sort keys. A bound is no promise that the key is still there: removing it changes no
    bound.
    """

    __slots__ = ("bounds", "order")

    def __init__(self, children: list[Child], order: list[Any], bounds: list[Any]) -> None:
        self.children = children
        self.order = order
        self.bounds = bounds
        self.ref = None

    def bound(self) -> Any:
        return self.bounds[0]

    def cut(self, start: int, stop: int) -> KeyedBranch:
        return KeyedBranch(self.children[start:stop], self.order[start:stop], self.bounds[start:stop])

    def join(self, after: KeyedBranch) -> KeyedBranch:
        return KeyedBranch(self.children + after.children, self.order + after.order, self.bounds + after.bounds)

    def mapped(self, child: Callable[[Child], Child], item: Callable[[Any], Any]) -> KeyedBranch:
        return KeyedBranch([child(each) for each in self.children], self.order, self.bounds)

    def replaced(self, start: int, stop: int, nodes: list[Any]) -> KeyedBranch:
        return KeyedBranch(
            self.children[:start] + nodes + self.children[stop:],
            self.order[:start] + [node.order[0] for node in nodes] + self.order[stop:],
            self.bounds[:start] + [node.bound() for node in nodes] + self.bounds[stop:],
        )

    @classmethod
    def over(cls, nodes: list[Any]) -> KeyedBranch:
        return cls(nodes, [node.order[0] for node in nodes], [node.bound() for node in nodes])
