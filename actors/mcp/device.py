"""`McpTools`: a device whose tools are those of a server of the Model Context Protocol.

    files = McpTools(["files-server", "--root", "/srv"], prefix="files_")
    async with open_host(..., devices={"tools": Tools(weather, files)}) as host:
        schemas = await tools.fetch()                     # of all of them; the server is started for this
        await host.spawn(Session, tools=schemas)

The server is started by the first who needs it, ends with the host, and is started again when it has ended by itself.
A session has the schemas as data: it is restored, forked and read without the server.

The one rule: whatever a server does is the outcome of the call that it was asked in, and no call is made twice.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Final

import trio

from actors.mcp.connection import (
    MEND_SERVER,
    Connection,
    Credential,
    Server,
    ServerGone,
    ServerUnavailable,
    check_installed,
)
from actors.mcp.contents import part_of, text_of, value_of
from actors.tools.declaring import check_said_of, names_given
from actors.tools.device import ASKING, Source
from actors.tools.errors import ApprovalWanted, BadArguments, BadTool, NoSuchTool, ToolFailed
from actors.tools.shortening import LONGEST, shortened
from dataspace.errors import KeeveError
from dataspace.urls import flaw_in
from dataspace.values import freeze
from vat.devices.devices import Effect, Policy, effect
from vat.devices.vault import Vault

PATIENCE: Final = 30.0
"""Seconds in which a server has to be ready."""


class NotFetched(KeeveError, RuntimeError, quotes=False):
    """The schemas of a server were wanted before they were asked for."""

    usage: ClassVar[bool] = True

    def __init__(self, server: str) -> None:
        super().__init__(server)
        self.server = server

    def __str__(self) -> str:
        return (
            f"nobody has asked {self.server} for its tools yet: await tools.fetch() while the host runs, or with "
            "keeve.blocking call tools.fetch_from_thread(); where it needs a credential, with vault.resolve"
        )


class McpTools(Source):
    """The tools of one server: one that is started with `command`, or one at `url` (Streamable HTTP).

    prefix: before the name of each tool, to tell them from others'.
    environment, folder: for the command, which else sees only HOME, PATH and the like.
    secrets: variables of its environment and the names in the host's vault of what is in them.
    credential: the name in the vault of the bearer token for a URL.
    policy: how calls are run, by default for at most 60 s and never twice; policies: by the name that a model uses.
    approval: names (as a model uses them) of tools whose every call a person has to approve of, or True for all.
      Where the server has no tool of a name in either, none of its tools is called, and what would is `BadTool`.
    longest: characters that a model is told of an answer.
    patience: seconds in which the server has to be ready.

    Raises `NotInstalled` without the extra `mcp`, and `BadTool`.
    """

    def __init__(
        self,
        command: Sequence[str] = (),
        *,
        url: str | None = None,
        prefix: str = "",
        environment: Mapping[str, str] | None = None,
        secrets: Mapping[str, str] | None = None,
        credential: str | None = None,
        folder: str | None = None,
        policy: Policy | None = None,
        policies: Mapping[str, Policy] | None = None,
        approval: Iterable[str] | bool = (),
        longest: int = LONGEST,
        patience: float = PATIENCE,
    ) -> None:
        check_installed()
        if isinstance(command, str) or bool(command) == (url is not None):
            raise BadTool("McpTools", 'give a command as a list (["server", "--option"]), or else url="https://..."')
        if url is not None and (flaw := flaw_in(url)) is not None:
            raise BadTool("McpTools", f"its url {flaw}; give one like https://tools.example/mcp")
        self.prefix = prefix
        self._server = Server(tuple(command), url, dict(environment or {}), dict(secrets or {}), credential, folder)
        self._policy = policy or Policy(timeout=60)
        self._policies = dict(policies or {})
        self._all = approval is True
        self._approval = names_given("McpTools", "approval", () if isinstance(approval, bool) else approval)
        self._check_prefix()
        self._longest = longest
        self._patience = patience
        self._hosts = 0
        self._connection: Connection | None = None
        self._schemas: list[dict[str, Any]] | None = None
        self.policies = {"run": self._policy}
        self.variants = {"run": self.variant}

    @property
    def schemas(self) -> list[dict[str, Any]]:
        """The tools in the form that models take, as the server told them last. Raises `NotFetched`."""
        if self._schemas is None:
            raise NotFetched(self._server.shown)
        return self._schemas

    async def fetch(self, credential: Callable[[str], str] | None = None) -> list[dict[str, Any]]:
        """The same, when the server has been asked; `credential` is `vault.resolve`, if it needs one.

        Raises `ServerUnavailable` or `NoCredential`, `BadTool` where it has not a tool of which something is said;
        and `NotFetched` where no trio runs.
        """
        if not trio.lowlevel.in_trio_run():
            raise NotFetched(self._server.shown)
        await self._connected(credential or Vault().resolve)
        return self.schemas

    async def ready(self, vault: Vault) -> None:
        """Have the server asked, unless it has told its tools before. Raises as `fetch`, with what to do."""
        if self._schemas is not None:
            return
        try:
            await self._connected(vault.resolve)
            return
        except ServerUnavailable as error:
            reason = error.reason
        named = f"{self._server.shown} of the tools {self.prefix}*" if self.prefix else self._server.shown
        raise ServerUnavailable(named, reason, MEND_SERVER())

    @effect(on_crash="retry")
    async def offer(self, effect: Effect) -> list[dict[str, Any]]:
        """The schemas of the server's tools, as they are now."""
        return await self.fetch(effect.credential)

    @effect
    async def run(self, effect: Effect, call: Mapping[str, Any], approved: bool = False) -> Any:
        """Carry out one tool call.

        Raises `ToolFailed` where the server says so, `NoSuchTool`, `BadArguments`, `BadTool`, `ServerUnavailable` and
        `ApprovalWanted` before anything was called, and `ServerGone` where the server ended in the middle.
        """
        name = call["function"]["name"]
        if self._needs_approval(name) and not approved:
            raise ApprovalWanted(name)
        arguments = _arguments(name, call["function"].get("arguments"))
        connection = await self._connected(effect.credential)
        from mcp import MCPError  # which was imported for the connection, in a thread

        if name not in connection.names:
            raise NoSuchTool(name, tuple(connection.names))

        async def told(progress: float, total: float | None, message: str | None) -> None:
            effect.progress({"progress": progress, "total": total, "message": message})

        meta: Any = {"keeve/effect": effect.id}
        try:
            result = await connection.client.call_tool(
                connection.names[name], arguments, progress_callback=told, meta=meta
            )
        except MCPError as error:
            if connection.gone.is_set() or _is_over(error):
                connection.gone.set()
                raise ServerGone(self._server.shown, name) from None
            raise ToolFailed(name, error.message) from None
        except (RuntimeError, ValueError) as error:
            if connection.gone.is_set():
                raise ServerGone(self._server.shown, name) from None
            # The client has no class of its own for an answer that is not what the server has declared.
            raise ToolFailed(name, str(error)) from None
        said = result.model_dump(by_alias=True, exclude_none=True, mode="json")
        if result.is_error:
            words = text_of([part_of(block) for block in said["content"]])
            raise ToolFailed(name, shortened(effect.redact(words), self._longest))
        return shortened(effect.redact(freeze(value_of(said), None, f"{name}()")), self._longest)

    def variant(self, call: Mapping[str, Any], approved: bool = False) -> tuple[str, Policy] | None:
        """Which tool a call is of, and how that is run. Names that nobody knows share the method's own policy."""
        name = call["function"]["name"]
        if self._needs_approval(name) and not approved:
            return f"{self.prefix}?", ASKING
        if name in self._policies:
            return name, self._policies[name]
        return self.prefix or "run", self._policy

    @property
    def _said_of(self) -> list[str]:
        """The names of tools of which something was said."""
        return [*self._policies, *sorted(self._approval)]

    def _check_prefix(self) -> None:
        for name in self._said_of:
            if not name.startswith(self.prefix):
                raise BadTool(
                    name,
                    f"something is said of it, and all tools of this server begin with {self.prefix!r}: "
                    f"give the name that a model uses, as {self.prefix + name!r}",
                )

    def _needs_approval(self, name: str) -> bool:
        return self._all or name in self._approval

    async def _connected(self, credential: Credential) -> Connection:
        """The connection, which begins if there is none. Whoever comes while one begins has what comes of that.

        Raises `BadTool` where something is said of a tool that the server has not: the one that was meant is called
        by nobody then, nor is any other.
        """
        connection = self._connection
        if connection is None or connection.gone.is_set():
            if not self._hosts:
                raise ServerUnavailable(self._server.shown, "no host runs that it is a device of; open one first")
            connection = self._connection = Connection(self._server, self.prefix, credential, self._patience)
        await connection.ready()
        check_said_of(self._said_of, connection.names)
        self._schemas = connection.schemas
        return connection

    async def __aenter__(self) -> McpTools:
        self._hosts += 1
        self._there = trio.lowlevel.current_trio_token()
        return self

    async def __aexit__(self, *raised: Any) -> None:
        self._hosts -= 1
        self._there = self._there if self._hosts else None
        if not self._hosts and self._connection is not None:
            ending, self._connection = self._connection, None
            await ending.end()

    def __repr__(self) -> str:
        return f"McpTools({self._server.shown!r}, prefix={self.prefix!r})"


def _arguments(name: str, sent: Any) -> dict[str, Any]:
    """What a model sent; whether it fits is the server's to say. Raises `BadArguments`."""
    try:
        arguments = json.loads(sent) if isinstance(sent, str) and sent else dict(sent or {})
    except (TypeError, ValueError, RecursionError) as error:
        raise BadArguments(name, f"they are no JSON ({error})") from None
    if not isinstance(arguments, dict):
        raise BadArguments(name, "they are no object")
    return arguments


def _is_over(error: Any) -> bool:
    """Whether the connection ended with this: it was closed, or a server over HTTP has forgotten it."""
    from mcp.types import CONNECTION_CLOSED

    return bool(error.code == CONNECTION_CLOSED or error.message == "Session terminated")
