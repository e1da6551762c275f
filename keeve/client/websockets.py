"""A WebSocket, from the client's side: wsproto over a stream of bytes of anyio's.

The one rule: one binary message is one body, and what is larger than its limit is not gathered.
"""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from typing import Any, Final

import anyio
from anyio.abc import ByteStream
from wsproto import ConnectionType, WSConnection
from wsproto.events import (
    AcceptConnection,
    BytesMessage,
    CloseConnection,
    Event,
    Ping,
    RejectConnection,
    RejectData,
    Request,
    TextMessage,
)
from wsproto.utilities import LocalProtocolError, RemoteProtocolError

from keeve.wire.channels import CHUNK, ChannelClosed
from keeve.wire.frames import BadFrame
from keeve.wire.tokens import TokenRefused

_GONE: Final = (anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream, OSError)


class WebSocketChannel:
    """A channel over a WebSocket that is open."""

    def __init__(self, stream: ByteStream, wire: WSConnection, limit: int) -> None:
        self.limit = limit
        self.carried = 0
        self._stream = stream
        self._wire = wire
        self._events: deque[Event] = deque()
        self._parts: list[bytes] = []
        self._size = 0
        self._lock = anyio.Lock()

    @classmethod
    async def opened(cls, stream: ByteStream, host: str, path: str, token: str, limit: int) -> WebSocketChannel:
        """Ask for a WebSocket on a stream. Raises `TokenRefused`, or `ChannelClosed` for any other answer."""
        channel = cls(stream, WSConnection(ConnectionType.CLIENT), limit)
        headers = [(b"authorization", f"Bearer {token}".encode("utf-8", "surrogateescape"))]
        await channel._write(Request(host=host, target=path, extra_headers=headers))
        while True:
            event = await channel._event()
            if isinstance(event, AcceptConnection):
                return channel
            if isinstance(event, RejectConnection):
                if event.status_code in (401, 403):
                    raise TokenRefused(f"the server answers {event.status_code}; ask its owner for another")
                raise ChannelClosed(f"the server answers {event.status_code}, and no WebSocket")
            if not isinstance(event, RejectData):
                raise ChannelClosed("the server answers something else than a WebSocket")

    async def send(self, body: bytes) -> None:
        """Send a body."""
        await self._write(BytesMessage(body))
        self.carried += 1

    async def receive(self) -> bytes:
        """The next body."""
        while True:
            event = await self._event()
            if isinstance(event, Ping):
                await self._write(event.response())
            elif isinstance(event, BytesMessage):
                self._parts.append(bytes(event.data))
                self._size += len(event.data)
                if self._size > self.limit:
                    raise BadFrame(f"it has more than {self.limit} bytes")
                if event.message_finished:
                    body, self._parts, self._size = b"".join(self._parts), [], 0
                    return body
            elif isinstance(event, TextMessage):
                raise BadFrame("it is text, and bodies are binary")
            elif isinstance(event, CloseConnection):
                raise ChannelClosed(event.reason or "the other end has closed it")

    async def close(self) -> None:
        """Give it up, with a word of it if that can be said at once."""
        with anyio.move_on_after(0.2, shield=True):
            with suppress(ChannelClosed):
                await self._write(CloseConnection(code=1000))
        await anyio.aclose_forcefully(self._stream)

    async def _write(self, event: Any) -> None:
        try:
            async with self._lock:
                await self._stream.send(self._wire.send(event))
        except (*_GONE, LocalProtocolError) as error:
            raise ChannelClosed from error

    async def _event(self) -> Event:
        while not self._events:
            try:
                data = await self._stream.receive(CHUNK)
                self._wire.receive_data(data)
                self._events.extend(self._wire.events())
            except (*_GONE, RemoteProtocolError) as error:
                raise ChannelClosed from error
            self.carried += 1
        return self._events.popleft()
