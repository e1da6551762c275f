"""Operations held against each other: what a fiber did then and does now.

The one rule: content counts, bit for bit, and not where it is kept. So cells are compared by what is in them, and what
was erased is like anything. Of a failure the class and the message count, not the line of code: the opcode says which
argument is one, as what users keep may look like one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from struct import pack
from typing import Any, Final

from dataspace.values import Blob, CelledBlob, CelledList, CellRef, Erased, FrozenList
from dataspace.values.encoding import encode
from snapshots.tree import Tree
from vat.heap.opcodes import Op

_EXACT: Final = frozenset({int, str, bytes, bool, type(None)})
_LISTS: Final = frozenset({list, FrozenList, CelledList})

_FAILURE_AT: Final[Mapping[int, int]] = {
    Op.BEGIN: 5,
    Op.FAILED: 1,
    Op.BROKE: 2,
    Op.ANSWERED: 4,
    Op.UNDONE: 3,
    Op.RESUMED: 4,
}
"""Where a failure stands in an operation; in that of an answer only if it says so."""


def same(one: Any, other: Any, load: Callable[[CellRef], Any]) -> bool:
    """Whether two operations say the same. Loads the cells in them."""
    return one[0] == other[0] and alike(_counting(one), _counting(other), load)


def _counting(operation: Sequence[Any]) -> Sequence[Any]:
    """What counts of an operation."""
    kind, at = operation[0], _FAILURE_AT.get(operation[0], len(operation))
    if kind == Op.SUSPENDED:  # which promises are kept follows from what is in memory
        return [*operation[:5], *operation[7:]]
    if kind == Op.SENT and operation[3].get("succeeded") is False:  # an answer, which `Sending.reply` made
        message = operation[3]
        return [*operation[:3], {**message, "payload": _failing(message["payload"])}]
    if at >= len(operation) or (kind == Op.ANSWERED and operation[3]):
        return operation
    return [*operation[:at], _failing(operation[at]), *operation[at + 1 :]]


def _failing(failure: Mapping[str, Any]) -> list[Any]:
    """What counts of a failure."""
    return [failure["error"], failure["message"]]


def alike(one: Any, other: Any, load: Callable[[CellRef], Any]) -> bool:
    """Whether two stored values say the same. Loads the cells in them."""
    kind = type(one)
    if kind in _EXACT and kind is type(other):
        return bool(one == other)
    if kind in _LISTS and type(other) in _LISTS:
        return _all_alike(one, other, load)
    if kind is CellRef:
        one = load(one) if one.content is None else one.content
    if type(other) is CellRef:
        other = load(other) if other.content is None else other.content
    if isinstance(one, Erased) or isinstance(other, Erased):
        return True
    if isinstance(one, dict):
        if not isinstance(other, dict) or list(one) != list(other):
            return False
        return all(alike(one[name], other[name], load) for name in one)
    if isinstance(one, list | tuple):
        return isinstance(other, list | tuple) and _all_alike(one, other, load)
    if isinstance(one, Blob | CelledBlob):
        return (
            isinstance(other, Blob | CelledBlob)
            and one.media_type == other.media_type
            and alike(one.content, other.content, load)
        )
    if isinstance(one, Tree):  # of a new actor's field: one in a record has a name, or nothing in it
        return type(one) is type(other) and encode(one) == encode(other)
    if isinstance(one, int | str | bytes):  # an opcode, or a string of the runtime's
        return (
            isinstance(other, int | str | bytes) and isinstance(one, bool) == isinstance(other, bool) and one == other
        )
    if isinstance(one, float):
        return isinstance(other, float) and pack("d", one) == pack("d", other)  # bit for bit: -0.0 is not 0.0
    return type(one) is type(other) and bool(one == other)


def _all_alike(one: Sequence[Any], other: Sequence[Any], load: Callable[[CellRef], Any]) -> bool:
    if len(one) != len(other):
        return False
    for mine, its in zip(one, other, strict=True):
        kind = type(mine)
        if kind in _EXACT and kind is type(its):  # nearly everything is
            if mine != its:
                return False
        elif not alike(mine, its, load):
            return False
    return True
