"""`List`, `Map` and `Set` as actors use them, and views: handles on persistent trees that a vat owns.

They read like `list`, `dict` and `set` (maps and sets in key order), cost O(log n) per look and O(change) per crank,
and never hold a copy: a handle finds its tree by the actor and the field each time. `view()` is the collection
as it is now, for O(1); it cannot change, and it may be an argument of an effect.

The one rule: whatever changes a collection is one call of the crank's `change`, an operation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, MutableMapping, MutableSequence, MutableSet, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, ClassVar, Final, Generic, Protocol, TypeVar, overload

from dataspace.values import MAX_DEPTH, Value, with_items
from snapshots.keyed import MapTree, SetTree
from snapshots.lists import ListTree
from vat.heap.heap import Heap
from vat.heap.opcodes import Verb
from vat.objects.types import Field, Shape

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")


class Changes(Protocol):
    """What a running crank does for collections."""

    heap: Heap

    def fields(self, actor: int) -> dict[str, Any]: ...
    def keep(self, value: Any, path: str) -> Value: ...
    def key(self, value: Any, path: str) -> Value: ...
    def fits(self, actor: int, field: Field) -> None: ...
    def change(self, actor: int, field: Field, verb: Verb, *args: Value) -> None: ...
    def view(self, actor: int, field: Field) -> int: ...


class _Handle:
    """A collection of an actor, found through the heap at each use."""

    __slots__ = ("_actor", "_crank", "_field")
    _none: ClassVar[Any]
    """The tree of a collection that nothing was put into yet."""

    def __init__(self, crank: Changes, actor: int, field: Field) -> None:
        self._crank = crank
        self._actor = actor
        self._field = field

    @property
    def _tree(self) -> Any:
        tree = self._crank.fields(self._actor).get(self._field.name, self._none)
        if type(tree) is not type(self._none):  # of a newer version than the class that runs
            self._crank.fits(self._actor, self._field)
        return tree

    @property
    def _heap(self) -> Heap:
        return self._crank.heap

    def _change(self, verb: Verb, *args: Value) -> None:
        self._crank.change(self._actor, self._field, verb, *args)

    def clear(self) -> None:
        """Leave nothing in it."""
        if self._tree.count:
            self._change(Verb.CLEAR)

    def _keep(self, value: Any) -> Value:
        field = self._field
        return self._crank.keep(value if field.mark is None else field.mark(value), field.inside)

    def _key(self, key: Any) -> Value:
        return self._crank.key(key, self._field.name)

    def _same(self, other: Any) -> bool:
        """Whether another handle is on the same collection."""
        return (
            type(other) is type(self)
            and other._crank is self._crank
            and other._actor == self._actor
            and other._field is self._field
        )


def _within(index: int, count: int) -> int:
    at = index + count if index < 0 else index
    if not 0 <= at < count:
        raise IndexError(f"list index {index} out of range: there are {count} items")
    return at


class _Listed(Sequence[T]):
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
        return heap.read(tree.get(_within(index, tree.count), heap.page))

    def __iter__(self) -> Iterator[T]:
        heap = self._heap
        for item in self._tree.iterate(0, None, heap.page):
            yield heap.read(item)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, _Listed | list):
            return len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))
        return NotImplemented

    __hash__ = None  # type: ignore[assignment]  # it changes, like a list

    def __repr__(self) -> str:
        return repr(list(self))


class List(_Handle, _Listed[T], MutableSequence[T], Generic[T]):
    """A list field. Indexes may be negative; slices that are read give plain lists; slices cannot be assigned."""

    __slots__ = ()
    __keeve_shape__: ClassVar[Shape] = Shape.LIST
    _none = ListTree()

    def append(self, value: T) -> None:
        """Add one item at the end."""
        self._change(Verb.APPEND, self._keep(value))

    def extend(self, values: Iterable[T]) -> None:
        """Add items at the end, in one operation."""
        field = self._field
        items = list(values) if field.mark is None else list(map(field.mark, values))
        if items:
            self._change(Verb.EXTEND, self._crank.keep(items, field.name))

    def insert(self, index: int, value: T) -> None:
        """Put an item before `index`, which is cut to the length as in a list."""
        count = len(self)
        at = max(0, index + count) if index < 0 else min(index, count)
        self._change(Verb.INSERT, at, self._keep(value))

    def __setitem__(self, index: Any, value: Any) -> None:
        if not isinstance(index, int):
            raise TypeError(f"{self._field.name}[{index!r}] = …: assign one item at a time")
        self._change(Verb.REPLACE, _within(index, len(self)), self._keep(value))

    def __delitem__(self, index: Any) -> None:
        count = len(self)
        if isinstance(index, slice):
            for at in sorted(range(*index.indices(count)), reverse=True):
                self._change(Verb.DELETE, at)
            return
        self._change(Verb.DELETE, _within(index, count))

    def clear(self) -> None:
        """Leave nothing in it."""
        _Handle.clear(self)

    def view(self) -> ListView[T]:
        """The list as it is now. O(1)."""
        return ListView(self._heap, self._tree, self._crank.view(self._actor, self._field))


_NOTHING: Final[Any] = object()


class _Mapped(Mapping[K, V]):
    """What a map and a view of one have in common: reading, in key order."""

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

    def __getitem__(self, key: K) -> V:
        heap = self._heap
        stored = self._tree.get(self._key(key), _NOTHING, heap.page)
        if stored is _NOTHING:
            raise KeyError(key)
        found: V = heap.read(stored)
        return found

    def __contains__(self, key: object) -> bool:
        return bool(self._tree.contains(self._key(key), self._heap.page))

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


class Map(_Handle, _Mapped[K, V], MutableMapping[K, V], Generic[K, V]):
    """A map field. Keys are scalars, in key order; `1`, `1.0` and `True` are three."""

    __slots__ = ()
    __keeve_shape__: ClassVar[Shape] = Shape.MAP
    _none = MapTree()
    _key = _Handle._key

    def __setitem__(self, key: K, value: V) -> None:
        self._change(Verb.PUT, self._key(key), self._keep(value))

    def __delitem__(self, key: K) -> None:
        kept = self._key(key)
        if not self._tree.contains(kept, self._heap.page):
            raise KeyError(key)
        self._change(Verb.REMOVE, kept)

    def clear(self) -> None:
        """Leave nothing in it."""
        _Handle.clear(self)

    def view(self) -> MapView[K, V]:
        """The map as it is now. O(1)."""
        return MapView(self._heap, self._tree, self._crank.view(self._actor, self._field))


class _Membered(AbstractSet[T]):
    """What a set and a view of one have in common: reading, in key order."""

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

    def __iter__(self) -> Iterator[T]:
        members: Iterator[T] = self._tree.iterate(loader=self._heap.page)
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
    _none = SetTree()
    _key = _Handle._key

    def add(self, value: T) -> None:
        """Put a member in, if it is not there."""
        kept = self._key(value)
        if not self._tree.contains(kept, self._heap.page):
            self._change(Verb.ADD, kept)

    def discard(self, value: T) -> None:
        """Take a member out, if it is there."""
        kept = self._key(value)
        if self._tree.contains(kept, self._heap.page):
            self._change(Verb.DISCARD, kept)

    def clear(self) -> None:
        """Leave nothing in it."""
        _Handle.clear(self)

    def view(self) -> SetView[T]:
        """The set as it is now. O(1)."""
        return SetView(self._heap, self._tree, self._crank.view(self._actor, self._field))


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


def plain(value: Any, within: tuple[int, ...] = (), made: dict[int, Any] | None = None) -> Any:
    """A value with the collections and views in it copied, and actors as their refs; the very same without any.

    `within` are the containers that it is in: one which contains itself is left as it is. `made` has what became of
    those that were met before, each beside itself: what is held twice is looked at once.
    """
    if isinstance(value, _Handle | View):
        return dict(value) if isinstance(value, Mapping) else list(value)  # type: ignore[call-overload]  # one of the kinds
    if hasattr(type(value), "__keeve_root__"):
        return value.ref
    if not isinstance(value, dict | list | tuple) or id(value) in within or len(within) > MAX_DEPTH:
        return value
    made = {} if made is None else made
    known = made.get(id(value))
    if known is None:
        inside = (*within, id(value))
        known = made[id(value)] = (value, with_items(value, lambda item: plain(item, inside, made), list, dict))
    return known[1]
