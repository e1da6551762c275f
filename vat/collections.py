"""`List`, `Map` and `Set` as actors use them, and views: handles on persistent trees that a vat owns.

They read like `list`, `dict` and `set` (maps and sets in key order), cost O(log n) per look and O(change) per crank,
and never hold a copy: a handle finds its tree by the actor and the field each time. `view()` is the collection
as it is now, for O(1); it cannot change, and it may be an argument of an effect.

The one rule: whatever changes a collection is one call of the crank's `change`, an operation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, MutableMapping, MutableSequence, MutableSet, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, ClassVar, Generic, Protocol, TypeVar, overload

from dataspace.values import Value
from snapshots.keyed import MapTree, SetTree
from snapshots.lists import ListTree
from vat.heap import Heap, State
from vat.operations import Verb
from vat.types import Shape

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")


class Changes(Protocol):
    """What a running crank does for collections."""

    heap: Heap

    def keep(self, value: Any, path: str) -> Value: ...
    def key(self, value: Any, path: str) -> Value: ...
    def change(self, state: State, field: str, verb: Verb, *args: Value) -> None: ...
    def view(self, state: State, field: str) -> int: ...


def _within(index: int, count: int, what: str) -> int:
    at = index + count if index < 0 else index
    if not 0 <= at < count:
        raise IndexError(f"{what}[{index}]: there are {count} items")
    return at


class _Handle:
    """A collection of an actor, found through the heap at each use."""

    __slots__ = ("_crank", "_field", "_state")

    def __init__(self, crank: Changes, state: State, field: str) -> None:
        self._crank = crank
        self._state = state
        self._field = field

    @property
    def _tree(self) -> Any:
        return self._state.fields[self._field]

    def __len__(self) -> int:
        count: int = self._tree.count
        return count

    def clear(self) -> None:
        """Leave nothing in it."""
        self._crank.change(self._state, self._field, Verb.CLEAR)

    def _keep(self, value: Any, at: object) -> Value:
        return self._crank.keep(value, f"{self._field}[{at!r}]")

    def _key(self, key: Any) -> Value:
        return self._crank.key(key, f"a key of {self._field}")


class _Listed(Sequence[T]):
    """What a list and a view of one have in common: reading."""

    __slots__ = ()
    _heap: Heap
    _tree: Any

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
                return [heap.read(item) for item in tree.iterate(start, stop, heap.memory.page)]
            return [heap.read(tree.get(at, heap.memory.page)) for at in range(start, stop, step)]
        return heap.read(tree.get(_within(index, tree.count, "list"), heap.memory.page))

    def __iter__(self) -> Iterator[T]:
        heap = self._heap
        for item in self._tree.iterate(0, None, heap.memory.page):
            yield heap.read(item)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, _Listed | list):
            return len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))
        return NotImplemented

    __hash__ = None  # type: ignore[assignment]  # it changes, like a list

    def __repr__(self) -> str:
        return repr(list(self))


class List(_Handle, _Listed[T], MutableSequence[T], Generic[T]):
    """A list field. Indexes may be negative; slices read give plain lists; slices cannot be assigned."""

    __slots__ = ()
    __keeve_shape__: ClassVar[Shape] = Shape.LIST

    @property
    def _heap(self) -> Heap:  # type: ignore[override]  # read-only here
        return self._crank.heap

    def append(self, value: T) -> None:
        """Add one item at the end."""
        crank = self._crank
        crank.change(self._state, self._field, Verb.APPEND, crank.keep(value, self._field + "[…]"))

    def extend(self, values: Iterable[T]) -> None:
        """Add items at the end, in one operation."""
        kept = self._crank.keep(list(values), self._field)
        if kept:
            self._crank.change(self._state, self._field, Verb.EXTEND, kept)

    def insert(self, index: int, value: T) -> None:
        """Put an item before `index`, which is cut to the length as in a list."""
        count = len(self)
        at = max(0, index + count) if index < 0 else min(index, count)
        self._crank.change(self._state, self._field, Verb.INSERT, at, self._keep(value, at))

    def __setitem__(self, index: Any, value: Any) -> None:
        if not isinstance(index, int):
            raise TypeError(f"{self._field}[{index!r}] = …: assign one item at a time")
        at = _within(index, len(self), self._field)
        self._crank.change(self._state, self._field, Verb.REPLACE, at, self._keep(value, at))

    def __delitem__(self, index: Any) -> None:
        if isinstance(index, slice):
            for at in sorted(range(*index.indices(len(self))), reverse=True):
                self._crank.change(self._state, self._field, Verb.DELETE, at)
            return
        at = _within(index, len(self), self._field)
        self._crank.change(self._state, self._field, Verb.DELETE, at)

    def clear(self) -> None:
        """Leave nothing in it."""
        _Handle.clear(self)

    def view(self) -> ListView[T]:
        """The list as it is now. O(1)."""
        number = self._crank.view(self._state, self._field)
        return ListView(self._crank.heap, self._tree, number)


class _Mapped(Mapping[K, V]):
    """What a map and a view of one have in common: reading, in key order."""

    __slots__ = ()
    _heap: Heap
    _tree: Any

    def _key(self, key: Any) -> Value:
        return key

    def __len__(self) -> int:
        return int(self._tree.count)

    def __getitem__(self, key: K) -> V:
        heap = self._heap
        stored = self._tree.get(self._key(key), _NOTHING, heap.memory.page)
        if stored is _NOTHING:
            raise KeyError(key)
        found: V = heap.read(stored)
        return found

    def __contains__(self, key: object) -> bool:
        return bool(self._tree.contains(self._key(key), self._heap.memory.page))

    def __iter__(self) -> Iterator[K]:
        for key, _ in self._tree.items(loader=self._heap.memory.page):
            yield key

    def between(self, start: K, stop: K) -> Iterator[tuple[K, V]]:
        """The entries from key `start` to before `stop`, in order. Loads only their pages."""
        heap = self._heap
        for key, value in self._tree.items(self._key(start), self._key(stop), heap.memory.page):
            yield key, heap.read(value)

    def __repr__(self) -> str:
        return repr(dict(self))


_NOTHING: Any = object()


class Map(_Handle, _Mapped[K, V], MutableMapping[K, V], Generic[K, V]):
    """A map field. Keys are scalars, in key order; `1`, `1.0` and `True` are three."""

    __slots__ = ()
    __keeve_shape__: ClassVar[Shape] = Shape.MAP
    _key = _Handle._key

    @property
    def _heap(self) -> Heap:  # type: ignore[override]  # read-only here
        return self._crank.heap

    def __setitem__(self, key: K, value: V) -> None:
        self._crank.change(self._state, self._field, Verb.PUT, self._key(key), self._keep(value, key))

    def __delitem__(self, key: K) -> None:
        kept = self._key(key)
        if not self._tree.contains(kept, self._heap.memory.page):
            raise KeyError(key)
        self._crank.change(self._state, self._field, Verb.REMOVE, kept)

    def clear(self) -> None:
        """Leave nothing in it."""
        _Handle.clear(self)

    def view(self) -> MapView[K, V]:
        """The map as it is now. O(1)."""
        number = self._crank.view(self._state, self._field)
        return MapView(self._crank.heap, self._tree, number)


class _Membered(AbstractSet[T]):
    """What a set and a view of one have in common: reading, in key order."""

    __slots__ = ()
    _heap: Heap
    _tree: Any

    def _key(self, key: Any) -> Value:
        return key

    def __len__(self) -> int:
        return int(self._tree.count)

    def __contains__(self, key: object) -> bool:
        return bool(self._tree.contains(self._key(key), self._heap.memory.page))

    def __iter__(self) -> Iterator[T]:
        members: Iterator[T] = self._tree.iterate(loader=self._heap.memory.page)
        return members

    @classmethod
    def _from_iterable(cls, it: Iterable[Any]) -> Any:
        return set(it)

    def __repr__(self) -> str:
        return f"{{{', '.join(map(repr, self))}}}"


class Set(_Handle, _Membered[T], MutableSet[T], Generic[T]):
    """A set field. Members are scalars, in key order."""

    __slots__ = ()
    __keeve_shape__: ClassVar[Shape] = Shape.SET
    _key = _Handle._key

    @property
    def _heap(self) -> Heap:  # type: ignore[override]  # read-only here
        return self._crank.heap

    def add(self, value: T) -> None:
        """Put a member in, if it is not there."""
        kept = self._key(value)
        if not self._tree.contains(kept, self._heap.memory.page):
            self._crank.change(self._state, self._field, Verb.ADD, kept)

    def discard(self, value: T) -> None:
        """Take a member out, if it is there."""
        kept = self._key(value)
        if self._tree.contains(kept, self._heap.memory.page):
            self._crank.change(self._state, self._field, Verb.DISCARD, kept)

    def clear(self) -> None:
        """Leave nothing in it."""
        _Handle.clear(self)

    def view(self) -> SetView[T]:
        """The set as it is now. O(1)."""
        number = self._crank.view(self._state, self._field)
        return SetView(self._crank.heap, self._tree, number)


class View:
    """A collection as it was when the view was taken: what the three kinds of view are."""

    __slots__ = ("_heap", "_tree", "number")

    def __init__(self, heap: Heap, tree: Any, number: int | None = None) -> None:
        self._heap = heap
        self._tree = tree
        self.number = number
        """The view's number within its record; None for one that an effect was given."""


class ListView(View, _Listed[T], Generic[T]):
    """A list as it was."""

    __slots__ = ()


class MapView(View, _Mapped[K, V], Generic[K, V]):
    """A map as it was."""

    __slots__ = ()


class SetView(View, _Membered[T], Generic[T]):
    """A set as it was."""

    __slots__ = ()


def view_of(heap: Heap, tree: Any) -> ListView[Any] | MapView[Any, Any] | SetView[Any]:
    """The view of a tree that the heap holds for an effect."""
    kinds: dict[type, Any] = {ListTree: ListView, MapTree: MapView, SetTree: SetView}
    view: ListView[Any] | MapView[Any, Any] | SetView[Any] = kinds[type(tree)](heap, tree)
    return view
