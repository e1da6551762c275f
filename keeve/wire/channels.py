"""Channels: what carries the bodies of messages, whole and in order, between two ends.

The one rule: a channel knows nothing of what it carries. When it is over, by whatever end and in whatever way, both
calls raise `ChannelClosed`, and nothing else.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, Protocol

from dataspace.errors import KeeveError
from keeve.wire.frames import Frames, framed

CHUNK: Final = 1 << 16
"""Bytes that are read, or written, at once."""


class ChannelClosed(KeeveError, ConnectionError):
    """The connection is over."""

    def __init__(self, what: str = "the other end has gone") -> None:
        super().__init__(f"the connection is over: {what}")


class Channel(Protocol):
    """Carries bodies. One task may receive while another one sends."""

    limit: int
    """Bytes of a body that is taken; may be changed between two."""
    carried: int
    """How often something was carried, either way: while this grows, the other end is there."""

    async def send(self, body: bytes) -> None: ...
    async def receive(self) -> bytes:
        """The next body. Raises `BadFrame` for one that is none."""

    async def close(self) -> None:
        """Give it up at once. Does nothing the second time."""


class ByteChannel:
    """Frames over a stream of bytes, whose functions are given.

    read: some bytes, at most so many; none at the end. write: all of them. gone: what these raise when it is over.
    """

    def __init__(
        self,
        read: Callable[[int], Awaitable[bytes | bytearray]],
        write: Callable[[bytes | memoryview], Awaitable[None]],
        close: Callable[[], Awaitable[None]],
        gone: tuple[type[BaseException], ...],
        limit: int,
    ) -> None:
        self._read = read
        self._write = write
        self._close = close
        self._gone = gone
        self._frames = Frames(limit)
        self._torn = False
        self.carried = 0

    @property
    def limit(self) -> int:
        """Bytes of a body that is taken."""
        return self._frames.limit

    @limit.setter
    def limit(self, limit: int) -> None:
        self._frames.limit = limit

    async def send(self, body: bytes) -> None:
        """Send a body. One task at a time. Who is cancelled in the middle of it has ended the channel."""
        if self._torn:
            raise ChannelClosed("a message was cut off")
        self._torn = True
        data = memoryview(framed(body))
        try:
            for start in range(0, len(data), CHUNK):
                await self._write(data[start : start + CHUNK])
                self.carried += 1
        except self._gone as error:
            raise ChannelClosed from error
        self._torn = False

    async def receive(self) -> bytes:
        """The next body."""
        while (body := self._frames.next()) is None:
            try:
                data = await self._read(CHUNK)
            except self._gone as error:
                raise ChannelClosed from error
            if not data:
                raise ChannelClosed
            self.carried += 1
            self._frames.feed(data)
        return body

    async def close(self) -> None:
        """Give it up."""
        await self._close()
