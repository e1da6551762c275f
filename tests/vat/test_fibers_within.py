"""Waiting for a time at most."""

from __future__ import annotations

import math
from typing import Any

import pytest
from waits import Agent, Fiberworld, script, value_of, within

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
