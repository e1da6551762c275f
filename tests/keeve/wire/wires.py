"""A host, a connection to it in memory, and a client at its other end."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import attrs
import trio
from trio.testing import memory_stream_pair

from dataspace.catalog.recent import SessionRow
from dataspace.errors import KeeveError
from dataspace.observe.dataspace import NoSuchSession
from keeve import Actor, List, Ref, actor, read
from keeve.client.client import Client
from keeve.client.running import running
from keeve.testing.hosts import memory_host
from keeve.wire.channels import ByteChannel, Channel
from keeve.wire.connection import serve_connection
from keeve.wire.frames import decoded, message
from keeve.wire.guarding import Guard, Limits
from keeve.wire.sturdy import SturdyRefs
from keeve.wire.tokens import TokenRefused
from vat.errors import Refused
from vat.host.host import Host

TOKEN = "let me in"
GONE = (trio.BrokenResourceError, trio.ClosedResourceError)


@actor("wires.book", version=1)
class Book(Actor):
    lines: List[str]
    other: Any = None

    def write(self, line: str) -> int:
        self.lines.append(line)
        self.assert_fact("wires.line", line)
        return len(self.lines)

    @read
    def size(self) -> int:
        return len(self.lines)

    def keep(self, other: Any) -> Any:
        self.other = other
        return other

    @read
    def kept(self) -> Any:
        return self.other

    def tell(self, line: str) -> Any:
        return self.other.write(line)

    def open(self) -> Ref:
        return self.spawn(Book)

    def several(self, count: int) -> list[Any]:
        return [self.spawn(Book) for _ in range(count)]

    def big(self, size: int) -> str:
        return "x" * size

    def fail(self, words: str) -> None:
        raise ValueError(words)

    def wait(self) -> Any:
        return self.other.forever()


@attrs.define
class Free:
    """A guard that lets everybody do everything, but as it is told: `ends` it, or `only` some sessions."""

    by: str = "ann"
    ended: bool = False
    only: frozenset[str] | None = None
    verbs: frozenset[str] = frozenset({"read", "turn", "manage"})
    paces: int = 0

    @property
    def name(self) -> str:
        self._holds()
        return self.by

    @property
    def owns(self) -> bool:
        return False

    @property
    def unlimited(self) -> bool:
        self._holds()
        return self.only is None and len(self.verbs) == 3

    def must(self, verb: str, method: str, session: str | None = None) -> None:
        self._holds()
        if verb not in self.verbs or (None not in (self.only, session) and session not in self.only):
            raise Refused(f"{verb} {method} {session}")

    def must_own(self, method: str) -> None:
        if not self.unlimited:
            raise Refused(method)

    def row(self, id: str, verb: str, method: str) -> SessionRow:
        self._holds()
        if self.only is not None and id not in self.only:
            raise NoSuchSession(id)
        self.must(verb, method, id)
        return self.host.row(id)

    def listed(self) -> Callable[..., list[SessionRow]]:
        return self.host.sessions

    def reaches(self, row: SessionRow) -> bool:
        return self.only is None or row.id in self.only

    def sees(self, session: str, uid: bytes) -> bool:
        return self.only is None or session in self.only

    async def begins(self, type: str, fields: Mapping[str, Any], there: Any = None) -> Mapping[str, Any]:
        return fields

    def may_be_same(self, type: str, id: str | None, fields: Mapping[str, Any], there: Any) -> bool:
        return False

    async def paced(self) -> None:
        self.paces += 1

    @asynccontextmanager
    async def room(self, *, made: bool = False) -> AsyncIterator[None]:
        yield

    def _holds(self) -> None:
        if self.ended:
            raise TokenRefused("it was revoked")

    host: Any = None


Slow = Callable[[], Awaitable[None]]


def channel(stream: trio.abc.Stream, limit: int = 1 << 24) -> ByteChannel:
    return ByteChannel(stream.receive_some, stream.send_all, stream.aclose, GONE, limit)


@attrs.define
class World:
    """A host that is served, and what its connections hold."""

    host: Host
    nursery: trio.Nursery
    guard: Free
    limits: Limits
    stopping: trio.Event = attrs.field(factory=trio.Event)
    ending: trio.Event | None = None
    """Where there is a grace: set when that is over."""
    streams: list[Any] = attrs.field(factory=list)
    open: int = 0
    ended: trio.Event = attrs.field(factory=trio.Event)
    secret: str = "a secret"
    refuses: KeeveError | None = None
    away: bool = False

    def admit(self, token: str) -> Guard:
        if self.refuses is not None:
            raise self.refuses
        if token != TOKEN:
            raise TokenRefused("nobody here has given it")
        self.guard.host = self.host
        return self.guard

    async def _serve(self, stream: trio.abc.Stream, slow: Slow | None) -> None:
        self.open += 1
        served = channel(stream)
        if slow is not None:
            write = served._write

            async def slowly(data: bytes) -> None:
                await slow()
                await write(data)

            served._write = slowly
        try:
            refs = SturdyRefs(self.secret)
            await serve_connection(served, self.host, self.admit, refs, self.limits, self.stopping, self.ending)
        finally:
            self.open -= 1
            self.ended.set()

    async def until_open(self, count: int) -> None:
        """Wait until no more than so many connections are open."""
        with trio.fail_after(10):
            while self.open > count:
                self.ended = trio.Event()
                await self.ended.wait()

    async def dial(self, slow: Slow | None = None) -> Channel:
        """Another connection, from the client's end; `slow` is waited for before anything is sent to it."""
        if self.away:
            raise OSError("nobody there")
        theirs, ours = memory_stream_pair()
        self.streams.append(ours)
        self.nursery.start_soon(self._serve, theirs, slow)
        return channel(ours, self.limits.answer)

    async def cut(self) -> None:
        """All connections are cut off, as if the network was gone."""
        for stream in self.streams:
            await stream.aclose()
        self.streams.clear()

    @asynccontextmanager
    async def client(self, token: str = TOKEN, patience: float = 60) -> AsyncIterator[Client]:
        async with running(self.dial, token, "memory:", patience) as client:
            yield client

    @asynccontextmanager
    async def raw(self, token: str | None = TOKEN, slow: Slow | None = None) -> AsyncIterator[Raw]:
        """A connection of which the test writes each message itself; `slow` as to `dial`."""
        raw = Raw(await self.dial(slow))
        try:
            if token is not None:
                await raw.send("hello", 1, token)
                assert (await raw.next())[0] == "welcome"
            yield raw
        finally:
            await raw.channel.close()


@attrs.define
class Raw:
    """The client's end of a connection."""

    channel: Channel

    async def send(self, kind: str, *fields: Any) -> None:
        await self.channel.send(message(kind, *fields))

    async def call(self, id: int, target: Any, method: str, *args: Any, request: str | None = None) -> None:
        await self.send("call", id, target, method, list(args), {}, request, False)

    async def next(self) -> list[Any]:
        with trio.fail_after(10):
            return decoded(await self.channel.receive(), None)


@asynccontextmanager
async def world(
    limits: Limits | None = None,
    host: Host | None = None,
    change: Callable[[World], None] = lambda _: None,
    **options: Any,
) -> AsyncIterator[World]:
    """A host in memory, whose connections are served."""
    if host is None:
        async with memory_host(actors=[Book], **options) as made, world(limits, made, change) as found:
            yield found
        return
    async with trio.open_nursery() as nursery:
        found = World(host, nursery, Free(), limits or Limits())
        change(found)
        yield found
        nursery.cancel_scope.cancel()
