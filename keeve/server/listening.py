"""Listening: connections are accepted, as many as may be, and handed to Hypercorn's trio worker.

`hypercorn.trio.serve` has no limit on connections, keeps one whose client is gone until it would have been idle for too
long, and waits without end for a client that has stopped reading. So the accepting is done here, and each connection is
one of `keeve.server.http1`, which speaks HTTP/1.1 and WebSockets.

A place is given back by whoever does nothing with it: at once, where all are taken and it waits for a request; after
`idle_seconds` in any case; after `PATIENCE` where nothing of an answer is read; and by a client that has shown no token
after `idle_seconds` and `body_seconds`, whatever it does.

The one rule: a connection is over when one side says so. Whatever still waits for it has a moment to end, and then its
place is free.
"""

from __future__ import annotations

import errno
import logging
import math
import ssl
from functools import partial
from pathlib import Path
from typing import Any, Final

import trio
from hypercorn.config import Config
from hypercorn.trio.worker_context import WorkerContext
from hypercorn.typing import ConnectionState
from hypercorn.utils import wrap_app

from dataspace.errors import KeeveError
from dataspace.in_logs import traced
from keeve.server.http1 import Http1Server
from keeve.server.middleware import ON_KNOWN
from keeve.settings import BadServerSetting, ServerSettings

MOMENT: Final = 1.0
"""Seconds that what is done for a client has to end when that is gone."""
PATIENCE: Final = 120.0
"""Seconds in which a client has to take a piece of what it is sent."""
PIECE: Final = 1 << 16
"""Bytes of a piece."""
FULL: Final = frozenset((errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS))
"""What the system says when it has no room for another connection."""
PAUSE: Final = 0.1
"""Seconds until it is asked again."""

log = logging.getLogger("keeve.server")


class NotListening(KeeveError):
    """The address cannot be listened at."""

    def __init__(self, host: str, port: int, error: OSError) -> None:
        self.host = host
        self.port = port
        super().__init__(
            f"nobody can listen at {host}:{port} ({error.strerror or error}): give another --port or --host"
        )


class HttpConnection:
    """A connection, as Hypercorn is given it: a stream that notices when it is over.

    seconds: how long it may last until somebody who is known has asked on it.
    """

    def __init__(self, stream: Any, seconds: float) -> None:
        self._stream = stream
        self._socket = getattr(stream, "transport_stream", stream).socket
        self._over = False
        self._sending = trio.CancelScope()
        self.scope = trio.CancelScope(deadline=trio.current_time() + seconds)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def known(self) -> None:
        """Who asks on it is known: it may last."""
        if not self._over:
            self.scope.deadline = math.inf

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        """What the client sends; nothing when it is gone."""
        try:
            data: bytes = await self._stream.receive_some(max_bytes)
        except trio.BrokenResourceError:
            self.over()
            raise
        if not data:
            self.over()
        return data

    async def send_all(self, data: bytes) -> None:
        """Send it, for as long as the connection lasts and somebody reads.

        Hypercorn shields what it sends from the end of all else, so it is here that a client ends who does not read.
        """
        for start in range(0, len(data), PIECE):
            until = min(self.scope.deadline, trio.current_time() + PATIENCE)
            with trio.CancelScope(deadline=until) as self._sending:
                await self._stream.send_all(memoryview(data)[start : start + PIECE])
            if self._sending.cancelled_caught:
                self.end()
                raise trio.BrokenResourceError("who asked does not read")

    async def aclose(self) -> None:
        """End it from here."""
        self.over()
        with trio.move_on_after(MOMENT):  # over TLS there is a last word, which somebody would have to read
            await self._stream.aclose()

    def over(self) -> None:
        """What is still done for it has a moment to end."""
        if not self._over:
            self._over = True
            self.scope.deadline = self._sending.deadline = trio.current_time() + MOMENT

    def end(self) -> None:
        """End it now. Who waits for a client that does not read wakes up by the closing alone."""
        self.over()
        self._socket.close()
        self.scope.cancel()


class HttpListener:
    """Where an application is reached."""

    def __init__(self, application: Any, settings: ServerSettings) -> None:
        self._settings = settings
        self._config = config_of(settings)
        self._application = wrap_app(application, 0, "asgi")
        self._context = WorkerContext(None)
        self._room = trio.Semaphore(settings.connections)
        self._connections: set[HttpConnection] = set()
        self._idle: dict[HttpConnection, None] = {}
        """Those that wait for a request, the one first that has longest."""
        self._eased = trio.Event()
        self._over = trio.Event()
        self.port = settings.port
        """The port, once it listens."""

    @property
    def count(self) -> int:
        """How many connections there are."""
        return len(self._connections)

    async def run(self, stop: trio.Event, *, task_status: trio.TaskStatus[int] = trio.TASK_STATUS_IGNORED) -> None:
        """Accept connections until `stop`; those under way may end for the grace and a moment, then all is ended."""
        settings = self._settings
        context = None if settings.tls_cert is None else tls(settings.tls_cert, settings.tls_key)
        try:
            found = await trio.open_tcp_listeners(settings.port, host=settings.host, backlog=256)
        except OSError as error:
            raise NotListening(settings.host, settings.port, error) from error
        listeners = [
            each if context is None else trio.SSLListener(each, context, https_compatible=True) for each in found
        ]
        self.port = found[0].socket.getsockname()[1]
        async with trio.open_nursery() as connections:
            try:
                async with trio.open_nursery() as accepting:
                    for listener in listeners:
                        accepting.start_soon(self._accept, listener, connections)
                    task_status.started(self.port)
                    await stop.wait()
                    accepting.cancel_scope.cancel()
            finally:
                for each in found:
                    each.socket.close()
            await self._context.terminated.set()  # those that are idle end now, and the others after their answer
            if self._connections:
                with trio.move_on_after(settings.grace + MOMENT):  # in which they are told that it is over
                    await self._over.wait()
            for connection in list(self._connections):
                connection.end()
            connections.cancel_scope.cancel()

    async def _accept(self, listener: Any, connections: trio.Nursery) -> None:
        while True:
            await self._place(getattr(listener, "transport_listener", listener).socket)
            try:
                stream = await accepted(listener)
            except BaseException:
                self._room.release()
                raise
            connections.start_soon(self._serve, stream)

    async def _place(self, listening: trio.socket.SocketType) -> None:
        """Take a place for who wants one there. If there is none, who has waited longest for a request loses theirs."""
        while True:
            try:
                return self._room.acquire_nowait()
            except trio.WouldBlock:
                await trio.lowlevel.wait_readable(listening)
            for connection in self._idle:
                connection.end()
                break
            await self._eased.wait()

    def _is_idle(self, connection: HttpConnection, idle: bool) -> None:
        self._idle.pop(connection, None)
        if idle:
            self._idle[connection] = None
            self._ease()

    def _ease(self) -> None:
        """There may be a place."""
        self._eased.set()
        self._eased = trio.Event()

    async def _serve(self, stream: Any) -> None:
        settings = self._settings
        connection = HttpConnection(stream, settings.idle_seconds + settings.body_seconds)
        self._connections.add(connection)
        idle = partial(self._is_idle, connection)
        idle(True)
        try:
            with connection.scope:
                state = ConnectionState({ON_KNOWN: connection.known})
                await Http1Server(self._application, self._config, self._context, state, connection, idle=idle)
        except Exception as error:  # one connection ends no other
            log.error("a connection has failed", exc_info=traced(error))
        finally:
            connection.end()
            idle(False)
            self._connections.discard(connection)
            self._room.release()
            self._ease()
            if not self._connections and self._context.terminated.is_set():
                self._over.set()


async def accepted(listener: Any) -> Any:
    """The next connection that a listener takes. While the system has no room for it, those that are there go on."""
    while True:
        try:
            return await listener.accept()
        except OSError as error:
            if error.errno not in FULL:
                raise
            log.warning("no connection can be taken (%s)", error.strerror)
            await trio.sleep(PAUSE)


async def must_be_free(settings: ServerSettings) -> None:
    """Raise `NotListening` unless the address can be had, so that a start which cannot be makes no store."""
    try:
        for each in await trio.open_tcp_listeners(settings.port, host=settings.host):
            each.socket.close()
    except OSError as error:
        raise NotListening(settings.host, settings.port, error) from error


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
    """What TLS is spoken with. Raises `BadServerSetting` for files that cannot be used; asks for no password."""

    def encrypted() -> str:
        raise BadServerSetting("tls_key", str(key), "it is encrypted: openssl pkey makes one of it that is not")

    for name, path in (("tls_cert", cert), ("tls_key", key)):
        try:
            if path is not None:
                path.open("rb").close()
        except OSError as error:
            raise BadServerSetting(name, str(path), error.strerror or str(error)) from error
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    try:
        context.load_cert_chain(cert, key, encrypted)
    except (OSError, ssl.SSLError) as error:
        if getattr(error, "reason", None) == "KEY_VALUES_MISMATCH":
            what = "the key is not that of the certificate"
        else:
            what = f"tls_cert is to have a certificate in PEM, tls_key its private key ({error})"
        raise BadServerSetting("tls_cert, tls_key", f"{cert}, {key}", what) from error
    return context
