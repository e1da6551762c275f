"""The same names without `await`, for scripts, notebooks and threads.

    with open_host("./data") as host:
        s = host.spawn(Session, "s1")
        print(s.turn("hello"))
        print(s.history)                      # a public field reads as an attribute

A host runs in a thread of its own, and every call waits for its answer there; calls may come from any thread. An
asyncio program uses it through `asyncio.to_thread`.

The one rule: nothing is done here. Each call is carried to the trio host and its outcome back.
"""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, ClassVar, Generic, TypeVar

import trio

from dataspace.errors import KeeveError
from dataspace.values import MAX_DEPTH, FrozenDict, FrozenList
from keeve import api
from vat.devices.outcomes import alone
from vat.errors import NotAssignable, no_such_method
from vat.host.asking import NotRunning
from vat.host.host import EVERY_REF
from vat.host.host import Host as AsyncHost
from vat.host.outside import HostRef, Snapshot, place
from vat.objects.actor import Actor
from vat.objects.types import ActorType

A = TypeVar("A", bound=Actor)
T = TypeVar("T")


class OwnThread(KeeveError, RuntimeError):
    """A call was made in the thread that would have to answer it."""

    usage: ClassVar[bool] = True

    def __init__(self) -> None:
        super().__init__(
            "this was called in the host's own thread (by an actor, a device or a listener), which would wait for "
            "itself: an actor sends and goes on with a promise; a device calls from trio.to_thread.run_sync(...)"
        )


_MANY = 64
"""Events that are fetched in one go."""


class BlockingRef(Generic[A]):
    """A ref whose methods return their results, and whose public fields are attributes."""

    __slots__ = ("_host", "_ref", "_type")
    _host: Host
    _ref: HostRef[A]
    _type: ActorType | None

    def __init__(self, host: Host, ref: HostRef[A], described: ActorType | None) -> None:
        put = object.__setattr__
        put(self, "_host", host)
        put(self, "_ref", ref)
        put(self, "_type", described)

    def __getattr__(self, name: str) -> Any:
        member = getattr(self._ref, name)
        described = self._type
        if described is not None:
            if name in described.fields:
                return self._host._do(member)
            if name not in described.methods and name not in EVERY_REF:
                raise no_such_method(described.name, name, described.public)

        def method(*args: Any, **keywords: Any) -> Any:
            plain = [_plain(arg) for arg in args]
            return self._host._do(member, *plain, **{key: _plain(value) for key, value in keywords.items()})

        return method

    def __setattr__(self, name: str, value: Any) -> None:
        raise NotAssignable(name, () if self._type is None else self._type.methods)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *EVERY_REF, *(() if self._type is None else self._type.public)})

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BlockingRef) and other._ref == self._ref

    def __hash__(self) -> int:
        return hash(self._ref)

    def __repr__(self) -> str:
        return repr(self._ref)


class Host:
    """A host in a thread of its own. Made by `open_host`; see `vat.host.host.Host` for what its methods do."""

    def __init__(self, path: Any, options: Mapping[str, Any]) -> None:
        self._opened: Future[AsyncHost] = Future()
        self._pending: set[Future[Any]] = set()
        self._token: trio.lowlevel.TrioToken | None = None
        self._nursery: trio.Nursery | None = None
        self._closing = trio.Event()
        self._abandoned = False
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, args=(path, options), name="keeve host", daemon=True)
        self._thread.start()
        try:
            self._host = self._opened.result()
        except BaseException:  # opening failed, or Ctrl-C came in the middle of it
            self._abandoned = True
            self._end()
            raise

    def _run(self, path: Any, options: Mapping[str, Any]) -> None:
        try:
            trio.run(self._main, path, options)
        except BaseException as error:  # noqa: BLE001  # it is given to whoever waits
            self._failure = alone(error)
        finally:
            self._nursery = None
            failure = self._failure or NotRunning()
            if not self._opened.done():
                self._opened.set_exception(failure)
            for future in list(self._pending):
                if not future.done():
                    future.set_exception(failure)

    async def _main(self, path: Any, options: Mapping[str, Any]) -> None:
        async with api.open_host(path, **options) as host, trio.open_nursery() as nursery:
            self._token = trio.lowlevel.current_trio_token()
            self._nursery = nursery
            self._opened.set_result(host)
            if self._abandoned:
                return
            await self._closing.wait()
            self._nursery = None
            nursery.cancel_scope.cancel()

    def _do(self, what: Callable[..., Awaitable[T]], *args: Any, **keywords: Any) -> Any:
        """Have something done in the host's thread, and wait for it. Ctrl-C abandons the wait."""
        self._elsewhere()
        future: Future[Any] = Future()

        async def do() -> None:
            # A host that dies cancels this; then whoever waits is told by `_run`, with the reason.
            try:
                value = self._bound(await what(*args, **keywords))
            except Exception as error:  # noqa: BLE001  # it is given to who asked
                future.set_exception(error)
            else:
                future.set_result(value)
            self._pending.discard(future)

        def start() -> None:
            if self._nursery is None:
                future.set_exception(self._failure or NotRunning())
            else:
                self._nursery.start_soon(do)

        if self._nursery is None or self._token is None:
            raise self._failure or NotRunning()
        self._pending.add(future)
        try:
            self._token.run_sync_soon(start)
        except trio.RunFinishedError:
            raise self._failure or NotRunning() from None
        return future.result()

    def _now(self, what: Callable[..., T], *args: Any, **keywords: Any) -> Any:
        async def do() -> T:
            return what(*args, **keywords)

        return self._do(do)

    def _bound(self, value: Any) -> Any:
        if isinstance(value, HostRef):
            return BlockingRef(self, value, self._host._calling.described(*place(value)))
        if type(value) is FrozenDict:
            items = {key: self._bound(item) for key, item in value.items()}
            return value if all(items[key] is value[key] for key in items) else FrozenDict(items)
        if type(value) is FrozenList:
            listed = [self._bound(item) for item in value]
            return value if all(new is old for new, old in zip(listed, value, strict=True)) else FrozenList(listed)
        return value

    # Sessions.

    @property
    def directory(self) -> BlockingRef[Any]:
        """The directory."""
        return BlockingRef(self, self._host.directory, None)

    def spawn(self, cls: type[A], id: str | None = None, /, *, request: str | None = None, **fields: Any) -> Any:
        """A new session."""
        plain = {name: _plain(value) for name, value in fields.items()}
        return self._do(self._host.spawn, cls, id, request=request, **plain)

    def get(self, id: str) -> Any:
        """The session of that id."""
        return self._do(self._host.get, id)

    def restore(self, snapshot: Snapshot | Mapping[str, Any]) -> Any:
        """The session of a snapshot, brought to its head."""
        return self._do(self._host.restore, snapshot)

    def restore_latest(self, id: str) -> Any:
        """The session of that id, loaded again from what is stored."""
        return self._do(self._host.restore_latest, id)

    def delete(self, id: str, *, force: bool = False) -> None:
        """Delete a session."""
        self._do(self._host.delete, id, force=force)

    def sessions(self, prefix: str = "", **page: Any) -> Any:
        """A page of the list of sessions."""
        return self._now(self._host.sessions, prefix, **page)

    def loaded(self, id: str) -> Any:
        """How a session came into memory: the seq of its snapshot, and how many records were read after it."""
        return self._now(self._host.loaded, id)

    # The dataspace.

    def observe(self, pattern: Any, *, until: Any = "head", **how: Any) -> Iterator[Any]:
        """The events that match: those there are, or, with `until=None`, those to come as well."""
        observation = self._now(self._host.observe, pattern, until=until, **how)
        ends = until is not None

        async def fetch() -> tuple[list[Any], bool]:
            events: list[Any] = []
            try:
                events.append(await observation.__anext__())
                while ends and len(events) < _MANY:
                    events.append(await observation.__anext__())
            except StopAsyncIteration:
                return events, True
            return events, False

        return self._fetched(fetch)

    def _fetched(self, fetch: Callable[[], Awaitable[tuple[list[Any], bool]]]) -> Iterator[Any]:
        ended = False
        while not ended:
            events, ended = self._do(fetch)
            yield from events

    def facts(self, pattern: Any, **how: Any) -> Any:
        """What matches and holds."""
        return self._now(self._host.facts, pattern, **how)

    # Effects.

    def effects(self, session: str | None = None) -> Any:
        """The effects of a session, or of all, that have no outcome yet."""
        return self._now(self._host.effects, session)

    def resolve(self, id: str, **outcome: Any) -> None:
        """Settle an effect of unknown outcome."""
        self._do(self._host.resolve, id, **outcome)

    def on_progress(self, hear: Callable[[str, str, Any], None]) -> Callable[[], None]:
        """Have what running effects tell told to `hear`, in the host's thread, until what this gives is called."""
        stop = self._now(self._host.on_progress, hear)
        return lambda: self._now(stop)

    # Ending.

    def close(self) -> None:
        """Stop in order: everything accepted is durable when this returns. Does nothing the second time."""
        self._elsewhere()
        self._end()
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def _end(self) -> None:
        if self._token is not None and self._thread.is_alive():
            with suppress(trio.RunFinishedError):
                self._token.run_sync_soon(self._closing.set)
        self._thread.join()

    def _elsewhere(self) -> None:
        if threading.current_thread() is self._thread:
            raise OwnThread

    def __enter__(self) -> Host:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_host(path: Any, **options: Any) -> Host:
    """Open the store at `path`, as `keeve.open_host` does, in a thread of its own: a context manager."""
    return Host(path, options)


def _plain(value: Any, within: tuple[int, ...] = ()) -> Any:
    """An argument as the trio host takes it. `within` are the containers that it is in: a cycle is left as it is."""
    if isinstance(value, BlockingRef):
        return value._ref
    if isinstance(value, Mapping | list | tuple):
        if id(value) in within or len(within) > MAX_DEPTH:
            return value
        inside = (*within, id(value))
        if isinstance(value, Mapping):
            return {key: _plain(item, inside) for key, item in value.items()}
        return [_plain(item, inside) for item in value]
    return value
