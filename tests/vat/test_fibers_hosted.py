"""Fibers in a host: whatever happens to it, to its store or to the session, they go on, or break with a reason."""

from __future__ import annotations

import tracemalloc
import warnings
from typing import Any

import pytest
import trio

from dataspace.log.files import DiskFull
from dataspace.records import Kind
from tests.vat.fiber_agent import Agent, open, shut
from tests.vat.hosts import (
    Counter,
    World,
    catalog_of,
    heap_of,
    held,
    outcomes_of,
    records,
    resident_of,
    settled,
    store_of,
)
from vat.crank.vat import Vat
from vat.devices.outcomes import EffectOutcome
from vat.errors import Deleted
from vat.heap.messages import Ended
from vat.heap.past import NotYet, StoredPast


@pytest.fixture
def world() -> World:
    made = World()
    made.actors = (Agent, Counter)
    return made


@pytest.fixture(params=["memory", "segments"])
def either(request: Any, tmp_path: Any) -> World:
    made = World() if request.param == "memory" else World(tmp_path / "store")
    made.actors = (Agent, Counter)
    return made


def live(host: Any, id: str) -> dict[int, Any]:
    """The coroutines of a session in memory."""
    row = catalog_of(host).session(id)
    resident = resident_of(host, row.uid)
    return {} if resident is None or resident.vat is None else resident.vat.crank.fibers.live


async def test_a_caller_waits_for_it_like_for_any_method(either):
    async with either.host() as host:
        s = await host.spawn(Agent, "s")
        assert await s.work("a", "b", "c") == ["again a", "again b", "again c"]
        assert await s.seen() == ["again a", "again b", "again c"]


async def test_it_goes_on_after_the_host_was_stopped(either):
    """Invariant 16."""
    async with either.host() as host:
        s = await host.spawn(Agent, "s")
        await s.work("a")
        shut(either)
        assert await s.started() == "begun"
        await settled(host)
    open(either)
    async with either.host() as host:
        await settled(host)
        s = await host.get("s")
        assert await s.seen() == ["again a", "again 1", "again 2"]
        assert (await s.count, (await s.describe())["fibers"]) == (2, 0)


async def test_it_goes_on_after_the_host_died(either):
    """Invariants 8 and 16."""
    async with either.host(dies=True) as host:
        s = await host.spawn(Agent, "s")
        shut(either)
        await s.started()
    open(either)
    async with either.host() as host:
        await settled(host)
        assert await (await host.get("s")).seen() == ["again 1", "again 2"]


async def test_it_leaves_memory_with_its_session_and_comes_back_when_it_is_needed(world):
    async with world.host(vats=1) as host:
        s = await host.spawn(Agent, "s")
        shut(world)
        await s.started()
        assert len(live(host, "s")) == 1
        for n in range(3):
            await (await host.spawn(Counter, f"c{n}")).add("x")
        assert live(host, "s") == {}
        open(world)
        await settled(host)
        assert await s.seen() == ["again 1", "again 2"]


async def test_leaving_memory_runs_no_code_that_counts_and_warns_of_nothing(world):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        async with world.host(dies=True) as host:
            s = await host.spawn(Agent, "s")
            shut(world)
            await s.started()
            before = heap_of(host, "s")
        async with world.host(takes_up="nothing") as host:
            assert heap_of(host, "s") == before
            assert await (await host.get("s")).count == 0


async def test_loading_a_session_runs_none_of_its_fibers(world):
    """Invariant 34: they are only state until one is to go on."""
    async with world.host() as host:
        s = await host.spawn(Agent, "s")
        shut(world)
        await s.started()
        await settled(host)
    async with world.host(takes_up="nothing") as host:
        s = await host.get("s")
        await s.poke()
        assert (await s.describe())["fibers"] == 1
        assert live(host, "s") == {}


async def test_a_batch_that_fails_takes_back_what_fibers_did_in_it(world):
    """Invariants 5 and 11."""
    async with world.host() as host:
        s = await host.spawn(Agent, "s")
        shut(world)
        await s.started()
        store = store_of(host)
        append = store.append

        def full(batch: Any) -> Any:
            raise DiskFull("append", "the log", OSError(28, "No space left on device"))

        store.append = full
        open(world)
        await settled(host)
        assert live(host, "s") == {}
        store.append = append
        await s.poke()
        await settled(host)
        assert await s.seen() == ["again 1", "again 2"]
        assert await s.count == 101


async def test_an_outcome_that_cannot_be_taken_is_offered_again_once_each_time_its_session_is_woken(world, monkeypatch):
    take, offered = Vat.take, []

    def faulty(self: Vat, message: Any) -> Any:
        if isinstance(message, Ended) and len(offered) < 100:
            offered.append(message)
            raise AssertionError("a mistake of the runtime's")
        return take(self, message)

    async with world.host() as host:
        s = await host.spawn(Agent, "s")
        shut(world)
        await s.started()
        monkeypatch.setattr(Vat, "take", faulty)
        open(world)
        for count in range(1, 4):
            await trio.testing.wait_all_tasks_blocked(0.01)
            assert len(offered) == count
            host._engine._wake(next(iter(outcomes_of(host)))[0])
        monkeypatch.setattr(Vat, "take", take)
        await s.poke()
        for uid, _ in list(outcomes_of(host)):
            host._engine._wake(uid)
        await settled(host)
        assert await s.seen() == ["again 1", "again 2"]


async def test_one_that_is_needed_again_while_its_records_are_on_their_way_waits_for_them(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A part that is not durable has no record to be run again from."""
    take, asked = Vat.take, []

    def forgetful(self: Vat, message: Any) -> Any:
        step = take(self, message)
        self.crank.fibers.close()  # as when a crank is abandoned
        return step

    def record(self: StoredPast, seq: int) -> Any:
        try:
            return read(self, seq)
        except NotYet:
            asked.append(seq)
            raise

    read = StoredPast.record
    monkeypatch.setattr(Vat, "take", forgetful)
    monkeypatch.setattr(StoredPast, "record", record)
    async with world.host() as host:
        s = await host.spawn(Agent, "s")
        shut(world)
        await s.started("pair")
        await settled(host)
        with held(host):
            for wanted in sorted(host._engine.errands.running(), key=lambda one: one.key):  # in that order
                host._engine.errands._settled(wanted, EffectOutcome(value=f"again {wanted.args[0]}"))
            await trio.testing.wait_all_tasks_blocked()
            assert asked, "the second outcome came when the first one's record was on its way"
        await settled(host)
        assert await s.seen() == ["again 1", "again 2"]
        open(world)


async def test_in_a_fork_it_is_told_and_the_parent_goes_on(either):
    async with either.host() as host:
        s = await host.spawn(Agent, "s")
        shut(either)
        await s.started()
        twin = await s.fork(into="twin")
        assert await twin.seen() == ["forked"]
        open(either)
        await settled(host)
        assert (await s.seen(), await twin.seen()) == (["again 1", "again 2"], ["forked"])


async def test_a_fork_from_a_point_in_the_past_has_the_fibers_of_then(either):
    """Invariant 28."""
    async with either.host() as host:
        s = await host.spawn(Agent, "s")
        shut(either)
        await s.started()
        at = (await s.describe())["seq"]
        open(either)
        await settled(host)
        twin = await s.fork(at=at)
        assert await s.seen() == ["again 1", "again 2"]
        assert (await twin.seen(), (await twin.describe())["fibers"]) == (["forked"], 0)


async def test_deleting_breaks_it_for_who_waits_and_its_outcome_is_refused(world):
    """Invariant 25."""
    async with world.host() as host:
        s = await host.spawn(Agent, "s")
        shut(world)
        caught: list[Exception] = []

        async def call() -> None:
            try:
                await s.work(1)
            except Deleted as error:
                caught.append(error)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(call)
            await settled(host)
            await host.delete("s", force=True)
        assert len(caught) == 1
        assert live(host, "s") == {}
        open(world)
        await settled(host)


async def test_a_fork_whose_parent_is_deleted_brings_its_fibers_back(world):
    """Invariant 26."""
    async with world.host() as host:
        s = await host.spawn(Agent, "s")
        await s.work("a")
        shut(world)
        await s.started()
        twin = await s.fork(into="twin")
        await host.delete("s", force=True)
        assert await twin.seen() == ["again a", "forked"]


async def test_cancelling_stops_the_device(world):
    async with world.host() as host:
        s = await host.spawn(Agent, "s")
        shut(world)
        got: list[Any] = []

        async def call() -> None:
            got.append(await s.limited())

        async with trio.open_nursery() as nursery:
            nursery.start_soon(call)
            await settled(host)
            row = catalog_of(host).session("s")
            enough = next(one for one in host._engine.errands.running() if one.method == "once")
            assert row.uid == enough.key[0]
            host._engine.errands._settled(enough, EffectOutcome(value="now"))
        assert got == [True]
        assert (await s.describe())["fibers"] == 0
        open(world)


async def test_it_sleeps_until_the_time_is_over_whatever_restarts_lie_between(world):
    """A deadline that passed while no host ran is over at once."""
    async with world.host(dies=True) as host:
        s = await host.spawn(Agent, "s")
        await s.started("nap")
        await settled(host)
        assert await s.seen() == []
    world.clock.move(3600)
    async with world.host() as host:
        await settled(host)
        assert await (await host.get("s")).seen() == ["slept from 1 to 2"]


async def test_snapshots_are_not_far_apart_while_one_waits(world):
    async with world.host(snapshot_records=10_000, first_snapshot=10_000) as host:
        s = await host.spawn(Agent, "s")
        shut(world)
        await s.started()
        for _ in range(300):
            await s.poke()
        assert records(host, "s").count(Kind.SNAPSHOT) == 1
        open(world)


async def test_restarts_change_nothing_but_who_is_told(world):
    """Invariant 8: the same heap with restarts between all steps as without."""
    other = World()
    other.actors = world.actors
    for each, restarts in ((world, False), (other, True)):
        shut(each)
        async with each.host(dies=restarts) as host:
            await (await host.spawn(Agent, "s")).started()
            if not restarts:
                open(each)
                await settled(host)
    for _ in range(2):
        open(other)
        async with other.host(dies=True) as host:
            await settled(host)
    async with world.host() as one, other.host() as two:
        assert await (await one.get("s")).seen() == await (await two.get("s")).seen() == ["again 1", "again 2"]
        assert await (await one.get("s")).count == await (await two.get("s")).count == 1


async def test_a_waiting_one_costs_a_few_kilobytes_of_memory(world):
    """Invariant 39."""
    async with world.host() as host:
        s = await host.spawn(Agent, "s")
        shut(world)
        tracemalloc.start()
        try:
            await s.started()
            await settled(host)
            row = catalog_of(host).session("s")
            fibers = resident_of(host, row.uid).vat.crank.fibers
            before = tracemalloc.get_traced_memory()[0]
            for _ in range(100):
                await s.started()
            await settled(host)
            each = (tracemalloc.get_traced_memory()[0] - before) / 100
        finally:
            tracemalloc.stop()
        assert len(fibers.live) == 101
        assert each < 64 * 1024  # with its effect and the task that carries it out
        open(world)
