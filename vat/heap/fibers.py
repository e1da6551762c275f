"""Fibers in the heap: what each waits for, and which promises are kept for it. Nothing of a coroutine is stored.

An entry of `fibers` is `[actor, method, version, promise, seq, operation, waiting, parts]`: whose method, in which
version of the type, the promise for the result, the moment at which the last part began, what is waited for, and how
many parts there were. Each part names in the log the one before it, so that the heap does not grow with them. `waiting`
is `[mode, promises…]`; while the fiber runs it stands for the wait that is over.

`owned` are promises that are kept, though they are settled and nothing in the heap refers to them: a fiber may have
them in its locals.

The one rule: a promise that is not settled and that a fiber waits for has a reaction to that fiber, and no other has.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from dataspace.values import FrozenList
from vat.heap import indexes
from vat.heap.entries import BROKEN, KEPT, REACTIONS, STATE, Then, with_reactions
from vat.heap.heap import Heap
from vat.heap.opcodes import To

ALL, FIRST, EVERY, ALL_WITHIN, EVERY_WITHIN = range(5)
"""What ends a wait: all are settled; one is; all have values, or one is broken; and the same two, of all but the last,
or the last one is settled. Numbers are for ever."""

LIMITED: Final = {FIRST, ALL_WITHIN, EVERY_WITHIN}
"""Waits that may be over by their last promise alone: a limit."""

PLAIN: Final = {ALL_WITHIN: ALL, EVERY_WITHIN: EVERY}
"""What they are without that."""

ACTOR, METHOD, VERSION, RESULT, SEQ, OPERATION, WAITING, PARTS = range(8)
"""The places of an entry."""

_TO: Final = To.FIBER


def suspended(
    heap: Heap,
    fiber: int,
    seq: int,
    operation: int,
    waiting: Sequence[int],
    kept: Sequence[int],
    let_go: Sequence[int],
    actor: int = 0,
    method: str = "",
    version: int = 0,
    result: int = 0,
) -> None:
    """A part ends with a wait. The last four are given for a new fiber."""
    if actor:
        heap.counted("fiber", fiber)
        parts = 1
    else:
        actor, method, version, result, _, _, _, parts = heap.find("fibers", fiber)
        parts += 1
    entry = FrozenList([actor, method, version, result, seq, operation, FrozenList(waiting), parts])
    heap.put_entry("fibers", fiber, entry)
    reaction = FrozenList([_TO, fiber])
    for promise in waiting[1:]:
        awaited = heap.find("promises", promise)
        if awaited[STATE] < KEPT:
            heap.put_entry("promises", promise, with_reactions(awaited, [*awaited[REACTIONS], reaction]))
    for promise in kept:
        indexes.owns(heap, fiber, promise)
        heap.put_entry("owned", promise, fiber)
    _let_go(heap, fiber, let_go)


def resumed(heap: Heap, fiber: int, seq: int, operation: int, failure: Any = None) -> None:
    """The next part begins: what is settled of what it waited for is not kept for it any more."""
    waits = heap.find("fibers", fiber)[WAITING][1:]
    _let_go(heap, fiber, [promise for promise in waits if _ignored(heap, fiber, promise)])


def returned(heap: Heap, fiber: int, let_go: Sequence[int]) -> None:
    """It is over."""
    for promise in heap.find("fibers", fiber)[WAITING][1:]:
        _ignored(heap, fiber, promise)
    heap.drop("fibers", fiber)
    _let_go(heap, fiber, let_go)


def _ignored(heap: Heap, fiber: int, promise: int) -> bool:
    """A fiber waits for a promise no more. Whether that is settled."""
    entry = heap.find("promises", promise)
    if entry is None or entry[STATE] >= KEPT:
        return True
    reactions = entry[REACTIONS]
    others = [reaction for reaction in reactions if reaction[0] != _TO or reaction[1] != fiber]
    if len(others) < len(reactions):
        heap.put_entry("promises", promise, with_reactions(entry, others))
    return False


def _let_go(heap: Heap, fiber: int, promises: Sequence[int]) -> None:
    if not promises or not heap.may_have("owned"):
        return
    for promise in promises:
        if heap.find("owned", promise) == fiber:
            indexes.owns_no_more(heap, fiber, promise)
            heap.drop("owned", promise)
            heap.loosen(promise)


def outcomes(heap: Heap, waiting: Sequence[int]) -> list[Sequence[Any] | None]:
    """The entries of the promises that are waited for; None for those without an outcome."""
    found: list[Sequence[Any] | None] = []
    for promise in waiting[1:]:
        entry = heap.find("promises", promise)
        found.append(None if entry is None or entry[STATE] < KEPT else entry)
    return found


def over(mode: int, outcomes: Sequence[Sequence[Any] | None]) -> bool:
    """Whether a wait is over."""
    if mode in PLAIN:
        return outcomes[-1] is not None or over(PLAIN[mode], outcomes[:-1])
    if None not in outcomes:
        return True
    if mode == ALL:
        return False
    return any(entry is not None and (mode == FIRST or entry[STATE] == BROKEN) for entry in outcomes)


def waiting_for(heap: Heap, promise: int) -> list[int]:
    """The fibers that wait for a promise, through whatever comes of it, or have it in a local: the nearest first."""
    found: dict[int, None] = {}
    todo, seen = [promise], {promise}
    for here in todo:  # it grows meanwhile
        entry = heap.find("promises", here)
        fibers = [heap.find("owned", here)]
        further = []
        for reaction in () if entry is None else entry[REACTIONS]:
            if reaction[0] == To.FOLLOW:
                further.append(reaction[1])
            elif reaction[0] == To.THEN:
                further.append(reaction[Then.RESULT])
            elif reaction[0] == _TO:
                fibers.append(reaction[1])
        for number in fibers:
            if number is not None and number not in found:
                found[number] = None
                further.append(heap.find("fibers", number)[RESULT])
        todo += [other for other in dict.fromkeys(further) if other not in seen]
        seen.update(further)
    return list(found)
