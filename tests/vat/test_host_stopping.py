"""How a host ends: in order, by Ctrl-C, by cancellation, by death; and what the next one finds."""

from __future__ import annotations

import os
import random
import signal
from contextlib import suppress
from typing import Any

import pytest
import trio
import trio.testing

from dataspace.catalog.catalog import Catalog
from dataspace.log.memory import MemoryStore
from dataspace.records import Kind
from tests.vat.hosts import (
    Caller,
    Counter,
    Watcher,
    Worker,
    World,
    heap_of,
    held,
    records,
    residents_of,
    settled,
    store_of,
)
from vat.host.asking import NotRunning
from vat.objects.actor import Actor, actor

# In order


async def test_an_orderly_stop_makes_everything_durable_and_snapshots(either: World) -> None:
    async with either.host() as host:
        s, c = await host.spawn(Counter, "s"), await host.spawn(Caller, "c")
        for number in range(9):
            await s.add(str(number))
        await c.burst(s, "add", 5, 9)  # they are on their way when the host stops
    async with either.host() as host:
        assert await (await host.get("s")).count == 14
        assert await (await host.get("c")).answers == list(range(10, 15))
        assert records(host, "s")[-1] == Kind.SNAPSHOT


async def test_nothing_is_woken_after_an_orderly_stop(either: World) -> None:
    async with either.host() as host:
        s, c, w = await host.spawn(Counter, "s"), await host.spawn(Caller, "c"), await host.spawn(Worker, "w")
        await c.burst(s, "add", 5)
        await w.work("once", 1)
        await w.fork(into="twin")
        await (await host.get("twin")).results
    async with either.host() as host:
        assert len(residents_of(host)) == 0
        assert [row.id for row in host.sessions() if row.pending] == []


async def test_a_store_at_rest_does_not_grow(either: World) -> None:
    async with either.host() as host:
        s = await host.spawn(Counter, "s")
        await s.add()
    sizes = []
    for _ in range(4):
        async with either.host() as host:
            await (await host.get("s")).count
            sizes.append(store_of(host).head.position)
    assert sizes == sizes[:1] * 4


async def test_a_host_that_has_stopped_refuses_and_answers_nobody(world: World) -> None:
    async with world.host() as host:
        s = await host.spawn(Counter, "s")
    with pytest.raises(NotRunning, match="open it again"):
        await s.add()
    with pytest.raises(NotRunning):
        await host.spawn(Counter, "t")
    with pytest.raises(NotRunning):
        await host.delete("s")


async def test_effects_that_run_are_abandoned_as_their_policy_says(world: World) -> None:
    world.tool.open = False
    async with world.host(grace=0) as host, trio.open_nursery() as nursery:
        w = await host.spawn(Worker, "w")
        for method in ("once", "again"):
            nursery.start_soon(w.work, method, 1)
        await settled(host)
        nursery.cancel_scope.cancel()
    assert world.tool.cancelled == 2
    world.tool.open = True
    async with world.host() as host:
        await settled(host)
        assert sorted(await (await host.get("w")).results) == ["OutcomeUnknown", "again 1"]


# Not in order


async def test_who_waits_when_a_host_is_cancelled_is_told(world: World) -> None:
    told: list[str] = []

    async def ask(what: Any) -> None:
        try:
            await what()
        except NotRunning:
            told.append("told")

    async with trio.open_nursery() as nursery:
        with trio.CancelScope() as scope:
            async with world.host(dies=True) as host:
                s = await host.spawn(Counter, "s")
                w = await host.spawn(Worker, "w")
                world.tool.open = False
                nursery.start_soon(ask, lambda: w.work("once", 1))
                await settled(host)
                with held(host):
                    nursery.start_soon(ask, s.add)
                    await trio.testing.wait_all_tasks_blocked()
                    scope.cancel()
                    await trio.lowlevel.checkpoint()
    assert told == ["told", "told"]


@pytest.mark.parametrize("steps", range(16))
async def test_a_host_that_is_cancelled_at_any_moment_leaves_what_it_acknowledged(either: World, steps: int) -> None:
    async with either.host() as host:
        await host.spawn(Counter, "s")
        await host.spawn(Caller, "c")
    acknowledged: list[int] = []

    async def use(host: Any) -> None:
        s, c = await host.get("s"), await host.get("c")
        with suppress(NotRunning):
            while True:
                acknowledged.append(await s.add())
                await c.burst(s, "total", 2)

    async with trio.open_nursery() as nursery:
        with trio.CancelScope() as scope:
            async with either.host(dies=True) as host:
                nursery.start_soon(use, host)
                for _ in range(steps):
                    await trio.lowlevel.checkpoint()
                scope.cancel()
                await trio.lowlevel.checkpoint()
        nursery.cancel_scope.cancel()
    async with either.host() as host:
        await settled(host)
        count = await (await host.get("s")).count
        assert count - len(acknowledged) in (0, 1)
        assert len(await (await host.get("c")).answers) % 2 == 0


@actor("test.stubborn", version=1)
class Stubborn(Actor):
    """Interrupts itself, as Ctrl-C would, and goes on for as long as it is let."""

    count: int = 0

    def interrupt(self) -> None:
        self.count += 1
        os.kill(os.getpid(), signal.SIGINT)
        while True:
            pass

    def add(self) -> int:
        self.count += 1
        return self.count


def test_ctrl_c_ends_a_crank_that_never_would(world: World) -> None:
    world.actors = (Stubborn,)

    async def main() -> None:
        async with world.host() as host:
            s = await host.spawn(Stubborn, "s")
            await s.add()
            await s.interrupt()

    with pytest.raises(BaseExceptionGroup) as caught:
        trio.run(main)
    assert caught.value.subgroup(KeyboardInterrupt) is not None
    assert caught.value.split((KeyboardInterrupt, NotRunning))[1] is None

    async def again() -> int:
        async with world.host() as host:
            return int(await (await host.get("s")).add())

    assert trio.run(again) == 2


@pytest.mark.parametrize("sessions", [1, 5])  # a record that is committed in line, and some from the writer's task
@pytest.mark.parametrize("at", ["enqueue", "note", "release", "post"])
def test_ctrl_c_in_the_engine_waits_for_a_good_moment(world: World, at: str, sessions: int) -> None:
    seen: list[str] = []

    async def main() -> None:
        async with world.host() as host:
            refs = [await host.spawn(Counter, str(number)) for number in range(sessions)]
            engine = host._engine
            place, name = {
                "enqueue": (engine.commits.writer, "enqueue"),
                "note": (engine.commits, "_note"),
                "release": (engine.commits, "_release"),
                "post": (engine.turns, "post"),
            }[at]
            function = getattr(place, name)

            def interrupted(*what: Any, **how: Any) -> Any:
                if not seen:
                    seen.append(at)
                    os.kill(os.getpid(), signal.SIGINT)
                return function(*what, **how)

            setattr(place, name, interrupted)
            try:
                async with trio.open_nursery() as nursery:
                    for ref in refs:
                        nursery.start_soon(ref.add, "once")
                await trio.lowlevel.checkpoint()  # where it is delivered, if the calls were quicker
            except* KeyboardInterrupt:
                seen.append("caught")
            await settled(host)
            for ref in refs:  # the host goes on as if nothing had been
                assert await ref.add("again") == len(await ref.seen)

    trio.run(main)
    assert seen == [at, "caught"]


# Clocks and restarts


async def test_a_clock_that_is_set_back_changes_nothing(either: World) -> None:
    """Invariant 29: Order comes from positions, never from clocks."""
    async with either.host() as host:
        s = await host.spawn(Counter, "s")
        times = []
        for seconds in (0, 5, -100, 1, -100_000, 0):
            either.clock.move(seconds)
            times.append(await s.time())
        assert times == sorted(times)
        twin = await s.fork(into="twin")
        assert await twin.time() >= times[-1]
    either.clock.move(-1_000_000)
    async with either.host() as host:
        assert await (await host.get("s")).time() >= times[-1]
        assert [event.value.label for event in host.query("(_ . _)", session="s")] == ["spawn", "fork", "snapshot"]


async def act(host: Any, chance: random.Random) -> None:
    """One step of a run that is the same for the same chance."""
    s, c, w, o = [await host.get(id) for id in ("s", "c", "w", "o")]
    what = chance.randrange(7)
    if what == 0:
        await s.add(f"{chance.random()}")
    elif what == 1:
        await c.burst(s, "add", chance.randrange(4), chance.randrange(100))
    elif what == 2:
        await w.work("again", chance.randrange(10))
    elif what == 3:
        await s.state(f"{chance.random()}")
    elif what == 4:
        with pytest.raises(ValueError, match="no"):
            await s.fail()
    elif what == 5:
        patterns = sorted(await o.numbers)
        if len(patterns) < 4:
            await o.watch(f'(test.said ? "{chance.random()}")')
        else:
            await o.unwatch(chance.choice(patterns[1:]))
    else:
        await c.send(w, "work", "once", chance.randrange(10))
    await settled(host)


async def setup(host: Any) -> None:
    for cls, id in ((Counter, "s"), (Caller, "c"), (Worker, "w"), (Watcher, "o")):
        await host.spawn(cls, id)
    await (await host.get("o")).watch("(test.said ? _)")


async def contents(host: Any) -> list[Any]:
    s, c, w, o = [await host.get(id) for id in ("s", "c", "w", "o")]
    return [await s.seen, await s.count, await c.answers, await w.results, await o.heard]


@pytest.mark.crash
async def test_a_host_that_is_started_again_and_again_ends_as_one_that_is_not(world: World) -> None:
    """Invariant 8: The same run with restarts, evictions and reloads ends with the same heap and answers as without."""
    lives = 1000 if os.environ.get("KEEVE_CRASH") == "full" else 100
    still = World()
    async with still.host() as host:
        await setup(host)
        chance = random.Random(3)
        for _ in range(lives):
            await act(host, chance)
        expected = await contents(host)

    store, chance = MemoryStore(world.log, now=world.clock, salts=world.random.randbytes), random.Random(3)
    catalog = Catalog(None, store)  # it outlives the hosts here, or each start would scan the log
    world.store = lambda readonly=False: (store, catalog)
    store.close = catalog.close = lambda: None
    async with world.host() as host:
        await setup(host)
    for life in range(lives):
        async with world.host(dies=life % 2 == 0, vats=life % 5, first_snapshot=8, snapshot_records=16) as host:
            await act(host, chance)
    async with world.host() as host:
        await settled(host)
        assert await contents(host) == expected


async def test_restarts_from_the_disk_alone_change_nothing(either: World) -> None:
    still = World()
    async with still.host() as host:
        await setup(host)
        chance = random.Random(5)
        for _ in range(30):
            await act(host, chance)
        expected = await contents(host)
    async with either.host() as host:
        await setup(host)
    chance = random.Random(5)
    for life in range(30):
        async with either.host(dies=life % 2 == 0, first_snapshot=5, snapshot_records=7) as host:
            await act(host, chance)
    async with either.host() as host:
        await settled(host)
        assert await contents(host) == expected
        before = heap_of(host, "s")
    async with either.host() as host:
        assert heap_of(host, "s") == before
