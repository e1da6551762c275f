"""A store in a folder with a server in this process, for tests of what asks one: its Unix socket, and a port."""

from __future__ import annotations

import io
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import attrs
import trio

from keeve import open_host
from keeve.api import now
from keeve.principals import OWNER
from keeve.server import Auth, Principal, ServerSettings, Serving, application
from keeve.server.auth import Tokens
from keeve.server.listening import HttpListener
from keeve.server.logs import Secrets, make_log
from keeve.server.owner import token_in
from keeve.server.tokens import Chains
from keeve.server.wire import serve_socket
from keeve.settings import VERBS
from keeve.wire.revocations import Revocations
from tests.cli_runner import Said, keeve
from vat.host.host import Host


@attrs.define
class ServedStore:
    """A server, and its store."""

    host: Host
    folder: Path
    token: str
    port: int

    @property
    def url(self) -> str:
        """Its address on the network."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def socket(self) -> str:
        """Its Unix socket."""
        return f"unix:{self.folder / 'socket'}"


@asynccontextmanager
async def served_store(folder: Path, **options: Any) -> AsyncIterator[ServedStore]:
    """A server of the store in that folder; `options` are those of `open_host`."""
    async with open_host(folder, **options) as host, trio.open_nursery() as nursery:
        token, _ = token_in(folder / "token", make=True)
        tokens = Tokens()
        tokens.add(token, Principal(OWNER, frozenset(VERBS)))
        auth = Auth(host, now, [tokens, Chains(token, Revocations(folder))])
        settings = ServerSettings(store=folder, port=0)
        log = make_log(Secrets(), form="json", level="error", out=io.StringIO())
        serving = Serving(host, settings, auth, now, nursery, log, secret=token)
        port: int = await nursery.start(HttpListener(application(serving), settings).run, serving.stopping)
        await nursery.start(serve_socket, serving)
        yield ServedStore(host, folder, token, port)
        serving.stopping.set()
        nursery.cancel_scope.cancel()


async def asked(*words: str | Path, **how: Any) -> Said:
    """Run `keeve` with these words, in another thread, so that a server in this one can answer."""
    return await trio.to_thread.run_sync(lambda: keeve(*words, **how))
