"""The public fields of a session in JSON, in parts: each has as much as one answer may have.

A part ends between two items. What follows is named by a place, `messages:120`: a field, and how many of its items come
before. So lists of parts are put together by joining them, and so are objects; `$map` has pairs to be joined.

The one rule: all parts of one session as it was at one seq are all of its fields, each item once.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

import attrs
import trio

from dataspace.observe.cursor import BadCursor, number_in
from keeve.faces import item_face, items_of, joined, public_fields
from keeve.looking.parts import AT_ONCE, LOOKED_AT, Room, weight
from snapshots.lists import ListTree
from snapshots.tree import Tree
from vat.heap.heap import Heap


@attrs.frozen
class FieldPlace:
    """Behind so many items of a field, and behind all fields before it."""

    name: str = ""
    count: int = 0

    @classmethod
    def parse(cls, text: str) -> FieldPlace:
        """The place that is written so; "" is the beginning. Raises `BadCursor`.

        >>> FieldPlace.parse("messages:120"), str(FieldPlace("a", 3))
        (FieldPlace(name='messages', count=120), 'a:3')
        """
        if not text:
            return cls()
        name, _, said = text.rpartition(":")
        count = number_in(said)
        if not name or count is None:
            raise BadCursor(text)
        return cls(name, count)

    def __str__(self) -> str:
        return f"{self.name}:{self.count}"


async def fields_of(heap: Heap, after: FieldPlace) -> tuple[dict[str, Any], str | None]:
    """The public fields behind a place, as far as there is room; and the place behind them, None where that is the end.

    Others have their turns meanwhile. Costs what it gives, and for a Map or a Set a walk over what lies before it.
    """
    fields: dict[str, Any] = {}
    room, looked = Room(LOOKED_AT), 0
    for name, stored in public_fields(heap):
        if name < after.name:
            continue
        first = after.count if name == after.name else 0
        items: list[Any] = []
        for item in _items(heap, stored, first):
            looked += 1
            if looked % AT_ONCE == 0:
                await trio.lowlevel.checkpoint()
            if item is _PASSED:
                continue
            if not room:
                if items:
                    fields[name] = joined(stored, items)
                return fields, str(FieldPlace(name, first + len(items)))
            items.append(item)
            room.take(weight(item))
        if items or not first:
            fields[name] = joined(stored, items)
    return fields, None


def put_together(fields: dict[str, Any], part: dict[str, Any]) -> None:
    """Add the part that follows to the fields that were given by now.

    >>> fields = {"a": [1], "m": {"k": 1}}
    >>> put_together(fields, {"m": {"$map": [[2, 3]]}, "z": 0})
    >>> fields
    {'a': [1], 'm': {'$map': [['k', 1], [2, 3]]}, 'z': 0}
    """
    for name, value in part.items():
        before: Any = fields.get(name)
        if name not in fields:
            fields[name] = value
        elif isinstance(before, list):
            fields[name] = before + value
        elif "$map" in before or "$map" in value:
            fields[name] = {"$map": _pairs(before) + _pairs(value)}
        else:
            fields[name] = {**before, **value}


def _pairs(face: dict[str, Any]) -> list[Any]:
    return face["$map"] if "$map" in face else [list(pair) for pair in face.items()]


_PASSED: Any = object()
"""Stands for an item that is passed by."""


def _items(heap: Heap, stored: Any, first: int) -> Iterator[Any]:
    """The items of a field in JSON behind the first so many of them; for these, if they are walked over, `_PASSED`."""
    if not isinstance(stored, Tree):
        yield from islice(items_of(heap, stored), first, None)
    elif isinstance(stored, ListTree):
        yield from (item_face(heap, stored, item) for item in stored.iterate(min(first, len(stored)), None, heap.page))
    else:
        for number, item in enumerate(stored.walked(heap.page)):
            yield _PASSED if number < first else item_face(heap, stored, item)
