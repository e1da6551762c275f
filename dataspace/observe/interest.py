"""Who wants to hear of a fact: an index of patterns by label, shape and constants.

Patterns that differ only in what they ask for (100,000 observers of a session each) share one *shelf*: what a
fact has at the shelf's paths is looked up in one table. So the cost of `wanting` grows with the number of
shapes that are asked with, and with the number of those who want the fact, never with the number of patterns.

The one rule: **never miss**. What the table cannot decide (the inner shape of nested lists, a name captured
twice) is left to the caller, who matches again.

The idea is that of the skeletons in Syndicate's dataspaces; here the patterns alone are indexed, since the
facts are in the log.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Final, Generic, TypeVar

import attrs

from dataspace.facts import Fact
from dataspace.patterns import Pattern, Shape
from dataspace.patterns.terms import literal_key

K = TypeVar("K", bound=Hashable)

_NOTHING: Final = object()


class Interest(Generic[K]):
    """Patterns, each under a key of its holder's choice."""

    def __init__(self) -> None:
        self._shelves: dict[str | None, dict[Shape, _Shelf[K]]] = {}
        self._places: dict[K, tuple[str | None, _Shelf[K], tuple[Any, ...]]] = {}

    def __len__(self) -> int:
        return len(self._places)

    def add(self, key: K, pattern: Pattern) -> None:
        """Keep `pattern` under `key`, in the place of what was there. O(size of the pattern)."""
        self.discard(key)
        label, shape, constants = pattern.skeleton()
        shelves = self._shelves.setdefault(label, {})
        shelf = shelves.get(shape)
        if shelf is None:
            shelf = shelves[shape] = _Shelf(shape)
        shelf.table.setdefault(constants, set()).add(key)
        self._places[key] = (label, shelf, constants)

    def discard(self, key: K) -> None:
        """Forget `key`; nothing if it is not known. O(1)."""
        if key not in self._places:
            return
        label, shelf, constants = self._places.pop(key)
        keys = shelf.table[constants]
        keys.remove(key)
        if not keys:
            del shelf.table[constants]
        if not shelf.table:
            del self._shelves[label][shelf.shape]
        if not self._shelves[label]:
            del self._shelves[label]

    def wanting(self, fact: Fact) -> set[K]:
        """The keys of all patterns that fit `fact`, and perhaps of a few that do not.

        O(shapes in use with this label or with any + keys found); computes the key of a list or dict in the
        fact only if a pattern asks for one there.
        """
        wanted: set[K] = set()
        for label in (fact.label, None):
            for shelf in self._shelves.get(label, {}).values():
                keys = shelf.wanting(fact)
                if keys is not None:
                    wanted |= keys
        return wanted


@attrs.define
class _Shelf(Generic[K]):
    """The patterns of one label and shape: by their constants, the keys."""

    shape: Shape
    table: dict[tuple[Any, ...], set[K]] = attrs.Factory(dict)

    def wanting(self, fact: Fact) -> set[K] | None:
        arity, names, open, paths = self.shape
        fields, keywords = fact.fields, fact.keywords
        if open:
            if len(fields) < arity:
                return None
        elif len(fields) != arity or len(keywords) != len(names):
            return None
        for name in names:
            if name not in keywords:
                return None
        constants = []
        for steps, is_container in paths:
            first = steps[0]
            value = fields[first] if type(first) is int else keywords[first]  # type: ignore[index]  # a name, then
            if len(steps) > 1:
                value = _inside(value, steps)
            if value is _NOTHING or isinstance(value, (list, dict)) is not is_container:
                return None
            constants.append(literal_key(value))
        return self.table.get(tuple(constants))


def _inside(value: Any, steps: tuple[int | str, ...]) -> Any:
    for step in steps[1:]:
        if isinstance(step, int):
            if not isinstance(value, list) or step >= len(value):
                return _NOTHING
        elif not isinstance(value, dict) or step not in value:
            return _NOTHING
        value = value[step]
    return value
