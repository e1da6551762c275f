"""The device `timer` by itself: what its timers cost, and how one of many is given up or comes first."""

from __future__ import annotations

from typing import Any

import trio
import trio.testing

from keeve.testing.hosts import FakeClock
from tests.effect_host import Device, Host, running
from vat.devices.outcomes import EffectCancelled, EffectOutcome
from vat.devices.timers import LOOK, Timer


async def test_many_timers_that_wait_cost_no_task_each_and_come_all(autojump_clock: Any) -> None:
    clock = FakeClock(0)
    host = Host(Device(), clock=clock, timer=Timer())
    async with running(host):
        await trio.testing.wait_all_tasks_blocked()
        before = trio.lowlevel.current_statistics().tasks_living
        for number in range(10_000):
            host.want(number, "until", float(10_000 - number), device="timer")
        await trio.sleep(LOOK + 1)
        assert trio.lowlevel.current_statistics().tasks_living == before
        assert host.outcomes == {}
        clock.move(5_000)
        await trio.sleep(LOOK + 1)
        assert sorted(host.outcomes) == list(range(5_000, 10_000))
        clock.move(5_000)
        await trio.sleep(LOOK + 1)
        assert len(host.outcomes) == 10_000
        assert set(map(repr, host.outcomes.values())) == {repr(EffectOutcome(None))}


async def test_a_timer_that_waits_can_be_cancelled(autojump_clock: Any) -> None:
    clock = FakeClock(0)
    host = Host(Device(), clock=clock, timer=Timer())
    async with running(host):
        for number in range(3):
            host.want(number, "until", 10.0, device="timer")
        assert host.cancel(1)
        assert isinstance((await host.outcome(1)).error, EffectCancelled)
        clock.move(10)
        await trio.sleep(LOOK + 1)
        assert sorted(host.outcomes) == [0, 1, 2]
        assert host.runner.running() == []


async def test_a_shorter_timer_that_comes_later_is_not_kept_waiting(autojump_clock: Any) -> None:
    clock = FakeClock(0)
    host = Host(Device(), clock=clock, timer=Timer())
    async with running(host):
        host.want(1, "until", 1000.0, device="timer")
        await trio.sleep(0.1)
        host.want(2, "until", 0.5, device="timer")
        await trio.testing.wait_all_tasks_blocked()
        clock.move(0.5)
        begun = trio.current_time()
        await host.outcome(2)
        assert trio.current_time() - begun < 1
