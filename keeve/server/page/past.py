"""The past: of a session as it was, what one page shows. It is read from its heap, and no more of that than is shown.

The one rule: nothing is left out in silence. Of what is cut it is said how much more there is.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, Final

import attrs

from keeve.faces import face, field_face, item_face, public_fields
from keeve.looking import Room, weight
from keeve.server.page.cutting import cut
from keeve.server.page.said import as_text
from snapshots.lists import ListTree
from snapshots.tree import Tree
from vat.heap.heap import ROOT_ACTOR, Heap
from vat.heap.restore import Restored

MESSAGES: Final = 60
"""Messages on one page."""
ITEMS: Final = 50
"""Items of another collection that are shown."""
LETTERS: Final = 20_000
"""Letters of a field that are shown."""


@attrs.frozen
class Past:
    """A session as it was. `messages` stand behind the first `first` of `count`; `fields` are the others, as text.

    listed: whether it has messages that are a list at all.
    """

    type: str
    seq: int
    hash: str
    time: int
    messages: list[Any]
    first: int
    count: int
    listed: bool
    fields: dict[str, str]


def past_of(before: int = 0) -> Callable[[Restored], Past]:
    """What reads a `Past`: its newest messages, or those before the one of that number."""

    def read(restored: Restored) -> Past:
        heap = restored.heap
        stored = dict(public_fields(heap))
        found: list[Any] = []
        first = count = 0
        messages = stored.get("messages")
        if listed := isinstance(messages, ListTree):
            del stored["messages"]
            count = len(messages)
            first = min(before - 1, count) if before else count
            room = Room(MESSAGES)
            while first and room:
                first -= 1
                [item] = messages.iterate(first, first + 1, heap.page)
                message = heap.read(item)
                room.take(weight(message))
                found.append(_message(face(message)))
        return Past(
            heap.state(ROOT_ACTOR).type,
            restored.seq,
            restored.hash.hex(),
            heap.time,
            found[::-1],
            first,
            count,
            listed,
            {name: _text(heap, each) for name, each in stored.items()},
        )

    return read


def _message(message: Any) -> dict[str, Any]:
    """A message as it is shown; one that is none as what it is."""
    if not isinstance(message, dict):
        return {"kind": "note", "title": "", "text": cut(as_text(message)), "calls": []}
    role = str(message.get("role", ""))
    calls = message.get("tool_calls")
    found = []
    for call in calls if isinstance(calls, list) else []:
        function = call.get("function") if isinstance(call, dict) else None
        named = function if isinstance(function, dict) else {"arguments": call}
        found.append({"name": cut(as_text(named.get("name"))), "arguments": cut(as_text(named.get("arguments")))})
    kind = {"user": "user", "assistant": "model", "tool": "tool"}.get(role, "note")
    return {"kind": kind, "title": role, "text": cut(as_text(message.get("content"))), "calls": found}


def _text(heap: Heap, stored: Any) -> str:
    if not isinstance(stored, Tree):
        return cut(_json(field_face(heap, stored)), LETTERS)
    newest = isinstance(stored, ListTree)
    items: list[Any] = []
    left = LETTERS
    for item in _from_the_end(heap, stored) if isinstance(stored, ListTree) else stored.walked(heap.page):
        if len(items) == ITEMS or left <= 0:
            break
        items.append(item_face(heap, stored, item))
        left -= weight(items[-1])
    if len(items) == len(stored):
        return cut(_json(field_face(heap, stored)), LETTERS)
    said = f"the {'newest' if newest else 'first'} {len(items)} of {len(stored)}:\n"
    return said + cut(_json(items[::-1] if newest else items), LETTERS)


def _from_the_end(heap: Heap, stored: ListTree) -> Iterator[Any]:
    """The items of a list, the newest first."""
    for at in range(len(stored) - 1, -1, -1):
        yield from stored.iterate(at, at + 1, heap.page)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=1)
