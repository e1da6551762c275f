"""Refs over a connection, served: a WebSocket at /wire, and a Unix socket in the folder of the store.

The Unix socket is for its owner alone (0600), and a token is needed there as well.

The one rule: who is behind a connection is asked at each call, as everywhere (`keeve.server.auth`).
"""

from __future__ import annotations

import os
import stat
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Final

import trio
from starlette.routing import BaseRoute, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from actors.session import BadSetting
from dataspace.catalog.recent import SessionRow
from dataspace.errors import KeeveError
from dataspace.in_logs import traced
from keeve.served import LONGEST, SOCKET
from keeve.server.auth import Principal, token_of
from keeve.server.beginning import beginning, kinds_of, may_be_same
from keeve.server.errors import Refusal
from keeve.server.listening import accepted
from keeve.server.serving import Serving
from keeve.settings import VERBS
from keeve.wire.channels import ByteChannel, ChannelClosed
from keeve.wire.connection import serve_connection
from keeve.wire.frames import BadFrame
from keeve.wire.guarding import Limits
from keeve.wire.sturdy import SturdyRefs
from keeve.wire.tokens import TokenRefused
from vat.errors import Refused
from vat.host.outside import HostRef

PATH: Final = "/wire"
OPEN: Final[tuple[str, ...]] = ()
"""Nothing here is for who is not known."""

_EVERYTHING: Final = frozenset(VERBS)
_GONE: Final = (trio.BrokenResourceError, trio.ClosedResourceError, OSError)


class BadSocket(KeeveError):
    """The Unix socket cannot be made."""

    usage: ClassVar[bool] = True

    def __init__(self, path: Path, what: str) -> None:
        self.path = path
        super().__init__(f"{path}: {what}; use the WebSocket, which is served all the same")


def routes(serving: Serving) -> list[BaseRoute]:
    """The WebSocket."""

    async def wire(socket: WebSocket) -> None:
        token = token_of(socket.headers, socket.cookies)
        await socket.accept()
        await serve(serving, SocketChannel(socket), "" if token is None else token)

    return [WebSocketRoute(PATH, wire)]


async def serve(serving: Serving, channel: SocketChannel | ByteChannel, token: str = "") -> None:
    """Serve one client. `token` is what it has shown before, for one that says none in its first message."""
    admit = partial(_admitted, serving, token)
    refs = SturdyRefs(serving.secret)
    with serving.metrics.under_way("wire"):
        await serve_connection(channel, serving.host, admit, refs, Limits(), serving.stopping, serving.ending)


def _admitted(serving: Serving, shown: str, token: str) -> TokenGuard:
    guard = TokenGuard(serving, token or shown)
    _ = guard.name
    return guard


class TokenGuard:
    """What the holder of a token may, as it is at that moment."""

    def __init__(self, serving: Serving, token: str) -> None:
        self._serving = serving
        self._token = token

    def _asking(self) -> Principal:
        try:
            return self._serving.auth.principal(self._token)
        except Refusal as error:
            raise TokenRefused(f"{error.message}; {error.remedy}") from None

    @property
    def name(self) -> str:
        """The principal's name."""
        return self._asking().name

    @property
    def unlimited(self) -> bool:
        """Whether it may do everything."""
        return self._asking().verbs >= _EVERYTHING

    @property
    def owns(self) -> bool:
        """Whether it asks with the owner's own token, and not with one that was made of it."""
        return self._asking().owns

    def must(self, verb: str, method: str, session: str | None = None) -> None:
        """Raise unless the token goes so far."""
        principal = self._asking()
        allowance = principal.allowance
        if allowance is None:
            may = principal.may(verb, session)
        else:
            may = allowance.allows(session, method, reads=verb == "read")
        if not may:
            what = "" if session is None else f" of session {session!r}" if session else " into one without an id"
            raise Refused("; ".join(principal.may_not(verb, f": {method}{what}")))

    def must_own(self, method: str) -> None:
        """Raise unless it is the owner's own token."""
        try:
            self._asking().must_own(f"have the store's files changed ({method})")
        except Refusal as error:
            raise Refused(f"{error.message}; {error.remedy}") from None

    def row(self, id: str, verb: str, method: str) -> SessionRow:
        """The row of a session that it names."""
        row = self._serving.auth.found(self._asking(), id)
        self.must(verb, method, row.id)
        return row

    def reaches(self, row: SessionRow) -> bool:
        """Whether a session is there."""
        return self._serving.auth.reaches(self._asking(), row)

    def listed(self) -> Callable[..., list[SessionRow]]:
        """A list that has all that are there, and few others."""
        return self._serving.auth.listed(self._asking())

    def sees(self, session: str, uid: bytes) -> bool:
        """Whether what a session has stated is there."""
        return self._serving.auth.sees(self._asking(), session, uid)

    def may_be_same(self, type: str, id: str | None, fields: Mapping[str, Any], there: HostRef[Any]) -> bool:
        """Whether that session may have been made for this."""
        kind = kinds_of(self._serving).get(type)
        return kind is not None and may_be_same(self._serving, kind, id, fields, there)

    async def begins(
        self, type: str, fields: Mapping[str, Any], there: HostRef[Any] | None = None
    ) -> Mapping[str, Any]:
        """What a session of that type begins with here, where these fields are given; or what that one began with."""
        kind = kinds_of(self._serving).get(type)
        try:
            return fields if kind is None else await beginning(self._serving, kind, fields, there)
        except Refusal as error:
            field = (error.param or type).removeprefix("fields.")
            raise BadSetting(field, f"cannot be: {error.message}; {error.remedy}") from None

    async def paced(self) -> None:
        """Wait until one thing more may be asked: what is asked here counts as a request does."""
        await self._serving.rates.wait(self._asking())

    @asynccontextmanager
    async def room(self, *, made: bool = False) -> AsyncIterator[None]:
        """The block makes a session, or finds one that was made."""
        try:
            async with self._serving.quota.room(self._asking(), made=made):
                yield
        except Refusal as error:
            raise Refused(f"{error.message}; {error.remedy}") from None


class SocketChannel:
    """A channel over a WebSocket of Starlette's."""

    def __init__(self, socket: WebSocket) -> None:
        self.limit = 0
        self.carried = 0
        self._socket = socket

    async def send(self, body: bytes) -> None:
        """Send a body."""
        try:
            await self._socket.send_bytes(body)
        except (WebSocketDisconnect, RuntimeError) as error:  # what is sent after the end
            raise ChannelClosed from error
        self.carried += 1

    async def receive(self) -> bytes:
        """The next body."""
        try:
            message = await self._socket.receive()
        except (WebSocketDisconnect, RuntimeError) as error:
            raise ChannelClosed from error
        if message["type"] == "websocket.disconnect":
            raise ChannelClosed
        self.carried += 1
        body = message.get("bytes")
        if body is None:
            raise BadFrame("it is text, and bodies are binary")
        if len(body) > self.limit:
            raise BadFrame(f"it has {len(body)} bytes, and {self.limit} may be in one")
        return bytes(body)

    async def close(self) -> None:
        """End it."""
        with suppress(WebSocketDisconnect, RuntimeError):
            await self._socket.close()


async def serve_socket(serving: Serving, *, task_status: trio.TaskStatus[Path] = trio.TASK_STATUS_IGNORED) -> None:
    """Serve clients on the Unix socket, until the server stops. Raises `BadSocket`."""
    path = (serving.settings.store / SOCKET).absolute()
    listening = await made_socket(path)
    made = os.lstat(path)
    try:
        async with trio.open_nursery() as connections:
            task_status.started(path)
            with trio.CancelScope() as accepting:
                connections.start_soon(_cancel_at, serving.stopping, accepting)
                await _accept(serving, trio.SocketListener(listening), connections)
    finally:
        listening.close()
        with suppress(OSError):
            if os.lstat(path).st_ino == made.st_ino:
                os.unlink(path)


async def _accept(serving: Serving, listener: trio.SocketListener, connections: trio.Nursery) -> None:
    room = trio.Semaphore(serving.settings.connections)
    while True:
        await room.acquire()
        connections.start_soon(_serve_stream, serving, await accepted(listener), room)


async def _cancel_at(event: trio.Event, scope: trio.CancelScope) -> None:
    await event.wait()
    scope.cancel()


async def _serve_stream(serving: Serving, stream: trio.SocketStream, room: trio.Semaphore) -> None:
    try:
        channel = ByteChannel(stream.receive_some, stream.send_all, partial(trio.aclose_forcefully, stream), _GONE, 0)
        await serve(serving, channel)
    except Exception as error:  # one connection ends no other
        serving.log.error("a connection has failed", exc_info=traced(error))
    finally:
        room.release()


async def made_socket(path: Path) -> trio.socket.SocketType:
    """A Unix socket that listens at `path`, for its owner alone, in the place of one that nobody serves any more."""
    if len(os.fsencode(path)) > LONGEST - len(".new"):
        raise BadSocket(path, f"a Unix socket's path has at most {LONGEST} bytes")
    new = path.with_name(f"{path.name}.new")
    with suppress(FileNotFoundError):
        if not stat.S_ISSOCK(os.lstat(path).st_mode):
            raise BadSocket(path, "it is there, and no socket")
    listening = trio.socket.socket(trio.socket.AF_UNIX, trio.socket.SOCK_STREAM)
    try:
        with suppress(FileNotFoundError):
            os.unlink(new)
        await listening.bind(str(new))
        os.chmod(new, 0o600)
        listening.listen(64)
        os.rename(new, path)  # in one step, and so without a moment in which others may connect
    except OSError as error:
        listening.close()
        raise BadSocket(path, str(error.strerror)) from error
    except BaseException:
        listening.close()
        raise
    return listening
