"""The past: of a session as it was, what one page shows. It is read from its heap, and no more of that than is shown.

The one rule: nothing is left out in silence. Of what is cut it is said how much more there is.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any, Final

import attrs

from keeve.faces import face, field_face, item_face, public_fields
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
        found: Iterable[Any] = ()
        first = count = 0
        messages = stored.get("messages")
        if listed := isinstance(messages, ListTree):
            del stored["messages"]
            count = len(messages)
            last = min(before - 1, count) if before else count
            first = max(0, last - MESSAGES)
            found = messages.iterate(first, last, heap.page)
        return Past(
            heap.state(ROOT_ACTOR).type,
            restored.seq,
            restored.hash.hex(),
            heap.time,
            [_message(face(heap.read(item))) for item in found],
            first,
            count,
            listed,
            {name: _text(heap, each) for name, each in stored.items()},
        )

    return read


def _message(message: Any) -> dict[str, Any]:
    """A message as it is shown; one that is none as what it is."""
    if not isinstance(message, dict):
        return {"kind": "note", "title": "", "text": as_text(message), "calls": []}
    role = str(message.get("role", ""))
    calls = message.get("tool_calls")
    found = []
    for call in calls if isinstance(calls, list) else []:
        function = call.get("function") if isinstance(call, dict) else None
        named = function if isinstance(function, dict) else {"arguments": call}
        found.append({"name": as_text(named.get("name")), "arguments": as_text(named.get("arguments"))})
    kind = {"user": "user", "assistant": "model", "tool": "tool"}.get(role, "note")
    return {"kind": kind, "title": role, "text": as_text(message.get("content")), "calls": found}


def _text(heap: Heap, stored: Any) -> str:
    left = ""
    if isinstance(stored, Tree) and len(stored) > ITEMS:
        more = len(stored) - ITEMS
        if isinstance(stored, ListTree):
            items = [item_face(heap, stored, item) for item in stored.iterate(more, loader=heap.page)]
            left = f"the newest {ITEMS} of {len(stored)}:\n"
        else:
            items = [item_face(heap, stored, item) for item in islice(stored.walked(heap.page), ITEMS)]
            left = f"the first {ITEMS} of {len(stored)}:\n"
        text = _json(items)
    else:
        text = _json(field_face(heap, stored))
    if len(text) > LETTERS:
        text = f"{text[:LETTERS]}…\n({len(text) - LETTERS} more letters)"
    return left + text


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=1)
