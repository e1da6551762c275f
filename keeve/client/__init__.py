"""Refs from another process: the sessions of a server, on trio, and on asyncio as well.

    async with keeve.client.connect("http://127.0.0.1:8420", token=token) as client:
        s = await client.get("s1")
        print(await s.turn("hello"))
        print(await client.get("s2").turn("hello"))       # both calls in one round trip

It needs the extra `keeve[client]`. `docs/client.md` says what there is.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from keeve.client.client import Client
from keeve.client.dialing import Address
from keeve.client.refs import RemotePromise, RemoteRef
from keeve.client.running import running
from keeve.client.streams import RemoteObservation, RemoteWatch
from keeve.wire.client_errors import BadURL, ClientClosed, ClientTooLarge, NoTLS, NoToken, NotTrusted, Unreachable

__all__ = [
    "BadURL",
    "Client",
    "ClientClosed",
    "ClientTooLarge",
    "NoTLS",
    "NoToken",
    "NotTrusted",
    "RemoteObservation",
    "RemotePromise",
    "RemoteRef",
    "RemoteWatch",
    "Unreachable",
    "connect",
]


@asynccontextmanager
async def connect(
    url: str | os.PathLike[str],
    *,
    token: str | None = None,
    patience: float = 60.0,
    ssl_context: ssl.SSLContext | None = None,
) -> AsyncIterator[Client]:
    """A client of the server at `url`, for as long as the block lasts.

    url: `http(s)://host:port`, `unix:/path/of/socket`, or the folder of the server's store on this machine.
    token: what it may do; None: the owner's, which is beside the Unix socket.
    patience: seconds that a call waits for a server that has gone away to come back.

    Raises `Unreachable` when it is not there now, `TokenRefused`, `BadURL`, `NoToken`.
    """
    address = Address.of(url)
    said = address.token if token is None else token

    async with running(lambda: address.dial(said, ssl_context), said, address.url, patience) as client:
        yield client
