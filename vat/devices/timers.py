"""Timers: the device that every host has under the name `timer`, and the deadlines that wait.

    timer.until(at)      comes to None when it is `at`, in seconds since 1970; never, when that is inf

An actor says `self.sleep(seconds)`, which wants `until` the clock's time and so many seconds. So the deadline is
on record from the moment in which it is wanted: after a restart a timer goes on to the same one, and one that passed
meanwhile comes at once.

The one rule: deadlines are wall time, as the host's clock tells it. Set forward, it lets timers come early; set back,
late. It is looked at again every few seconds, since a machine that sleeps, or whose clock is set, tells nobody. A clock
that is moved by hand, as tests do it, tells: `clock.on_move(hear)` has `hear()` called whenever that happens.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final, Generic, TypeVar

import trio
from sortedcontainers import SortedDict

from vat.devices.devices import Effect, effect
from vat.heap.deadlines import is_time

LOOK: Final = 5.0
"""Seconds between two looks at the clock while a timer waits: how late one may come when the clock is set forward."""

AT_ONCE: Final = 100
"""Timers of the same moment whose tasks run at once; the others follow."""

J = TypeVar("J")


class Timer:
    """A device whose effects have their outcome at a time, whatever restarts lie between."""

    @effect(on_crash="retry", concurrency=AT_ONCE)
    async def until(self, effect: Effect, at: float) -> None:
        """None, not before `at` (seconds since 1970). Raises `TypeError` or `ValueError` for what is no time."""
        if type(at) is not float and type(at) is not int:
            raise TypeError(f"timer.until(at): at is in seconds since 1970, a number, and not a {type(at).__name__}")
        if not is_time(at):
            shown = at if type(at) is float else "a number of that many digits"
            raise ValueError(f"timer.until(at): {shown} is no time; give seconds since 1970, or inf for never")


class Deadlines(Generic[J]):
    """What waits for its time, in the order of deadlines: one task for all of it.

    clock: microseconds since 1970. due: takes what is due, by the key that it was added with.
    """

    def __init__(self, clock: Callable[[], int], due: Callable[[J], None]) -> None:
        self._clock = clock
        self._due = due
        self._waiting: SortedDict[tuple[float, J], None] = SortedDict()
        self._earlier = trio.Event()

    def lies_ahead(self, at: float) -> bool:
        """Whether a time has not come yet."""
        return at * 1_000_000 > self._clock()

    def add(self, at: float, key: J) -> None:
        """Have `due(key)` called at a time. Costs O(log n)."""
        self._waiting[at, key] = None
        if self._waiting.keys()[0] == (at, key):
            self._earlier.set()

    def discard(self, at: float, key: J) -> bool:
        """Forget what waits. False when it does not wait (any more)."""
        return self._waiting.pop((at, key), self) is None

    def clear(self) -> None:
        """Forget all."""
        self._waiting.clear()

    async def run(self) -> None:
        """Tell what is due, for ever."""
        on_move: Callable[[Callable[[], None]], Callable[[], None]] | None = getattr(self._clock, "on_move", None)
        if on_move is None:
            await self._tell()
            return
        token = trio.lowlevel.current_trio_token()
        ended = on_move(lambda: token.run_sync_soon(self._look))
        try:
            await self._tell()
        finally:
            ended()

    def _look(self) -> None:
        """Look at the clock now."""
        self._earlier.set()

    async def _tell(self) -> None:
        while True:
            self._earlier = trio.Event()
            pause = LOOK
            while self._waiting:
                at, key = self._waiting.keys()[0]
                if self.lies_ahead(at):
                    pause = min(LOOK, at - self._clock() / 1_000_000)
                    break
                del self._waiting[at, key]
                self._due(key)
            with trio.move_on_after(pause if self._waiting else math.inf):
                await self._earlier.wait()
