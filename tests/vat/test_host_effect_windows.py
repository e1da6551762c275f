"""The moments in which an effect could be run twice, or never: each one by itself.

What was called is noted outside of every store, so that nothing of a host's own says how often it was.
"""

from __future__ import annotations

from collections import Counter as Count
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from dataspace.catalog.catalog import Catalog
from dataspace.errors import KeeveError
from dataspace.log.files import DiskFull
from dataspace.log.segments import SegmentStore
from dataspace.log.store import StoreOwned
from dataspace.records import Kind
from keeve.testing.crashes import CrashFiles
from keeve.testing.lives import suppress_crash
from tests.vat.hosts import Counter, Worker, World, held, records, resident_of, run_no_effects, settled, store_of
from vat.devices.devices import Effect, effect
from vat.host.residents import Job
from vat.host.resolving import NoSuchEffect


async def ask(ref: Any, method: str, value: Any) -> None:
    """Have an effect wanted, and be content with any answer, or none."""
    with suppress(KeeveError):
        await ref.work(method, value)


# Before it is durable that it is wanted


async def test_waking_a_session_runs_nothing_that_is_not_durable_yet(world: World) -> None:
    """Invariant 7: nothing leaves before its record is durable, whatever has the session taken up again."""
    world.tool.open = False
    async with world.host(dies=True) as host, trio.open_nursery() as nursery:
        s = await host.spawn(Worker, "s1")
        nursery.start_soon(ask, s, "again", 1)
        await settled(host)
        with held(host):
            nursery.start_soon(ask, s, "again", 2)
            await trio.testing.wait_all_tasks_blocked()
            host._engine._wake((await host.get("s1"))._uid)
            await trio.testing.wait_all_tasks_blocked()
            assert world.tool.calls == [("again", 1)]
        await settled(host)
        assert world.tool.calls == [("again", 1), ("again", 2)]
        nursery.cancel_scope.cancel()


# When a host ends


@pytest.mark.parametrize("steps", range(12))
async def test_what_was_not_called_when_its_host_stopped_is_not_called_unknown(either: World, steps: int) -> None:
    """Invariant 13: one that has not started runs at the next start, and only that."""
    either.tool.open = False
    async with trio.open_nursery() as nursery:
        async with either.host(grace=0.01) as host:
            s = await host.spawn(Worker, "s1")
            nursery.start_soon(ask, s, "once", 1)
            for _ in range(steps):
                await trio.lowlevel.checkpoint()
        nursery.cancel_scope.cancel()
    called = len(either.tool.calls)
    either.tool.open = True
    async with either.host() as host:
        await settled(host)
        results = await (await host.get("s1")).results
    # The call itself may come too late.
    assert results in ([], ["OutcomeUnknown"] if called else ["once 1"])
    assert len(either.tool.calls) <= 1


async def test_a_start_that_nobody_waits_for_any_more_is_not_recorded(world: World) -> None:
    async with world.host(grace=0) as host:
        s = await host.spawn(Worker, "s1")
        turns = host._engine.turns
        post, queued = turns.post, []

        def busy(uid: bytes, job: Job) -> None:
            queued.append((uid, job)) if job.work is not None else post(uid, job)

        turns.post = busy
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask, s, "once", 1)
            await settled(host)
            turns.post = post
            assert len(queued) == 1  # that it starts waits for its turn, and the host stops
            host._engine._calm.cancel()
            await trio.testing.wait_all_tasks_blocked()
            post(*queued[0])
            await settled(host)
            nursery.cancel_scope.cancel()
        assert Kind.STARTED not in records(host, "s1")
    async with world.host() as host:
        await settled(host)
        assert await (await host.get("s1")).results == ["once 1"]


class Mortal(World):
    """A world whose processes die at a chosen file operation."""

    files: CrashFiles | None = None

    def store(self, *, readonly: bool = False) -> tuple[Any, Catalog]:
        assert self.folder is not None
        store = SegmentStore(self.folder, now=self.clock, salts=self.random.randbytes, files=self.files)
        return store, Catalog(None, store)


class Journal:
    """A device that notes, outside of all stores, which effects it was called for."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    @effect
    async def once(self, effect: Effect, value: Any) -> Any:
        self.calls.append(effect.id)
        await trio.lowlevel.checkpoint()
        return f"once {value}"


@pytest.mark.crash
@pytest.mark.parametrize("dies_again", [False, True])
async def test_whenever_a_host_dies_and_the_next_ones_too_an_effect_is_called_once(
    tmp_path: Path, dies_again: bool
) -> None:
    """Invariant 13: … three restarts, one call, whatever dies while it takes up what is left."""
    seen: set[str] = set()
    for at in range(1, 60):
        journal = Journal()
        world = Mortal(tmp_path / f"{at}-{dies_again}")
        async with world.host() as host:
            await host.spawn(Worker, "s1")

        async def life(
            files: CrashFiles, world: Mortal = world, journal: Journal = journal, asks: bool = False
        ) -> None:
            world.files = files
            with suppress_crash():
                async with world.host(dies=True, devices={"tool": journal}) as host, trio.open_nursery() as nursery:
                    if asks:
                        nursery.start_soon(ask, await host.get("s1"), "once", 1)
                    for _ in range(60):
                        await trio.lowlevel.checkpoint()
                    nursery.cancel_scope.cancel()
            files.crash(0)

        first = CrashFiles(at=at)
        await life(first, asks=True)
        if dies_again:
            for again in (at // 7 + 1, at % 7 + 3):
                await life(CrashFiles(at=again))
        world.files = None
        for _ in range(3):
            async with world.host(devices={"tool": journal}) as host:
                await settled(host)
                results = await (await host.get("s1")).results
        assert max(Count(journal.calls).values(), default=0) <= 1
        if results:
            assert journal.calls or results == ["OutcomeUnknown"]
        seen.update(results or ["not asked"])
        if not first.dead:
            break
    assert seen >= {"not asked", "once 1"}


async def test_the_second_of_two_hosts_that_race_for_a_store_runs_nothing(either: World) -> None:
    either.tool.open = False
    async with either.host(dies=True) as host, trio.open_nursery() as nursery:
        s = await host.spawn(Worker, "s1")
        nursery.start_soon(ask, s, "once", 1)
        await settled(host)
        for _ in range(3):
            with pytest.raises(StoreOwned):
                async with either.host():
                    raise AssertionError
        assert either.tool.calls == [("once", 1)]
        nursery.cancel_scope.cancel()


async def test_a_host_whose_store_was_taken_over_calls_nothing(world: World) -> None:
    async with world.host(dies=True) as host, trio.open_nursery() as nursery:
        s = await host.spawn(Worker, "s1")
        want, waiting = host._engine.errands.want, []
        host._engine.errands.want = lambda vat, number: waiting.append((vat, number))
        nursery.start_soon(ask, s, "once", 1)
        await settled(host)
        world.log.owned = False  # its lock was lost
        async with world.host() as other:
            await settled(other)
            assert world.tool.calls == [("once", 1)]
            want(*waiting[0])
            await trio.testing.wait_all_tasks_blocked()
            assert await (await other.get("s1")).results == ["once 1"]
        nursery.cancel_scope.cancel()
    assert world.tool.calls == [("once", 1)]


# When a session leaves memory and comes back


async def test_an_outcome_that_waits_survives_evictions_and_is_recorded_once(world: World, patient_clock: Any) -> None:
    """Invariant 14: what came of an effect is offered until it is recorded, and nothing is called meanwhile."""
    world.tool.open = False
    async with world.host(vats=1) as host, trio.open_nursery() as nursery:
        s = await host.spawn(Worker, "s1")
        nursery.start_soon(ask, s, "again", 1)
        await settled(host)
        store_of(host).failing += [DiskFull("log", "no space", True)] * 4
        world.tool.gate.set()
        await trio.testing.wait_all_tasks_blocked()
        (effect,) = host.effects()
        assert effect.state == "running"  # it is not forgotten while its outcome waits
        with pytest.raises(NoSuchEffect):
            await host.resolve(effect.id, value="no")
        for number in range(4):
            await _quietly(host.spawn, Counter, str(number))
            await _quietly(lambda: s.results)
        for _ in range(6):
            await trio.sleep(1)
            await settled(host)
        assert await s.results == ["again 1"]
        assert host.effects() == []
        assert len(records(host, "s1")) == 3  # born, asked, answered
    assert world.tool.calls == [("again", 1)]


async def _quietly(function: Any, *args: Any) -> None:
    try:
        result = function(*args)
        await result
    except DiskFull:
        pass


async def test_a_start_that_could_not_be_recorded_is_tried_again(world: World, patient_clock: Any) -> None:
    world.actors = ()
    async with world.host() as host:
        host._engine.types.add(Worker)
        s = await host.spawn(Worker, "s1")
        load = host._engine.loader.load
        failing = [OSError("the disk was away")]

        def sometimes(resident: Any) -> Any:
            if failing:
                raise failing.pop()
            return load(resident)

        host._engine.loader.load = sometimes
        want = host._engine.errands.want

        def evicted(vat: Any, number: int) -> None:
            want(vat, number)
            resident_of(host, vat.uid).vat = None

        host._engine.errands.want = evicted
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_failing, s)
            await settled(host)
            host._engine.errands.want = want
            await trio.sleep(3)
            await settled(host)
            nursery.cancel_scope.cancel()
        assert world.tool.calls == [("once", 1)]
        assert await s.results == ["once 1"]


async def _failing(ref: Any) -> None:
    with pytest.raises(OSError, match="away"):
        await ref.work("once", 1)


# By hand


@pytest.mark.parametrize("second", [{"value": "two"}, {"error": "two"}, {"again": True}])
async def test_what_is_being_settled_by_hand_is_not_settled_or_run_beside_that(
    either: World, second: dict[str, Any]
) -> None:
    """Invariant 13: … also when two people decide at once."""
    await _left_unknown(either)
    async with either.host(hold_unknown=True) as host:
        await settled(host)
        (effect,) = host.effects()
        async with trio.open_nursery() as nursery:
            with held(host):
                nursery.start_soon(lambda: host.resolve(effect.id, value="one"))
                await trio.testing.wait_all_tasks_blocked()
                with pytest.raises(NoSuchEffect):
                    await host.resolve(effect.id, **second)
        assert await (await host.get("s1")).results == ["one"]
        assert host.effects() == []
    assert either.tool.calls == [("once", 1)]


async def test_a_settlement_that_does_not_become_durable_leaves_the_effect_held(
    world: World, patient_clock: Any
) -> None:
    await _left_unknown(world)
    async with world.host(hold_unknown=True) as host:
        (effect,) = host.effects()
        store_of(host).failing += [DiskFull("log", "no space", True)]
        with pytest.raises(DiskFull):
            await host.resolve(effect.id, value="one")
        await trio.sleep(2)
        assert [each.state for each in host.effects()] == ["unknown"]
        await host.resolve(effect.id, value="two")
        assert await (await host.get("s1")).results == ["two"]
    assert world.tool.calls == [("once", 1)]


async def test_who_stops_waiting_has_settled_it_all_the_same(world: World) -> None:
    await _left_unknown(world)
    async with world.host(hold_unknown=True) as host:
        (effect,) = host.effects()
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as nursery:
                with held(host):
                    nursery.start_soon(lambda: host.resolve(effect.id, value="one"))
                    await trio.testing.wait_all_tasks_blocked()
                    scope.cancel()
        await settled(host)
        assert host.effects() == []
        assert await (await host.get("s1")).results == ["one"]


async def test_what_nobody_carries_out_is_settled_by_hand_and_not_run_beside_that(either: World) -> None:
    async with either.host(dies=True) as host, trio.open_nursery() as nursery:
        s = await host.spawn(Worker, "s1")
        run_no_effects(host)  # it dies before it is called
        nursery.start_soon(ask, s, "again", 1)
        await settled(host)
        nursery.cancel_scope.cancel()
    async with either.host(takes_up="asked") as host:
        (effect,) = host.effects()
        assert effect.state == "wanted"
        await host.resolve(effect.id, value="by hand")
        await settled(host)
        assert await (await host.get("s1")).results == ["by hand"]
    assert either.tool.calls == []


async def test_what_runs_is_not_settled_by_hand(either: World) -> None:
    either.tool.open = False
    async with either.host() as host, trio.open_nursery() as nursery:
        s = await host.spawn(Worker, "s1")
        nursery.start_soon(ask, s, "again", 1)
        await settled(host)
        (effect,) = host.effects()
        assert effect.state == "running"
        for outcome in ({"value": 1}, {"error": "no"}, {"again": True}):
            with pytest.raises(NoSuchEffect, match="it is running"):
                await host.resolve(effect.id, **outcome)
        either.tool.gate.set()
        await settled(host)
        assert await s.results == ["again 1"]
    assert either.tool.calls == [("again", 1)]


async def test_an_effect_of_a_deleted_session_is_not_there_to_be_settled(either: World) -> None:
    await _left_unknown(either)
    async with either.host(hold_unknown=True) as host:
        (effect,) = host.effects()
        await host.delete("s1", force=True)
        assert host.effects() == []
        with pytest.raises(NoSuchEffect):
            await host.resolve(effect.id, value=1)
    assert either.tool.calls == [("once", 1)]


async def _left_unknown(world: World) -> None:
    """A store with an effect that had started when its host died."""
    world.tool.open = False
    async with world.host(dies=True) as host, trio.open_nursery() as nursery:
        s = await host.spawn(Worker, "s1")
        nursery.start_soon(ask, s, "once", 1)
        await settled(host)
        nursery.cancel_scope.cancel()
    world.tool.open = True
