"""Operations in words: what a fiber did then and does now, for whoever is told that these differ.

The one rule: words are for who asks, and have an outline for logs, in which there is no content.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from dataspace.drafts import Assertion, Statement
from dataspace.values import CellRef, render, thaw
from snapshots.tree import Tree
from vat.heap.fibers import FIRST, PLAIN
from vat.heap.opcodes import Op, Verb

Show: TypeAlias = Callable[[Any], str]
"""Says what a value is."""


class Shower(NamedTuple):
    """Says what stands in an operation: a value, a failure, a pattern, the name by which an argument was given.

    Which of these something is, the operation decides, and never what is in it: a value may look like a failure.
    """

    value: Show
    failure: Show
    pattern: Show
    keyword: Show


_LONGEST: Final = 200
"""Characters of a value in words."""

_BEFORE: Final = 60
"""Characters at their beginning and before their first difference that are shown of two texts."""


class Words(NamedTuple):
    """What was done: as it is said to who asks, and with no content in it, for logs."""

    whole: str
    outline: str


def plainly(words: str) -> Words:
    """Words in which there is no content."""
    return Words(words, words)


def facts_told(statement: Statement) -> Words:
    """A statement in words."""
    if isinstance(statement, Assertion):
        return Words(f"states {_cut(str(statement.fact))}", f"states a fact ({statement.fact.label} . _)")
    return plainly(f"retracts the fact {statement.handle.seq}.{statement.handle.operation}")


def told(operation: Sequence[Any], load: Callable[[CellRef], Any]) -> Words:
    """An operation in words: "sets count to 3". Loads the cells in it."""
    kind, *args = operation
    words = _WORDS.get(kind)
    if words is None:
        return plainly(f"does {Op(kind).name.lower()}")
    given = [_with_content(arg, load) for arg in args]
    return Words(words(given, _WHOLE), words(given, _OUTLINE))


def apart(one: Words, other: Words) -> tuple[Words, Words]:
    """What two have done, of long texts what is around the first difference."""
    shown = _apart(one.whole, other.whole)
    return Words(shown[0], one.outline), Words(shown[1], other.outline)


def _apart(one: str, other: str) -> tuple[str, str]:
    """Two texts, of long ones what is around the first difference.

    >>> _apart("sends " + "a" * 1000, "sends " + "a" * 1000 + "b")[1][-4:]
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


def _outlined(value: Any) -> str:
    """What a value is, without what is in it."""
    if isinstance(value, str | bytes | dict | list | tuple | Tree):
        what, size = next(words for kind, words in _SIZED.items() if isinstance(value, kind)), _size(value)
        return f"{what} of {size}"
    return "nothing" if value is None else f"a value ({type(value).__name__})"


def _class_of(failure: Any) -> str:
    """The name of the class of a failure; what it said is content."""
    name = failure.get("error") if isinstance(failure, dict) else None
    return name if isinstance(name, str) else _outlined(failure)


_WHOLE: Final = Shower(value=_shown, failure=_shown, pattern=str, keyword=str)
_OUTLINE: Final = Shower(value=_outlined, failure=_class_of, pattern=_outlined, keyword=lambda _: "…")


def _size(value: Any) -> int:
    return value.count if isinstance(value, Tree) else len(value)


_SIZED: Final[Mapping[type | tuple[type, ...], str]] = {
    str: "a text",
    bytes: "bytes",
    dict: "a dict",
    (list, tuple): "a list",
    Tree: "a collection",
}


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _call(show: Shower, name: str, args: Sequence[Any], keywords: Any) -> str:
    named = [f"{show.keyword(key)}={show.value(value)}" for key, value in dict(keywords).items()]
    return f"{name}({', '.join([*map(show.value, args), *named])})"


def _waits(args: Sequence[Any]) -> str:
    mode, *promises = args[3]
    how = "the first of " if mode == FIRST else ""
    until = f", or {promises.pop()}" if mode in PLAIN else ""
    return f"waits for {how}promise{'s' if len(promises) > 1 else ''} {', '.join(map(str, promises))}{until}"


_WORDS: Final[dict[int, Callable[[Sequence[Any], Shower], str]]] = {
    Op.SET: lambda args, show: f"sets {args[1]} of actor {args[0]} to {show.value(args[2])}",
    Op.CHANGE: lambda args, show: (
        f"changes {args[1]} of actor {args[0]}: " + _call(show, Verb(args[2]).name.lower(), args[3:], {})
    ),
    Op.SPAWNED: lambda args, show: f"spawns {args[1]} as actor {args[0]}",
    Op.COUNTED: lambda args, show: f"has taken the number {args[1]} of a {args[0]} for something that was undone",
    Op.MADE: lambda args, show: f"makes promise {args[0]} ({' '.join(map(str, args[1]))})",
    Op.HELD: lambda args, show: f"keeps promise {args[0]}",
    Op.REACTS: lambda args, show: f"has something react to promise {args[0]}",
    Op.FULFILLED: lambda args, show: f"fulfils promise {args[0]} with {show.value(args[1])}",
    Op.BROKE: lambda args, show: f"breaks promise {args[0]} with {show.failure(args[1])}",
    Op.SENT: lambda args, show: f"sends {show.value(args[2])} to another session",
    Op.WANTED: lambda args, show: "wants " + _call(show, f"{args[2]}.{args[3]}", args[4], args[5]),
    Op.ENDED: lambda args, show: f"gives up effect {args[0]}",
    Op.STATED: lambda args, show: "states a fact",
    Op.RETRACTED: lambda args, show: f"retracts the fact {args[0]}.{args[1]}",
    Op.HANDED: lambda args, show: f"hands out a ref to actor {args[0]}",
    Op.NARROWED: lambda args, show: f"narrows a ref to actor {args[1]}",
    Op.REVOKED: lambda args, show: f"revokes the ref {args[0]}",
    Op.SUBSCRIBED: lambda args, show: f"observes {show.pattern(args[1])}",
    Op.UNSUBSCRIBED: lambda args, show: f"ends subscription {args[0]}",
    Op.VIEWED: lambda args, show: f"takes a view of {args[1]} of actor {args[0]}",
    Op.SEEDED: lambda args, show: "asks for randomness",
    Op.UNDONE: lambda args, show: f"calls {args[1]} of actor {args[0]}, which fails with {show.failure(args[2])}",
    Op.SUSPENDED: lambda args, show: _waits(args),
    Op.CALLED: lambda args, show: "starts " + _call(show, f"{args[1]} of actor {args[0]}", args[2], args[3]),
    Op.CLOCKED: lambda args, show: "reckons a time from now",
    Op.LOOKED: lambda args, show: f"looks whether effect {args[0]} has begun",
    Op.FAILED: lambda args, show: f"fails with {show.failure(args[0])}",
    Op.RETURNED: lambda args, show: "comes to its end",
}
