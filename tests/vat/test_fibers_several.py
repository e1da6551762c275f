"""Waiting for several promises, for a time, and being given up."""

from __future__ import annotations

from typing import Any

import pytest
from waits import Agent, Fiberworld, cancel, gather, near, script, value_of, within

from vat.crank import crank as cranks
from vat.errors import CrankOverrun
from vat.objects.waiting import NotAwaitable, TimeLimit

SECOND = 1_000_000


@pytest.fixture
def world() -> Fiberworld:
    return Fiberworld()


@script
async def gathering(me: Agent, count: int, failures: bool = False) -> Any:
    promises = [me.want(number) for number in range(count)]
    try:
        got = await gather(promises, failures=failures)
    except ValueError as error:
        me.log.append(str(error))
        return await promises[0]
    return [str(one) if isinstance(one, Exception) else one for one in got]


def test_gather_gives_all_values_in_order_whatever_comes_first(world):
    got = world.go("gathering", 3)
    for effect in (3, 1, 2):
        world.give(f"value {effect}", effect=effect)
    assert value_of(got) == ["value 1", "value 2", "value 3"]
    world.sound()


def test_gather_raises_as_soon_as_one_is_broken_and_the_others_can_be_awaited_again(world):
    got = world.go("gathering", 3)
    world.give(error="gone", effect=2)
    assert (world.seen(), got) == (["gone"], [])
    world.give("first", effect=1)
    assert value_of(got) == "first"
    world.give("late", effect=3)
    world.sound()


def test_gather_with_failures_waits_for_all_and_gives_the_errors_in_their_places(world):
    got = world.go("gathering", 3, failures=True)
    world.give(error="gone", effect=2)
    world.give("one", effect=1)
    assert got == []
    world.give("three", effect=3)
    assert value_of(got) == ["one", "gone", "three"]
    world.sound()


def test_what_was_settled_long_before_the_last_is_kept_until_all_are(world):
    got = world.go("gathering", 2)
    world.give("early", effect=1)
    for _ in range(3):
        world.ask(world.agent, "plain", 0)
    world.agent.keep(world.agent.vat.collect())
    world.give("late", effect=2)
    assert value_of(got) == ["early", "late"]
    world.sound()


def test_gather_takes_promises_or_one_list_and_nothing_is_all_of_nothing(world):
    @script
    async def forms(me: Agent) -> Any:
        return [
            await gather(),
            await gather([]),
            await gather(me.ref.plain(1)),
            await gather(me.ref.plain(2), failures=True),
        ]

    assert value_of(world.go("forms")) == [[], [], [1], [2]]
    world.sound()


def test_the_same_promise_may_be_gathered_twice(world):
    @script
    async def doubled(me: Agent) -> Any:
        promise = me.want()
        return await gather(promise, promise)

    got = world.go("doubled")
    world.give(1)
    assert value_of(got) == [1, 1]
    world.sound()


def test_gathering_what_is_no_promise_says_what_to_do(world):
    @script
    async def wrong(me: Agent) -> Any:
        said = []
        for what in (me.ask(), gather([]), 5):
            try:
                await gather(what)
            except NotAwaitable as error:
                said.append(str(error))
        return said

    coroutine, gathered, number = value_of(world.go("wrong"))
    assert coroutine.startswith("a coroutine (Agent.ask) is no promise")
    assert "start that, near(self.ref).method(...), which gives a promise" in coroutine
    assert gathered.startswith("what gather(...) gives is no promise, and cannot be gathered again")
    assert number.startswith("builtins.int cannot be awaited")


def test_a_thousand_at_once_cost_as_many_looks(world):
    got = world.go("gathering", 1000)
    looks = 0
    find = type(world.agent.heap).find

    class Counting(type(world.agent.heap)):
        __slots__ = ()

        def find(self, name: str, key: Any) -> Any:
            nonlocal looks
            looks += 1
            return find(self, name, key)

    world.agent.heap.__class__ = Counting
    for effect in range(1000, 0, -1):
        world.give(effect, effect=effect)
    assert value_of(got) == list(range(1, 1001))
    assert looks < 25 * 1000


def test_sleep_is_a_promise_of_the_timer(world):
    @script
    async def sleeping(me: Agent) -> float:
        before = me.now()
        await me.sleep(60)
        return me.now() - before

    got = world.go("sleeping")
    began = world.agent.records[-1].time / SECOND
    assert world.wanted_now == [("timer", "until", [began + 60])]
    world.give()
    assert value_of(got) > 0
    world.sound()


def test_sleeping_for_what_is_no_number_says_so(world):
    @script
    async def wrong_sleep(me: Agent) -> None:
        await me.sleep("a minute")

    with pytest.raises(TypeError, match="a number of seconds is wanted, not 'a minute'"):
        value_of(world.go("wrong_sleep"))


@script
async def careful(me: Agent) -> Any:
    try:
        return await me.want("work")
    except ValueError as error:
        me.log.append(f"giving up: {error}")
        await me.want("clean")
        me.log.append("undone")
        raise


@script
async def impatient(me: Agent) -> Any:
    work = near(me.ref).other("careful")
    await me.want("enough")
    given_up = cancel(work, ValueError("enough"))
    try:
        await work
    except ValueError as error:
        return [given_up, str(error)]


@pytest.mark.parametrize("restarted", [False, True])
def test_cancelling_a_fiber_reaches_its_effect_and_raises_where_it_waits(world, restarted):
    got = world.go("impatient")
    if restarted:
        world.restart()
    world.give(effect=next(n for n, e in world.agent.heap.entries("effects") if e[3] == ["enough"]))
    assert world.seen() == ["giving up: enough"]
    assert [wanted[2] for wanted in world.wanted_now] == [["clean"]]
    world.give()
    assert world.seen() == ["giving up: enough"], "what the part did that raised is undone"
    assert restarted or value_of(got) == [True, "enough"]
    assert world.waiting == 0
    world.sound()


def test_cancelling_reaches_through_fibers_reactions_and_gathered_promises(world):
    @script
    async def deep(me: Agent) -> Any:
        return await gather(me.want(1).then(me.plain), me.want(2), failures=True)

    @script
    async def between(me: Agent) -> Any:
        return await near(me.ref).other("deep")

    @script
    async def canceller(me: Agent) -> Any:
        return cancel(near(me.ref).other("between"), ValueError("stop"))

    assert value_of(world.go("canceller")) is True
    assert (world.wanted_now, world.waiting) == ([], 0)
    assert sorted(world.agent.steps[-1].cancelled) == [1, 2]
    world.sound()


def test_one_that_is_over_or_runs_cannot_be_cancelled(world):
    @script
    async def itself(me: Agent) -> Any:
        await me.want()
        return [cancel(me.value, ValueError("me")), cancel(me.ref.plain(1), ValueError("not begun"))]

    @script
    async def keeping_itself(me: Agent) -> Any:
        me.value = near(me.ref).other("itself")
        return await me.value

    got = world.go("keeping_itself")
    world.give()
    assert value_of(got) == [False, False]

    @script
    async def after(me: Agent) -> Any:
        return cancel(me.value, ValueError("late"))

    assert value_of(world.go("after")) is False


def test_one_that_catches_what_cancels_it_goes_on(world):
    @script
    async def tough(me: Agent) -> Any:
        for number in range(3):
            try:
                await me.want(number)
            except ValueError:
                me.log.append(number)
        return "through"

    @script
    async def prodding(me: Agent) -> Any:
        work = near(me.ref).other("tough")
        cancel(work, ValueError("a"))
        cancel(work, ValueError("b"))
        await me.ref.plain("between")
        cancel(work, ValueError("c"))
        return await work

    got = world.go("prodding")
    assert world.seen() == [0, "between", 1]
    world.give()
    assert value_of(got) == "through"
    world.sound()


@script
async def sharing(me: Agent) -> None:
    await me.value
    me.count += 1


@script
async def sharers(me: Agent, count: int) -> None:
    for _ in range(count):
        me.ref.go("sharing")


@script
async def going_round(me: Agent) -> None:
    me.value = me.want()
    await me.value
    while True:
        await me.value


def test_more_wait_for_one_promise_than_a_crank_has_deliveries(world, monkeypatch):
    monkeypatch.setattr(cranks, "DELIVERIES", 50)
    got = world.go("going_round")
    for _ in range(3):
        world.go("sharers", 30)
    world.give()
    assert (world.waiting, world.ask(world.agent, "count")) == (0, 0)  # one of them has no end
    with pytest.raises(CrankOverrun):
        value_of(got)


def test_all_that_wait_for_one_promise_go_on(world, monkeypatch):
    monkeypatch.setattr(cranks, "DELIVERIES", 50)
    world.go("first_of_all")
    for _ in range(3):
        world.go("sharers", 30)
    world.give()
    assert (world.waiting, world.ask(world.agent, "count")) == (0, 90)
    world.sound()


@script
async def first_of_all(me: Agent) -> None:
    me.value = me.want()


@script
async def linked(me: Agent, links: int) -> Any:
    return await (me.ref.go("linked", links - 1) if links else me.want())


@script
async def chained(me: Agent, links: int) -> Any:
    return await within(60, me.ref.go("linked", links))


def test_a_long_chain_of_waits_is_given_up_whole(world):
    got = world.go("chained", 600)
    open = world.agent.heap.entries("effects")
    timer = next(number for number, entry in open if entry[1] == "timer")
    world.give(effect=timer)
    with pytest.raises(TimeLimit):
        value_of(got)
    assert (world.waiting, world.wanted_now) == (0, [])
    world.sound()
