"""Cycles: whether a promise waits for another one, which would then wait for itself.

Both ways are gone at once, a step at a time: from the one to all that waits for it, and from the other to all that it
waits for. As soon as one of them has no more to go, there is no cycle. So a long chain of waits costs little to build
from either end, and joining two costs the shorter of both.

The one rule: only the way from what is waited for says that there is a cycle; the other one goes through whatever a
fiber may wait for, and only says that there is none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from vat.heap.entries import PENDING, REACTIONS, SETTLER, STATE, Finds, Resend, Then, comes_of
from vat.heap.fibers import LIMITED, METHOD, RESULT, WAITING
from vat.heap.opcodes import To

_OVER: Final = object()


def cycle(heap: Finds, goal: int, promise: int) -> str | None:
    """How `promise` waits for `goal`, in words, if it does.

    A fiber that waits for the first of several waits for `goal` only if all of them do. Costs twice the shorter one of
    what waits for `goal` and what `promise` waits for; if it comes to `goal`, what waits for that.
    """
    if promise == goal:
        return f"it is promise {goal}"
    if not _next(heap.find, promise):  # most wait for the outside
        return None
    came: dict[int, tuple[int, str]] = {goal: (0, "")}
    waiting = _waiting(heap.find, goal, came)
    for other in _awaited(heap.find, promise):
        if other == goal:
            for _ in waiting:
                pass
            break
        if next(waiting, _OVER) is _OVER:
            break
    return _told(came, goal, promise) if promise in came else None


def _waiting(find: Callable[[str, int], Any], goal: int, came: dict[int, tuple[int, str]]) -> Iterator[None]:
    """All that waits for `goal`, put into `came` with what it waits for and how; a reaction at each step."""
    todo = [goal]
    while todo:
        here = todo.pop()
        entry = find("promises", here)
        for reaction in () if entry is None else entry[REACTIONS]:
            yield
            kind = reaction[0]
            if kind == To.FOLLOW:
                then, how = reaction[1], "follows"
            elif kind == To.THEN:
                then, how = reaction[Then.RESULT], "comes of a reaction to"
            elif kind == To.RESEND:
                then, how = reaction[Resend.RESULT], "comes of a message that is to carry"
            elif kind == To.FIBER:
                fiber = find("fibers", reaction[1])
                then, how = fiber[RESULT], f"comes of fiber {reaction[1]} ({fiber[METHOD]}), which waits for"
                if fiber[WAITING][0] in LIMITED and not all(other in came for other in fiber[WAITING][1:]):
                    continue  # it is met again by way of the others
            else:
                continue
            if then not in came:
                came[then] = (here, how)
                todo.append(then)


def _awaited(find: Callable[[str, int], Any], promise: int) -> Iterator[int]:
    """All that a promise may wait for, one at each step."""
    todo, seen = [promise], {promise}
    while todo:
        for other in _next(find, todo.pop()):
            yield other
            if other not in seen:
                seen.add(other)
                todo.append(other)


def _next(find: Callable[[str, int], Any], promise: int) -> Sequence[int]:
    """What a promise waits for itself."""
    entry = find("promises", promise)
    if entry is None:
        return ()
    if entry[STATE] == PENDING and entry[SETTLER][0] == "fiber":
        fiber = find("fibers", entry[SETTLER][1])
        waits: Sequence[int] = () if fiber is None else fiber[WAITING][1:]
        return waits
    other = comes_of(entry)
    return () if other is None else (other,)


def _told(came: dict[int, tuple[int, str]], goal: int, promise: int) -> str:
    said, here = [f"promise {promise}"], promise
    while here != goal:
        here, how = came[here]
        said.append(f"{how} promise {here}")
    return " ".join(said[:2] + [f"which {part}" for part in said[2:]])
