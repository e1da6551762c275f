"""The fields of a session's first actor, as they are stored: what can be shown of a type whose code is not here.

The one rule: read, never run. A field is what the heap has under its name; one that begins with `_` is its type's own.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from keeve.cli.text import counted, shortened
from keeve.faces import face
from snapshots.keyed import MapTree
from snapshots.lists import ListTree
from snapshots.tree import Tree
from vat.heap.heap import ROOT_ACTOR, Heap

WIDTH: Final = 100
"""Characters of a field that people are shown."""
FEW: Final = 50
"""Items of a collection that are read for people; of a longer one they are told how many, and the last or first."""


def fields_face(heap: Heap) -> dict[str, Any]:
    """All public fields in JSON, whole. A List and a Set are lists; a Map is an object.

    A Map with a key that is no text, or begins with `$`, is `{"$map": [[key, value], ...]}`.
    """
    return {name: _face(heap, stored) for name, stored in _public(heap)}


def fields_in_words(heap: Heap) -> dict[str, str]:
    """All public fields, each on one line that is cut. Costs no more for a collection that is long."""
    return {name: _in_words(heap, stored) for name, stored in _public(heap)}


def _public(heap: Heap) -> Iterator[tuple[str, Any]]:
    fields = heap.state(ROOT_ACTOR).fields
    return ((name, fields[name]) for name in sorted(fields) if not name.startswith("_"))


def _face(heap: Heap, stored: Any) -> Any:
    if not isinstance(stored, Tree):
        return face(heap.read(stored))
    items = [_item(heap, stored, item) for item in stored.walked(heap.page)]
    if not isinstance(stored, MapTree):
        return items
    if all(isinstance(key, str) and not key.startswith("$") for key, _ in items):
        return dict(items)
    return {"$map": items}


def _item(heap: Heap, tree: Tree, item: Any) -> Any:
    if isinstance(tree, MapTree):
        key, value = item
        return [face(key), face(heap.read(value))]
    return face(heap.read(item))


def _in_words(heap: Heap, stored: Any) -> str:
    if isinstance(stored, Tree) and len(stored) > FEW:
        if isinstance(stored, ListTree):
            last = _text(face(heap.read(stored.get(len(stored) - 1, heap.page))))
            return shortened(f"{counted(len(stored), 'item')}, the last one {last}", WIDTH)
        first = _text(_item(heap, stored, next(iter(stored.walked(heap.page)))))
        return shortened(f"{counted(len(stored), 'item')}, the first one {first}", WIDTH)
    return shortened(_text(_face(heap, stored)), WIDTH)


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
