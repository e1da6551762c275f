"""Streams: what a client observes, and watches, of a server.

An observation has a window: so many items it takes before they are gone through, and the server reads no further. It
goes on behind the last item that it has when the connection, or the server, has been away.

The one rule: between two items there is nothing but the cursor, here as in a host of one's own.
"""

from __future__ import annotations

from collections import deque
from types import TracebackType
from typing import Any, Final, Generic, Protocol, TypeVar
from weakref import finalize

import anyio
import anyio.lowlevel
import attrs

from dataspace.observe.cursor import Cursor
from dataspace.observe.events import CaughtUp, Event, Unreadable
from dataspace.patterns import Pattern, parse
from dataspace.values import Promise, Ref, Value
from keeve.client.link import Link
from keeve.client.refs import RemoteRef
from keeve.wire.telling import item_of
from vat.host.pieces import Piece

WINDOW: Final = 256
"""Items that come before they are taken."""

T = TypeVar("T")


class Hears(Protocol):
    """A client, as its streams know it."""

    def begin(self, stream: RemoteStream[Any]) -> None: ...
    def leave(self, stream: RemoteStream[Any]) -> None: ...


class RemoteStream(Generic[T]):
    """Items as they come, for one task. A context manager that ends it."""

    def __init__(self, client: Hears) -> None:
        self._client = client
        self._link: Link | None = None
        self._id = 0
        self._items: deque[T] = deque()
        self._untold = 0
        self._came = anyio.Event()
        self._over = False
        self._error: Exception | None = None
        self._place: list[Any] = []
        finalize(self, _dropped, self._place).atexit = False
        client.begin(self)

    def open(self, link: Link) -> None:
        """Begin, or go on, on that link."""
        self._link = link
        self._untold = 0
        self._id = self._opened(link)
        self._place[:] = [link, self._id]

    def items(self, items: list[Value], caught_up: str | None) -> None:
        """Some have come."""
        for said in items:
            self._take(item_of(said))
        if caught_up is not None:
            self._caught_up(Cursor.parse(caught_up))
        self._came.set()

    def end(self, error: Exception | None) -> None:
        """No more come; with an error, that is raised after those that have."""
        self._over, self._error = True, error
        self._place.clear()
        self._client.leave(self)
        self._came.set()

    def close(self) -> None:
        """Want no more. Does nothing the second time."""
        if not self._over:
            self.end(None)
            if self._link is not None:
                self._link.close(self._id)

    def __enter__(self) -> Any:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __aiter__(self) -> Any:
        return self

    async def __anext__(self) -> T:
        await anyio.lowlevel.checkpoint()
        while not self._items:
            if self._over:
                if self._error is not None:
                    raise self._error
                raise StopAsyncIteration
            self._came = anyio.Event()
            await self._came.wait()
        item = self._items.popleft()
        self._gone_through(item)
        return item

    def _gone_through(self, item: T) -> None:
        self._untold += 1
        if self._untold >= WINDOW // 2 and self._link is not None and not self._over:
            self._link.more(self._id, self._untold)
            self._untold = 0

    def _opened(self, link: Link) -> int:
        raise NotImplementedError

    def _take(self, item: Any) -> None:
        self._items.append(item)

    def _caught_up(self, cursor: Cursor) -> None:
        """There is no more up to there."""


class RemoteObservation(RemoteStream[Any]):
    """What `client.observe` gives: an iterator of events, and of marks for who asked for them.

    It goes on after a reconnect, behind what it has. `cursor` is how far it has been gone through.
    """

    def __init__(
        self,
        client: Hears,
        pattern: Pattern | str,
        *,
        after: Any = "start",
        until: Any = None,
        session: str | None = None,
        lineage: bool = False,
        marks: bool = False,
    ) -> None:
        self._pattern = str(parse(pattern) if isinstance(pattern, str) else pattern)
        self._options = {"until": _place(until), "session": session, "lineage": lineage, "marks": marks}
        self._after = _place(after)
        self._marks = marks
        self._cursor: Cursor | None = after if isinstance(after, Cursor) else None
        super().__init__(client)

    @property
    def cursor(self) -> Cursor | None:
        """How far it was gone through; None before that is known."""
        return self._cursor

    def _opened(self, link: Link) -> int:
        options = {name: said for name, said in self._options.items() if said not in (None, False)}
        waiting = sum(not isinstance(item, CaughtUp) for item in self._items)
        return link.open(self, "observe", self._pattern, {"after": self._after, **options}, max(0, WINDOW - waiting))

    def _take(self, item: Any) -> None:
        self._after = str(item.cursor)
        self._items.append(item)

    def _caught_up(self, cursor: Cursor) -> None:
        self._after = str(cursor)
        if self._items and isinstance(self._items[-1], CaughtUp):
            self._items.pop()
        self._items.append(CaughtUp(cursor))

    async def __anext__(self) -> Event | CaughtUp | Unreadable:
        while True:
            item: Event | CaughtUp | Unreadable = await super().__anext__()
            self._cursor = item.cursor
            if self._marks or not isinstance(item, CaughtUp):
                return item

    def _gone_through(self, item: Any) -> None:
        if not isinstance(item, CaughtUp):
            super()._gone_through(item)


class RemoteWatch(RemoteStream[Piece]):
    """What `client.watch` gives: the pieces of a session's running effects, from now on.

    Nothing of it is kept anywhere, so what was told while the connection was away is missed; the first piece after that
    says at least one as `missed`.
    """

    def __init__(self, client: Hears, session: RemoteRef | str | None) -> None:
        self._session = session
        self._was_away = False
        super().__init__(client)

    def open(self, link: Link) -> None:
        """Begin, or begin again."""
        self._was_away = self._link is not None
        super().open(link)

    def _take(self, item: Piece) -> None:
        if self._was_away:
            item = attrs.evolve(item, missed=max(1, item.missed))
            self._was_away = False
        super()._take(item)

    def _opened(self, link: Link) -> int:
        which: str | Ref | Promise | None
        which = link.number(self._session) if isinstance(self._session, RemoteRef) else self._session
        return link.open(self, "watch", which, WINDOW)


def _place(place: Any) -> Any:
    return str(place) if isinstance(place, Cursor) else place


def _dropped(place: list[Any]) -> None:
    """A stream that nobody has any more wants no more."""
    if place:
        link, id = place
        link.drop(id)
