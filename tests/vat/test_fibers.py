"""Fibers in memory: parts between waits are deliveries, and what is awaited comes to the line that awaits it."""

from __future__ import annotations

from typing import Any

import pytest
from vatmaker import ROOT, assert_restores, operations
from waits import Agent, Fiberworld, near, script, value_of

from dataspace.values import NotAValue
from vat.errors import ReadOnly
from vat.heap.opcodes import Op
from vat.heap.refs import Promise, Ref
from vat.objects.actor import Actor, actor
from vat.objects.types import BadActorType, read


@pytest.fixture
def world() -> Fiberworld:
    return Fiberworld()


@script
async def loop(me: Agent, count: int) -> int:
    total = 0
    for number in range(count):
        total += await me.want(number)
        me.log.append(total)
    return total


def test_each_outcome_takes_it_on_to_the_next_wait(world):
    got = world.go("loop", 3)
    assert (world.wanted_now, world.waiting) == ([("tool", "use", [0])], 1)
    world.give(10)
    world.give(20)
    assert (world.seen(), got) == ([10, 30], [])
    world.give(30)
    assert (world.seen(), value_of(got)) == ([10, 30, 60], 60)
    world.sound()


@script
async def immediate(me: Agent) -> str:
    me.plain("here")
    return "done"


def test_one_that_never_waits_is_an_ordinary_delivery(world):
    assert value_of(world.go("immediate")) == "done"
    assert [operation[0] for operation in operations(world.agent.records[-1])] == [Op.BEGIN, Op.CHANGE]
    world.sound()


@script
async def failing(me: Agent) -> None:
    me.count += 1
    await me.want()
    me.count += 10
    raise LookupError("later")


def test_an_error_in_a_later_part_undoes_that_part_and_no_earlier_one(world):
    got = world.go("failing")
    world.give()
    with pytest.raises(LookupError, match="later"):
        value_of(got)
    assert world.ask(world.agent, "count") == 1
    world.sound()


def test_an_error_before_the_first_wait_is_the_callers_and_leaves_nothing(world):
    @script
    async def early(me: Agent) -> None:
        me.count += 1
        raise LookupError("early")

    with pytest.raises(LookupError, match="early"):
        value_of(world.go("early"))
    assert world.ask(world.agent, "count") == 0
    world.sound()


@script
async def catching(me: Agent) -> Any:
    try:
        await me.want()
    except ValueError as error:
        return f"caught {error}"


def test_what_breaks_is_raised_at_the_await_with_its_class_and_message(world):
    got = world.go("catching")
    world.give(error="gone")
    assert value_of(got) == "caught gone"
    world.sound()


@script
async def near_send(me: Agent) -> Any:
    try:
        return [await me.ref.plain(7), await me.ref.fail("on purpose")]
    except ValueError as error:
        me.log.append(str(error))
        return me.count


def test_sends_in_the_same_vat_are_awaited_within_one_crank(world):
    assert value_of(world.go("near_send")) == 0
    assert world.seen() == [7, "on purpose"]
    world.sound()


async def helper(me: Agent, value: int) -> int:
    return int(await me.want(value)) + 1


@script
async def helped(me: Agent) -> Any:
    first = helper(me, 1)
    return [await first, await helper(me, 2), await me.ask(3)]


def test_helpers_are_plain_coroutines(world):
    got = world.go("helped")
    for value in (10, 20, 30):
        world.give(value)
    assert value_of(got) == [11, 21, 30]
    world.sound()


@script
async def generating(me: Agent) -> Any:
    async def items() -> Any:
        for number in range(2):
            yield await me.want(number)

    return [item async for item in items()]


def test_async_generators_are_helpers_too(world):
    got = world.go("generating")
    world.give("a")
    world.give("b")
    assert value_of(got) == ["a", "b"]


def test_many_wait_at_once_and_go_on_as_their_outcomes_come(world):
    runs = [world.go("loop", 1) for _ in range(3)]
    effects = [number for number, _ in world.agent.heap.entries("effects")]
    assert world.waiting == 3
    for effect in reversed(effects):
        world.give(effect, effect=effect)
    assert [value_of(got) for got in runs] == effects
    world.sound()


@script
async def starts_another(me: Agent) -> Any:
    promise = near(me.ref).ask("inner")
    assert isinstance(promise, Promise)
    me.log.append("after")
    return await promise


def test_a_near_call_of_an_async_method_starts_at_once_and_gives_a_promise(world):
    got = world.go("starts_another")
    assert (world.seen(), world.wanted_now, world.waiting) == (["after"], [("tool", "use", ["inner"])], 2)
    world.give(5)
    assert value_of(got) == 5
    world.sound()


@script
async def near_and_broken(me: Agent) -> Any:
    promise = near(me.ref).go("early")
    try:
        return await promise
    except LookupError as error:
        return [str(error), me.count]


def test_a_near_call_that_raises_before_its_first_wait_is_undone_and_breaks_its_promise(world):
    test_an_error_before_the_first_wait_is_the_callers_and_leaves_nothing(world)
    assert value_of(world.go("near_and_broken")) == ["early", 0]
    world.sound()


@script
async def returns_promise(me: Agent) -> Any:
    await me.want()
    return me.want("more")


def test_what_it_returns_may_be_a_promise(world):
    got = world.go("returns_promise")
    world.give()
    assert got == []
    world.give("the value")
    assert value_of(got) == "the value"
    world.sound()


def test_what_it_returns_must_be_a_value(world):
    @script
    async def odd(me: Agent) -> Any:
        await me.want()
        return object()

    got = world.go("odd")
    world.give()
    with pytest.raises(NotAValue, match=r"the result of Agent\.go: object is not a value"):
        value_of(got)
    world.sound()


@script
async def twice(me: Agent) -> Any:
    first, second = me.want(1), me.want(2)
    return [await second, await first]


def test_a_promise_is_kept_for_a_later_await_when_it_is_settled_before(world):
    got = world.go("twice")
    effects = [number for number, _ in world.agent.heap.entries("effects")]
    world.give("one", effect=effects[0])
    assert world.agent.heap.system["owned"].count == 1
    world.give("two", effect=effects[1])
    assert value_of(got) == ["two", "one"]
    world.sound()


@script
async def forgetful(me: Agent, count: int) -> None:
    for number in range(count):
        promise = me.ref.plain(number)
        assert promise != me.ref.plain(number)
        await me.want()


def test_a_promise_that_no_local_has_any_more_is_not_kept(world):
    world.go("forgetful", 20)
    for _ in range(10):
        world.give()
    assert world.agent.heap.system["owned"].count == 1, "the one that is in its locals now"
    assert world.agent.heap.system["promises"].count == 3


def test_another_vat_calls_it_like_any_method(world):
    other = world.spawn(Agent, "b")

    @script
    async def far(me: Agent, ref: Ref) -> Any:
        return await ref.ask("from afar")

    world.tell(world.agent, "go", "far", Ref(other.vat.uid, ROOT))
    got = world.agent.answers
    world.carry_all()
    world.settle(other, 9)
    world.carry_all()
    assert value_of(got) == 9
    world.sound()


def test_a_request_that_comes_again_gets_the_answer_of_the_first_time(world):
    world.tell(world.agent, "go", "loop", 1, request="r1")
    world.tell(world.agent, "go", "loop", 1, request="r1")
    again = world.agent.answers
    assert len(world.wanted_now) == 1
    world.give(4)
    assert value_of(again) == 4
    world.tell(world.agent, "go", "loop", 1, request="r1")
    assert value_of(world.agent.answers) == 4


def test_an_async_method_is_a_reaction_like_any_other(world):
    @script
    async def reacts(me: Agent) -> Any:
        return await me.want(1).then(me.ask)

    got = world.go("reacts")
    world.give("first")
    assert world.wanted_now == [("tool", "use", ["first"])]
    world.give("second")
    assert value_of(got) == "second"
    world.sound()


def test_describe_tells_how_many_wait(world):
    world.go("loop", 1)
    assert world.ask(world.agent, "describe")["fibers"] == 1


def test_a_method_that_only_reads_cannot_be_async():
    with pytest.raises(BadActorType, match=r"look is marked @read and async"):

        @actor("waits.reader", version=1)
        class Reader(Actor):
            @read
            async def look(self) -> None: ...


def test_a_method_that_only_reads_starts_no_fiber():
    @actor("waits.looker", version=1)
    class Looker(Actor):
        async def ask(self) -> Any:
            return await self.device("tool").use()

        @read
        def look(self) -> Any:
            return near(self.ref).ask()

    world = Fiberworld(Looker)
    with pytest.raises(ReadOnly):
        world.ask(world.agent, "look")


def test_the_time_and_chance_of_a_part_are_those_of_its_crank(world):
    @script
    async def timed(me: Agent) -> Any:
        before = [me.now(), me.new_id(), me.random.integer(0, 1 << 60)]
        await me.want()
        return [before, [me.now(), me.new_id(), me.random.integer(0, 1 << 60)]]

    got = world.go("timed")
    world.give()
    first, second = value_of(got)
    assert second[0] > first[0]
    assert len({*first, *second}) == 6


def test_what_cleaning_up_has_changed_in_a_part_that_raises_is_undone_and_named(world):
    @script
    async def cleans_up(me: Agent) -> None:
        me.count = 1
        try:
            await me.want()
        finally:
            me.log.append("over")
            me.count = 0

    got = world.go("cleans_up")
    world.give(error="no")
    with pytest.raises(ValueError, match="no") as caught:
        value_of(got)
    assert caught.value.__notes__[-1] == "changes of this part that were undone with it: log, count"
    assert (world.ask(world.agent, "count"), world.seen()) == (1, [])
    assert_restores(world, world.agent)
