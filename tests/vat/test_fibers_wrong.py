"""What cannot be awaited, and fibers that would wait for each other."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import trio
from waits import Agent, Fiberworld, gather, near, script, value_of, within

from vat.errors import PromiseCycle, PromiseGone
from vat.heap.refs import Promise
from vat.objects.waiting import NotAwaitable, Wait


@pytest.fixture
def world() -> Fiberworld:
    return Fiberworld()


class Bare:
    def __await__(self) -> Any:
        return (yield)


async def refused(me: Agent, what: Any) -> list[Any]:
    try:
        await what
    except NotAwaitable as error:
        return [str(error), await me.ref.plain("goes on")]
    return ["not refused"]


async def test_awaiting_trio_raises_at_the_await_and_trio_forgets_the_task(world):
    """Invariant 43."""
    event = trio.Event()

    @script
    async def waits_for_event(me: Agent) -> Any:
        return await refused(me, event.wait())

    said, more = value_of(world.go("waits_for_event"))
    assert "self.sleep(seconds)" in said
    assert more == "goes on"
    assert event.statistics().tasks_waiting == 0
    await trio.lowlevel.checkpoint()


async def test_awaiting_trios_sleep_says_what_to_do(world):
    @script
    async def trio_sleep(me: Agent) -> Any:
        return await refused(me, trio.sleep(1))  # noqa: ASYNC105  # it is awaited in there

    said, more = value_of(world.go("trio_sleep"))
    assert "self.device(name).method(...)" in said
    assert said.startswith("what trio waits for cannot be awaited")
    assert more == "goes on"
    await trio.lowlevel.checkpoint()


def test_awaiting_a_future_of_asyncio_says_what_to_do(world):
    @script
    async def future(me: Agent) -> Any:
        loop = asyncio.new_event_loop()
        try:
            return await refused(me, loop.create_future())
        finally:
            loop.close()

    assert value_of(world.go("future"))[0].startswith("_asyncio.Future cannot be awaited in an actor")


def test_what_asyncio_refuses_before_it_waits_says_what_a_fiber_can_wait_for(world):
    @script
    async def sleeps(me: Agent) -> Any:
        await asyncio.sleep(1)

    with pytest.raises(RuntimeError, match="no running event loop") as raised:
        value_of(world.go("sleeps"))
    assert any("self.sleep(seconds)" in note for note in raised.value.__notes__)


def test_what_asyncio_gathers_says_it_as_well(world):
    @script
    async def gathers_of_asyncio(me: Agent) -> Any:
        return await asyncio.gather(me.device("d").call(1), me.device("d").call(2))

    with ThreadPoolExecutor(1) as thread, pytest.raises(RuntimeError) as raised:  # as `keeve.blocking` has one
        thread.submit(lambda: value_of(world.go("gathers_of_asyncio"))).result()
    assert any("self.sleep(seconds)" in note for note in raised.value.__notes__)


@pytest.mark.parametrize("use", [lambda it: it["content"], lambda it: it.content, list], ids=["key", "field", "items"])
def test_a_promise_that_is_used_as_what_it_will_give_says_that_it_is_one(world, use):
    @script
    async def forgets(me: Agent) -> Any:
        return use(me.device("d").call(1))

    with pytest.raises((TypeError, AttributeError)) as raised:
        value_of(world.go("forgets"))
    assert any("`await` it first" in note for note in raised.value.__notes__)


def test_a_bare_yield_says_what_to_do(world):
    @script
    async def bare(me: Agent) -> Any:
        return [(await refused(me, what))[0] for what in (Bare(), asyncio.sleep(0))]

    for said in value_of(world.go("bare")):
        assert said.startswith("None (a bare yield, as of asyncio.sleep(0)) cannot be awaited in an actor")


def test_a_promise_that_is_over_says_so(world):
    @script
    async def over(me: Agent) -> Any:
        try:
            await Promise(99)
        except PromiseGone as error:
            return str(error)

    assert value_of(world.go("over")).startswith("promise 99 is over")


@script
async def self_waiter(me: Agent) -> Any:
    await me.want()
    try:
        return await me.value
    except PromiseCycle as error:
        me.log.append(str(error))
        return "free"


def start_and_keep(world: Fiberworld, name: str) -> list[Any]:
    @script
    async def keep(me: Agent) -> Any:
        me.value = near(me.ref).other(name)
        return me.value

    return world.go("keep")


def test_waiting_for_its_own_result_raises_at_that_await(world):
    """Invariant 15."""
    got = start_and_keep(world, "self_waiter")
    world.give()
    assert value_of(got) == "free"
    (said,) = world.seen()
    assert said.startswith("this fiber would wait for itself")
    world.sound()


def test_two_that_wait_for_each_other_are_told_by_name(world):
    """Invariant 15."""

    @script
    async def first(me: Agent) -> Any:
        await me.want()
        try:
            return await me.named["second"]
        except PromiseCycle as error:
            return str(error)

    @script
    async def second(me: Agent) -> Any:
        return await me.named["first"]

    @script
    async def both_in_a_ring(me: Agent) -> Any:
        me.named["first"] = near(me.ref).other("first")
        me.named["second"] = near(me.ref).other("second")
        return me.named["second"]

    got = world.go("both_in_a_ring")
    world.give()
    assert "comes of fiber 2 (other), which waits for promise" in value_of(got)
    world.sound()


def test_a_cycle_through_reactions_and_promises_that_follow_is_found(world):
    """Invariant 15."""

    @script
    async def roundabout(me: Agent) -> Any:
        await me.want()
        try:
            return await me.value.then(me.plain).then(None)
        except PromiseCycle as error:
            return type(error).__name__

    got = start_and_keep(world, "roundabout")
    world.give()
    assert value_of(got) == "PromiseCycle"
    world.sound()


def test_a_cycle_that_a_returned_promise_closes_breaks_what_would_follow_itself(world):
    """Invariant 15."""

    @script
    async def waits_for_send(me: Agent) -> Any:
        try:
            return await me.ref.held()
        except PromiseCycle as error:
            me.log.append(type(error).__name__)
            return "free"

    got = start_and_keep(world, "waits_for_send")
    assert value_of(got) == "free"
    assert world.seen() == ["PromiseCycle"]
    world.sound()


def test_one_of_several_that_leads_back_is_a_cycle_for_all_and_not_for_the_first(world):
    @script
    async def some(me: Agent) -> Any:
        await me.want(1)
        try:
            await gather(me.want(2), me.value)
        except PromiseCycle:
            me.log.append("all")
        outcomes = await Wait(1, (me.want(3), me.value))
        return outcomes[0][1]

    got = start_and_keep(world, "some")
    world.give()
    assert (world.seen(), got) == (["all"], [])
    world.give("third", effect=3)
    assert value_of(got) == "third"


def test_the_first_of_several_is_a_cycle_when_all_of_them_lead_back(world):
    @script
    async def every(me: Agent) -> Any:
        await me.want(1)
        try:
            await Wait(1, (me.value, me.value.then(me.plain)))
        except PromiseCycle:
            return "found"

    got = start_and_keep(world, "every")
    world.give()
    assert value_of(got) == "found"
    world.sound()


def test_a_fiber_that_never_ends_within_one_crank_is_undone_and_told(world):
    @script
    async def endless(me: Agent) -> None:
        await me.want()
        while True:
            me.log.append(await me.ref.plain(0))

    got = world.go("endless")
    world.give()
    (outcome,) = got
    assert outcome.payload["error"] == "CrankOverrun"
    assert (world.seen(), world.waiting) == ([], 0)
    world.sound()


def test_a_limit_on_what_is_no_promise_says_so(world):
    @script
    async def wrong_limit(me: Agent) -> Any:
        return await within(5, me.ask())

    with pytest.raises(NotAwaitable, match=r"a coroutine \(Agent\.ask\)"):
        value_of(world.go("wrong_limit"))
