"""Observers that run in tasks of their own: each calls a handler with every event, until it is cancelled or fails.

The one rule: an observer that raises stops alone, at a known cursor, and its owner is told.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import TypeAlias

import trio

from dataspace.errors import KeeveError
from dataspace.in_logs import in_log, traced
from dataspace.observe.dataspace import ObserverFailed, Reader
from dataspace.observe.events import Event
from dataspace.observe.places import Heard
from dataspace.patterns import BadPattern, Pattern, parse

log = logging.getLogger("keeve")

Handler: TypeAlias = Callable[[Event], Awaitable[object] | object]
"""What is called with each event, and awaited if it can be."""


class Observer:
    """A handler that is called with each event. `failure` says why it stopped, with the cursor to go on from."""

    def __init__(self, reader: Reader, pattern: Pattern | str, handler: Handler, how: Heard) -> None:
        self.failure: KeeveError | None = None
        self._reader = reader
        self._pattern = pattern
        self._handler = handler
        self._how = how
        self._scope = trio.CancelScope()
        self._ended = trio.Event()

    async def run(self) -> None:
        """Observe until cancelled, until the end that was asked for, or until the handler raises."""
        try:
            with self._scope:
                await self._reader.observe_with(self._pattern, self._handler, **self._how)
        except KeeveError as error:
            self.failure = error
            trace = traced(error) if isinstance(error, ObserverFailed) else None  # its cause says why
            log.warning("an observer of %s stopped: %s", _asked(self._pattern), in_log(error), exc_info=trace)
        finally:
            self._ended.set()

    def cancel(self) -> None:
        """Stop it."""
        self._scope.cancel()

    def __repr__(self) -> str:
        return f"<Observer of {self._pattern}>"

    async def wait(self) -> None:
        """Return when it has ended. Raises `ObserverFailed`, or what reading raised."""
        await self._ended.wait()
        if self.failure is not None:
            raise self.failure


def _asked(pattern: Pattern | str) -> str:
    """What an observer asks for, in a line of a log: by its label, without what somebody may have said."""
    try:
        label = (parse(pattern) if isinstance(pattern, str) else pattern).label
    except BadPattern:
        return "what is no pattern"
    return f"({label} …)" if isinstance(label, str) else "facts of any label"
