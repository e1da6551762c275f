"""Moving: what is stored in one collection of an actor is put into another as it is stored, with the very same cells.

What is read and written again is new content: its cells are new ones, beside those that it was read from. Content that
moves is there once, and is gone from both places when it is erased.

The one rule: what moves stays in its vat; a cell is named by the records of that.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from dataspace.values import Value
from vat.heap.opcodes import Verb
from vat.heap.stored import mapped
from vat.objects.collections import List
from vat.objects.views import place


class Kept(NamedTuple):
    """A value in stored form; for `append_kept` and `append_item`, and nothing else."""

    stored: Value
    crank: Any

    def items(self) -> list[Kept]:
        """Those of a list, each as it is stored."""
        assert isinstance(self.stored, list)
        return [Kept(item, self.crank) for item in self.stored]


def kept(source: List[Any], index: int) -> Kept:
    """What stands in a list, as it is stored. Raises `IndexError`."""
    tree, heap = source._tree, source._heap
    return Kept(tree.get(place(index, tree.count), heap.page), source._crank)


def append_kept(target: List[Any], item: Mapping[str, Any]) -> None:
    """Append a dict, in which what is `Kept` stays as it is stored. Raises `NotAValue`."""
    crank, what = target._crank, target._field.inside
    stored = {}
    for name, value in item.items():
        if isinstance(value, Kept):
            assert value.crank is crank, "what moves stays in its vat"
            stored[name] = value.stored
        else:
            stored[name] = crank.keep(value, f"{what}.{name}")
    target._change(Verb.APPEND, mapped(stored))


def append_item(target: List[Any], item: Kept) -> None:
    """Append what stands elsewhere, as it is stored."""
    assert item.crank is target._crank, "what moves stays in its vat"
    target._change(Verb.APPEND, item.stored)
