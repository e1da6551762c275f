"""Dialing: from what is to be connected to, to a channel.

    http://127.0.0.1:8420, https://…, ws://…/wire, wss://…     a WebSocket
    unix:/path/of/socket                                       a Unix socket
    ./data                                                     the Unix socket of the server that owns this store

The one rule: a token goes to the server that was named, and never into a URL.
"""

from __future__ import annotations

import os
import re
import ssl
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import anyio
import attrs
from anyio.abc import ByteStream

from keeve.client.websockets import WebSocketChannel
from keeve.private_files import read_private
from keeve.served import SOCKET, TOKEN, is_served, why_not_served
from keeve.wire.channels import ByteChannel, Channel, ChannelClosed
from keeve.wire.client_errors import BadURL, NoToken, Unreachable
from keeve.wire.tokens import TokenRefused

GREETING: Final = 1 << 24
"""Bytes of a body, until the server has said how many it sends."""

_GONE: Final = (anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream, OSError)
_BARE: Final = re.compile(r"([\w.-]+|\[[\da-fA-F:.]+\]):\d{1,5}(/.*)?")
"""An address of which the scheme was left out."""
_SCHEMES: Final = {"http": "ws", "ws": "ws", "https": "wss", "wss": "wss"}


@attrs.frozen
class Address:
    """Where a server is. `path` is that of a Unix socket, or of the WebSocket."""

    url: str
    path: str
    host: str = ""
    port: int = 0
    secure: bool = False

    @classmethod
    def of(cls, url: str | os.PathLike[str]) -> Address:
        """The address that is meant. Raises `BadURL`."""
        text = os.fspath(url)
        if not isinstance(text, str) or not text:
            raise BadURL(url)
        if text.startswith("unix:"):
            return cls(text, text.removeprefix("unix:").removeprefix("//"))
        if "://" not in text:
            if _BARE.fullmatch(text) and not Path(text).is_dir():
                raise BadURL(url, f"http://{text}")
            return cls(f"unix:{Path(text) / SOCKET}", str(Path(text) / SOCKET))
        try:
            parts = urlsplit(text)
            port = parts.port
        except ValueError:
            raise BadURL(url) from None
        scheme = _SCHEMES.get(parts.scheme)
        if scheme is None or not parts.hostname:
            raise BadURL(url)
        if "@" in parts.netloc or parts.query or parts.fragment:
            raise BadURL(url, beside=True)
        secure = scheme == "wss"
        path = parts.path if parts.scheme in ("ws", "wss") and parts.path not in ("", "/") else "/wire"
        return cls(text, path, parts.hostname, port or (443 if secure else 80), secure)

    @property
    def token(self) -> str:
        """The owner's token, where the server's folder is at hand. Raises `NoToken`, or `Unreachable`."""
        if self.host:
            raise NoToken(f"only beside a Unix socket is one looked for, and {self.url} is an address")
        socket = Path(self.path)
        if not is_served(socket):
            raise Unreachable(self.url, why_not_served(socket))
        path = socket.parent / TOKEN
        return read_private(path, "the server makes it", lambda what: NoToken(f"{path}: {what}")).decode().strip()

    async def dial(self, token: str, context: ssl.SSLContext | None = None) -> Channel:
        """A channel to there. Raises `OSError`, `ChannelClosed`, or that the server refuses the token."""
        if not self.host:
            try:
                return over(await anyio.connect_unix(self.path))
            except OSError as error:
                raise ConnectionError(why_not_served(Path(self.path))) from error
        stream: ByteStream
        if self.secure:
            stream = await anyio.connect_tcp(
                self.host, self.port, tls=True, ssl_context=context, tls_standard_compatible=False
            )
        else:
            stream = await anyio.connect_tcp(self.host, self.port)
        try:
            shown = f"[{self.host}]" if ":" in self.host else self.host
            return await WebSocketChannel.opened(stream, f"{shown}:{self.port}", self.path, token, GREETING)
        except TokenRefused:  # an OSError, too, being a PermissionError
            await anyio.aclose_forcefully(stream)
            raise
        except _GONE as error:
            await anyio.aclose_forcefully(stream)
            raise ChannelClosed from error
        except BaseException:
            await anyio.aclose_forcefully(stream)
            raise


def over(stream: ByteStream) -> Channel:
    """A channel over a stream of bytes."""

    async def read(most: int) -> bytes:
        try:
            return await stream.receive(most)
        except anyio.EndOfStream:
            return b""

    async def write(data: Any) -> None:
        await stream.send(bytes(data))

    async def close() -> None:
        await anyio.aclose_forcefully(stream)

    return ByteChannel(read, write, close, _GONE, GREETING)
