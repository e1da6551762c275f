"""Hosts for tests: a world outlives its hosts, as a disk does, and each host in it is stopped, or dies."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio
import trio.testing

from dataspace.catalog.catalog import Catalog
from dataspace.catalog.peeking import peek
from dataspace.errors import KeeveError
from dataspace.log.frames import place
from dataspace.log.memory import MemoryLog, MemoryStore
from dataspace.log.segments import SegmentStore
from dataspace.log.verdicts import Evidence
from keeve.api import run_host
from keeve.testing.hosts import FakeClock
from vat.crank.vat import Step
from vat.devices.devices import Effect, effect
from vat.heap.checking import fingerprint
from vat.heap.refs import Ref
from vat.host.commits import Commits
from vat.host.host import Host
from vat.host.residents import Job, Resident, Residents
from vat.host.settings import Settings
from vat.objects.actor import Actor, actor
from vat.objects.collections import List, Map
from vat.objects.types import read


@actor("test.counter", version=1)
class Counter(Actor):
    """Counts."""

    count: int = 0
    seen: List[str]
    _secret: int = 7

    def add(self, who: str = "") -> int:
        self.count += 1
        self.seen.append(who)
        return self.count

    def fail(self, what: str = "no") -> None:
        self.count += 100
        raise ValueError(what)

    @read
    def total(self) -> int:
        return self.count

    @read
    def refuse(self) -> None:
        raise LookupError("not here")

    def state(self, what: str) -> Any:
        return list(self.assert_fact("test.said", self.session_id, what))

    def present(self) -> Any:
        return list(self.assert_fact("test.here", self.session_id, presence=True))

    def time(self) -> float:
        return self.now()

    def me(self) -> Ref:
        return self.ref

    def loop(self) -> None:
        self.ref.loop()


@actor("test.caller", version=1)
class Caller(Actor):
    """Sends messages to others, and keeps what they answer, in order."""

    answers: List[Any]
    made: List[Ref]

    def send(self, to: Ref, method: str, *args: Any) -> Any:
        return getattr(to, method)(*args).then(self.keep, broken=self.lament)

    def burst(self, to: Ref, method: str, count: int, first: int = 0) -> None:
        for number in range(first, first + count):
            getattr(to, method)(f"{number}").then(self.keep, broken=self.lament)

    def keep(self, answer: Any) -> Any:
        self.answers.append(answer)
        return answer

    def lament(self, error: Exception) -> str:
        self.answers.append(type(error).__name__)
        return type(error).__name__

    def spawn_session(self, type: str, id: str) -> Any:
        return self.directory.spawn(type, id).then(self.note)

    def get_session(self, id: str) -> Any:
        return self.directory.get(id).then(self.note)

    def delete_session(self, id: str, force: bool = False) -> Any:
        return self.directory.delete(id, force).then(self.keep, broken=self.lament)

    def note(self, made: Ref) -> Ref:
        self.made.append(made)
        return made


@actor("test.worker", version=1)
class Worker(Actor):
    """Has a device do things."""

    results: List[Any]

    def work(self, method: str, *args: Any) -> Any:
        return getattr(self.device("tool"), method)(*args).then(self.keep, broken=self.lament)

    def use(self, device: str, method: str) -> Any:
        return getattr(self.device(device), method)().then(self.keep, broken=self.lament)

    def ask(self, method: str, *args: Any) -> Any:
        return getattr(self.device("tool"), method)(*args)

    def keep(self, result: Any) -> Any:
        self.results.append(result)
        return result

    def lament(self, error: Exception) -> str:
        self.results.append(type(error).__name__)
        return type(error).__name__


@actor("test.watcher", version=1)
class Watcher(Actor):
    """Observes the dataspace."""

    heard: List[Any]
    numbers: Map[str, int]

    def watch(self, pattern: str, after: str = "start") -> int:
        number = self.observe(pattern, self.hear, after=after)
        self.numbers[pattern] = number
        return number

    def unwatch(self, pattern: str) -> None:
        self.unobserve(self.numbers.pop(pattern))

    def hear(self, event: Any) -> None:
        self.heard.append(list(event["fields"]))


ACTORS = (Counter, Caller, Worker, Watcher)


class Tool:
    """A device whose calls wait until the test lets them go, unless it is `open`."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, Any]] = []
        self.open = True
        self.gate = trio.Event()
        self.cancelled = 0

    async def _do(self, name: str, value: Any) -> Any:
        self.calls.append((name, value))
        try:
            if not self.open:
                await self.gate.wait()
        except trio.Cancelled:
            self.cancelled += 1
            raise
        if value == "bad":
            raise ValueError("the tool is broken")
        return f"{name} {value}"

    @effect(on_crash="retry")
    async def again(self, effect: Effect, value: Any) -> Any:
        effect.progress(f"at {value}")
        return await self._do("again", value)

    @effect()
    async def once(self, effect: Effect, value: Any) -> Any:
        return await self._do("once", value)


class World:
    """A store that outlives its hosts: in memory, or in `folder`."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder
        self.log = MemoryLog(b"log of the tests")
        self.clock = FakeClock()
        self.random = random.Random(11)
        self.tool = Tool()
        self.settings: dict[str, Any] = {}
        self.actors: tuple[type, ...] = ACTORS
        self.last: MemoryStore | SegmentStore | None = None

    def store(self, *, readonly: bool = False) -> tuple[Any, Catalog]:
        """The store and its catalog, opened."""
        if self.folder is None:
            store: Any = MemoryStore(self.log, readonly=readonly, now=self.clock, salts=self.random.randbytes)
            return store, Catalog(None, store)
        path = self.folder / "catalog.sqlite"
        seen = peek(path)
        evidence = Evidence() if seen is None else Evidence(start=seen.mark, heads=seen.heads)
        try:
            store = SegmentStore(
                self.folder, now=self.clock, salts=self.random.randbytes, readonly=readonly, evidence=evidence
            )
        finally:
            if seen is not None:
                seen.close()
        return store, Catalog(path, store)

    @asynccontextmanager
    async def host(
        self, *, dies: bool = False, readonly: bool = False, devices: Mapping[str, Any] | None = None, **settings: Any
    ) -> AsyncIterator[Host]:
        """A host, which is stopped at the end of the block, or `dies` there: nothing more of it is done."""
        store, catalog = self.store(readonly=readonly)
        self.last = store
        running = run_host(
            store,
            catalog,
            actors=self.actors,
            devices={"tool": self.tool, **(devices or {})},
            clock=self.clock,
            entropy=self.random.randbytes,
            settings=Settings(**{**self.settings, **settings}),
        )
        try:
            with trio.CancelScope() as life:
                async with running as host:
                    yield host
                    if dies:
                        life.cancel()
                        await trio.lowlevel.checkpoint()
        finally:
            if not dies or self.folder is None:
                catalog.close()
            store.close()


async def settled(host: Host, cushion: float = 0.0) -> None:
    """Wait until nothing more happens in a host by itself; behind tasks that wait so with a smaller cushion."""
    for _ in range(1000):
        await trio.testing.wait_all_tasks_blocked(cushion)
        if not (host._engine.turns.busy or host._engine.commits.busy):
            return
        await host._engine.quiet()
    raise AssertionError("it never ends")


@contextmanager
def held(host: Host) -> Iterator[None]:
    """Nothing becomes durable in the block."""
    commits = host._engine.commits
    commits.go = lambda *, lone: None
    try:
        yield
    finally:
        let_go(host)


def let_go(host: Host) -> None:
    """End what `held` began, before its block ends."""
    vars(host._engine.commits).pop("go", None)
    host._engine.commits.writer.wake()


def without_embargo(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each step go when it is queued."""
    add = Commits.add

    def at_once(self: Commits, resident: Resident, step: Step, job: Job) -> KeeveError | None:
        refusal = add(self, resident, step, job)
        if refusal is None and step.record is not None:
            early = attrs.evolve(step, settle=None, replies=list(step.replies))
            step.replies.clear()
            step.sent, step.wanted, step.acknowledged = (), (), None
            self._release(resident, early)
        return refusal

    monkeypatch.setattr(Commits, "add", at_once)


# What of a host tests look at that is not public: where it is to be found stands here alone.


def store_of(host: Host) -> Any:
    """The store that a host runs on."""
    return host._engine.store


def catalog_of(host: Host) -> Catalog:
    """What a host knows of its sessions without reading the log."""
    return host._engine.dataspace.catalog


def resident_of(host: Host, uid: bytes) -> Resident | None:
    """A session as it is in memory, if it is."""
    return host._engine.residents.get(uid)


def residents_of(host: Host) -> Residents:
    """The sessions that are in memory or have something to do."""
    return host._engine.residents


def outcomes_of(host: Host) -> Any:
    """What came of effects and is not recorded yet, by session and number."""
    return host._engine.errands._outcomes


def run_no_effects(host: Host) -> None:
    """Begin no effect from now on."""
    host._engine.errands.want = lambda vat, number: None


def carry_no_messages(host: Host) -> None:
    """Bring no message to another session from now on."""
    host._engine.mail.carry = lambda *what: None


async def started() -> None:
    """Let the tasks that were started come to their first wait: trio runs those of one round in any order."""
    for _ in range(2):
        await trio.lowlevel.checkpoint()


def heap_of(host: Host, id: str) -> bytes:
    """A digest of all that a session holds, as the log has it."""
    row = catalog_of(host).session(id)
    assert row is not None
    return fingerprint(host._engine.loader.restored(row.uid, row.seq).heap)


def records(host: Host, id: str) -> list[Any]:
    """The kinds of a session's own records, in order."""
    catalog = catalog_of(host)
    row = catalog.session(id)
    assert row is not None
    store = store_of(host)
    found = []
    for seq in range(row.parent_seq + 1, row.seq + 1):
        address = catalog.locate(row.uid, seq)
        assert address is not None
        found.append(store.read(address).header.kind)
    return found


def flip(world: World, host: Host, id: str, seq: int, part: bytes) -> None:
    """Change one byte of what the record of a session at a seq holds on the disk."""
    catalog = catalog_of(host)
    row = catalog.session(id)
    assert row is not None
    address = catalog.locate(row.uid, seq)
    assert address is not None
    assert world.folder is not None
    segment, offset = place(address)
    path = world.folder / "log" / f"{segment:08}.seg"
    data = bytearray(path.read_bytes())
    at = data.index(part, offset)
    data[at] ^= 1
    with path.open("r+b") as file:
        file.seek(at)
        file.write(data[at : at + 1])
