"""Awaiting: a coroutine runs on to its next wait, and what it cannot wait for is raised at that `await`.

The one rule: nothing is changed here but what the user's own code changes.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from dataspace import values
from vat.crank.fiber import Fiber
from vat.crank.promises import Promises
from vat.errors import PromiseCycle, PromiseGone
from vat.heap.cycles import cycle
from vat.heap.entries import PENDING, SETTLER, STATE
from vat.heap.fibers import LIMITED
from vat.heap.refs import Promise
from vat.objects.waiting import NotAwaitable, Wait


def drive(crank: Promises, fiber: Fiber, result: int, sent: Any, error: BaseException | None = None) -> Any:
    """Go on to the next wait, which is given. Raises `StopIteration`, or what the user's code raises.

    `result` is the promise of what it returns; 0 when it has none yet, so that nothing can wait for it.
    """
    coroutine, run = fiber.coroutine, fiber.context.run
    hooks = sys.get_asyncgen_hooks()
    if hooks.firstiter is not None:  # an event loop would take the user's async generators for its own
        sys.set_asyncgen_hooks(None, None)
    try:
        wait = run(coroutine.send, sent) if error is None else run(coroutine.throw, error)
        while (problem := _problem(crank, wait, result)) is not None:
            wait = run(coroutine.throw, problem)
        return wait
    finally:
        if hooks.firstiter is not None:
            sys.set_asyncgen_hooks(*hooks)


def promises_of(wait: Any) -> Sequence[Promise]:
    """What is waited for."""
    return wait.promises if isinstance(wait, Wait) else (wait,)


def _problem(crank: Promises, wait: Any, result: int) -> Exception | None:
    """Why what was awaited cannot be waited for."""
    if not isinstance(wait, (values.Promise, Wait)):  # each await asks, and a union is made each time
        abort = getattr(wait, "abort_func", None)
        if callable(abort):  # of trio: whatever was to wake the task must forget it
            with suppress(Exception):
                abort(_nobody)
        return NotAwaitable(wait)
    promises = promises_of(wait)
    try:
        entries = [crank.entry(promise) for promise in promises]
    except PromiseGone as error:
        return error
    if result:
        if len(entries) == 1 and entries[0][STATE] == PENDING and entries[0][SETTLER][0] == "effect":  # as most do
            return None
        ways = [cycle(crank.heap, result, promise.id) for promise in promises]
        first = isinstance(wait, Wait) and wait.mode in LIMITED
        found = [way for way in ways if way is not None]
        if found and (not first or len(found) == len(ways)):
            return PromiseCycle(
                f"this fiber would wait for itself: {found[0]}; wait for something that comes without it"
            )
    return None


def _nobody(*args: Any) -> None:
    """Stands for what would raise trio's `Cancelled`."""
