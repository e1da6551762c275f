"""Operations held against each other, and in words: what a fiber did then and does now.

The one rule: content counts and not where it is kept. So cells are compared by what is in them, what was erased is like
anything, and of a failure the class and the message count, not the line of code.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from dataspace.drafts import Assertion, Statement
from dataspace.values import Blob, CelledBlob, CelledList, CellRef, Erased, FrozenList, render, thaw
from snapshots.tree import Tree
from vat.heap.fibers import FIRST, PLAIN
from vat.heap.opcodes import Op, Verb

_EXACT: Final = frozenset({int, str, bytes, bool, type(None)})
_LISTS: Final = frozenset({list, FrozenList, CelledList})
_LONGEST: Final = 200
"""Characters of a value in words."""

_BEFORE: Final = 60
"""Characters at their beginning and before their first difference that are shown of two texts."""


def same(one: Any, other: Any, load: Callable[[CellRef], Any]) -> bool:
    """Whether two operations say the same. Loads the cells in them."""
    if one[0] != other[0]:
        return False
    if one[0] == Op.SUSPENDED:  # which promises are kept follows from what is in memory
        one, other = [*one[:5], *one[7:]], [*other[:5], *other[7:]]
    return alike(one[1:], other[1:], load)


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
        names = ("error", "message") if "in" in one and "error" in one and "message" in one else one
        return all(alike(one[name], other[name], load) for name in names)
    if isinstance(one, list | tuple):
        return isinstance(other, list | tuple) and _all_alike(one, other, load)
    if isinstance(one, Blob | CelledBlob):
        return (
            isinstance(other, Blob | CelledBlob)
            and one.media_type == other.media_type
            and alike(one.content, other.content, load)
        )
    if isinstance(one, Tree):
        return type(one) is type(other) and one.count == other.count
    if isinstance(one, int | str | bytes):  # an opcode, or a string of the runtime's
        return (
            isinstance(other, int | str | bytes) and isinstance(one, bool) == isinstance(other, bool) and one == other
        )
    if isinstance(one, float):
        return isinstance(other, float) and (one == other or (one != one and other != other))
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


def facts_told(statement: Statement) -> str:
    """A statement in words."""
    if isinstance(statement, Assertion):
        return f"states {_cut(str(statement.fact))}"
    return f"retracts the fact {statement.handle.seq}.{statement.handle.operation}"


def told(operation: Sequence[Any], load: Callable[[CellRef], Any]) -> str:
    """An operation in words: "sets count to 3". Loads the cells in it."""
    kind, *args = operation
    words = _WORDS.get(kind)
    return f"does {Op(kind).name.lower()}" if words is None else words([_with_content(arg, load) for arg in args])


def apart(one: str, other: str) -> tuple[str, str]:
    """Two texts, of long ones what is around the first difference.

    >>> apart("sends " + "a" * 1000, "sends " + "a" * 1000 + "b")[1][-4:]
    'aaab'
    """
    same = 0
    while same < min(len(one), len(other)) and one[same] == other[same]:
        same += 1
    first = same - _BEFORE
    if first > _BEFORE and max(len(one), len(other)) > _LONGEST:
        one, other = f"{one[:_BEFORE]}…{one[first:]}", f"{other[:_BEFORE]}…{other[first:]}"
    return _cut(one), _cut(other)


def _with_content(value: Any, load: Callable[[CellRef], Any]) -> Any:
    """What is stored, as users read it: content in the place of cells."""
    try:
        return thaw(value, load)
    except Exception:  # noqa: BLE001  # it is for people, and says what can be said
        return value


def _shown(value: Any) -> str:
    if isinstance(value, Tree):
        return f"a collection of {value.count}"
    try:
        return render(value)
    except Exception:  # noqa: BLE001  # as above
        return repr(value)


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _call(name: str, args: Sequence[Any], keywords: Any) -> str:
    named = [f"{key}={_shown(value)}" for key, value in dict(keywords).items()]
    return f"{name}({', '.join([*map(_shown, args), *named])})"


def _waits(args: Sequence[Any]) -> str:
    mode, *promises = args[3]
    how = "the first of " if mode == FIRST else ""
    until = f", or {promises.pop()}" if mode in PLAIN else ""
    return f"waits for {how}promise{'s' if len(promises) > 1 else ''} {', '.join(map(str, promises))}{until}"


_WORDS: Final[dict[int, Callable[[Sequence[Any]], str]]] = {
    Op.SET: lambda args: f"sets {args[1]} of actor {args[0]} to {_shown(args[2])}",
    Op.CHANGE: lambda args: f"changes {args[1]} of actor {args[0]}: " + _call(Verb(args[2]).name.lower(), args[3:], {}),
    Op.SPAWNED: lambda args: f"spawns {args[1]} as actor {args[0]}",
    Op.COUNTED: lambda args: f"has taken the number {args[1]} of a {args[0]} for something that was undone",
    Op.MADE: lambda args: f"makes promise {args[0]} ({' '.join(map(str, args[1]))})",
    Op.HELD: lambda args: f"keeps promise {args[0]}",
    Op.REACTS: lambda args: f"has something react to promise {args[0]}",
    Op.FULFILLED: lambda args: f"fulfils promise {args[0]} with {_shown(args[1])}",
    Op.BROKE: lambda args: f"breaks promise {args[0]} with {_shown(args[1])}",
    Op.SENT: lambda args: f"sends {_shown(args[2])} to another session",
    Op.WANTED: lambda args: "wants " + _call(f"{args[2]}.{args[3]}", args[4], args[5]),
    Op.ENDED: lambda args: f"gives up effect {args[0]}",
    Op.STATED: lambda args: "states a fact",
    Op.RETRACTED: lambda args: f"retracts the fact {args[0]}.{args[1]}",
    Op.HANDED: lambda args: f"hands out a ref to actor {args[0]}",
    Op.NARROWED: lambda args: f"narrows a ref to actor {args[1]}",
    Op.REVOKED: lambda args: f"revokes the ref {args[0]}",
    Op.SUBSCRIBED: lambda args: f"observes {args[1]}",
    Op.UNSUBSCRIBED: lambda args: f"ends subscription {args[0]}",
    Op.VIEWED: lambda args: f"takes a view of {args[1]} of actor {args[0]}",
    Op.SEEDED: lambda args: "asks for randomness",
    Op.UNDONE: lambda args: f"calls {args[1]} of actor {args[0]}, which fails with {_shown(args[2])}",
    Op.SUSPENDED: _waits,
    Op.CALLED: lambda args: "starts " + _call(f"{args[1]} of actor {args[0]}", args[2], args[3]),
    Op.CLOCKED: lambda args: "reckons a time from now",
    Op.LOOKED: lambda args: f"looks whether effect {args[0]} has begun",
    Op.FAILED: lambda args: f"fails with {_shown(args[0])}",
    Op.RETURNED: lambda args: "comes to its end",
}
