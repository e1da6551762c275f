"""The fields of a session's first actor in JSON: what can be shown of a type whose code is not here.

The one rule: read, never run. A field is what the heap has under its name; one that begins with `_` is its type's own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from keeve.faces.values import face
from snapshots.keyed import MapTree
from snapshots.tree import Tree
from vat.heap.heap import ROOT_ACTOR, Heap


def fields_face(heap: Heap) -> dict[str, Any]:
    """All public fields in JSON, whole. A List and a Set are lists; a Map is an object.

    A Map with a key that is no text, or begins with `$`, is `{"$map": [[key, value], ...]}`.
    """
    return {name: field_face(heap, stored) for name, stored in public_fields(heap)}


def public_fields(heap: Heap) -> Iterator[tuple[str, Any]]:
    """The public fields as they are stored, by name."""
    fields = heap.state(ROOT_ACTOR).fields
    return ((name, fields[name]) for name in sorted(fields) if not name.startswith("_"))


def field_face(heap: Heap, stored: Any) -> Any:
    """One of them in JSON."""
    return joined(stored, list(items_of(heap, stored)))


def items_of(heap: Heap, stored: Any) -> Iterator[Any]:
    """The items of one of them in JSON, each read when it is asked for; one that is no collection is the only item."""
    if not isinstance(stored, Tree):
        return iter((face(heap.read(stored)),))
    return (item_face(heap, stored, item) for item in stored.walked(heap.page))


def joined(stored: Any, items: list[Any]) -> Any:
    """The field in JSON whose items these are."""
    if not isinstance(stored, Tree):
        return items[0]
    if not isinstance(stored, MapTree):
        return items
    if all(isinstance(key, str) and not key.startswith("$") for key, _ in items):
        return dict(items)
    return {"$map": items}


def item_face(heap: Heap, tree: Tree, item: Any) -> Any:
    """An item of a collection in JSON; of a Map its key and its value."""
    if isinstance(tree, MapTree):
        key, value = item
        return [face(key), face(heap.read(value))]
    return face(heap.read(item))
