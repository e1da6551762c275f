"""The outbox: what a connection still has to send, one message after another, and how much that is.

The one rule: whoever sends waits until it is sent, and who gives up waiting has sent it all the same. So there is no
queue but of those who wait, no message is cut off in its middle, and from a client that does not take its answers
nothing more is read.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import trio

from keeve.wire.channels import Channel, ChannelClosed


class Outbox:
    """Sends through a channel. From `bound` bytes that wait on it is not `eased`; `most` is how many may wait at all.

    `over` is called when the channel has closed.

    may: whether the client may be told anything yet; after it was not, `run` is cancelled.
    """

    def __init__(
        self, channel: Channel, bound: int, most: int, over: Callable[[], None], may: Callable[[], bool]
    ) -> None:
        self._channel = channel
        self._bound = bound
        self._most = most
        self._over = over
        self._may = may
        self._waiting: deque[tuple[bytes, trio.Event]] = deque()
        self._bytes = 0
        self._came = trio.Event()
        self._eased = trio.Event()

    def waits(self, size: int) -> int:
        """How many bytes wait, if so many more would be too much; else 0. Where nothing waits there is room."""
        return self._bytes if self._bytes + size > self._most else 0

    async def send(self, body: bytes) -> None:
        """Send a message, and wait until it is sent."""
        sent = trio.Event()
        self._waiting.append((body, sent))
        self._bytes += len(body)
        self._came.set()
        await sent.wait()

    async def run(self) -> None:
        """Send what waits, until cancelled."""
        while True:
            while not self._waiting:
                self._came = trio.Event()
                await self._came.wait()
            body, sent = self._waiting[0]
            if not self._may():
                await trio.sleep_forever()
            try:
                await self._channel.send(body)
            except ChannelClosed:
                self._over()
                await trio.lowlevel.checkpoint()
            self._waiting.popleft()
            self._bytes -= len(body)
            sent.set()
            if self._bytes < self._bound:
                self._eased.set()

    async def eased(self) -> None:
        """Wait until little enough waits to be sent."""
        while self._bytes >= self._bound:
            self._eased = trio.Event()
            await self._eased.wait()
