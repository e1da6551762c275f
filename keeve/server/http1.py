"""HTTP/1.1 on one connection: Hypercorn's, and what it lets pass that is refused here.

    another version of HTTP, or a way to it (`PRI *`, `Upgrade: h2c`)     505; an upgrade is not heeded
    a length and a transfer coding at once, or a coding in HTTP/1.0       400: where such a request ends is in dispute
    bytes behind a WebSocket's request before that has its answer         400: nobody may send them yet

The one rule: whatever is refused here begins nothing, has an answer without a body, and is the last of its connection.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

import h11
import trio
from hypercorn.events import Closed, Event, RawData, Updated
from hypercorn.protocol.h11 import H11Protocol
from hypercorn.protocol.ws_stream import WSStream
from hypercorn.trio.task_group import TaskGroup
from hypercorn.trio.tcp_server import TCPServer
from hypercorn.typing import ConnectionState
from hypercorn.utils import parse_socket_addr

VERSIONS: Final = (b"1.0", b"1.1")


class _Over(Exception):
    """A request was refused."""


class Http1(H11Protocol):
    """The protocol of a connection."""

    async def handle(self, event: Event) -> None:
        """Take what has come."""
        with suppress(_Over):
            stream = self.stream
            early = isinstance(stream, WSStream) and not stream.closed and not stream.handshake.accepted
            if early and isinstance(event, RawData) and event.data:
                await self._refuse(400)
            await super().handle(event)

    async def _check_protocol(self, event: h11.Request) -> None:
        """Look at a request before anything is begun for it."""
        if event.http_version not in VERSIONS:
            await self._refuse(505)
        said = {bytes(name) for name, _ in event.headers}
        if b"transfer-encoding" in said and (b"content-length" in said or event.http_version != b"1.1"):
            await self._refuse(400)
        upgrade = next((bytes(value) for name, value in event.headers if bytes(name) == b"upgrade"), b"")
        if upgrade.strip().lower() == b"websocket" and self.connection.trailing_data[0]:
            await self._refuse(400)

    async def _refuse(self, status: int) -> None:
        await self._send_error_response(status)
        await self.send(Closed())
        raise _Over


class Http1Server(TCPServer):
    """A connection's server. `idle` is told when it begins to wait for a request, and when one has come."""

    def __init__(self, *args: Any, idle: Callable[[bool], None]) -> None:
        super().__init__(*args)
        self._idle = idle

    async def run(self) -> None:
        """Serve it to its end."""
        tls = isinstance(getattr(self.stream, "transport_stream", None), trio.SocketStream)
        try:
            if tls:
                with trio.fail_after(self.config.ssl_handshake_timeout):
                    await self.stream.do_handshake()
            socket = self.stream.transport_stream.socket if tls else self.stream.socket
            client, here = (
                parse_socket_addr(socket.family, name()) for name in (socket.getpeername, socket.getsockname)
            )
            async with TaskGroup() as tasks:
                self._task_group = tasks
                self.protocol = Http1(  # type: ignore[assignment]  # all that is asked of it is `handle`
                    *(self.app, self.config, self.context, tasks, ConnectionState(self.state)),
                    *(tls, client, here, self.protocol_send),
                )
                await self.idle_task.restart(tasks, self._idle_timeout)
                await self._read_data()
        except (OSError, trio.BrokenResourceError, trio.TooSlowError):
            pass  # it is gone, or never was one
        finally:
            await self._close()

    async def protocol_send(self, event: Event) -> None:
        """What the protocol has to say."""
        if isinstance(event, Updated):
            self._idle(event.idle)
        await super().protocol_send(event)
