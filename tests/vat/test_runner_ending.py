"""The end of a host: which effects it waits for, which it lets go, and which devices do not let it go."""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import Any

import pytest
import trio
import trio.testing

from dataspace.errors import KeeveError
from tests.effect_host import Device, Host, forever, running
from tests.vat.hosts import Worker, World, records, settled
from vat.devices.devices import Effect, Policy, effect
from vat.devices.outcomes import EffectOutcome
from vat.devices.timers import Timer
from vat.objects.actor import Actor, actor
from vat.objects.collections import List


@actor("test.twice", version=1)
class Twice(Actor):
    """Has a device do one thing, and then another."""

    results: List[Any]

    def work(self, method: str, value: Any) -> Any:
        return getattr(self.device("tool"), method)(value).then(self.more)

    def more(self, result: Any) -> Any:
        self.results.append(result)
        return self.device("tool").again(2).then(self.last)

    def last(self, result: Any) -> None:
        self.results.append(result)


async def ask(ref: Any, method: str, value: Any) -> None:
    with suppress(KeeveError):
        await ref.work(method, value)


async def test_an_orderly_stop_waits_for_what_nobody_would_know_the_outcome_of(
    world: World, patient_clock: Any
) -> None:
    class Slow:
        @effect
        async def once(self, effect: Effect, value: Any) -> str:
            await trio.sleep(4)
            return "in time"

    async with trio.open_nursery() as nursery:
        async with world.host(devices={"tool": Slow()}) as host:
            nursery.start_soon(ask, await host.spawn(Worker, "s1"), "once", 1)
            await trio.sleep(1)
        assert trio.current_time() < 8
    async with world.host() as host:
        assert await (await host.get("s1")).results == ["in time"]
    assert world.tool.calls == []


async def test_an_orderly_stop_waits_so_long_and_no_longer(world: World, patient_clock: Any) -> None:
    world.tool.open = False
    async with trio.open_nursery() as nursery:
        async with world.host(grace=30) as host:
            nursery.start_soon(ask, await host.spawn(Worker, "s1"), "once", 1)
            await settled(host)
            begun = trio.current_time()
        assert 30 <= trio.current_time() - begun < 31
    assert world.tool.cancelled == 1
    async with world.host() as host:
        await settled(host)
        assert await (await host.get("s1")).results == ["OutcomeUnknown"]


async def test_an_orderly_stop_does_not_wait_for_what_may_run_again(world: World, patient_clock: Any) -> None:
    world.tool.open = False
    async with trio.open_nursery() as nursery:
        async with world.host(grace=30) as host:
            nursery.start_soon(ask, await host.spawn(Worker, "s1"), "again", 1)
            await settled(host)
            begun = trio.current_time()
        assert trio.current_time() - begun < 1


async def test_nothing_new_is_started_while_a_host_ends(world: World, patient_clock: Any) -> None:
    world.actors = (Twice,)

    class Chain:
        calls = 0

        @effect
        async def once(self, effect: Effect, value: Any) -> str:
            Chain.calls += 1
            await trio.sleep(value)
            return "done"

        @effect(on_crash="retry")
        async def again(self, effect: Effect, value: Any) -> str:
            raise AssertionError("the host is ending")

    async with trio.open_nursery() as nursery, world.host(devices={"tool": Chain()}) as host:
        nursery.start_soon(ask, await host.spawn(Twice, "s1"), "once", 1)
        nursery.start_soon(ask, await host.spawn(Twice, "s2"), "once", 3)  # the host waits for this one
        await settled(host)
    assert Chain.calls == 2
    async with world.host() as host:
        await settled(host)
        assert await (await host.get("s1")).results == ["done", "again 2"]
    assert world.tool.calls == [("again", 2)] * 2


async def test_what_a_device_gives_after_it_was_cancelled_is_recorded(world: World, patient_clock: Any) -> None:
    class Unmoved:
        @effect
        async def once(self, effect: Effect, value: Any) -> str:
            with trio.CancelScope(shield=True):
                await trio.sleep(3)
            return "after all"

    async with trio.open_nursery() as nursery, world.host(devices={"tool": Unmoved()}, grace=0) as host:
        nursery.start_soon(ask, await host.spawn(Worker, "s1"), "once", 1)
        await settled(host)
    async with world.host() as host:
        assert await (await host.get("s1")).results == ["after all"]
        assert len(records(host, "s1")) == 4  # born, asked, started, answered
    assert world.tool.calls == []


async def test_a_device_that_does_not_stop_is_named_with_its_place(
    autojump_clock: Any, caplog: pytest.LogCaptureFixture
) -> None:
    async def stubborn(effect: Effect) -> str:
        with trio.CancelScope(shield=True):
            await trio.sleep(40)
        return "late"

    host = Host(Device())
    async with running(host):
        host.want(1, "once", stubborn)
        host.want(2, "once", forever)
        await trio.sleep(1)
    said = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert len(said) == 3  # after 5, 15 and 35 s
    for text in said:
        assert "the host cannot end: d.once (effect id-1 of session s1) was cancelled and goes on" in text
        assert "await trio.sleep(40)" in text
    assert host.outcomes == {1: EffectOutcome("late")}


async def test_a_device_that_does_not_close_is_named(autojump_clock: Any, caplog: pytest.LogCaptureFixture) -> None:
    class Open(Device):
        async def __aenter__(self) -> None: ...

        async def __aexit__(self, *what: Any) -> None:
            with trio.CancelScope(shield=True):
                await trio.sleep(8)

    async with running(Host(Open())):
        await trio.sleep(1)
    assert [record.getMessage() for record in caplog.records] == ["the host cannot end: the device 'd' has not closed"]


async def test_devices_that_stop_in_time_are_not_named(autojump_clock: Any, caplog: pytest.LogCaptureFixture) -> None:
    host = Host(Device(again=Policy(on_crash="retry", concurrency=1)))
    async with running(host):
        for number in range(5):
            host.want(number, "again", forever)
        await trio.sleep(1)
    await trio.sleep(100)
    assert caplog.records == []
    assert host.outcomes == {}


class Meddling(trio.abc.Instrument):
    """Does something when the first effect ends: where it was the last one, before the runner knows of it."""

    def __init__(self, act: Any) -> None:
        self.act = act
        self.acted: list[Any] = []

    def task_exited(self, task: trio.lowlevel.Task) -> None:
        if not self.acted and "_carry_out" in task.name:
            try:
                self.acted.append(self.act())
            except RuntimeError as error:
                self.acted.append(error)


@pytest.mark.parametrize("act", ["want", "cancel a timer", "cancel what waits for its turn"])
async def test_what_is_wanted_or_given_up_while_the_runner_ends_is_left_for_the_next_start(act: str) -> None:
    async def lingers(effect: Effect) -> None:
        try:
            await trio.sleep_forever()
        finally:
            with trio.CancelScope(shield=True):
                for _ in range(10):
                    await trio.lowlevel.checkpoint()

    host = Host(Device(again=Policy(on_crash="retry", concurrency=1)), timer=Timer())
    acts = {
        "want": lambda: host.want(4, "until", -1, device="timer"),
        "cancel a timer": lambda: host.cancel(1),
        "cancel what waits for its turn": lambda: host.cancel(3),
    }
    meddling = Meddling(acts[act])
    async with trio.open_nursery() as nursery:
        nursery.start_soon(host.runner.run)
        host.want(1, "until", 1e12, device="timer")
        host.want(2, "again", lingers)
        host.want(3, "again", lingers)
        await trio.testing.wait_all_tasks_blocked()
        trio.lowlevel.add_instrument(meddling)
        nursery.cancel_scope.cancel()
    trio.lowlevel.remove_instrument(meddling)
    assert [type(each) for each in meddling.acted] in ([bool], [type(None)])
    assert host.outcomes == {}
    async with running(host):  # and it may run again
        host.want(1, "until", -1, device="timer")
        assert await host.outcome(1) == EffectOutcome(None)
