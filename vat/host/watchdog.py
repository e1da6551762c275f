"""The watchdog: reports a host that stands still, by the name of what holds it, with its stack; and that it goes on.

Cranks, devices and observers run in the thread of the event loop, and CPython cannot stop them safely. While one of
them computes, or waits without `await`, nothing else of the host does anything. So all that can be done is to say so,
from another thread: who it is, and where. Code that nobody trusts belongs in a host of its own.

The one rule: it only looks. It takes no lock and touches nothing that the host uses.
"""

from __future__ import annotations

import logging
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from types import CodeType, FrameType
from typing import Any, Final, TypeAlias

import trio
from outcome import Outcome

from dataspace.log.writer import Writer
from vat.devices.attempts import Attempts
from vat.host.observers import Observer

log = logging.getLogger("keeve")

LOOP: Final = "trio._core._run"
"""The module whose frames call those of a task."""

LOOKS: Final = 4
"""Looks until something is reported, a power of 2: that is late by the time between two looks at most."""

Names: TypeAlias = "Mapping[CodeType, Callable[[Mapping[str, Any]], str]]"
"""For functions whose callees are worth a name: how that follows from their local variables."""


NAMES: Names = {
    Attempts.attempt.__code__: lambda seen: (
        f"device {seen['name']} (effect {seen['wanted'].id} of session {seen['wanted'].session!r})"
    ),
    Observer.run.__code__: lambda seen: f"the handler of {seen['self']}",
    Writer.commit_now.__code__: lambda seen: "the store (a record that is committed in line)",
}
"""What may hold the event loop of a host besides a crank."""


class Watched:
    """Something that should change from look to look: `now` tells what it is at, None when it is at rest.

    Both functions are called from the thread that watches. `tell` is given the seconds for which it has not changed,
    and gives a name for it.
    """

    def __init__(self, now: Callable[[], object | None], tell: Callable[[float], str]) -> None:
        self._now = now
        self._tell = tell
        self._before: object | None = None
        self._looks = 0
        self._name = ""

    def forget(self) -> None:
        """Begin anew: what was seen before says nothing."""
        self._before = None

    def look(self, seconds: float) -> bool:
        """Look, `seconds` after the last time: is it as then? That is told at `LOOKS` looks, and at twice as many."""
        now = self._now()
        if now is None or now != self._before:
            if self._name:
                log.warning("%s: it goes on, after more than %g s", self._name, self._looks * seconds)
            self._looks, self._name = 0, ""
        else:
            self._looks += 1
            if self._looks >= LOOKS and self._looks & (self._looks - 1) == 0:
                self._name = self._tell(self._looks * seconds)
        self._before = now
        return self._looks > 0


class _Turning(trio.abc.Instrument):
    """Counts the turns of an event loop, and knows when it waits for something to happen."""

    def __init__(self) -> None:
        self.turns = 0
        self.waits = False

    def before_io_wait(self, timeout: float) -> None:
        self.waits = True

    def after_io_wait(self, timeout: float) -> None:
        self.turns += 1
        self.waits = False


@contextmanager
def watching(seconds: float, crank: Callable[[], str | None], names: Names, *others: Watched) -> Iterator[None]:
    """Watch the event loop of the thread that enters this: report what holds it for longer than `seconds`.

    crank: names the crank that is running, called from another thread. names: for what holds it besides that. others:
    what else is looked at, as often.
    """
    turning, thread = _Turning(), threading.get_ident()

    def now() -> int | None:
        return None if turning.waits else turning.turns

    def tell(held: float) -> str:
        frame = sys._current_frames().get(thread)
        name = crank() or name_of(frame, names)
        stack = "".join(traceback.format_stack(frame, limit=depth_of(frame))) if frame is not None else ""
        log.warning("%s has run for more than %g s, and nothing else does meanwhile:\n%s", name, held, stack)
        return name

    stopped, ended = threading.Event(), threading.Event()

    def end(result: Outcome[None]) -> None:
        ended.set()
        result.unwrap()

    trio.lowlevel.add_instrument(turning)
    # A thread that trio has left over, if it has one: to start one and to wait for it takes half a millisecond.
    watch = partial(_watch, Watched(now, tell), others, seconds, stopped)
    trio.lowlevel.start_thread_soon(watch, end, "keeve watchdog")
    try:
        yield
    finally:
        trio.lowlevel.remove_instrument(turning)
        stopped.set()
        ended.wait()


def _watch(loop: Watched, others: Sequence[Watched], seconds: float, stopped: threading.Event) -> None:
    between = seconds / LOOKS
    while not stopped.wait(between):
        held = loop.look(between)
        for other in others:
            if held:
                other.forget()  # it could not go on
            else:
                other.look(between)


def depth_of(frame: FrameType | None) -> int:
    """How many frames there are inside of the event loop's own: those of the task that runs."""
    depth = 0
    while frame is not None and frame.f_globals.get("__name__") != LOOP:
        frame = frame.f_back
        depth += 1
    return max(depth, 1)


def name_of(frame: FrameType | None, names: Names) -> str:
    """Who is running: the innermost function that has a name, or else the function of the task."""
    task = "the event loop"
    while frame is not None:
        name = names.get(frame.f_code)
        if name is not None:
            return name(frame.f_locals)
        module = frame.f_globals.get("__name__", "")
        if module == LOOP:
            return task
        task = f"a task ({module}.{frame.f_code.co_qualname})"
        frame = frame.f_back
    return task
