"""The runner of effects: what it calls, how often, and what it does after a crash."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from tests.effect_host import Device, Host, forever, running
from vat.devices.devices import Policy, effect
from vat.devices.outcomes import EffectOutcome, OutcomeUnknown

# What is called, and when


async def test_an_effect_comes_to_its_value():
    async with running(Host(Device())) as host:
        host.want(1, "again", {"a": [1, 2]})
        assert await host.outcome() == EffectOutcome({"a": [1, 2]})


async def test_the_value_of_an_effect_is_frozen():
    async with running(Host(Device())) as host:
        host.want(1, "again", {"a": [1]})
        with pytest.raises(TypeError, match="cannot be changed"):
            (await host.outcome()).value["a"].append(2)


async def test_a_plain_function_is_called_as_call():
    @effect
    async def double(effect, number):
        return number * 2

    async with running(Host(Device(), double=double)) as host:
        host.want(1, "call", 21, device="double")
        assert await host.outcome() == EffectOutcome(42)


async def test_a_device_is_told_which_effect_it_is():
    async def who(effect, **options):
        return [effect.id, effect.device, effect.method, effect.session, effect.attempt, options["x"]]

    async with running(Host(Device())) as host:
        host.want(1, "again", who, x=5)
        assert await host.outcome() == EffectOutcome(["id-1", "d", "again", "s1", 1, 5])


async def test_arguments_are_handed_over_as_they_are():
    class View(list):
        def __iter__(self):
            raise AssertionError("was read")

    view = View([1, 2, 3])

    async def same(effect, given):
        return given is view

    async with running(Host(Device())) as host:
        host.want(1, "again", same, view)
        assert await host.outcome() == EffectOutcome(True)


async def test_effects_wanted_before_the_runner_runs_wait_for_it():
    host = Host(Device())
    host.want(1, "again", "early")
    await trio.testing.wait_all_tasks_blocked()
    assert host.outcomes == {}
    async with running(host):
        assert await host.outcome() == EffectOutcome("early")


async def test_an_outcome_never_comes_while_an_effect_is_being_wanted():
    async with running(Host(Device())) as host:
        await trio.testing.wait_all_tasks_blocked()
        host.want(1, "again", "value")
        host.want(2, "gone", "value")
        host.want(3, "once", "value", state="started")
        assert host.happened == []


async def test_that_an_effect_starts_is_durable_before_the_device_is_called():
    async def act(effect):
        host.happened.append(("called", 1))

    async with running(Host(Device())) as host:
        host.want(1, "once", act)
        await host.outcome()
        assert host.happened == [("started", 1), ("called", 1), ("settled", 1)]


async def test_an_effect_that_may_be_run_again_is_called_without_a_record_that_it_starts():
    async with running(Host(Device())) as host:
        host.want(1, "again", "value")
        await host.outcome()
        assert host.happened == [("settled", 1)]


async def test_a_device_is_not_called_when_its_start_cannot_be_made_durable(autojump_clock):
    device = Device()
    async with running(Host(device)) as host:
        host.refused = True
        host.want(1, "once", "value")
        await trio.sleep(1)
        assert (device.calls, host.outcomes, host.runner.running()) == ([], {}, [])

        host.refused = False
        host.want(1, "once", "value")
        assert await host.outcome() == EffectOutcome("value")


# After a crash


async def test_an_effect_that_had_started_is_unknown_and_not_called_again(autojump_clock):
    """Invariant 13: three restarts, one call."""
    device = Device()
    state = "wanted"
    for _ in range(3):
        host = Host(device)
        async with running(host):
            host.want(1, "once", forever, state=state)
            await trio.sleep(1)
            state = "started" if ("started", 1) in host.happened else state
    assert len(device.calls) == 1
    error = host.outcomes[1].error
    assert isinstance(error, OutcomeUnknown)
    assert "nobody knows whether d.once (effect id-1) happened" in str(error)


async def test_an_effect_that_had_not_started_is_called_after_a_crash():
    async with running(Host(Device())) as host:
        host.want(1, "once", "value", state="wanted")
        assert await host.outcome() == EffectOutcome("value")


async def test_an_effect_that_may_be_run_again_is_called_after_a_crash():
    async with running(Host(Device())) as host:
        host.want(1, "again", "value", state="started")
        assert await host.outcome() == EffectOutcome("value")


async def test_one_that_had_started_on_a_device_that_is_gone_is_unknown():
    async with running(Host(Device())) as host:
        host.want(1, "once", device="gone", state="started")
        assert isinstance((await host.outcome()).error, OutcomeUnknown)


async def test_what_runs_when_the_host_stops_is_let_go_without_an_outcome(autojump_clock):
    async def stubborn(effect):
        try:
            await trio.sleep_forever()
        except trio.Cancelled:
            raise ValueError("I was disturbed") from None

    async def in_a_nursery(effect):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(stubborn, effect)
            await trio.sleep_forever()

    host = Host(Device(once=Policy(concurrency=1)))
    async with running(host):
        host.want(1, "again", forever)
        host.want(2, "again", stubborn)
        host.want(3, "again", in_a_nursery)
        host.want(4, "once", forever)
        host.want(5, "once", forever)
        await trio.sleep(1)
    assert host.outcomes == {}
    assert host.runner.running() == []


async def test_nothing_that_waits_is_called_when_the_host_stops(autojump_clock):
    device = Device(again=Policy(concurrency=1))
    host = Host(device)

    async def unmoved(effect):
        with trio.CancelScope(shield=True):
            await trio.sleep(1)
        return "done"

    async with running(host):
        host.want(1, "again", unmoved)
        host.want(2, "again", "next")
        await trio.sleep(0.5)
    assert host.outcomes == {1: EffectOutcome("done")}
    assert len(device.calls) == 1


async def test_a_runner_can_run_again(autojump_clock):
    host = Host(Device(again=Policy(concurrency=1)))
    async with running(host):
        host.want(1, "again", forever)
        host.want(2, "again", forever)
        await trio.sleep(1)
    async with running(host):
        host.want(2, "again", "value")
        assert await host.outcome(2) == EffectOutcome("value")


# One call for one effect


async def test_an_effect_that_is_held_is_not_called_a_second_time(autojump_clock):
    device = Device()
    async with running(Host(device)) as host:
        host.want(1, "once", forever)
        await trio.sleep(1)
        host.want(1, "once", forever, state="started")
        await trio.sleep(1)
        assert len(device.calls) == 1
        assert host.outcomes == {}


async def test_the_effects_that_are_held_can_be_listed(autojump_clock):
    async with running(Host(Device(again=Policy(concurrency=1)))) as host:
        for number in (3, 1, 2):
            host.want(number, "again", forever)
        await trio.sleep(1)
        assert [wanted.key[1] for wanted in host.runner.running()] == [3, 1, 2]


async def test_calls_of_one_method_are_limited_and_come_in_the_order_in_which_they_were_wanted(autojump_clock):
    now, most, order = set(), [], []

    async def act(effect, number):
        now.add(number)
        most.append(len(now))
        order.append(number)
        await trio.sleep(1)
        now.remove(number)

    async with running(Host(Device(again=Policy(concurrency=2)))) as host:
        for number in range(9):
            host.want(number, "again", act, number)
        await host.outcome(8)
        assert max(most) == 2
        assert [sorted(order[start : start + 2]) for start in range(0, 9, 2)] == [[0, 1], [2, 3], [4, 5], [6, 7], [8]]


async def test_a_limited_method_does_not_hold_up_another_one():
    async with running(Host(Device(once=Policy(concurrency=1)))) as host:
        host.want(1, "once", forever)
        host.want(2, "once", forever)
        host.want(3, "again", "value")
        assert await host.outcome(3) == EffectOutcome("value")


async def test_one_that_fails_makes_room_for_the_next():
    async def fail(effect):
        raise ValueError

    async with running(Host(Device(again=Policy(concurrency=1)))) as host:
        host.want(1, "again", fail)
        host.want(2, "again", "value")
        assert await host.outcome(2) == EffectOutcome("value")


async def test_many_waiting_effects_cost_no_task_each(autojump_clock):
    async with running(Host(Device(again=Policy(concurrency=1)))) as host:
        host.want(0, "again", forever)
        await trio.sleep(1)
        before = trio.lowlevel.current_statistics().tasks_living
        for number in range(1, 1000):
            host.want(number, "again", forever)
        await trio.sleep(1)
        assert trio.lowlevel.current_statistics().tasks_living == before
