"""One connection to a server of the Model Context Protocol: from its start to its end, in a task of its own.

The official client does the talking. It runs on anyio, so under trio; what it opens it must close in the same task.

The one rule: a connection ends once. `gone` says so, whatever the reason was: the server ended, or the host does.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, ClassVar, Final

import attrs
import trio

from actors.mcp.contents import names_of, schema_of
from dataspace.errors import KeeveError
from dataspace.remedies import Remedy
from dataspace.urls import shown
from dataspace.values import freeze
from vat.devices.outcomes import alone
from vat.devices.vault import Vault

if TYPE_CHECKING:
    from mcp import Client

LAST_WORDS: Final = 2000
"""Bytes of what a server has written to its standard error that are shown when it cannot be started: whole lines."""

LINGER: Final = 0.5
"""Seconds in which a server that has ended can still be heard: what it started may hold its standard error open."""

MEND_SERVER: Final = Remedy(
    "mend-server",
    ". See that it can be started and reached, and ask again; with tools=[] a session is made without tools",
)

Credential = Callable[[str], str]


class NotInstalled(KeeveError, ImportError, quotes=False):
    """The package that tools of servers need is not there."""

    usage: ClassVar[bool] = True

    def __str__(self) -> str:
        return "McpTools needs the official package mcp, which is not there: install it with pip install 'keeve[mcp]'"


class ServerUnavailable(KeeveError, OSError):
    """A server of tools (`server`) could not be started or reached, so nothing was called; `reason` says why.

    remedy: what whoever asks can do, where that is no model.
    """

    def __init__(self, server: str, reason: str, remedy: str = "") -> None:
        super().__init__(server, reason, remedy)
        self.server = server
        self.reason = reason
        self.remedy = remedy

    def __str__(self) -> str:
        return f"the server {self.server} cannot be used, and nothing was called: {self.reason}{self.remedy}"


class ServerGone(KeeveError, OSError, quotes=False):
    """A server of tools (`server`) ended during a call of `name`, which may have taken effect."""

    def __init__(self, server: str, name: str) -> None:
        super().__init__(server, name)
        self.server = server
        self.name = name

    def __str__(self) -> str:
        return (
            f"the server {self.server} ended during this call of {self.name}; it may have taken effect all the same: "
            "find out before you call again. It is started again for the next call"
        )


@attrs.frozen
class Server:
    """Where a server is: a command to start, or a URL; and the names of the credentials that it is given."""

    command: Sequence[str]
    url: str | None
    environment: Mapping[str, str]
    secrets: Mapping[str, str]
    credential: str | None
    folder: str | None

    @property
    def shown(self) -> str:
        """What it is called in errors: neither arguments nor a query, which may hold what nobody should see."""
        return os.path.basename(self.command[0]) if self.command else shown(str(self.url))


def check_installed() -> None:
    """Raise `NotInstalled` unless the official package is there."""
    if find_spec("mcp") is None:
        raise NotInstalled


class Connection:
    """A connection that begins now. `ready` waits until it can be used."""

    client: Client
    schemas: list[dict[str, Any]]
    """The server's tools, as it told them when the connection began, in the form that models take."""
    names: dict[str, str]
    """What the server calls each of them, by the name that a model uses."""

    def __init__(self, server: Server, prefix: str, credential: Credential, patience: float) -> None:
        self._server = server
        self._prefix = prefix
        self._ask = credential
        self._given: dict[str, str] = {}
        self._patience = patience
        self._begun = trio.Event()
        self._failure: Exception | None = None
        self._over = trio.Event()
        self.gone = trio.Event()
        """Set when it is of no use any more; whoever sets it ends the connection."""
        # Not a nursery: a device is entered and left, and what is opened in between could not be closed in that order.
        trio.lowlevel.spawn_system_task(self._run)

    async def ready(self) -> None:
        """Raises `ServerUnavailable` or `NoCredential` where it comes to no connection in `patience` seconds."""
        await self._begun.wait()
        if self._failure is not None:
            raise self._failure

    async def end(self) -> None:
        """End it, and the server if it was started here."""
        self.gone.set()
        await self._over.wait()

    async def _run(self) -> None:
        words = _Words()
        failure: BaseException | None = None
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(words.listen)
                with trio.CancelScope(deadline=trio.current_time() + self._patience) as limit:
                    try:
                        await self._connected(words, limit)
                    except Exception as error:  # noqa: BLE001 - it is told to those who wait
                        failure = alone(error)
                words.file.close()
                with trio.move_on_after(LINGER):
                    await words.over.wait()
                nursery.cancel_scope.cancel()
        finally:
            self._failure = self._explained(failure, words.last)
            self.gone.set()
            self._begun.set()
            self._over.set()
            await words.aclose()

    async def _connected(self, words: _Words, limit: trio.CancelScope) -> None:
        """Stay connected; once it is, there is no `limit` any more."""
        await trio.to_thread.run_sync(_imported, self._server)
        from mcp import Client

        async with AsyncExitStack() as stack:
            transport = await _transport(self._server, self._resolved, words, stack)
            self.client = await stack.enter_async_context(Client(_Watched(transport, self.gone)))
            tools = {tool["name"]: tool for tool in await _listed(self.client)}
            names = names_of(tools, self._prefix)
            redact = self._hiding().redact_value
            self.schemas = [redact(freeze(schema_of(tool, names[own]))) for own, tool in tools.items()]
            self.names = {name: own for own, name in names.items()}
            limit.deadline = math.inf
            self._begun.set()
            await self.gone.wait()

    def _explained(self, failure: BaseException | None, words: str) -> Exception:
        """Why there is no connection."""
        if isinstance(failure, KeeveError):
            return failure
        what = f"it did not answer in {self._patience:g} s" if failure is None else str(failure)
        reason = self._hiding().redact(f"{what or type(failure).__name__}{words}")
        return ServerUnavailable(self._server.shown, reason)

    def _resolved(self, name: str) -> str:
        """The value of a credential, noted as given to the server, which may say it again."""
        self._given[name] = self._ask(name)
        return self._given[name]

    def _hiding(self) -> Vault:
        """What takes out of text the credentials that the server was given."""
        vault = Vault({name: partial(str, value) for name, value in self._given.items()})
        for name in self._given:
            vault.resolve(name)
        return vault


def _imported(server: Server) -> None:
    """Import what a connection needs, in a thread: it may take longer than a host may be held."""
    import_module("mcp")
    if server.url is not None:
        import_module("mcp.client.streamable_http")


async def _transport(
    server: Server, credential: Credential, words: _Words, stack: AsyncExitStack
) -> AbstractAsyncContextManager[Any]:
    if server.url is not None:
        import httpx2  # as `mcp` below: for who connects to a server
        from mcp.client.streamable_http import streamable_http_client

        headers = {}
        if server.credential is not None:
            headers["Authorization"] = f"Bearer {credential(server.credential).strip()}"
        client = httpx2.AsyncClient(headers=headers, timeout=httpx2.Timeout(30.0, read=300.0))
        return streamable_http_client(server.url, http_client=await stack.enter_async_context(client))
    from mcp import StdioServerParameters, stdio_client

    secrets = {variable: credential(name) for variable, name in server.secrets.items()}
    started = StdioServerParameters(
        command=server.command[0],
        args=list(server.command[1:]),
        env={**server.environment, **secrets},
        cwd=server.folder,
    )
    return stdio_client(started, errlog=words.file)


async def _listed(client: Client) -> list[Mapping[str, Any]]:
    tools: list[Mapping[str, Any]] = []
    cursor = None
    while True:
        page = await client.list_tools(cursor=cursor)
        tools += [tool.model_dump(by_alias=True, exclude_none=True, mode="json") for tool in page.tools]
        cursor = page.next_cursor
        if cursor is None:
            return tools


class _Words:
    """The standard error of a server: read, so that it never blocks, and its end kept."""

    def __init__(self) -> None:
        self._kept = b""
        self._cut = False  # the first line that is kept may have lost its beginning
        self.over = trio.Event()
        reading, writing = os.pipe()
        self._stream = trio.lowlevel.FdStream(reading)
        self.file = os.fdopen(writing, "w")

    async def listen(self) -> None:
        """Read until nobody can write any more."""
        while piece := await self._stream.receive_some():
            self._cut = self._cut or len(self._kept) + len(piece) > LAST_WORDS
            self._kept = (self._kept + piece)[-LAST_WORDS:]
        self.over.set()

    async def aclose(self) -> None:
        self.file.close()
        await self._stream.aclose()

    @property
    def last(self) -> str:
        """What it said last, as the end of a sentence; "" for nothing."""
        # Not the rest of a line: of a credential that was in it, nobody could find the half that is left.
        text = (self._kept.partition(b"\n")[2] if self._cut else self._kept).decode(errors="replace").strip()
        if not text and self._cut:
            text = f"(a line of more than {LAST_WORDS} bytes)"
        return f". It said: {text}" if text else ""


class _Watched:
    """A transport whose end is noticed."""

    def __init__(self, transport: AbstractAsyncContextManager[Any], gone: trio.Event) -> None:
        self._transport = transport
        self._gone = gone

    async def __aenter__(self) -> tuple[Any, Any]:
        reading, writing = await self._transport.__aenter__()
        return _Reading(reading, self._gone), writing

    async def __aexit__(self, *raised: Any) -> bool | None:
        return await self._transport.__aexit__(*raised)


class _Reading:
    """What comes from a server, and `gone` when no more will."""

    def __init__(self, stream: Any, gone: trio.Event) -> None:
        self._stream = stream
        self._gone = gone

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    async def __aenter__(self) -> _Reading:
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *raised: Any) -> bool | None:
        end: bool | None = await self._stream.__aexit__(*raised)
        return end

    def __aiter__(self) -> _Reading:
        return self

    async def __anext__(self) -> Any:
        try:
            return await self._stream.__anext__()
        except StopAsyncIteration:
            self._gone.set()
            raise
