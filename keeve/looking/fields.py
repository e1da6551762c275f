"""The fields of a session's first actor in words: each on one line, for people (`keeve.faces` has them in JSON).

The one rule: what is long costs no more than what is short.
"""

from __future__ import annotations

import json
from typing import Any, Final

from dataspace.values import Ref
from keeve.faces import face, field_face, item_face, public_fields
from keeve.looking.reading import Reading
from keeve.looking.refs import actor_behind, ref_in_words, with_refs
from snapshots.lists import ListTree
from snapshots.tree import Tree
from vat.heap.heap import Heap, State

WIDTH: Final = 100
"""Characters of a field that people are shown."""
FEW: Final = 50
"""Items of a collection that are read for people; of a longer one they are told how many, and the last or first."""


def fields_in_words(heap: Heap, store: Reading) -> dict[str, str]:
    """All public fields, each on one line that is cut. Costs no more for a collection that is long."""

    def said(stored: Any) -> str:
        return _cut(with_refs(_in_words(heap, stored), lambda ref: ref_in_words(ref, heap, store)))

    return {name: said(stored) for name, stored in public_fields(heap)}


def _in_words(heap: Heap, stored: Any) -> str:
    if isinstance(stored, Tree) and len(stored) > FEW:
        if isinstance(stored, ListTree):
            last = _text(face(heap.read(stored.get(len(stored) - 1, heap.page))))
            return f"{len(stored)} items, the last one {last}"
        first = _text(item_face(heap, stored, next(iter(stored.walked(heap.page)))))
        return f"{len(stored)} items, the first one {first}"
    if isinstance(stored, Ref) and stored.session is None and (state := actor_behind(heap, stored.actor)) is not None:
        return _actor_in_words(heap, state)
    return _text(field_face(heap, stored))


def _actor_in_words(heap: Heap, state: State) -> str:
    """An actor of the session by its type and what it has; of tools their names."""
    said = []
    for name, stored in sorted(state.fields.items()):
        if name == "schemas" and isinstance(stored, ListTree):
            few = stored.iterate(0, min(len(stored), FEW), heap.page)
            said += [str(_named(item_face(heap, stored, each))) for each in few]
        elif not name.startswith("_") and not isinstance(stored, Tree):
            said.append(f"{name} {_text(face(heap.read(stored)))}")
    return f"{state.type} (actor {state.id}): {', '.join(said)}"


def _named(schema: Any) -> Any:
    function = schema.get("function") if isinstance(schema, dict) else None
    return function.get("name") if isinstance(function, dict) else None


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _cut(line: str) -> str:
    line = " ".join(line.split())
    return line if len(line) <= WIDTH else f"{line[: WIDTH - 1]}…"
