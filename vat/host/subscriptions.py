"""Subscriptions: what actors observe, each read by a task of its own.

A subscription's cursor stands in its actor's heap and moves in the record that takes an event in, so each event takes
effect exactly once, whatever dies and whenever. The next event is read when that record is durable.

The one rule: the heap says which subscriptions there are; here are only the tasks for them.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final

import trio

from dataspace.errors import KeeveError
from dataspace.in_logs import in_log, traced
from dataspace.log.archives import Archived
from dataspace.log.files import WriteFailed
from dataspace.observe.cursor import Cursor
from dataspace.observe.dataspace import Dataspace
from dataspace.observe.events import Away, Event, Unreadable
from dataspace.observe.observation import Item, Observation
from vat.crank.vat import Vat
from vat.heap.messages import Observed
from vat.host.carrying import event_value
from vat.host.residents import Work

log = logging.getLogger("keeve")


FAR: Final = 1000
"""Positions that a cursor moves before it is worth a note that nothing between them concerned it."""

LONGEST_PAUSE: Final = 60.0
"""Seconds after which one that fails again and again is tried again, at most."""


class Subscriptions:
    """Reads for actors that observe. `done` does a job of a session, and returns when it is durable; `name` says what
    that is called."""

    def __init__(
        self,
        dataspace: Dataspace,
        name: Callable[[bytes], str],
        *,
        done: Callable[[bytes, Work], Awaitable[None]],
        retry: float,
    ) -> None:
        self._dataspace = dataspace
        self._name = name
        self._done = done
        self._retry = retry
        self._nursery: trio.Nursery | None = None
        self._tasks: dict[tuple[bytes, int], trio.CancelScope] = {}
        self._readings: dict[tuple[bytes, int], Observation[Item]] = {}
        """How far they have read; none of those that are bringing an event, which is not recorded yet."""

    async def run(self, *, task_status: Any = trio.TASK_STATUS_IGNORED) -> None:
        """Run the tasks until cancelled."""
        try:
            async with trio.open_nursery() as self._nursery:
                task_status.started()
                await trio.sleep_forever()
        finally:
            self._nursery = None

    def take_up(self, vat: Vat) -> None:
        """Have the tasks run that a vat's subscriptions need, and no others."""
        if self._nursery is None:
            return
        tree = vat.heap.system["subscriptions"]
        entries = dict(tree.items(loader=vat.heap.page))
        self._end([key for key in self._tasks if key[0] == vat.uid and key[1] not in entries])
        for number, (pattern, _, _, cursor) in entries.items():
            if (vat.uid, number) not in self._tasks:
                scope = self._tasks[vat.uid, number] = trio.CancelScope()
                self._nursery.start_soon(self._read, vat.uid, number, pattern, cursor, scope)

    def read_on(self, vat: Vat) -> dict[int, str]:
        """The cursors of a vat's subscriptions that are far beyond what its heap says: nothing there concerned them.

        Without a note of it they would read all that again after a restart.
        """
        found: dict[int, str] = {}
        tree = vat.heap.system["subscriptions"]
        if tree.count:
            for number, (*_, text) in vat.heap.entries("subscriptions"):
                reading = self._readings.get((vat.uid, number))
                noted = 0 if text == "start" else Cursor.parse(text).position
                if reading is not None and reading.cursor.position >= noted + FAR:
                    found[number] = str(reading.cursor)
        return found

    def bury(self, uid: bytes) -> None:
        """A session has been deleted."""
        self._end([key for key in self._tasks if key[0] == uid])

    def _end(self, keys: list[tuple[bytes, int]]) -> None:
        for key in keys:
            self._tasks.pop(key).cancel()
            self._readings.pop(key, None)

    async def _read(self, uid: bytes, number: int, pattern: str, cursor: str, scope: trio.CancelScope) -> None:
        """Read on until cancelled: whatever goes wrong, again from the last event that was recorded."""
        key, pause = (uid, number), self._retry
        with scope:
            try:
                while True:
                    begun = cursor
                    try:
                        after: Any = cursor if cursor == "start" else Cursor.parse(cursor)
                        reading = self._readings[key] = self._dataspace.observe(pattern, after=after, marks=True)
                        async for item in reading:
                            if isinstance(item, Event):
                                self._readings.pop(key, None)
                                await self._bring(uid, Observed(number, event_value(item), str(item.cursor)))
                                cursor = str(item.cursor)
                                if self._tasks.get(key) is scope:
                                    self._readings[key] = reading
                            elif isinstance(item, Away):
                                raise Archived(0, (), item.position)  # it will be there again, and is taken in then
                            elif isinstance(item, Unreadable):
                                log.warning(
                                    "session %s: its subscription %d passes over %s", self._name(uid), number, item
                                )
                    except Exception as error:
                        self._readings.pop(key, None)
                        pause = self._retry if cursor != begun else min(2 * pause, LONGEST_PAUSE)
                        # A `KeeveError` says in its message what is wrong; of any other the message may say little.
                        trace = None if isinstance(error, KeeveError) else traced(error)
                        what = "session %s: its subscription %d stopped, and reads on in %g s: %s"
                        log.warning(what, self._name(uid), number, pause, in_log(error), exc_info=trace)
                        await trio.sleep(pause)
            finally:
                if self._tasks.get(key) is scope:
                    del self._tasks[key]

    async def _bring(self, uid: bytes, message: Observed) -> None:
        while True:
            try:
                return await self._done(uid, lambda vat: (vat.take(message),))
            except WriteFailed as error:
                log.warning("session %s: an event waits: %s", self._name(uid), in_log(error))
                await trio.sleep(self._retry)
