"""Connections that hold a place and do nothing with it, and requests that are none: on real sockets."""

from __future__ import annotations

import errno
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import trio

from keeve import Session
from keeve.server import ServerSettings
from keeve.server.app import application
from keeve.server.listening import HttpListener, accepted
from tests.server_certificates import certificate
from tests.server_worlds import TOKENS, World, world

GONE = (trio.BrokenResourceError, trio.ClosedResourceError, OSError)
ALIVE = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
LONG = b"GET /api/v1/openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n"
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
FORM = b"POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-www-form-urlencoded\r\n"
UPGRADE = (
    b"GET /wire HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n"
)
KNOWN = f"Authorization: Bearer {TOKENS['owner']}\r\n".encode()

Rude = Callable[[trio.SocketStream], Awaitable[Any]]


@asynccontextmanager
async def listening(**settings: Any) -> AsyncIterator[tuple[World, HttpListener]]:
    async with world(ServerSettings(port=0, **settings)) as there, trio.open_nursery() as nursery:
        listens = HttpListener(application(there.serving), there.serving.settings)
        await nursery.start(listens.run, trio.Event())
        yield there, listens
        nursery.cancel_scope.cancel()


async def opened(listens: HttpListener) -> trio.SocketStream:
    """A connection of which little is taken in advance."""
    made = trio.socket.socket()
    made.setsockopt(trio.socket.SOL_SOCKET, trio.socket.SO_RCVBUF, 4096)
    await made.connect(("127.0.0.1", listens.port))
    return trio.SocketStream(made)


async def until(holds: Callable[[], bool]) -> None:
    with trio.fail_after(20):
        while not holds():  # noqa: ASYNC110  # the server tells nobody
            await trio.sleep(0.01)


async def status(stream: Any, asked: bytes = ALIVE) -> int:
    """What these bytes are answered with; 0 for nothing."""
    with suppress(*GONE):
        await stream.send_all(asked)
        return int(bytes(await stream.receive_some(12))[9:12] or 0)
    return 0


async def rest(stream: trio.SocketStream) -> bytes:
    came = b""
    with suppress(*GONE):
        async for piece in stream:
            came += piece
    return came


def says(said: bytes) -> Rude:
    return lambda stream: stream.send_all(said)


def repeats(said: bytes, after: bytes = b"") -> Rude:
    """Without an end, and reads what comes."""

    async def go_on(stream: trio.SocketStream) -> None:
        await stream.send_all(after)
        while True:
            await stream.send_all(said)
            with trio.move_on_after(0.02):
                while await stream.receive_some():
                    pass

    return go_on


async def reads_nothing(stream: trio.SocketStream) -> None:
    while True:
        await stream.send_all(LONG)


async def ends_and_reads_nothing(stream: trio.SocketStream) -> None:
    await stream.send_all(LONG * 100)
    await stream.send_eof()


@pytest.mark.parametrize(
    "rude",
    [
        pytest.param(says(b""), id="nothing"),
        pytest.param(says(b"GET /heal"), id="half a line"),
        pytest.param(repeats(b"X: y\r\n", b"GET / HTTP/1.1\r\nHost: localhost\r\n"), id="headers without end"),
        pytest.param(says(FORM + b"Content-Length: 9\r\n\r\ntok"), id="half a body"),
        pytest.param(repeats(b"1\r\nx\r\n", FORM + b"Transfer-Encoding: chunked\r\n\r\n"), id="a body without end"),
        pytest.param(says(ALIVE), id="one request"),
        pytest.param(repeats(ALIVE), id="requests without end"),
        pytest.param(says(UPGRADE + b"\r\n"), id="an upgrade without a token"),
        pytest.param(says(UPGRADE + KNOWN + b"\r\n\x82\x81\0\0\0\0\x90"), id="a frame before the answer"),
        pytest.param(says(PREFACE), id="HTTP/2"),
        pytest.param(says(PREFACE + b"\0\0\0\4\0\0\0\0\0"), id="HTTP/2 with settings"),
        pytest.param(says(PREFACE + b"\xff" * 100), id="HTTP/2 with something else"),
        pytest.param(reads_nothing, id="reads no answer"),
        pytest.param(ends_and_reads_nothing, id="has ended, and reads no answer"),
    ],
)
async def test_who_is_rude_gives_the_place_back(rude: Rude) -> None:
    async with listening(idle_seconds=0.1, body_seconds=0.1) as (there, listens), await opened(listens) as stream:

        async def is_rude() -> None:
            with suppress(*GONE):
                await rude(stream)

        async with trio.open_nursery() as nursery:
            await until(lambda: listens.count == 1)
            nursery.start_soon(is_rude)
            await until(lambda: listens.count == 0)
            nursery.cancel_scope.cancel()
    assert '"level": "error"' not in there.log.getvalue()


@pytest.mark.parametrize("gone", [True, False])
async def test_who_is_known_and_reads_no_answer_gives_the_place_back(
    gone: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("keeve.server.listening." + ("MOMENT" if gone else "PATIENCE"), 0.05)
    async with listening() as (there, listens), await opened(listens) as stream:
        said = await there.host.spawn(Session, "s")
        for _ in range(3):
            await said.turn("x" * 2_000_000)
        asked = b"GET /api/v1/sessions/s/messages HTTP/1.1\r\nHost: localhost\r\n"
        assert await status(stream, asked + KNOWN + b"\r\n") == 200
        assert listens.count == 1 or not gone
        if gone:
            await stream.send_eof()
        await until(lambda: listens.count == 0)


async def test_a_handshake_that_is_not_finished_gives_the_place_back(tmp_path: Path) -> None:
    cert, key = certificate(tmp_path)
    async with listening(tls_cert=cert, tls_key=key, idle_seconds=0.1, body_seconds=0.1) as (_, listens):
        for said in (b"", b"\x16\x03\x01\x02\x00\x01", ALIVE):
            async with await opened(listens) as stream:
                await stream.send_all(said)
                with trio.fail_after(20):
                    await rest(stream)
            await until(lambda: listens.count == 0)
    async with listening(tls_cert=cert, tls_key=key) as (_, listens):  # who finishes it is answered
        context = ssl.create_default_context(cafile=str(cert))
        context.set_alpn_protocols(["h2", "http/1.1"])
        stream = await opened(listens)
        async with trio.SSLStream(stream, context, server_hostname="127.0.0.1", https_compatible=True) as safe:
            await safe.do_handshake()
            assert safe.selected_alpn_protocol() == "http/1.1"
            assert await status(safe) == 200


async def test_where_no_place_is_left_who_waits_gives_theirs_and_who_asks_does_not() -> None:
    async with listening(connections=2, idle_seconds=60) as (there, listens):
        await there.host.spawn(Session, "s")
        asking, idle = await opened(listens), await opened(listens)
        follow = b"GET /api/v1/dataspace HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n" + KNOWN + b"\r\n"
        assert await status(asking, follow) == 200
        assert await status(idle) == 200
        with trio.fail_after(20):
            for _ in range(3):
                async with await opened(listens) as another:
                    assert await status(another) == 200
            await rest(idle)
            other = await opened(listens)
            assert await status(other, follow) == 200
            last = await opened(listens)
            with trio.move_on_after(0.1) as waited:
                await status(last)
            assert waited.cancelled_caught
            await trio.aclose_forcefully(other)
            assert int((await last.receive_some(12))[9:12]) == 200
            with trio.move_on_after(0.05) as goes_on:
                await rest(asking)
            assert goes_on.cancelled_caught
        for stream in (asking, idle, last):
            await trio.aclose_forcefully(stream)


BOTH = b"Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /api/v1 HTTP/1.1\r\n\r\n"


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        (b"POST /api/v1/sessions HTTP/1.1\r\nHost: localhost\r\n" + KNOWN + BOTH, 400),
        (b"POST /api/v1/sessions HTTP/1.1\r\nHost: localhost\r\n" + KNOWN + b"Content-Length: 1\r\n" + BOTH, 400),
        (b"POST / HTTP/1.0\r\nHost: localhost\r\n" + KNOWN + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: +1\r\n\r\nx", 400),
        (b"GET / HTTP/1.1\r\nHost : localhost\r\n\r\n", 400),
        (PREFACE, 505),
        (b"GET /healthz HTTP/3.0\r\nHost: localhost\r\n\r\n", 505),
        (UPGRADE + KNOWN + b"\r\n\x82\x81\0\0\0\0\x90", 400),
    ],
)
async def test_a_request_of_which_the_end_is_in_dispute_is_refused_and_is_the_last(asked: bytes, answer: int) -> None:
    async with listening() as (there, listens), await opened(listens) as stream:
        await stream.send_all(asked)
        with trio.fail_after(20):
            came = await rest(stream)
        assert came.startswith(b"HTTP/1.1 %d " % answer)
        assert came.count(b"HTTP/1.1") == 1
        assert there.log.getvalue() == ""


async def test_another_version_is_not_changed_to() -> None:
    async with listening() as (_, listens), await opened(listens) as stream:
        upgrade = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n"
        assert await status(stream, ALIVE[:-2] + upgrade) == 200


async def test_bytes_that_come_before_an_upgrade_has_its_answer_end_it_quietly() -> None:
    async with listening() as (there, listens), await opened(listens) as stream:
        there.serving.auth.ways.insert(0, lambda _: None)
        await stream.send_all(UPGRADE + KNOWN + b"\r\n")
        await stream.send_all(b"\x82\x81\0\0\0\0\x90")
        with trio.fail_after(20):
            came = await rest(stream)
        assert came.startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 101 "))
        assert '"level": "error"' not in there.log.getvalue()


async def test_while_there_is_no_room_for_a_connection_it_is_waited_for(autojump_clock: object) -> None:
    found: list[Any] = [OSError(errno.EMFILE, "Too many open files"), OSError(errno.ENOMEM, "No memory"), "stream"]

    class Listener:
        async def accept(self) -> Any:
            if isinstance(found[0], OSError):
                raise found.pop(0)
            return found.pop(0)

    assert await accepted(Listener()) == "stream"
    found.append(OSError(errno.EBADF, "Bad file descriptor"))
    with pytest.raises(OSError, match="Bad file"):
        await accepted(Listener())
