"""Streams: what a client observes, or watches, as far as it has said that it takes more.

The one rule: **nothing is read on before there is credit for it.** The log waits, so a slow client costs a cursor; what
running effects tell is bounded where it waits (`vat.host.watching`), and who is too slow is told how much it missed.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any, Final

import attrs
import trio

from dataspace.observe.events import CaughtUp, Event, Unreadable
from dataspace.values import Promise, Ref, Value
from dataspace.values.encoding import encode
from keeve.wire.calls import Calls, NotARef
from keeve.wire.desk import must_see, pattern_in, place_in
from keeve.wire.frames import BadFrame, listed, message
from keeve.wire.guarding import Guard, Limits, TooLarge, TooMany
from keeve.wire.handles import Handles
from keeve.wire.outbox import Outbox
from keeve.wire.telling import event_said, piece_said, unreadable_said
from keeve.wire.verbs import AT_THE_DESK
from vat.host.host import Host
from vat.host.outside import HostRef, place

BATCH: Final = 64
"""Items in a message, at most."""
ENOUGH: Final = 1 << 16
"""Bytes from which on a message takes no further item."""

_KIND, _NONE, _END = encode("items"), encode(None), object()
_OPTIONS: Final = frozenset({"after", "until", "session", "lineage", "marks"})


@attrs.define(eq=False)
class Stream:
    """One of them. `credit` is how many items its client takes."""

    id: int
    credit: int
    scope: trio.CancelScope = attrs.field(factory=trio.CancelScope)
    more: trio.Event = attrs.field(factory=trio.Event)

    async def taken(self) -> None:
        """Wait until there is credit."""
        while self.credit <= 0:
            self.more = trio.Event()
            await self.more.wait()


class Streams:
    """The streams of a connection."""

    def __init__(
        self,
        host: Host,
        guard: Guard,
        handles: Handles,
        calls: Calls,
        outbox: Outbox,
        limits: Limits,
        begin: Callable[..., None],
    ) -> None:
        self._host = host
        self._guard = guard
        self._handles = handles
        self._calls = calls
        self._outbox = outbox
        self._limits = limits
        self._begin = begin
        self._streams: dict[int, Stream] = {}

    def __len__(self) -> int:
        return len(self._streams)

    async def observe(self, id: int, pattern: str, options: dict[str, Value], credit: int) -> None:
        """Begin to tell events."""
        await self._take(id, credit, self._observe, pattern, options)

    async def watch(self, id: int, session: str | Ref | Promise | None, credit: int) -> None:
        """Begin to tell what running effects tell."""
        await self._take(id, credit, self._watch, session)

    def more(self, id: int, credit: int) -> None:
        """A client takes more items. A stream that has ended is let be."""
        stream = self._streams.get(id)
        if stream is not None:
            stream.credit += credit
            stream.more.set()

    def stop(self, id: int) -> None:
        """A client wants no more of it."""
        stream = self._streams.pop(id, None)
        if stream is not None:
            stream.scope.cancel()

    async def _take(self, id: int, credit: int, what: Callable[..., Any], *args: Any) -> None:
        if id in self._streams:
            raise BadFrame(f"there is a stream {id} already")
        if len(self._streams) >= self._limits.streams:
            limit = self._limits.streams
            return await self._calls.fail(id, TooMany("streams", limit, "stop those that are not needed any more"))
        stream = self._streams[id] = Stream(id, credit)
        self._begin(self._run, stream, what, *args)
        return None

    async def _run(self, stream: Stream, what: Callable[..., Any], *args: Any) -> None:
        with stream.scope:
            try:
                await what(stream, *args)
            except Exception as error:  # noqa: BLE001  # it is the end of the stream
                await self._calls.fail(stream.id, error)
            else:
                await self._outbox.send(message("end", stream.id))
        if self._streams.get(stream.id) is stream:
            del self._streams[stream.id]

    async def _observe(self, stream: Stream, pattern: str, options: dict[str, Value]) -> None:
        if not _OPTIONS.issuperset(options):
            raise TypeError(f"observe() takes {', '.join(sorted(_OPTIONS))}, and no {sorted({*options} - _OPTIONS)[0]}")
        session, marks = options.get("session"), options.get("marks") is True
        must_see(self._guard, "observe", session)
        how: dict[str, Any] = {
            "until": place_in(options.get("until")),
            "session": session,
            "lineage": options.get("lineage") is True,
        }
        read = pattern_in(pattern)
        observation = self._host.observe(read, after=place_in(options.get("after", "start")), marks=True, **how)
        items: list[bytes] = []
        size, before = 0, observation.cursor
        while (item := await self._next(stream, observation)) is not _END:
            must_see(self._guard, "observe", session)
            if isinstance(item, CaughtUp):
                await self._tell(stream, items, encode(str(item.cursor)))
                items, size = [], 0
                continue
            if session is None and not self._guard.sees(item.session, item.uid):
                before = item.cursor
                continue
            if isinstance(item, Unreadable) and not marks:
                await self._tell(stream, items, _NONE)
                # Read again as one is read that has not asked for marks: that raises what is wrong.
                await anext(self._host.observe(read, after=before, **how))
            said = encode(event_said(item) if isinstance(item, Event) else unreadable_said(item))
            before = item.cursor
            items.append(said)
            size += len(said)
            stream.credit -= 1
            if len(items) >= BATCH or size >= ENOUGH or stream.credit <= 0:
                await self._tell(stream, items, _NONE)
                items, size = [], 0
        await self._tell(stream, items, _NONE)

    async def _watch(self, stream: Stream, session: str | Ref | Promise | None) -> None:
        which = await self._watched(session)
        with self._host.watch(which) as pieces:
            while (piece := await self._next(stream, pieces)) is not _END:
                self._guard.must(AT_THE_DESK["watch"], "watch", piece.session)
                stream.credit -= 1
                await self._tell(stream, [encode(piece_said(piece))], _NONE)

    async def _watched(self, session: str | Ref | Promise | None) -> HostRef[Any] | str | None:
        if session is None or isinstance(session, str):
            must_see(self._guard, "watch", session)
            return session
        ref = self._handles.find(session) if isinstance(session, Ref) else await self._calls.promised(session).answer()
        if not isinstance(ref, HostRef):
            raise NotARef(ref)
        if not self._guard.unlimited:
            self._guard.must(AT_THE_DESK["watch"], "watch", self._host.row(place(ref)[0]).id)
        return ref

    async def _tell(self, stream: Stream, items: list[bytes], caught_up: bytes) -> None:
        if not items and caught_up is _NONE:
            return
        body = listed([_KIND, encode(stream.id), listed(items), caught_up])
        if len(body) > self._limits.answer:
            raise TooLarge(len(body), self._limits.answer)
        await self._outbox.send(body)

    async def _next(self, stream: Stream, items: AsyncIterator[Any]) -> Any:
        """The next item, when there is credit for it and little waits to be sent; `_END` after the last one."""
        await stream.taken()
        await self._outbox.eased()
        return await anext(items, _END)
