"""Timers: they come at their time, whatever restarts, evictions and clocks do."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from typing import Any

import pytest
import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st

from dataspace.errors import KeeveError
from keeve.testing.hosts import FakeClock, memory_host
from tests.effect_host import Device, Host, running
from tests.vat.hosts import Counter, World, catalog_of, resident_of, settled
from vat.devices.devices import Effect, effect
from vat.devices.outcomes import EffectOutcome
from vat.devices.timers import LOOK, Timer
from vat.heap.deadlines import deadline_of
from vat.heap.refs import Promise, cancel
from vat.host.waking import Waking
from vat.objects.actor import Actor, actor
from vat.objects.collections import List

DAY = 86_400.0


@actor("test.sleeper", version=1)
class Sleeper(Actor):
    """Sleeps, and notes when it woke."""

    woken: List[Any]
    asleep: int = 0

    def nap(self, seconds: float, name: str = "") -> Any:
        slept = self.device("timer").until(self.now() + seconds)
        self.asleep = slept.id
        return slept.then(self.wake, name, broken=self.broken)

    def doze(self, seconds: float) -> None:
        self.nap(seconds, "doze")

    def until(self, at: Any) -> Any:
        return self.device("timer").until(at).then(self.wake, "until", broken=self.broken)

    def rise(self) -> bool:
        return bool(cancel(Promise(self.asleep), ValueError("up")))

    def wake(self, _: None, name: str) -> str:
        self.woken.append([name, self.now()])
        return name

    def broken(self, error: Exception, name: str) -> str:
        self.woken.append(type(error).__name__)
        return type(error).__name__


@pytest.fixture
def sleepers(either: World) -> World:
    either.actors = (Sleeper, Counter)
    return either


def moment(world: World) -> float:
    return world.clock() / 1_000_000


async def nap(ref: Any, *how: Any) -> None:
    with suppress(KeeveError):
        await ref.nap(*how)


async def later(world: World, seconds: float) -> None:
    """Time passes, and whoever looks at the clock has had the time to see it."""
    world.clock.move(seconds)
    await trio.sleep(LOOK + 1)


async def test_every_host_has_a_timer_without_being_told(sleepers: World, patient_clock: Any) -> None:
    async with sleepers.host() as host, trio.open_nursery() as nursery:
        s = await host.spawn(Sleeper, "s1")
        begun = moment(sleepers)
        nursery.start_soon(nap, s, 60, "a")
        await trio.sleep(1)
        (waiting,) = host.effects()
        assert (waiting.device, waiting.method, list(waiting.args)) == ("timer", "until", [begun + 60])
        await later(sleepers, 59)
        assert await s.woken == []
        await later(sleepers, 1)
        assert await s.woken == [["a", begun + 60]]


async def test_timers_come_in_the_order_of_their_deadlines(sleepers: World, patient_clock: Any) -> None:
    async with sleepers.host() as host, trio.open_nursery() as nursery:
        s = await host.spawn(Sleeper, "s1")
        for seconds in (30, 10, 50, 20, 40):
            nursery.start_soon(nap, s, seconds, str(seconds))
            await trio.testing.wait_all_tasks_blocked()
        for _ in range(5):
            await later(sleepers, 10)
        assert [name for name, _ in await s.woken] == ["10", "20", "30", "40", "50"]


@pytest.mark.parametrize("dies", [True, False])
async def test_a_timer_set_for_tomorrow_comes_after_three_restarts_at_its_time(
    sleepers: World, dies: bool, patient_clock: Any
) -> None:
    async with trio.open_nursery() as nursery:
        async with sleepers.host(dies=dies) as host:
            begun = moment(sleepers)
            nursery.start_soon(nap, await host.spawn(Sleeper, "s1"), DAY, "a")
            await settled(host)
        for _ in range(3):
            async with sleepers.host(dies=dies) as host:
                await later(sleepers, DAY / 4)
                assert await (await host.get("s1")).woken == []
        async with sleepers.host(dies=dies) as host:
            await later(sleepers, DAY / 4 - 60)
            assert await (await host.get("s1")).woken == []
            await later(sleepers, 60)
            assert await (await host.get("s1")).woken == [["a", begun + DAY]]


async def test_a_timer_whose_time_passed_while_the_host_was_down_comes_at_once(sleepers: World) -> None:
    async with trio.open_nursery() as nursery:
        async with sleepers.host(dies=True) as host:
            nursery.start_soon(nap, await host.spawn(Sleeper, "s1"), DAY, "a")
            await settled(host)
        sleepers.clock.move(3 * DAY)
        async with sleepers.host() as host:
            await settled(host)
            assert await (await host.get("s1")).woken == [["a", moment(sleepers)]]
        async with sleepers.host() as host:
            await settled(host)
            assert len(await (await host.get("s1")).woken) == 1


async def test_a_session_with_only_a_timer_leaves_memory_and_is_woken_by_it(world: World, patient_clock: Any) -> None:
    world.actors = (Sleeper, Counter)
    async with world.host(vats=1) as host:
        await (await host.spawn(Sleeper, "s1")).doze(60)  # a caller who waits would keep it in memory
        for number in range(3):
            await host.spawn(Counter, str(number))
        uid = catalog_of(host).session("s1").uid
        assert resident_of(host, uid) is None
        await later(world, 60)
        assert [name for name, _ in await (await host.get("s1")).woken] == ["doze"]


async def test_a_timer_that_is_given_up_does_not_come(sleepers: World, patient_clock: Any) -> None:
    async with sleepers.host() as host, trio.open_nursery() as nursery:
        s = await host.spawn(Sleeper, "s1")
        nursery.start_soon(nap, s, 60, "a")
        await settled(host)
        assert await s.rise()
        await settled(host)
        assert host.effects() == []
        await later(sleepers, 120)
        assert await s.woken == ["ValueError"]


async def test_a_fork_has_none_of_its_parents_timers(sleepers: World, patient_clock: Any) -> None:
    async with sleepers.host() as host, trio.open_nursery() as nursery:
        s = await host.spawn(Sleeper, "s1")
        nursery.start_soon(nap, s, 60, "a")
        await settled(host)
        twin = await s.fork()
        await later(sleepers, 60)
        assert [name for name, _ in await s.woken] == ["a"]
        assert await twin.woken == ["Forked"]


# Clocks


async def test_a_clock_that_is_set_forward_lets_timers_come_early(sleepers: World, patient_clock: Any) -> None:
    async with sleepers.host() as host, trio.open_nursery() as nursery:
        s = await host.spawn(Sleeper, "s1")
        nursery.start_soon(nap, s, DAY, "a")
        await settled(host)
        begun = trio.current_time()
        await later(sleepers, DAY)
        assert len(await s.woken) == 1
        assert trio.current_time() - begun < 2 * LOOK


async def test_a_clock_that_is_moved_by_hand_wakes_the_timers_that_are_due(mock_clock: Any) -> None:
    clock = FakeClock()  # and trio's own stands still: nobody looks at it every few seconds
    async with memory_host(clock=clock, actors=[Sleeper]) as host:
        s = await host.spawn(Sleeper, "s")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(nap, s, DAY, "day")
            nursery.start_soon(nap, s, 2 * DAY, "two")
            while len(host.effects()) != 2:
                await trio.lowlevel.checkpoint()
            clock.move(seconds=DAY)
            while not await s.woken:
                await trio.lowlevel.checkpoint()
            assert [name for name, _ in await s.woken] == ["day"]
            clock.move(seconds=DAY)
    clock.move(seconds=1)  # nobody hears it any more


async def test_a_clock_that_is_set_back_lets_timers_come_late(sleepers: World, patient_clock: Any) -> None:
    async with sleepers.host() as host, trio.open_nursery() as nursery:
        s = await host.spawn(Sleeper, "s1")
        deadline = moment(sleepers) + 60
        nursery.start_soon(nap, s, 60, "a")
        await settled(host)
        await later(sleepers, -3600)
        await later(sleepers, 3600 + 59)
        assert await s.woken == []
        await later(sleepers, 1)
        assert await s.woken == [["a", deadline]]


async def test_after_a_clock_was_set_back_a_sleep_counts_from_the_time_of_the_crank(
    sleepers: World, patient_clock: Any
) -> None:
    async with sleepers.host() as host, trio.open_nursery() as nursery:
        s = await host.spawn(Sleeper, "s1")
        before = moment(sleepers)
        sleepers.clock.move(-3600)
        nursery.start_soon(nap, s, 60, "a")
        await settled(host)
        assert list(host.effects()[0].args) == [before + 60]  # `now()` of a vat never goes back
        nursery.cancel_scope.cancel()


# What is asked for


@pytest.mark.parametrize("seconds", [0, 0.0, -5])
async def test_no_time_at_all_passes_at_once(world: World, seconds: float) -> None:
    world.actors = (Sleeper,)
    async with world.host() as host:
        assert await (await host.spawn(Sleeper, "s1")).nap(seconds, "a") == "a"


@pytest.mark.parametrize("at", [float("nan"), -float("inf"), 10**400, -(10**400), True, "tomorrow", None, [1]])
async def test_what_is_no_time_breaks_the_timer_and_says_so(world: World, at: Any) -> None:
    world.actors = (Sleeper,)
    async with world.host() as host:
        assert await (await host.spawn(Sleeper, "s1")).until(at) in ("TypeError", "ValueError")


async def test_what_never_comes_waits_until_it_is_given_up(world: World) -> None:
    world.actors = (Sleeper,)
    async with world.host() as host, trio.open_nursery() as nursery:
        s = await host.spawn(Sleeper, "s1")
        nursery.start_soon(nap, s, float("inf"), "a")
        await settled(host)
        [timer] = host.effects()
        assert (timer.args, timer.state) == ([float("inf")], "running")
        nursery.cancel_scope.cancel()


@given(
    st.lists(
        st.one_of(
            st.integers(),
            st.integers(300, 4000).map(lambda digits: 10**digits),
            st.floats(),
            st.none(),
            st.booleans(),
            st.text(max_size=3),
            st.lists(st.integers(), max_size=2),
        ),
        max_size=2,
    ),
    st.dictionaries(st.sampled_from(["at", "on"]), st.one_of(st.floats(), st.just(-(10**400))), max_size=2),
)
def test_whatever_a_timer_is_asked_for_it_breaks_alone(args: list[Any], keywords: dict[str, Any]) -> None:
    async def both() -> None:
        host = Host(Device(), timer=Timer(), clock=lambda: 1 << 60)
        async with running(host):
            host.want(1, "until", *args, device="timer", **keywords)
            host.want(2, "until", 1.0, device="timer")
            assert await host.outcome(2) == EffectOutcome(None)
            await trio.testing.wait_all_tasks_blocked()
            if 1 not in host.outcomes:
                [at] = [*args, *keywords.values()]
                assert at * 1_000_000 > 1 << 60  # it waits
                assert host.cancel(1)
            elif host.outcomes[1].error is not None:
                assert isinstance(host.outcomes[1].error, TypeError | ValueError)

    trio.run(both)


async def test_what_is_wrong_with_one_effect_keeps_none_that_is_wanted_after_it(
    world: World, monkeypatch: Any, patient_clock: Any
) -> None:
    def fails(args: Any, keywords: Any) -> float:
        raise OverflowError("as it once did")

    @actor("test.both", version=1)
    class Both(Actor):
        results: List[Any]

        def go(self) -> Any:
            self.device("timer").until(1).then(self.came, broken=self.came)
            return self.device("tool").again(1).then(self.came, broken=self.came)

        def came(self, result: Any) -> int:
            self.results.append(str(result))
            return len(self.results)

    monkeypatch.setattr("vat.devices.runner.deadline_of", fails)
    world.actors = (Both,)
    async with world.host() as host:
        b = await host.spawn(Both, "b")
        await b.go()
        await settled(host)
        assert sorted(await b.results) == ["again 1", "as it once did"]


async def test_what_is_wrong_with_one_effect_keeps_none_from_being_taken_up_after_it(
    world: World, monkeypatch: Any, patient_clock: Any
) -> None:
    world.actors = (Sleeper,)
    async with world.host(dies=True) as host:
        s = await host.spawn(Sleeper, "s1")
        for seconds in (1, 2):
            await s.doze(seconds)
    deadlines: list[Any] = []

    def fails(args: Any, keywords: Any) -> float | None:
        deadlines.append(args)
        if len(deadlines) == 1:
            raise OverflowError("as it once did")
        return deadline_of(args, keywords)

    monkeypatch.setattr("vat.devices.runner.deadline_of", fails)
    async with world.host() as host:
        world.clock.move(5)
        await settled(host)
        await trio.sleep(LOOK + 1)
        woken = await (await host.get("s1")).woken
        assert woken[0] == "OverflowError"
        assert woken[1][0] == "doze"
    assert len(deadlines) > 1


async def test_a_timer_of_the_users_own_takes_its_place(world: World) -> None:
    class Quick:
        @effect
        async def until(self, effect: Effect, at: float) -> None:
            return None

    world.actors = (Sleeper,)
    async with world.host(devices={"timer": Quick()}) as host:
        assert await (await host.spawn(Sleeper, "s1")).nap(DAY, "a") == "a"


async def test_a_host_is_open_before_all_that_waits_has_been_taken_up(world: World, monkeypatch: Any) -> None:
    monkeypatch.setattr("vat.host.engine.AT_START", 3)
    world.actors = (Sleeper, Counter)
    async with world.host(dies=True) as host:
        for number in range(30):
            await (await host.spawn(Sleeper, str(number))).doze(DAY)
    go_on, all_of = trio.Event(), Waking.all

    async def held(self: Waking, uids: Collection[bytes]) -> None:
        if len(uids) > 3:
            await go_on.wait()
        await all_of(self, uids)

    with monkeypatch.context() as patch:
        patch.setattr(Waking, "all", held)
        async with world.host(vats=2) as host:
            engine = host._engine
            assert len(engine.errands.running()) == 3
            assert await (await host.spawn(Counter, "c")).add() == 1  # it is at work meanwhile
            assert len(engine.errands.running()) == 3
            go_on.set()
            await settled(host)
            assert len(engine.errands.running()) == 30
            assert len(engine.residents) <= 3
    async with world.host(vats=2) as host:  # one that ends at once does not take up the rest
        pass
    assert len(host._engine.errands.running()) < 30
