"""A heap to run something again on: it goes forward, and is thrown away.

What the runtime remembers are plain dicts here, over the trees that they were before. So a change costs a place in a
dict, where a tree would be made that nobody ever writes: a tenth of what it costs to run a part of a fiber again.

The one rule: it says what the heap that it was made of would say, and no page is ever made of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dataspace.values import Value, scalar_key
from snapshots.keyed import MapTree
from snapshots.nodes import Loader, nowhere
from vat.heap.heap import ABSENT, Heap


class Overlay:
    """A map of a heap: what was there, and what has changed since, None for what has gone."""

    __slots__ = ("_loader", "base", "changed")

    def __init__(self, base: MapTree | None = None, loader: Loader = nowhere) -> None:
        self.base = MapTree() if base is None else base
        self._loader = loader
        self.changed: dict[Any, Any] = {}

    @property
    def count(self) -> int:
        """How many entries there are. Costs what has changed."""
        there = {key for key in self.changed if self.base.contains(key, self._loader)}
        return self.base.count - len(there) + sum(value is not None for value in self.changed.values())

    def items(self, loader: Loader = nowhere) -> Iterator[tuple[Any, Any]]:
        """Pairs (key, value), in key order. Costs all of it."""
        now = {**dict(self.base.items(loader=loader)), **self.changed}
        for key in sorted(now, key=scalar_key):
            if now[key] is not None:
                yield key, now[key]


class Scratch(Heap):
    """A heap whose maps are overlays. It takes over all that the other one had, which is not to be used any more."""

    __slots__ = ()

    def __init__(self, heap: Heap) -> None:
        for name in Heap.__slots__:
            setattr(self, name, getattr(heap, name))
        loader = nowhere if heap.memory is None else heap.memory.page  # not its own, which would keep it for ever
        self.system = {
            name: Overlay(tree, loader) if type(tree) is MapTree else tree for name, tree in heap.system.items()
        }

    def forget(self) -> None:
        """Have nothing any more. A view in a fiber's locals keeps it, to read with; that is to keep nothing else."""
        for name in ("system", "types", "indexes", "_states", "_dirty"):
            setattr(self, name, {})
        self._table, self._undo, self._loose, self.views = MapTree(), [], [], []

    @classmethod
    def of(cls, heap: Heap) -> Scratch:
        """A heap as one to run something again on."""
        return heap if type(heap) is cls else cls(heap)

    def find(self, name: str, key: Value) -> Any:
        over = self.system[name]
        found = over.changed.get(key, ABSENT)
        if found is ABSENT:
            base = over.base
            return base.get(key, None, self.page) if base.count else None
        return found

    def may_have(self, name: str) -> bool:
        over = self.system[name]
        return bool(over.changed or over.base.count)

    def put_entry(self, name: str, key: Value, value: Value) -> None:
        changed = self.system[name].changed
        self._undo.append((changed, key, changed.get(key, ABSENT)))
        changed[key] = value

    def drop(self, name: str, key: Value) -> None:
        if self.find(name, key) is not None:
            self.put_entry(name, key, None)
