"""Listening: connections are accepted, as many as may be, and handed to Hypercorn's trio worker.

`hypercorn.trio.serve` has no limit on connections, and waits without end for a client that has stopped reading. So the
accepting is done here, and each connection is Hypercorn's `TCPServer`, which speaks HTTP/1.1, HTTP/2 and WebSockets.

The one rule: every connection is in one table, from which it can be ended: when its client is gone and something still
waits for it, and all of them at the end.
"""

from __future__ import annotations

import errno
import logging
import ssl
from pathlib import Path
from typing import Any, Final

import attrs
import trio
from hypercorn.config import Config
from hypercorn.trio.tcp_server import TCPServer
from hypercorn.trio.worker_context import WorkerContext
from hypercorn.typing import ConnectionState
from hypercorn.utils import wrap_app

from keeve.server.settings import BadSetting, ServerSettings

LOOK: Final = 5.0
"""Seconds between two looks at connections whose clients are gone."""
FULL: Final = frozenset((errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS))
"""What the system says when it has no room for another connection."""

log = logging.getLogger("keeve.server")


@attrs.define(eq=False)
class Connection:
    """A connection, and what ends all that is done for it. `gone`: its socket was seen closed."""

    socket: trio.socket.SocketType
    scope: trio.CancelScope
    gone: bool = False

    def end(self) -> None:
        """End it now. Who waits for a client that does not read wakes up by the closing alone."""
        self.socket.close()
        self.scope.cancel()


class Listening:
    """Where an application is reached."""

    def __init__(self, application: Any, settings: ServerSettings) -> None:
        self._settings = settings
        self._config = config_of(settings)
        self._application = wrap_app(application, 0, "asgi")
        self._context = WorkerContext(None)
        self._room = trio.Semaphore(settings.connections)
        self._connections: set[Connection] = set()
        self._over = trio.Event()
        self.port = settings.port
        """The port, once it listens."""

    @property
    def count(self) -> int:
        """How many connections there are."""
        return len(self._connections)

    async def run(self, stop: trio.Event, *, task_status: trio.TaskStatus[int] = trio.TASK_STATUS_IGNORED) -> None:
        """Accept connections until `stop`, then let those that are under way end for the grace, then end the rest."""
        settings = self._settings
        context = None if settings.tls_cert is None else tls(settings.tls_cert, settings.tls_key)
        found = await trio.open_tcp_listeners(settings.port, host=settings.host, backlog=256)
        listeners = [
            each if context is None else trio.SSLListener(each, context, https_compatible=True) for each in found
        ]
        self.port = found[0].socket.getsockname()[1]
        async with trio.open_nursery() as connections:
            try:
                async with trio.open_nursery() as accepting:
                    for listener in listeners:
                        accepting.start_soon(self._accept, listener, connections)
                    connections.start_soon(self._look)
                    task_status.started(self.port)
                    await stop.wait()
                    accepting.cancel_scope.cancel()
            finally:
                for each in found:
                    each.socket.close()
            await self._context.terminated.set()  # those that are idle end now, and the others after their answer
            if self._connections:
                with trio.move_on_after(settings.grace):
                    await self._over.wait()
            for connection in list(self._connections):
                connection.end()
            connections.cancel_scope.cancel()

    async def _accept(self, listener: Any, connections: trio.Nursery) -> None:
        while True:
            await self._room.acquire()
            try:
                stream = await listener.accept()
            except OSError as error:
                self._room.release()
                if error.errno not in FULL:
                    raise
                log.warning("no connection can be taken (%s)", error.strerror)
                await trio.sleep(0.1)
            except BaseException:
                self._room.release()
                raise
            else:
                connections.start_soon(self._serve, stream)

    async def _serve(self, stream: Any) -> None:
        socket = getattr(stream, "transport_stream", stream).socket
        with trio.CancelScope() as scope:
            connection = Connection(socket, scope)
            self._connections.add(connection)
            try:
                await TCPServer(self._application, self._config, self._context, ConnectionState({}), stream)
            except Exception:  # one connection ends no other
                log.exception("a connection has failed")
            finally:
                socket.close()
                self._connections.discard(connection)
                self._room.release()
                if not self._connections and self._context.terminated.is_set():
                    self._over.set()

    async def _look(self) -> None:
        """End what is still done for clients that were gone at the look before."""
        while True:
            await trio.sleep(LOOK)
            for connection in list(self._connections):
                if connection.gone:
                    connection.end()
                connection.gone = connection.socket.fileno() == -1


def config_of(settings: ServerSettings) -> Config:
    """What Hypercorn, or Anycorn, is told."""
    config = Config()
    config.include_server_header = False
    config.keep_alive_timeout = settings.idle_seconds
    config.ssl_handshake_timeout = settings.idle_seconds
    config.websocket_ping_interval = 20.0
    config.errorlog = logging.getLogger("hypercorn.error")
    config.accesslog = None
    return config


def tls(cert: Path, key: Path | None) -> ssl.SSLContext:
    """What TLS is spoken with. Raises `BadSetting` for files that cannot be used."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["h2", "http/1.1"])
    try:
        context.load_cert_chain(cert, key)
    except (OSError, ssl.SSLError) as error:
        raise BadSetting("tls_cert, tls_key", f"{cert}, {key}", f"they cannot be used ({error})") from error
    return context
