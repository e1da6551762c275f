"""Indexes of a heap: what would otherwise be looked for in a whole collection. They are in memory alone.

    effects  promise -> the number of the effect that is to settle it
    owned    fiber -> the promises that are kept for it

Each is made of its collection when somebody asks for the first time, and kept up from then on by the operations that
change that. A heap that is only restored has none.

The one rule: an index is made and changed through `Heap.put` and `Heap.take`, so that what is undone is undone in it.
"""

from __future__ import annotations

from typing import Any

from vat.heap.entries import Effect
from vat.heap.heap import Heap


def effect_of(heap: Heap, promise: int) -> int | None:
    """The number of the open effect that is to settle a promise, if there is one. Costs all open ones, once."""
    index = heap.indexes.get("effects")
    if index is None:
        index = {entry[Effect.PROMISE]: number for number, entry in heap.entries("effects")}
        heap.put(heap.indexes, "effects", index)
    return index.get(promise)


def effect_wanted(heap: Heap, promise: int, number: int) -> None:
    """There is an effect more."""
    index = heap.indexes.get("effects")
    if index is not None:
        heap.put(index, promise, number)


def effect_ended(heap: Heap, number: int) -> None:
    """An effect is about to go."""
    index = heap.indexes.get("effects")
    if index is not None and (entry := heap.find("effects", number)) is not None:
        heap.take(index, entry[Effect.PROMISE])


def effects_gone(heap: Heap) -> None:
    """There are no effects any more."""
    if "effects" in heap.indexes:
        heap.put(heap.indexes, "effects", {})


def owned_by(heap: Heap, fiber: int) -> list[int]:
    """The promises that are kept for a fiber, in order. Costs all that are kept for any, once."""
    index = heap.indexes.get("owned")
    if index is None:
        index = {}
        for promise, owner in heap.entries("owned"):
            index.setdefault(owner, {})[promise] = None
        heap.put(heap.indexes, "owned", index)
    return sorted(index.get(fiber, ()))


def owns(heap: Heap, fiber: int, promise: int) -> None:
    """A promise is about to be kept for a fiber."""
    index = heap.indexes.get("owned")
    if index is None:
        return
    former = heap.find("owned", promise)
    if former is not None:
        owns_no_more(heap, former, promise)
    kept: dict[int, Any] | None = index.get(fiber)
    if kept is None:
        heap.put(index, fiber, {promise: None})
    else:
        heap.put(kept, promise, None)


def owns_no_more(heap: Heap, fiber: int, promise: int) -> None:
    """A promise that is kept for a fiber is about to be kept no more."""
    index = heap.indexes.get("owned")
    if index is not None:
        kept = index[fiber]
        heap.take(kept, promise)
        if not kept:
            heap.take(index, fiber)
