"""A server in this process, for tests: the whole application on a host in memory, asked through its ASGI interface."""

from __future__ import annotations

import io
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import attrs
import httpx2
import trio

from keeve.principals import OWNER
from keeve.server import Auth, Principal, ServerSettings, Serving, application, openai
from keeve.server.auth import Tokens
from keeve.server.logs import Secrets, make_log
from keeve.settings import VERBS
from keeve.testing import FakeClock, MemoryLog, memory_host
from tests.vat.hosts import settled
from vat.host.host import Host
from vat.objects.types import type_of

TOKENS = {"owner": "owner-token-0123456789", "ann": "ann-token-0123456789", "bob": "bob-token-0123456789"}
"""The owner may everything; the others what a principal may."""


@attrs.define
class World:
    """A server, and who asks it."""

    serving: Serving
    app: Any
    log: io.StringIO
    clients: dict[str, httpx2.AsyncClient]
    secrets: Secrets

    @property
    def host(self) -> Host:
        """Its host."""
        return self.serving.host

    @property
    def owner(self) -> httpx2.AsyncClient:
        """A client with the owner's token."""
        return self.clients["owner"]

    @property
    def ann(self) -> httpx2.AsyncClient:
        """A client with the token of somebody else."""
        return self.clients["ann"]

    @property
    def bob(self) -> httpx2.AsyncClient:
        """And of another one."""
        return self.clients["bob"]

    @property
    def nobody(self) -> httpx2.AsyncClient:
        """A client without a token."""
        return self.clients["nobody"]

    async def settled(self) -> None:
        """Wait until nothing more happens by itself: neither here nor in the thread that writes."""
        await settled(self.host, cushion=0.05)  # models wait a moment, so that whoever listens does so


@asynccontextmanager
async def world(
    server: ServerSettings | None = None, log: MemoryLog | None = None, **options: Any
) -> AsyncIterator[World]:
    """A server on a host in memory; `options` are those of `keeve.api.run_host`."""
    settings = server or ServerSettings()
    clock = options.setdefault("clock", FakeClock())
    out = io.StringIO()
    secrets, tokens = Secrets(), Tokens()
    for name, token in TOKENS.items():
        tokens.add(token, Principal(OWNER, frozenset(VERBS)) if name == OWNER else Principal(name))
        secrets.add(token)
    async with memory_host(log, **options) as host, trio.open_nursery() as nursery:
        writes = make_log(secrets, form="json", level="debug", out=out)
        devices = options.get("devices", {})
        models = tuple(name for name in devices if name != "tools") or ("model",)
        auth, tools = Auth(host, clock, [tokens]), devices.get("tools")
        types = {type_of(each).name: each for each in options.get("actors", ())}
        serving = Serving(host, settings, auth, clock, nursery, writes, models=models, tools=tools, types=types)
        app = application(serving)
        await openai.start(serving)
        clients = {name: _client(app, token) for name, token in TOKENS.items()} | {"nobody": _client(app, None)}
        yield World(serving, app, out, clients, secrets)
        serving.stopping.set()
        nursery.cancel_scope.cancel()


def asked_by(name: str, app: Any) -> httpx2.AsyncClient:
    """A client of an application, with the token of that name."""
    return _client(app, TOKENS[name])


def _client(app: Any, token: str | None) -> httpx2.AsyncClient:
    headers = {} if token is None else {"authorization": f"Bearer {token}"}
    transport = httpx2.ASGITransport(app=app, raise_app_exceptions=True)
    return httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:8420", headers=headers)
