"""What a client says of a server whose certificate it does not believe, or that speaks no TLS."""

from __future__ import annotations

import ssl
from contextlib import suppress
from pathlib import Path

import pytest
import trio

from keeve.client import NoTLS, NotTrusted, connect
from tests.server_certificates import certificate


async def deaf(stream: trio.abc.Stream) -> None:
    await stream.send_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")


async def test_a_certificate_that_is_not_believed_is_said_to_be_that_and_what_helps(tmp_path: Path) -> None:
    cert, key = certificate(tmp_path)
    speaks = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    speaks.load_cert_chain(cert, key)
    believes = ssl.create_default_context(cafile=str(cert))

    async def shows(stream: trio.SocketStream) -> None:
        with suppress(trio.BrokenResourceError, ssl.SSLError):  # it does not believe us
            await trio.SSLStream(stream, speaks, server_side=True).do_handshake()

    async with trio.open_nursery() as nursery:
        listening = await nursery.start(
            trio.serve_tcp,
            shows,
            0,
        )
        plain = await nursery.start(trio.serve_tcp, deaf, 0)
        port, bare = (each[0].socket.getsockname()[1] for each in (listening, plain))
        with pytest.raises(NotTrusted, match=r"is not trusted here .*SSL_CERT_FILE"):
            async with connect(f"https://127.0.0.1:{port}", token="x"):
                pass
        with pytest.raises(NotTrusted, match=r"mismatch.*: connect by a name that it has"):
            async with connect(f"https://localhost:{port}", token="x", ssl_context=believes):
                pass
        with pytest.raises(NoTLS, match=r"TLS cannot be spoken .*connect to http://"):
            async with connect(f"https://127.0.0.1:{bare}", token="x"):
                pass
        nursery.cancel_scope.cancel()
