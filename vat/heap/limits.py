"""Limits of waits: the timers of `within`, found in a heap from which a session has been forked.

The one rule: it only reads.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Any

from vat.heap.deadlines import is_timer
from vat.heap.entries import root_of
from vat.heap.fibers import LIMITED, WAITING
from vat.heap.heap import Heap
from vat.heap.indexes import effect_of


def limits_of(heap: Heap, breaking: Container[int]) -> dict[int, Sequence[Any]]:
    """The effects of timers, by their promises, that limit how long fibers wait for something which goes on when
    promises break that are `breaking`. Costs all fibers.
    """
    found: dict[int, Sequence[Any]] = {}
    for _, fiber in heap.entries("fibers"):
        mode, *waited = fiber[WAITING]
        if mode not in LIMITED:
            continue
        limit = waited.pop()
        number = effect_of(heap, limit)
        if number is None or all(root_of(heap, promise)[0] in breaking for promise in waited):
            continue
        effect = heap.find("effects", number)
        if is_timer(effect):
            found[limit] = effect
    return found
