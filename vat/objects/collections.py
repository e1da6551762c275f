"""`List`, `Map` and `Set` as actors use them: handles on persistent trees that a vat owns.

They read like `list`, `dict` and `set` (maps and sets in key order), cost O(log n) per look and O(change) per crank,
and never hold a copy: a handle finds its tree by the actor and the field each time.

The one rule: whatever changes a collection is one call of the crank's `change`, an operation.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, MutableMapping, MutableSequence, MutableSet
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from dataspace.values import MAX_DEPTH, Value, with_items
from snapshots.keyed import MapTree, SetTree
from snapshots.lists import ListTree
from vat.heap.heap import Heap
from vat.heap.opcodes import Verb
from vat.objects.types import Field, Shape
from vat.objects.views import Listed, ListView, Mapped, MapView, Membered, SetView, View, place

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
        if type(tree) is not type(self._none):  # stored by another class than the one that runs
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


class List(_Handle, Listed[T], MutableSequence[T], Generic[T]):
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
        self._change(Verb.REPLACE, place(index, len(self)), self._keep(value))

    def __delitem__(self, index: Any) -> None:
        count = len(self)
        if isinstance(index, slice):
            for at in sorted(range(*index.indices(count)), reverse=True):
                self._change(Verb.DELETE, at)
            return
        self._change(Verb.DELETE, place(index, count))

    def clear(self) -> None:
        """Leave nothing in it."""
        _Handle.clear(self)

    def view(self) -> ListView[T]:
        """The list as it is now. O(1)."""
        return ListView(self._heap, self._tree, self._crank.view(self._actor, self._field))


class Map(_Handle, Mapped[K, V], MutableMapping[K, V], Generic[K, V]):
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


class Set(_Handle, Membered[T], MutableSet[T], Generic[T]):
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
