"""What things cost a host, counted: as finished history grows, nothing costs more."""

from __future__ import annotations

import os
from collections import Counter as Tally
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from actors.models.echo import EchoModel
from actors.session import Session
from snapshots.cache import PageCache
from tests.vat.hosts import Counter, World, catalog_of, resident_of, residents_of, settled, store_of
from vat.host.host import Host

FULL = os.environ.get("KEEVE_CRASH") == "full"
SHORT, LONG = 1000, 20_000 if FULL else 4000


class Counted:
    """A record whose parts are counted when they are read."""

    def __init__(self, stored: Any, counts: Tally[str]) -> None:
        self._stored = stored
        self._counts = counts

    def __getattr__(self, name: str) -> Any:
        if name in ("page", "cell", "body"):
            self._counts[name] += 1
        return getattr(self._stored, name)


class Costs:
    """Counts what a host asks of its store and its catalog."""

    def __init__(self, host: Host) -> None:
        self.counts: Tally[str] = Tally()
        store, catalog = store_of(host), catalog_of(host)
        read, scan = store.read, store.scan

        def counted_read(address: int) -> Any:
            self.counts["records"] += 1
            return Counted(read(address), self.counts)

        def counted_scan(*where: Any) -> Any:
            for stored in scan(*where):
                self.counts["records"] += 1
                yield stored

        store.read = counted_read
        store.scan = counted_scan
        for name in ("_writer", "_reader"):
            getattr(catalog._tables, name).exec_trace = self._query

    def _query(self, *statement: Any) -> bool:
        self.counts["queries"] += 1
        return True

    async def of(self, what: Callable[[], Awaitable[Any]]) -> Tally[str]:
        self.counts.clear()
        await what()
        return Tally(self.counts)


@asynccontextmanager
async def grown(turns: int) -> AsyncIterator[tuple[Host, Costs, Any]]:
    """A host with a session that has had so many turns, and that is not in memory."""
    world = World()
    world.settings["snapshot_records"] = 64  # so that the shorter one has as many as are ever looked at, too
    async with world.host() as host:
        s = await host.spawn(Counter, "s")
        for _ in range(turns // 50):
            async with trio.open_nursery() as nursery:
                for _ in range(50):
                    nursery.start_soon(s.add, "x" * 20)
        catalog_of(host).flush()
        for name in ("a", "b", "c"):
            await host.spawn(Counter, name)
        await s.snapshot()
        await settled(host)
        forget(host, s)
        yield host, Costs(host), s


def forget(host: Host, s: Any) -> None:
    catalog_of(host).flush()
    resident = resident_of(host, s._uid)
    if resident is not None:
        assert resident.idle
        residents_of(host).drop(resident)
    host._engine.loader.cache = PageCache(host._engine.loader.cache.statistics().capacity)


async def operations(turns: int) -> dict[str, Tally[str]]:
    """What each operation costs on a session of so many turns."""
    async with grown(turns) as (host, costs, s):
        found: dict[str, Tally[str]] = {}

        async def measure(name: str, what: Callable[[], Awaitable[Any]]) -> None:
            found[name] = await costs.of(what)
            await settled(host)

        async def nothing(what: Any) -> None:
            what()

        await measure("attach", s.total)
        await measure("crank", s.add)
        await measure("crank again", s.add)
        await measure("list", lambda: nothing(lambda: host.sessions(limit=10)))
        await measure("get", lambda: host.get("s"))
        await measure("snapshot", s.snapshot)
        await measure("fork", s.fork)
        await measure("fork of the past", lambda: s.fork(at=turns // 2))
        forget(host, s)
        await measure("restore", lambda: host.restore_latest("s"))
        forget(host, s)
        await measure("delete", lambda: host.delete("s"))
        return found


DEEPER = 3
"""A tree of more pages is a little deeper: so many more reads are allowed for twenty times the history."""


async def test_nothing_costs_more_as_finished_history_grows() -> None:
    """Invariant 36: No crank, attach, list, restore or delete costs more as finished history grows."""
    short, long = await operations(SHORT), await operations(LONG)
    for name, costs in long.items():
        for what, count in costs.items():
            assert count <= short[name][what] + DEEPER, f"{name}: {count} {what} instead of {short[name][what]}"
    for name in ("crank again", "list", "get", "fork"):
        assert long[name]["records"] <= 1, name
    assert long["attach"]["records"] < 20


async def test_a_stop_and_a_start_cost_the_same_whatever_the_history() -> None:
    async def restart(turns: int) -> Tally[str]:
        world = World()
        world.settings["snapshot_records"] = 32
        async with world.host() as host:
            s = await host.spawn(Counter, "s")
            for _ in range(turns // 20):
                async with trio.open_nursery() as nursery:
                    for _ in range(20):
                        nursery.start_soon(s.add)
        store, catalog = world.store()
        world.store = lambda readonly=False: (store, catalog)
        catalog.flush()
        async with world.host() as host:
            return await Costs(host).of((await host.get("s")).add)

    short, long = await restart(500), await restart(2000)
    for what, count in long.items():
        assert count <= short[what] + DEEPER


async def test_forks_add_little_to_the_log(tmp_path: Path) -> None:
    """Invariant 37: 100 forks of a 2,000-turn session add less than 1 % of its size."""
    turns = 2000 if FULL else 200  # each turn is as long as any other
    world = World(tmp_path / "store")
    world.actors = (Session,)
    async with world.host(devices={"model": EchoModel()}) as host:
        s = await host.spawn(Session, "s")
        store = store_of(host)
        begin = store.mark.offset
        for number in range(turns):
            await s.turn(f"{number:04}" + world.random.randbytes(510).hex())
        size = (store.mark.offset - begin) * 2000 // turns
        begin = store.mark.offset
        for _ in range(100):
            await s.fork()
        added = store.mark.offset - begin
        assert added < size / 100


@pytest.mark.parametrize("turns", [300, 3000])
async def test_a_fork_loads_nothing_and_writes_two_records(turns: int) -> None:
    async with grown(turns) as (host, costs, s):
        await s.total()
        head = store_of(host).head.position
        counts = await costs.of(s.fork)
        assert counts["records"] == 0
        assert store_of(host).head.position == head + 2
