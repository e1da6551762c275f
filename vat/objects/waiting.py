"""Waiting for promises in `async def` methods: for one (`await promise`), for all of some, or for a time at most.

What is awaited yields itself to who runs the method: a `Promise`, or a `Wait` for several. It is sent what came of
each, in order: whether it succeeded, and the value or the exception; None for what has no outcome yet.

The one rule: only promises are waited for, since nothing else survives the process.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Generator, Sequence
from typing import Any, ClassVar

from dataspace import values
from dataspace.errors import KeeveError
from vat.heap.fibers import ALL, ALL_WITHIN, EVERY, EVERY_WITHIN, FIRST
from vat.heap.refs import Promise, current


class TimeLimit(KeeveError, TimeoutError, quotes=False):
    """What was waited for did not come within the time that `within` gave it."""

    def __init__(self, seconds: float) -> None:
        super().__init__(
            f"nothing came of it within {seconds:g} seconds, so it was given up: ask again, or give it longer"
        )
        self.seconds = seconds


class NotAwaitable(KeeveError, TypeError, quotes=False):
    """A fiber awaited something that is no promise."""

    usage: ClassVar[bool] = True

    def __init__(self, what: object) -> None:
        if inspect.iscoroutine(what):
            super().__init__(
                f"a coroutine ({what.__qualname__}) is no promise, and gather(...) and within(...) wait for promises: "
                "await it by itself, or make what it does a public async method and start that, "
                "near(self.ref).method(...), which gives a promise. A limit for several is "
                "within(seconds, gather(...)), and for calls of tools within(seconds, self.tools.run_all(calls))"
            )
            return
        if isinstance(what, Gathered):
            super().__init__(
                "what gather(...) gives is no promise, and cannot be gathered again: give all of the promises to one "
                "gather(...), or gather in a public async method and start that, near(self.ref).method(...)"
            )
            return
        super().__init__(
            f"{_named(what)} cannot be awaited in an actor: only promises can, since a fiber outlives the process. "
            "Call a device for what touches the world, self.device(name).method(...); wait with self.sleep(seconds); "
            "await another async method of an actor as a coroutine, or start it with near(ref)"
        )


class Wait:
    """Several promises that are waited for at once; `mode` says what ends it (`vat.heap.fibers`)."""

    __slots__ = ("mode", "promises")

    def __init__(self, mode: int, promises: Sequence[Promise]) -> None:
        self.mode = mode
        self.promises = promises

    def __await__(self) -> Generator[Wait, Any, Any]:
        return (yield self)


class Gathered(Wait):
    """What `gather` gives."""

    __slots__ = ("failures",)

    def __init__(self, promises: Sequence[Promise], failures: bool) -> None:
        super().__init__(ALL if failures else EVERY, promises)
        self.failures = failures

    def __await__(self) -> Generator[Wait, Any, Any]:
        return self.made_of((yield self))

    def made_of(self, outcomes: Sequence[Any]) -> Any:
        """What it comes to. Raises what broke the first one, unless its failures are among its values."""
        broken = None
        if not self.failures:
            broken = next((outcome[1] for outcome in outcomes if outcome is not None and not outcome[0]), None)
        if broken is None:
            return self.came(outcomes)
        try:
            raise broken
        finally:
            del broken, outcomes  # no circle with the traceback, as in `Promise`

    def came(self, outcomes: Sequence[tuple[bool, Any]]) -> list[Any]:
        """Its value, when all is over."""
        return [value for _, value in outcomes]


def gather(*promises: Any, failures: bool = False) -> Any:
    """Wait for all of these promises, or for those of one list; `await` gives the list of their values, in order.

    As soon as one is broken its error is raised, the first in order if there are several; the others go on, and can be
    awaited again. With `failures` it waits for all, and an exception stands in the place of each that broke. Raises
    `NotAwaitable` for what is no promise.
    """
    if len(promises) == 1 and isinstance(promises[0], list | tuple):
        promises = tuple(promises[0])
    _promises(promises)
    return Gathered(promises, failures)


async def within(seconds: float, promise: Any) -> Any:
    """What comes of a promise, or of what `gather` gives, within so many seconds; needs the device `timer`, which every
    host has.

    After that it is given up as `cancel` does it, and `TimeLimit` is raised; of `gather(..., failures=True)` it stands
    in the place of each that was not over. `math.inf` is no limit. When the timer breaks, that error is raised and
    nothing is given up. Raises `NotAwaitable` for no promise, and `TypeError` or `ValueError` for no number of seconds.
    """
    if isinstance(promise, Gathered):
        return await _all_within(seconds, promise)
    _promises((promise,))
    crank = current("within(seconds, promise)")
    if seconds == math.inf:
        return await promise
    timer = crank.timer(seconds)
    outcome, over = await Wait(FIRST, (promise, timer))
    if outcome is None and not over[0]:
        try:
            raise over[1]
        finally:
            del over  # no circle with the traceback, as in `Promise`
    error = TimeLimit(seconds)
    crank.cancel(promise if outcome is None else timer, error)
    # That was a part of its own, which stands even if the caller does not catch what is raised here.
    await Wait(ALL, (timer,))
    succeeded, value = (False, error) if outcome is None else outcome
    if succeeded:
        return value
    try:
        raise value
    finally:
        del value, error, outcome  # no circle with the traceback, as in `Promise`


async def _all_within(seconds: float, gathered: Gathered) -> Any:
    crank = current("within(seconds, gather(...))")
    if seconds == math.inf:
        return await gathered
    timer = crank.timer(seconds)
    mode = ALL_WITHIN if gathered.failures else EVERY_WITHIN
    *outcomes, over = await Wait(mode, (*gathered.promises, timer))
    ended = None not in outcomes or (
        mode == EVERY_WITHIN and any(came is not None and not came[0] for came in outcomes)
    )
    if not ended and not over[0]:
        try:
            raise over[1]
        finally:
            del over  # no circle with the traceback, as in `Promise`
    error = TimeLimit(seconds)
    if ended:
        crank.cancel(timer, error)
    else:
        for promise, outcome in zip(gathered.promises, outcomes, strict=True):
            if outcome is None:
                crank.cancel(promise, error)
        outcomes = [(False, error) if outcome is None else outcome for outcome in outcomes]
    await Wait(ALL, (timer,))  # so that it stands, as above
    try:
        return gathered.made_of(outcomes)
    finally:
        del outcomes, error  # no circle with the traceback, as in `Promise`


def _promises(promises: Sequence[Any]) -> None:
    for promise in promises:
        if not isinstance(promise, values.Promise):
            for other in promises:
                if inspect.iscoroutine(other):
                    other.close()  # Python would warn that nobody awaited it, which says less than the error does
            raise NotAwaitable(promise)


def _named(what: object) -> str:
    kind = type(what)
    if what is None:
        return "None (a bare yield, as of asyncio.sleep(0))"
    if kind.__module__.startswith("trio._"):
        return "what trio waits for"  # the class is trio's own affair, and tells nobody anything
    return f"{kind.__module__}.{kind.__qualname__}"
