"""The past: of a session as it was, what one page shows. It is read from its heap, and no more of that than is shown.

The one rule: nothing is left out in silence. Of what is cut it is said how much more there is.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, Final

import attrs

from dataspace.values import Ref
from keeve.faces import face, field_face, item_face, public_fields
from keeve.looking import Reading, Room, actor_behind, ref_in_words, weight, with_refs
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
class FieldShown:
    """What a field held, as text; of tools the names, each with what the model is told of it."""

    text: str
    tools: tuple[tuple[str, str], ...] = ()


@attrs.frozen
class Past:
    """A session as it was. `messages` stand behind the first `first` of `count`; `fields` are the others.

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
    fields: dict[str, FieldShown]


def past_of(store: Reading, before: int = 0) -> Callable[[Restored], Past]:
    """What reads a `Past`: its newest messages, or those before the one of that number.

    store: as far as who asks reaches it; refs to what they do not reach are shown without a name.
    """

    def read(restored: Restored) -> Past:
        heap = restored.heap
        words = InWords(heap, lambda ref: ref_in_words(ref, heap, store))
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
            {name: words.field(each) for name, each in sorted(stored.items(), key=lambda field: _is_ref(field[1]))},
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


def told_first(restored: Restored) -> tuple[str, str]:
    """The model of a conversation, and what it is told first."""
    model, system = (_face_of(restored.heap, name) for name in ("model", "system"))
    return as_text(model), cut(as_text(system), LETTERS)


def first_said(restored: Restored) -> Any:
    """The first message of a person among the first few that an agent has kept, as JSON; None where it has none."""
    heap = restored.heap
    messages = heap.state(ROOT_ACTOR).fields.get("messages")
    if not isinstance(messages, ListTree):
        return None
    kept = (face(heap.read(item)) for item in messages.iterate(0, min(3, len(messages)), heap.page))
    return next((each.get("content") for each in kept if isinstance(each, dict) and each.get("role") == "user"), None)


def _face_of(heap: Heap, name: str) -> Any:
    fields = heap.state(ROOT_ACTOR).fields
    return field_face(heap, fields[name]) if name in fields else None


def _is_ref(stored: Any) -> bool:
    return isinstance(stored, Ref) and stored.session is None


@attrs.frozen
class InWords:
    """The fields of a heap as text, whose refs are said by `refs`."""

    _heap: Heap
    _refs: Callable[[str], str]

    def field(self, stored: Any) -> FieldShown:
        """A field; one that holds an actor of the session as what that is and has."""
        state = actor_behind(self._heap, stored.actor) if _is_ref(stored) else None
        if state is None:
            offered = self._tools(stored)
            return FieldShown("" if offered else self._text(stored), offered)
        lines = [f"{state.type} (actor {state.id})"]
        tools: tuple[tuple[str, str], ...] = ()
        for name, each in sorted(state.fields.items()):
            if name.startswith("_"):
                continue
            found = self._tools(each)
            tools += found
            lines += [] if found else [f"{name}: {self._text(each)}"]
        return FieldShown(cut("\n".join(lines), LETTERS), tools)

    def _tools(self, stored: Any) -> tuple[tuple[str, str], ...]:
        """The tools that a list of schemas offers; none where it is another list, or a long one."""
        if not isinstance(stored, ListTree) or len(stored) > ITEMS:
            return ()
        found: list[tuple[str, str]] = []
        left, heap = LETTERS, self._heap
        for item in (item_face(heap, stored, each) for each in stored.iterate(0, len(stored), heap.page)):
            function = item.get("function") if isinstance(item, dict) else None
            name = function.get("name") if isinstance(function, dict) else None
            if not isinstance(name, str):
                return ()
            found.append((cut(name, 200), cut(self._json(item), max(left, 0))))
            left -= len(found[-1][1])
        return tuple(found)

    def _text(self, stored: Any) -> str:
        heap = self._heap
        if not isinstance(stored, Tree):
            return cut(self._json(field_face(heap, stored)), LETTERS)
        newest = isinstance(stored, ListTree)
        items: list[Any] = []
        left = LETTERS
        for item in self._from_the_end(stored) if isinstance(stored, ListTree) else stored.walked(heap.page):
            if len(items) == ITEMS or left <= 0:
                break
            items.append(item_face(heap, stored, item))
            left -= weight(items[-1])
        if len(items) == len(stored):
            return cut(self._json(field_face(heap, stored)), LETTERS)
        said = f"the {'newest' if newest else 'first'} {len(items)} of {len(stored)}:\n"
        return said + cut(self._json(items[::-1] if newest else items), LETTERS)

    def _from_the_end(self, stored: ListTree) -> Iterator[Any]:
        """The items of a list, the newest first."""
        for at in range(len(stored) - 1, -1, -1):
            yield from stored.iterate(at, at + 1, self._heap.page)

    def _json(self, value: Any) -> str:
        return with_refs(json.dumps(value, ensure_ascii=False, indent=1), self._refs)
