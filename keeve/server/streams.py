"""Streams: server-sent events, and lines of JSON, for as long as there is somebody who reads them.

    async def produce(put):
        async for event in observation:
            await put(Sent(face, id=str(event.cursor)))
    return EventStream(serving, produce)

A comment is sent each 15 seconds in which nothing else was. The stream ends when `produce` returns; when its client is
gone; and when the server stops, of which the client is told: at once who only looks (GET), and who has asked for
something (POST) when the grace is over, so that a turn which ends within it is told to its end.

The one rule: one item is under way at a time. A client that reads slowly holds back its own `produce`, whose place in
the log is a cursor, and nobody else.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Final

import attrs
import trio
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from dataspace.in_logs import traced
from keeve.server.errors import internal, refusal_of, set_up_of
from keeve.server.serving import Serving
from vat.devices.outcomes import alone

QUIET: Final = 15.0
"""Seconds after which something is sent that says nothing."""


@attrs.frozen
class Sent:
    """An item: a value of JSON, or a text that is sent as it is; its kind, and the cursor behind it.

    framed: all of it as an event, where that was made already, since many are sent the same.
    """

    data: Any
    event: str = ""
    id: str = ""
    framed: bytes | None = None


Put = Callable[[Sent], Awaitable[None]]
Produce = Callable[[Put], Awaitable[None]]


class EventStream(Response):
    """Server-sent events."""

    media_type = "text/event-stream"

    def __init__(self, serving: Serving, produce: Produce, headers: dict[str, str] | None = None) -> None:
        # Proxies are told not to gather the pieces.
        super().__init__(headers={"cache-control": "no-store", "x-accel-buffering": "no"} | (headers or {}))
        del self.headers["content-length"]
        self._serving = serving
        self._produce = produce

    def framed(self, item: Sent) -> bytes:
        """An item as it is sent."""
        return as_event(item) if item.framed is None else item.framed

    quiet = b": nothing new\n\n"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        there = False
        async with trio.open_nursery() as nursery:
            nursery.start_soon(until_gone, receive, nursery.cancel_scope)
            into, out = trio.open_memory_channel[Sent](0)
            nursery.start_soon(self._producing, into, scope)
            await self._send(out, send, self._serving.ending if scope["method"] == "POST" else self._serving.stopping)
            there = True
            nursery.cancel_scope.cancel()
        if there:  # out here, since by the last word the client counts as gone, and it is to be followed by the close
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _producing(self, into: trio.MemorySendChannel[Sent], scope: Scope) -> None:
        async with into:
            try:
                await self._produce(into.send)
            except Exception as raised:  # whatever it is, whoever reads is told that it went wrong
                error = alone(raised)
                if isinstance(error, trio.BrokenResourceError):
                    return  # the stream is over
                refusal = refusal_of(error)
                request_id = scope.get("state", {}).get("request_id")
                if refusal is None:
                    self._serving.log.error("failed", request=request_id, exc_info=traced(error))
                    refusal = internal()
                elif (why := set_up_of(error)) is not None:
                    self._serving.log.error("not set up", request=request_id, why=why)
                with suppress(trio.BrokenResourceError):
                    await into.send(Sent(refusal.document(request_id), "error"))

    async def _send(self, out: trio.MemoryReceiveChannel[Sent], send: Send, end: trio.Event) -> None:
        async with out, trio.open_nursery() as nursery:
            waiting = trio.CancelScope()

            async def end_when_it_stops() -> None:
                await end.wait()
                waiting.cancel()

            nursery.start_soon(end_when_it_stops)
            while True:
                item: Sent | None = None
                with waiting, trio.move_on_after(QUIET):
                    try:
                        item = await out.receive()
                    except trio.EndOfChannel:
                        break
                if item is None and end.is_set():
                    item = Sent({"reason": "the server is stopping"}, "stopping")
                body = self.quiet if item is None else self.framed(item)
                if body:
                    await send({"type": "http.response.body", "body": body, "more_body": True})
                if item is not None and item.event == "stopping":
                    break
                waiting = trio.CancelScope()
                if end.is_set():
                    waiting.cancel()
            nursery.cancel_scope.cancel()


class Lines(EventStream):
    """The same items as lines of JSON. Between them there is nothing to send."""

    media_type = "application/x-ndjson"
    quiet = b""

    def framed(self, item: Sent) -> bytes:
        """An item as it is sent."""
        return f"{as_json(item.data)}\n".encode()


def as_event(item: Sent) -> bytes:
    """An item as a server-sent event."""
    data = item.data if isinstance(item.data, str) else as_json(item.data)
    head = (f"id: {item.id}\n" if item.id else "") + (f"event: {item.event}\n" if item.event else "")
    return f"{head}data: {data}\n\n".encode()


def as_json(value: Any) -> str:
    """A value of JSON on one line."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


async def until_gone(receive: Receive, scope: trio.CancelScope) -> None:
    """Cancel what is done for a client when it is gone."""
    while (await receive())["type"] != "http.disconnect":
        pass
    scope.cancel()
