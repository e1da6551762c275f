"""The runner of effects: cancelling, timeouts and further attempts."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from tests.effect_host import Device, Host, error_of, forever, running
from vat.devices.devices import Policy
from vat.devices.outcomes import EffectCancelled, EffectOutcome, EffectTimeout

# Cancelling


async def test_a_cancelled_effect_breaks_and_says_that_it_may_have_happened(autojump_clock):
    async with running(Host(Device())) as host:
        host.want(1, "once", forever)
        await trio.sleep(1)
        assert host.cancel(1)
        assert (await host.outcome()).error.args == EffectCancelled("d.once", started=True).args


async def test_an_effect_that_waits_for_its_turn_is_cancelled_without_being_called(autojump_clock):
    device = Device(again=Policy(concurrency=1))
    async with running(Host(device)) as host:
        host.want(1, "again", forever)
        host.want(2, "again", forever)
        host.want(3, "again", "third")
        await trio.sleep(1)
        host.cancel(2)
        assert (await host.outcome(2)).error.args == EffectCancelled("d.again", started=False).args
        assert len(device.calls) == 1
        host.cancel(1)
        assert await host.outcome(3) == EffectOutcome("third")


async def test_an_effect_can_be_cancelled_before_the_runner_runs():
    device = Device()
    host = Host(device)
    host.want(1, "again", "value")
    host.cancel(1)
    async with running(host):
        assert isinstance((await host.outcome()).error, EffectCancelled)
        assert device.calls == []


async def test_a_value_that_came_before_the_cancellation_took_effect_stands(autojump_clock):
    async def unmoved(effect):
        with trio.CancelScope(shield=True):
            await trio.sleep(1)
        return "done"

    async with running(Host(Device())) as host:
        host.want(1, "once", unmoved)
        await trio.sleep(0.5)
        host.cancel(1)
        assert await host.outcome() == EffectOutcome("done")


async def test_an_error_that_a_cancellation_causes_is_a_cancellation(autojump_clock):
    async def stubborn(effect):
        try:
            await trio.sleep_forever()
        finally:
            raise ValueError("I was disturbed")

    async def in_a_nursery(effect):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(stubborn, effect)
            await trio.sleep_forever()

    async with running(Host(Device())) as host:
        host.want(1, "once", stubborn)
        host.want(2, "once", in_a_nursery)
        await trio.sleep(1)
        host.cancel(1)
        host.cancel(2)
        assert isinstance((await host.outcome(1)).error, EffectCancelled)
        assert isinstance((await host.outcome(2)).error, EffectCancelled)


async def test_a_cancelled_effect_is_not_tried_again(autojump_clock):
    device = Device(again=Policy(on_crash="retry", attempts=9, retry_on=(ValueError,), backoff=30))

    async def fail(effect):
        raise ValueError

    async with running(Host(device)) as host:
        host.want(1, "again", fail)
        await trio.sleep(1)
        host.cancel(1)
        assert isinstance((await host.outcome()).error, EffectCancelled)
        assert len(device.calls) == 1


async def test_cancelling_what_is_not_held_says_so():
    async with running(Host(Device())) as host:
        assert not host.cancel(1)


# Timeouts and further attempts


async def test_a_device_that_hangs_is_stopped_at_its_timeout(autojump_clock):
    error = await error_of(forever, timeout=5)
    assert error.args == EffectTimeout("d.again", 5).args
    assert str(error).startswith("d.again did not answer in its 5 s")


async def test_an_error_that_a_timeout_causes_is_a_timeout(autojump_clock):
    async def stubborn(effect):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(disturbed)
            await trio.sleep_forever()

    async def disturbed():
        try:
            await trio.sleep_forever()
        finally:
            raise ValueError("I was disturbed")

    assert isinstance(await error_of(stubborn, timeout=5), EffectTimeout)


async def test_what_is_worth_another_attempt_gets_one_after_a_growing_pause(autojump_clock):
    times = []

    async def third_time_lucky(effect):
        times.append((effect.attempt, trio.current_time()))
        if effect.attempt < 3:
            raise ConnectionError
        return "at last"

    policy = Policy(on_crash="retry", attempts=3, retry_on=(OSError,), backoff=2)
    async with running(Host(Device(again=policy), chance=lambda: 0.5)) as host:
        host.want(1, "again", third_time_lucky)
        assert await host.outcome() == EffectOutcome("at last")
    assert [attempt for attempt, _ in times] == [1, 2, 3]
    first, second, third = (time for _, time in times)
    assert (second - first, third - second) == (pytest.approx(1.5), pytest.approx(3.0))


async def test_attempts_end_at_their_number(autojump_clock):
    calls = []

    async def fail(effect):
        calls.append(effect.attempt)
        raise ConnectionError("gone")

    error = await error_of(fail, attempts=3, retry_on=(OSError,))
    assert (type(error), str(error), calls) == (ConnectionError, "gone", [1, 2, 3])


async def test_another_error_is_not_worth_another_attempt(autojump_clock):
    calls = []

    async def fail(effect):
        calls.append(effect.attempt)
        raise ValueError

    await error_of(fail, attempts=3, retry_on=(OSError,))
    assert calls == [1]


async def test_a_timeout_counts_for_one_attempt_and_can_be_worth_another(autojump_clock):
    async def slow_at_first(effect):
        await trio.sleep(10 if effect.attempt == 1 else 1)
        return "in time"

    policy = Policy(on_crash="retry", timeout=5, attempts=2, retry_on=(EffectTimeout,))
    async with running(Host(Device(again=policy))) as host:
        host.want(1, "again", slow_at_first)
        assert await host.outcome() == EffectOutcome("in time")


class Busy(Exception):
    def __init__(self, retry_after):
        super().__init__()
        self.retry_after = retry_after


@pytest.mark.parametrize(("asked", "waited"), [(7, 7), (0.1, 1), ("soon", 1), (None, 1), (float("nan"), 1), (-5, 1)])
async def test_an_error_can_ask_for_a_longer_pause(autojump_clock, asked, waited):
    times = []

    async def busy(effect):
        times.append(trio.current_time())
        raise Busy(asked)

    await error_of(busy, attempts=2, retry_on=(Busy,), backoff=1)
    assert times[1] - times[0] == pytest.approx(waited)


async def test_a_pause_that_is_too_long_ends_the_attempts(autojump_clock):
    calls = []

    async def busy(effect):
        calls.append(effect.attempt)
        raise Busy(86_400)

    await error_of(busy, attempts=2, retry_on=(Busy,))
    assert calls == [1]
