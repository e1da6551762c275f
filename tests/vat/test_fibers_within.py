"""Waiting for a time at most."""

from __future__ import annotations

import math
from typing import Any

import pytest
from waits import Agent, Fiberworld, gather, script, value_of, within

from vat.objects.waiting import TimeLimit

SECOND = 1_000_000


@pytest.fixture
def world() -> Fiberworld:
    return Fiberworld()


@script
async def limited(me: Agent, seconds: float) -> Any:
    try:
        return await within(seconds, me.want("slow"))
    except TimeLimit as error:
        me.log.append(str(error))
        return isinstance(error, TimeoutError)


def test_within_gives_what_comes_in_time_and_gives_the_timer_up(world):
    got = world.go("limited", 5)
    assert [wanted[0] for wanted in world.wanted_now] == ["tool", "timer"]
    world.give("in time", effect=1)
    assert (value_of(got), world.wanted_now) == ("in time", [])
    assert world.agent.steps[-1].cancelled == [2]
    world.sound()


def test_within_asks_for_the_time_at_which_it_ends(world):
    world.go("limited", 2.5)
    began = world.agent.records[-1].time / SECOND
    assert world.wanted_now[1] == ("timer", "until", [began + 2.5])


@pytest.mark.parametrize("restarted", [False, True])
def test_when_the_time_is_over_it_raises_and_gives_the_effect_up(world, restarted):
    got = world.go("limited", 5)
    if restarted:
        world.restart()
    world.give(None, effect=2)
    assert world.wanted_now == []
    assert world.agent.steps[-1].cancelled == [1]
    assert world.seen() == ["nothing came of it within 5 seconds, so it was given up: ask again, or give it longer"]
    assert restarted or value_of(got) is True
    world.sound()


def test_the_effect_is_given_up_even_if_nobody_catches_the_error(world):
    @script
    async def careless(me: Agent) -> Any:
        return await within(5, me.want())

    got = world.go("careless")
    world.give(effect=2)
    with pytest.raises(TimeLimit):
        value_of(got)
    assert world.wanted_now == []
    assert world.agent.steps[-1].cancelled == [1]
    world.sound()


@pytest.mark.parametrize("restarted", [False, True])
def test_a_timer_that_breaks_gives_nothing_up_and_its_error_is_raised(world, restarted):
    @script
    async def mistimed(me: Agent) -> Any:
        promise = me.want()
        try:
            return await within(5, promise)
        except ValueError as error:
            return [str(error), await promise]

    got = world.go("mistimed")
    if restarted:
        waiters = world.agent.vat.waiters
        world.restart()
        world.agent.vat.waiters.update(waiters)
    world.give(error="never comes", effect=2)
    assert [wanted[0] for wanted in world.wanted_now] == ["tool"]
    assert world.agent.steps[-1].cancelled == []
    world.give("late", effect=1)
    assert restarted or value_of(got) == ["never comes", "late"]
    assert (world.waiting, world.wanted_now) == (0, [])
    world.sound()


def test_no_end_of_seconds_is_no_limit(world):
    got = world.go("limited", math.inf)
    assert [wanted[0] for wanted in world.wanted_now] == ["tool"]
    world.give("at last")
    assert value_of(got) == "at last"
    world.sound()


@pytest.mark.parametrize("seconds", [math.nan, -math.inf])
def test_what_is_no_time_is_refused_and_gives_nothing_up(world, seconds):
    got = world.go("limited", seconds)
    with pytest.raises(ValueError, match="no number of seconds that can pass"):
        value_of(got)
    world.sound()


def test_within_raises_what_breaks_in_time(world):
    @script
    async def broken(me: Agent) -> Any:
        return await within(5, me.want())

    got = world.go("broken")
    world.give(error="no", effect=1)
    with pytest.raises(ValueError, match="no"):
        value_of(got)
    assert world.wanted_now == []
    world.sound()


@script
async def limited_several(me: Agent, failures: bool) -> None:
    wanted = [me.want("a"), me.want("b"), me.want("c")]
    try:
        me.value = [str(came) for came in await within(5, gather(wanted, failures=failures))]
    except (TimeLimit, ValueError) as error:
        me.value = type(error).__name__


@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize(
    ("failures", "came", "expected", "open_then"),
    [
        (False, [1, 2, 3], ["1", "2", "3"], []),
        (True, [1, ValueError("no"), 3], ["1", "no", "3"], []),
        (False, [ValueError("no")], "ValueError", ["tool", "tool"]),
        (False, [1, TimeLimit(5)], "TimeLimit", []),
        (True, [1, TimeLimit(5)], ["1", str(TimeLimit(5)), str(TimeLimit(5))], []),
    ],
)
def test_a_limit_for_several_at_once(world, restarted, failures, came, expected, open_then):
    """Of those that are asked for with their failures, each has what it came to, or that it was given up."""
    world.go("limited_several", failures)
    for effect, outcome in enumerate(came, 1):
        assert world.ask(world.agent, "value") is None
        if restarted:
            world.restart()
        if isinstance(outcome, TimeLimit):
            world.give(effect=4)
        elif isinstance(outcome, ValueError):
            world.give(error=str(outcome), effect=effect)
        else:
            world.give(outcome, effect=effect)
    assert (world.ask(world.agent, "value"), [wanted[0] for wanted in world.wanted_now]) == (expected, open_then)
    world.sound()


def test_a_limit_for_none_and_no_limit_for_several(world):
    @script
    async def none_and_several(me: Agent) -> Any:
        return [await within(5, gather([])), await within(math.inf, gather(me.want(), me.want()))]

    got = world.go("none_and_several")
    world.give(1)
    world.give(2)
    assert value_of(got) == [[], [1, 2]]
    world.sound()
