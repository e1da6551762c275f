"""`Tools`: a device that carries out a model's tool calls with functions.

    @tool(timeout=20, on_crash="retry")
    async def weather(city: str, days: int = 1) -> str:
        "The weather in a city."

    def delete(path: str) -> None:            # runs in a thread
        ...

    tools = Tools(weather, tool(approval=True)(delete), McpTools(["some-server"], prefix="files_"))
    open_host(..., devices={"tools": tools});  host.spawn(Session, tools=tools)

Each tool has its own policy: a call of it is a variant of the effect `run`, with its name (`vat.devices.devices`).

Whose tool a name is follows from what `Tools` was given, and not from what a server says today: a function's, or that
of the source with the longest prefix that fits. So it is the same after a restart, when no server has been asked yet,
and no server can take a name that is another's: what it declares beyond its own is refused with `BadTool` (`schemas`).

The one rule: one call, one tool, one outcome. Whatever a function does is told as the outcome of its call.
"""

from __future__ import annotations

import inspect
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from contextlib import AsyncExitStack
from functools import partial
from types import TracebackType
from typing import Any, Final, TypeAlias

import attrs
import trio

from actors.tools.declaring import check_said_of, declared, names_given
from actors.tools.errors import ApprovalWanted, BadTool, NoSuchTool
from actors.tools.shortening import LONGEST, shortened
from actors.tools.signatures import Signature
from dataspace.values import freeze
from vat.devices.devices import Effect, Policy, effect
from vat.devices.vault import Vault
from vat.failures import advice_on

Function: TypeAlias = Callable[..., Any]

THREADS: Final = 40
"""Threads at once for the plain functions of one `Tools`."""

_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}")
"""What services take for the name of a function."""

ASKING: Final = Policy(on_crash="retry")
"""How it is found out that a call has to be approved of: nothing happens, so it may happen again."""


def _remedy(given: object) -> str:
    """What to give instead of what is no function."""
    return (
        "give each of them: Tools(*functions)" if isinstance(given, list | tuple) else "give a `def` or an `async def`"
    )


class Fetching(ABC):
    """What knows its tools when it has asked others for them, in the thread of the host that it is a device of."""

    _there: trio.lowlevel.TrioToken | None = None
    """Where that host runs."""

    @abstractmethod
    async def fetch(self, credential: Callable[[str], str] | None = None) -> list[dict[str, Any]]:
        """The schemas, when the sources were asked for theirs; `credential` is `vault.resolve`, if they need one."""

    def fetch_from_thread(self, credential: Callable[[str], str] | None = None) -> list[dict[str, Any]]:
        """The same from another thread than the host's, while it runs: for `keeve.blocking`, and asyncio programs."""
        if self._there is None:
            return trio.run(self.fetch, credential)  # which says that there is no host, where one is needed
        return trio.from_thread.run(self.fetch, credential, trio_token=self._there)


class Source(Fetching):
    """Tools from elsewhere (`McpTools`), to be offered among others: a device by itself as well."""

    prefix: str
    """What the names of its tools begin with."""

    @property
    @abstractmethod
    def schemas(self) -> list[dict[str, Any]]:
        """In the form that models take. Raises what says how they are fetched, when they were not."""

    async def ready(self, vault: Vault) -> None:
        """Have them asked for, unless they are known; what it raises says what to do."""
        await self.fetch(vault.resolve)

    @abstractmethod
    def variant(self, call: Mapping[str, Any], approved: bool = False) -> tuple[str, Policy] | None:
        """As in `Tools`."""

    @abstractmethod
    async def run(self, effect: Effect, call: Mapping[str, Any], approved: bool = False) -> Any:
        """As in `Tools`."""

    @abstractmethod
    async def __aenter__(self) -> Source: ...

    @abstractmethod
    async def __aexit__(self, *raised: Any) -> None: ...


@attrs.frozen(eq=False)
class _Tool:
    function: Function
    signature: Signature
    policy: Policy
    approval: bool
    longest: int


class Tools(Fetching):
    """A device that runs these functions, each under its own name; what is said here comes before what `@tool` says.

    An `async def` runs in the host's event loop, a plain `def` in a thread, of which there are at most `threads`. A
    function takes what the model sends as keyword arguments; one with a parameter annotated `Effect` is given that as
    well. Sources such as `McpTools` stand among the functions; each but one needs a `prefix`. Where one prefix begins
    with another, the longer one's source has all names that begin with it.

    policy: how tools are run that say nothing themselves; by default a call that was under way when the host died is
      not run again. policies: by the name of a tool.
    approval: names of tools whose every call a person has to approve of first. What is said here is said of functions;
      a source is told itself what is to be said of its tools.
    longest: characters that a model is told of an answer.

    Raises `BadTool`.
    """

    def __init__(
        self,
        *tools: Function | Source,
        policy: Policy | None = None,
        policies: Mapping[str, Policy] | None = None,
        approval: Iterable[str] = (),
        longest: int = LONGEST,
        threads: int = THREADS,
    ) -> None:
        self._tools: dict[str, _Tool] = {}
        self._sources: dict[str, Source] = {}
        usual, own, asked = policy or Policy(), dict(policies or {}), names_given("Tools", "approval", approval)
        for each in tools:
            if isinstance(each, Source):
                if each.prefix in self._sources:
                    raise BadTool(
                        repr(each), f"there are two sources with the prefix {each.prefix!r}; give each its own"
                    )
                self._sources[each.prefix] = each
                continue
            said = declared(each) if callable(each) else None
            if said is None:
                raise BadTool(repr(each), f"it is no function; {_remedy(each)}")
            signature = Signature.of(each, said.name, said.description)
            name = signature.name
            if not _NAME.fullmatch(name):
                raise BadTool(
                    name, "models take names of letters, digits, _ and -, at most 64; give it one: @tool(name=...)"
                )
            if name in self._tools:
                raise BadTool(name, "there are two of that name; rename one")
            how = own.get(name) or said.policy or usual
            longest_of = said.longest or longest
            self._tools[name] = _Tool(each, signature, how, said.approval or name in asked, longest_of)
        check_said_of((*own, *sorted(asked)), self._tools)
        self._threads = trio.CapacityLimiter(threads)
        self._entered: list[AsyncExitStack] = []
        self.policies = {"run": usual}
        self.variants = {"run": self.variant}

    @property
    def schemas(self) -> list[dict[str, Any]]:
        """What a `Session` or a `Toolbox` is given as `tools`. Those of sources must have been fetched.

        Raises `BadTool` for a name that a source declares and calls of which would go elsewhere, or that it has twice.
        """
        found = {name: tool.signature.schema for name, tool in self._tools.items()}
        for source in self._sources.values():
            for schema in source.schemas:
                name = schema["function"]["name"]
                self._check_is_of(source, name, found)
                found[name] = schema
        return list(found.values())

    def _check_is_of(self, source: Source, name: str, found: Mapping[str, Any]) -> None:
        owner = self._source(name)
        if name in self._tools:
            what = f"a function and {source!r} both have it; rename the function, or give the source another prefix"
        elif owner is not source:
            # What its prefix does not fit would be nobody's, or another's.
            whose = "no source has" if owner is None else f"{owner!r} has"
            what = f"{source!r} declares it, and {whose} the names that begin like it; give one of them another prefix"
        elif name in found:
            what = f"{source!r} declares it twice; rename one there"
        else:
            return
        raise BadTool(name, what)

    async def fetch(self, credential: Callable[[str], str] | None = None) -> list[dict[str, Any]]:
        """The schemas, when the sources were asked for theirs; `credential` is `vault.resolve`, if they need one."""
        for source in self._sources.values():
            await source.fetch(credential)
        return self.schemas

    async def ready(self, vault: Vault) -> None:
        """Have the sources asked that have not told their tools yet, so that `schemas` has them all."""
        for source in self._sources.values():
            await source.ready(vault)

    async def __aenter__(self) -> Tools:
        stack = AsyncExitStack()
        async with stack:
            for source in self._sources.values():
                await stack.enter_async_context(source)
            self._entered.append(stack.pop_all())
            self._there = trio.lowlevel.current_trio_token()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        ending = self._entered.pop()
        self._there = self._there if self._entered else None
        await ending.aclose()

    @effect(on_crash="retry")
    async def offer(self, effect: Effect) -> list[dict[str, Any]]:
        """The schemas of all tools, as they are now."""
        return await self.fetch(effect.credential)

    @effect
    async def run(self, effect: Effect, call: Mapping[str, Any], approved: bool = False) -> Any:
        """Carry out one tool call.

        Raises `NoSuchTool`, `BadArguments`, what the function raises, `NotAValue` for what it returns, and, without
        having done anything, `ApprovalWanted` for a call that was not `approved` by a person and has to be.
        """
        name = call["function"]["name"]
        tool = self._tools.get(name)
        if tool is None:
            source = self._source(name)
            if source is None:
                raise NoSuchTool(name, self._known())
            try:
                return await source.run(effect, call, approved)
            except NoSuchTool as error:
                if error.name != name:  # it has called one itself
                    raise
            raise NoSuchTool(name, self._known())
        arguments = tool.signature.arguments(call["function"].get("arguments"))
        if tool.approval and not approved:
            raise ApprovalWanted(name)
        given = await self._called(tool, effect, arguments)
        return shortened(effect.redact(freeze(given, None, f"{name}()")), tool.longest)

    def variant(self, call: Mapping[str, Any], approved: bool = False) -> tuple[str, Policy] | None:
        """Which tool a call is of, and how that is run."""
        name = call["function"]["name"]
        tool = self._tools.get(name)
        if tool is None:
            source = self._source(name)
            return None if source is None else source.variant(call, approved)
        return (f"{name}?", ASKING) if tool.approval and not approved else (name, tool.policy)

    def _known(self) -> tuple[str, ...]:
        """The names of all tools that can be called; of a source that has told none yet, what they begin with."""
        found = dict.fromkeys(self._tools)
        for prefix, source in self._sources.items():
            try:
                told = [str(schema["function"]["name"]) for schema in source.schemas]
            except Exception:  # noqa: BLE001  # it says how they are fetched, whatever its author raises
                told = [f"{prefix}*"]
            found |= dict.fromkeys(name for name in told if self._source(name) is source)
        return tuple(found)

    def _source(self, name: str) -> Source | None:
        fits = max((prefix for prefix in self._sources if name.startswith(prefix)), key=len, default=None)
        return None if fits is None else self._sources[fits]

    async def _called(self, tool: _Tool, effect: Effect, arguments: dict[str, Any]) -> Any:
        waits = inspect.iscoroutinefunction(tool.function)
        if tool.signature.effect is not None:
            arguments[tool.signature.effect] = effect if waits else _in_thread(effect)
        if waits:
            try:
                return await tool.function(**arguments)
            except RuntimeError as error:
                advice = advice_on(type(error).__name__, str(error))
                if advice is None:
                    raise
                raise RuntimeError(f"{error}: {advice}") from error  # a note would not reach the model
        return await trio.to_thread.run_sync(
            partial(tool.function, **arguments), abandon_on_cancel=True, limiter=self._threads
        )


def _in_thread(effect: Effect) -> Effect:
    """The effect, for a function that runs in a thread: what it asks for is done where the host runs."""
    return Effect(
        id=effect.id,
        device=effect.device,
        method=effect.method,
        session=effect.session,
        attempt=effect.attempt,
        progress=lambda value: trio.from_thread.run_sync(effect.progress, value),
        credential=lambda name: trio.from_thread.run_sync(effect.credential, name),
        redact=lambda value: trio.from_thread.run_sync(effect.redact, value),
    )
