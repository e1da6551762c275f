"""Deadlines: what is a time to wait for, and when the effect of a timer is due, as its arguments say.

The one rule: times are in seconds since 1970; whatever is none is nobody's deadline, and raises nothing here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from vat.heap.entries import Effect
from vat.heap.heap import Heap


def is_time(at: Any) -> bool:
    """Whether something can be waited for: a time, or inf. There are ints that are larger than any float."""
    try:
        return type(at) in (int, float) and float(at) > -math.inf
    except OverflowError:
        return False


def deadline_of(args: Sequence[Any], keywords: Mapping[str, Any]) -> float | None:
    """When a call of `timer.until(at)` is due; None for what the device will refuse."""
    given = [*args, *keywords.values()]
    if len(given) != 1 or (keywords and "at" not in keywords):
        return None
    at: float = given[0]
    return at if is_time(at) else None


def deadline_in(heap: Heap, effect: Sequence[Any]) -> float | None:
    """The same of an effect's entry in a heap, as a float. Raises what a heap raises that cannot be read."""
    read = heap.read
    at = deadline_of(read(effect[Effect.ARGS]), {name: read(arg) for name, arg in effect[Effect.KEYWORDS]})
    return None if at is None else float(at)


def is_timer(effect: Sequence[Any]) -> bool:
    """Whether an effect is that of the timer which every host has."""
    return (effect[Effect.DEVICE], effect[Effect.METHOD]) == ("timer", "until")
