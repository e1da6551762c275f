"""Lists and dicts of stored values as the runtime puts them together.

The one rule: the type says whether a cell is inside (see `dataspace.values.kinds`), here as everywhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from dataspace.values import CELLED, CelledDict, CelledList, FrozenDict, FrozenList, Value


def listed(items: Iterable[Value]) -> FrozenList:
    """A stored list of stored values."""
    made = FrozenList(items)
    return made if CELLED.isdisjoint(map(type, made)) else CelledList(made)


def mapped(items: Mapping[str, Value]) -> FrozenDict:
    """A stored dict of stored values."""
    return FrozenDict(items) if CELLED.isdisjoint(map(type, items.values())) else CelledDict(items)


PLAIN: frozenset[type[Any]] = frozenset({str, int, float, bool, type(None), bytes})
"""Types in which nothing else is."""
