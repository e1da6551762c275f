"""The fields of a session's first actor in words: each on one line, for people (`keeve.faces` has them in JSON).

The one rule: what is long costs no more than what is short.
"""

from __future__ import annotations

import json
from typing import Any, Final

from keeve.faces import face, field_face, item_face, public_fields
from snapshots.lists import ListTree
from snapshots.tree import Tree
from vat.heap.heap import Heap

WIDTH: Final = 100
"""Characters of a field that people are shown."""
FEW: Final = 50
"""Items of a collection that are read for people; of a longer one they are told how many, and the last or first."""


def fields_in_words(heap: Heap) -> dict[str, str]:
    """All public fields, each on one line that is cut. Costs no more for a collection that is long."""
    return {name: _in_words(heap, stored) for name, stored in public_fields(heap)}


def _in_words(heap: Heap, stored: Any) -> str:
    if isinstance(stored, Tree) and len(stored) > FEW:
        if isinstance(stored, ListTree):
            last = _text(face(heap.read(stored.get(len(stored) - 1, heap.page))))
            return _cut(f"{len(stored)} items, the last one {last}")
        first = _text(item_face(heap, stored, next(iter(stored.walked(heap.page)))))
        return _cut(f"{len(stored)} items, the first one {first}")
    return _cut(_text(field_face(heap, stored)))


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _cut(line: str) -> str:
    line = " ".join(line.split())
    return line if len(line) <= WIDTH else f"{line[: WIDTH - 1]}…"
