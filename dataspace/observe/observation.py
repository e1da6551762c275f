"""One observation: the loop that reads the past and what comes.

Read on from the cursor to the head, say so, wait, read on. Where nothing more can come (`endings`), it does not wait,
but raises why.

The one rule: between two items there is nothing but the cursor. So an observation can be left at any
moment, by cancellation too, and another one goes on from there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, Literal, TypeAlias, TypeVar

import trio

from dataspace.catalog.recall import Mistaken
from dataspace.log.archives import Archived
from dataspace.log.verdicts import SessionDamaged
from dataspace.observe.cursor import Cursor
from dataspace.observe.endings import Endings
from dataspace.observe.events import CaughtUp, Event, Unreadable
from dataspace.observe.places import Places
from dataspace.observe.search import Search
from dataspace.observe.turns import ROOM, TURN
from dataspace.observe.waiting import Parked, Waiting

Item: TypeAlias = Event | CaughtUp | Unreadable
Wanted = TypeVar("Wanted", bound=Item, covariant=True)
"""What an observation gives: events, or any item for those who asked for marks."""


class Observation(Generic[Wanted]):
    """What `observe` gives: an iterator of events, and of marks for those who asked for them.

    It holds nothing between two items but `cursor`, so that it can be left at any time, by cancellation too,
    and another one goes on from there. After an error the next item raises it again. One of a single session ends with
    that: it raises `Deleted` or `SessionDamaged` where it would wait for more; any, when nothing is written any more.
    """

    def __init__(
        self,
        places: Places,
        waiting: Waiting,
        endings: Endings,
        search: Search,
        cursor: Cursor,
        seen: int,
        until: int | None,
        marks: bool,
    ) -> None:
        self._places = places
        self._waiting = waiting
        self._endings = endings
        self._search = search
        self._cursor = cursor
        self._seen = seen
        self._until = until
        self._marks = marks
        self._passed = 0
        self._failed: Exception | None = None
        self._parked: Parked | None = None
        self._steps = self._read_on()

    @property
    def cursor(self) -> Cursor:
        """How far it has read: all before it was considered."""
        if self._parked is not None and self._parked.wanted is None:
            return self._places.head
        return self._cursor

    def __aiter__(self) -> Observation[Wanted]:
        return self

    async def __anext__(self) -> Wanted:
        if self._failed is not None:
            await trio.lowlevel.checkpoint()
            raise self._failed
        if self._places.catalog.head.position < self._seen:
            await self._waiting.reached(self._seen)
        while True:
            await self._search.turns.gives_way()
            try:
                item = next(self._steps, None)
            except Exception as error:
                self._failed = error  # of whatever kind: the loop is over, and its end is not that of the log
                raise
            if item is None:
                raise StopAsyncIteration
            if not isinstance(item, str):
                self._cursor = item.cursor
                return item  # type: ignore[return-value]  # marks are among them only if they were asked for
            if item == "wait":
                await self._wait()
            self._search.turns.ends()

    async def _wait(self) -> None:
        search = self._search
        if (why := self._endings.of(search.session)) is not None:
            self._failed = why
            raise why
        self._parked = parked = self._waiting.park(search.wanted, search.session, self._until)
        try:
            with self._endings.told(search.session, parked.event.set):
                await parked.event.wait()
        finally:
            # Also when it is cancelled: all that was noted meanwhile is passed, or begins to matter at `wanted`.
            self._waiting.leave(parked)
            self._cursor = self.cursor
            self._parked = None
            self._passed = self._cursor.position if parked.wanted is None else parked.wanted - 1

    def _read_on(self) -> Iterator[Item | Literal["more", "wait"]]:
        places, search, until = self._places, self._search, self._until
        after, inside = self._cursor.position, self._cursor.operation
        considered = 0
        while True:
            places.catalog.settle()
            head = places.head
            last = head.position if until is None else min(until, head.position)
            mistaken = False
            for position in search.places(after - (inside is not None), last):
                try:
                    said = search.said(position)
                    # Here, since what it takes back may be what cannot be read.
                    events = search.events(said, inside if position == after else None)
                except (SessionDamaged, Archived) as error:
                    if not self._marks:
                        raise
                    yield search.unreadable(position, error)
                    continue
                except Mistaken:
                    if not search.catalog.doubt():
                        raise
                    mistaken = True
                    break
                if search.turns.heavy:
                    yield "more"
                yield from events
                self._cursor = Cursor(head.log_id, position, said.hash)
                considered += 1
                if considered % TURN == 0 or (events and said.size >= ROOM):  # as much was made of them
                    yield "more"
            if mistaken:
                if self._cursor.position >= after:
                    after, inside = self._cursor.position, self._cursor.operation
                continue
            if last > self._cursor.position:
                self._cursor = head if last == head.position else places.at(last)
            after, inside = max(after, last), None
            ended = until is not None and after >= until
            if not ended and places.catalog.head.position > last:
                continue
            if self._marks:
                yield CaughtUp(self._cursor)
            if ended:
                return
            if self._marks and places.catalog.head.position > last:
                continue  # something came while somebody looked at the mark
            yield "wait"
            after = max(after, self._passed)
