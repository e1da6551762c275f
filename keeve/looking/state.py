"""The public fields of a session in JSON, in pages: each has as much as one answer may have.

So are those of the actors of its own that they lead to, as a `Model` or a `Toolbox`. A page ends between two items.
What follows is named by a place, `messages:120`: a field, and how many of its items come before; `model.usage:0` is one
of an actor that a field leads to, and all of these come after the fields themselves. So lists of pages are put together
by joining them, and so are objects; `$map` has pairs to be joined.

The one rule: all pages of one session as it was at one seq are all of its fields, each item once.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

import attrs
import trio

from dataspace.observe.cursor import BadCursor, number_in
from dataspace.values import Ref
from keeve.faces import item_face, items_of, joined, public_fields
from keeve.looking.parts import AT_ONCE, LOOKED_AT, Room, weight
from keeve.looking.refs import actor_behind
from snapshots.lists import ListTree
from snapshots.tree import Tree
from vat.heap.heap import ROOT_ACTOR, Heap, State


@attrs.frozen
class FieldPlace:
    """Behind so many items of a field, and behind all fields before it. `name` has a point for one of an actor that a
    field leads to."""

    name: str = ""
    count: int = 0

    @property
    def order(self) -> tuple[bool, list[str]]:
        """Where its field stands among the others."""
        return _order(self.name)

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


@attrs.frozen
class FieldsPage:
    """Some of the public fields of a session in JSON, and the place behind them; None where that is the end.

    `parts` has, by the field that leads to it, each other actor of the session: its `type`, its id as `actor`, and of
    its public `fields` those that are on this page.
    """

    fields: dict[str, Any]
    parts: dict[str, dict[str, Any]]
    next: str | None


async def fields_of(heap: Heap, after: FieldPlace) -> FieldsPage:
    """The public fields behind a place, as far as there is room.

    Others have their turns meanwhile. Costs what it gives, and for a Map or a Set a walk over what lies before it.
    """
    fields: dict[str, Any] = {}
    parts: dict[str, dict[str, Any]] = {}
    room, looked = Room(LOOKED_AT), 0
    for name, state, stored in _public(heap):
        if _order(name) < after.order:
            continue
        into = fields if state is None else _part(parts, name, state)
        own = name.rpartition(".")[2]
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
                    into[own] = joined(stored, items)
                return FieldsPage(fields, parts, str(FieldPlace(name, first + len(items))))
            items.append(item)
            room.take(weight(item))
        if items or not first:
            into[own] = joined(stored, items)
    return FieldsPage(fields, parts, None)


def _public(heap: Heap) -> Iterator[tuple[str, State | None, Any]]:
    """The public fields as they are stored, by name, and with which actor; None is the first one, whose are first."""
    own = list(public_fields(heap))
    yield from ((name, None, stored) for name, stored in own)
    for field, ref in own:
        state = actor_behind(heap, ref.actor) if isinstance(ref, Ref) and ref.session is None else None
        if state is not None and state.id != ROOT_ACTOR:
            for name in sorted(state.fields):
                if not name.startswith("_"):
                    yield f"{field}.{name}", state, state.fields[name]


def _order(name: str) -> tuple[bool, list[str]]:
    return "." in name, name.split(".")


def _part(parts: dict[str, dict[str, Any]], name: str, state: State) -> dict[str, Any]:
    """Where the fields of an actor go that a field leads to."""
    told = parts.setdefault(name.partition(".")[0], {"type": state.type, "actor": state.id, "fields": {}})
    fields: dict[str, Any] = told["fields"]
    return fields


def parts_put_together(parts: dict[str, dict[str, Any]], more: dict[str, dict[str, Any]]) -> None:
    """Add those of the page that follows to the parts that were given by now."""
    for name, part in more.items():
        put_together(parts.setdefault(name, {**part, "fields": {}})["fields"], part["fields"])


def put_together(fields: dict[str, Any], part: dict[str, Any]) -> None:
    """Add those of the page that follows to the fields that were given by now.

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
