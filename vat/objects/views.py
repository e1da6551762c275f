"""Views: a collection as it was at a moment; and how collections are read, which is the same for both.

A view costs O(1) to take. It cannot change, and it may be an argument of an effect.

The one rule: whatever reads finds its tree and its heap anew each time, so that it pages in what it needs and no more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Final, Generic, TypeVar, overload

from dataspace.values import Value
from snapshots.keyed import MapTree, SetTree
from snapshots.lists import ListTree
from vat.heap.heap import Heap

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")

_NOTHING: Final[Any] = object()


def place(index: int, count: int) -> int:
    """Which item of so many an index means, from the end if it is negative. Raises `IndexError`."""
    at = index + count if index < 0 else index
    if not 0 <= at < count:
        raise IndexError(f"list index {index} out of range: there are {count} items")
    return at


class Listed(Sequence[T]):
    """What a list and a view of one have in common: reading."""

    __slots__ = ()

    @property
    def _heap(self) -> Heap:
        raise NotImplementedError

    @property
    def _tree(self) -> Any:
        raise NotImplementedError

    def __len__(self) -> int:
        return int(self._tree.count)

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> list[T]: ...
    def __getitem__(self, index: int | slice) -> Any:
        tree, heap = self._tree, self._heap
        if isinstance(index, slice):
            start, stop, step = index.indices(tree.count)
            if step == 1:
                return [heap.read(item) for item in tree.iterate(start, stop, heap.page)]
            return [heap.read(tree.get(at, heap.page)) for at in range(start, stop, step)]
        return heap.read(tree.get(place(index, tree.count), heap.page))

    def __iter__(self) -> Iterator[T]:
        heap = self._heap
        for item in self._tree.iterate(0, None, heap.page):
            yield heap.read(item)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Listed | list):
            return len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))
        return NotImplemented

    __hash__ = None  # type: ignore[assignment]  # it changes, like a list

    def __repr__(self) -> str:
        return repr(list(self))


class _Keyed:
    """What all of them have in common that find what they hold by a key."""

    __slots__ = ()

    @property
    def _heap(self) -> Heap:
        raise NotImplementedError

    @property
    def _tree(self) -> Any:
        raise NotImplementedError

    def _key(self, key: Any) -> Value:
        return key

    def __len__(self) -> int:
        return int(self._tree.count)

    def __contains__(self, key: object) -> bool:
        return bool(self._tree.contains(self._key(key), self._heap.page))


class Mapped(_Keyed, Mapping[K, V]):
    """What a map and a view of one have in common: reading, in key order."""

    __slots__ = ()

    def __getitem__(self, key: K) -> V:
        heap = self._heap
        stored = self._tree.get(self._key(key), _NOTHING, heap.page)
        if stored is _NOTHING:
            raise KeyError(key)
        found: V = heap.read(stored)
        return found

    def __iter__(self) -> Iterator[K]:
        for key, _ in self._tree.items(loader=self._heap.page):
            yield key

    def between(self, start: K, stop: K) -> Iterator[tuple[K, V]]:
        """The entries from key `start` to before `stop`, in order. Loads only their pages."""
        heap = self._heap
        for key, value in self._tree.items(self._key(start), self._key(stop), heap.page):
            yield key, heap.read(value)

    def __repr__(self) -> str:
        return repr(dict(self))


class Membered(_Keyed, AbstractSet[T]):
    """What a set and a view of one have in common: reading, in key order."""

    __slots__ = ()

    def __iter__(self) -> Iterator[T]:
        members: Iterator[T] = self._tree.iterate(loader=self._heap.page)
        return members

    @classmethod
    def _from_iterable(cls, it: Iterable[Any]) -> Any:
        return set(it)

    def __repr__(self) -> str:
        return f"{{{', '.join(map(repr, self))}}}"


class Unread:
    """A value in a list, of which nothing is read before it is asked for: `unread(messages, 3)["calls"][0].read()`."""

    __slots__ = ("_heap", "_value")

    def __init__(self, heap: Heap, value: Any) -> None:
        self._heap = heap
        self._value = value

    def __getitem__(self, key: int | str) -> Unread:
        return Unread(self._heap, self._value[key])

    def __len__(self) -> int:
        return len(self._value)

    def read(self) -> Any:
        """The value, with its content. Costs its own size, and not that of what it is in."""
        return self._heap.read(self._value)


def unread(source: Listed[Any], index: int) -> Unread:
    """What stands in a list. Raises `IndexError`."""
    tree, heap = source._tree, source._heap
    return Unread(heap, tree.get(place(index, tree.count), heap.page))


class View:
    """A collection as it was when the view was taken: what the three kinds of view are."""

    __slots__ = ("_heap", "_tree", "number")

    def __init__(self, heap: Heap, tree: Any, number: int = -1) -> None:
        self._heap = heap
        self._tree = tree
        self.number = number
        """The view's number within its record; -1 where that is not recorded."""

    def within(self, views: Sequence[Any]) -> bool:
        """Whether it is one of the views that a record has."""
        return 0 <= self.number < len(views) and views[self.number] is self._tree


class ListView(View, Listed[T], Generic[T]):
    """A list as it was."""

    __slots__ = ()


class MapView(View, Mapped[K, V], Generic[K, V]):
    """A map as it was."""

    __slots__ = ()


class SetView(View, Membered[T], Generic[T]):
    """A set as it was."""

    __slots__ = ()


def view_of(heap: Heap, tree: Any) -> ListView[Any] | MapView[Any, Any] | SetView[Any]:
    """The view of a tree that the heap holds for an effect."""
    kinds: dict[type, Any] = {ListTree: ListView, MapTree: MapView, SetTree: SetView}
    view: ListView[Any] | MapView[Any, Any] | SetView[Any] = kinds[type(tree)](heap, tree)
    return view
