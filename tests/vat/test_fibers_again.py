"""Fibers after a restart: their parts are run again, and they come back with what their locals held."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from vatmaker import assert_restores
from waits import Agent, Fiberworld, near, script, value_of

from vat.objects.actor import Actor, actor
from vat.objects.collections import List

HOUR = 3_600_000_000


@pytest.fixture
def world() -> Fiberworld:
    return Fiberworld()


@script
async def adding(me: Agent, count: int) -> Any:
    total = []
    for number in range(count):
        total.append(await me.want(number))
        me.log.append(list(total))
    return total


def test_it_goes_on_where_it_waited(world):
    """Invariant 16."""
    world.go("adding", 3)
    world.give("a")
    world.restart()
    world.give("b")
    world.restart()
    world.give("c")
    assert world.seen() == [["a"], ["a", "b"], ["a", "b", "c"]]
    world.sound()


@script
async def resting(me: Agent) -> float:
    begun = me.now()
    await me.sleep(60)
    await me.sleep(70)
    return me.now() - begun


def test_deadlines_are_by_the_clock_although_that_was_ahead_once(world):
    world.now += HOUR
    world.tell(world.agent, "plain")
    world.now -= HOUR
    world.go("resting")
    for seconds in (60, 70):
        ((_, _, (deadline,)),) = world.wanted_now
        assert abs(deadline - world.now / 1_000_000 - seconds) < 1
        world.restart()
        world.give()
    assert (world.waiting, world.agent.steps[-1].failure) == (0, None)
    world.sound()


def test_what_it_did_is_not_done_again(world):
    """Invariants 13 and 14: run again, it wants, sends and states nothing."""

    @script
    async def acting(me: Agent) -> None:
        await me.want(1)
        me.assert_fact("waits.said", me.session_id)
        me.ref.plain("sent")
        me.count += 1
        await me.want(2)
        me.count += 10

    world.go("acting")
    world.give()
    wanted = list(world.agent.heap.entries("effects"))
    world.restart()
    world.give()
    assert len(wanted) == 1
    assert world.agent.heap.counters["effect"] == 2
    assert (world.ask(world.agent, "count"), world.seen()) == (11, ["sent"])
    assert sum(len(record.statements) for record in world.agent.records[1:]) == 1
    world.sound()


@script
async def rich(me: Agent) -> Any:
    names, first = me.named, me.log
    second, frozen, shared = first, me.value, [1]
    also, chance, view, id = shared, me.random, first.view(), me.new_id()
    drawn, started = chance.integer(0, 99), me.now()
    promise = me.want("pending")
    await me.want("wait")
    shared.append(2)
    names["k"] = len(first)
    second.append("through another name")
    more = chance.integer(0, 99)
    await me.want("again")
    return [
        [also is shared, also, frozen["x"], list(view), list(first), dict(names), drawn, more, id],
        [started, await promise],
    ]


@pytest.mark.parametrize("restarts", [(), (0,), (1,), (0, 1)])
def test_locals_and_aliases_come_back_as_they_were(world, restarts):
    """Invariant 16: a handle on a list, a view, a frozen dict, two names for one object, chance, time, a promise."""

    @script
    async def fill(me: Agent) -> None:
        me.value = {"x": [1, {"y": 2}]}
        me.log.append("old")

    value_of(world.go("fill"))
    got = world.go("rich")
    promise = world.agent.heap.entries("fibers")[0][1][3]
    reference = Fiberworld()
    value_of(reference.go("fill"))
    expected = reference.go("rich")
    for step in range(2):
        for each in (world, reference):
            each.give(step, effect=step + 2)
        if step in restarts:
            world.restart()
            world.agent.vat.waiters[promise] = [got.append]
    for each in (world, reference):
        each.give("last", effect=1)
    assert value_of(got) == value_of(expected)
    assert [record.hash for record in world.agent.records] == [record.hash for record in reference.agent.records]
    world.sound()


@script
async def cleaning(me: Agent) -> Any:
    try:
        await me.want()
    except ValueError:
        me.log.append("caught")
    finally:
        me.log.append("cleaned")
        me.device("tool").mop()


def test_a_finally_that_runs_because_it_left_memory_counts_for_nothing(world):
    world.go("cleaning")
    seq = world.agent.vat.seq
    world.restart()
    assert (world.seen(), world.agent.vat.seq, len(world.wanted_now)) == ([], seq, 1)
    world.give(error="over")
    assert (world.seen(), [wanted[1] for wanted in world.wanted_now]) == (["caught", "cleaned"], ["mop"])


@script
async def stubborn(me: Agent) -> None:
    while True:
        try:
            await me.want()
        except BaseException:  # noqa: BLE001  # the test is of such code
            me.log.append("no")


def test_code_that_will_not_end_does_not_hold_up_who_leaves_memory(world):
    world.go("stubborn")
    world.restart()
    assert world.seen() == []
    world.give(error="once")
    assert world.seen() == ["no"]
    world.agent.vat.close()


def descend(depth: int) -> int:
    return depth and 1 + descend(depth - 1)


@script
async def diving(me: Agent, depth: int) -> int:
    return descend(depth) + await me.want()


def test_what_is_run_again_has_as_much_of_the_stack_as_it_had_at_first(world):
    depth = 0
    frame = sys._getframe()
    while (frame := frame.f_back) is not None:
        depth += 1
    limit = sys.getrecursionlimit()
    got = world.go("diving", limit - depth - 150)
    world.agent.vat.crank.fibers.close()

    def give(deeper: int) -> None:
        if deeper:
            give(deeper - 1)
        else:
            world.give(1)

    give(150)
    assert value_of(got) == limit - depth - 149
    assert sys.getrecursionlimit() == limit


def test_each_part_runs_on_the_heap_as_it_was_then(world):
    @script
    async def looking(me: Agent) -> Any:
        seen = [me.count, len(me.log)]
        await me.want(1)
        seen += [me.count, len(me.log)]
        await me.want(2)
        me.value = [*seen, me.count, len(me.log)]

    world.go("looking")
    for _ in range(3):
        world.ask(world.agent, "plain", 0)
    world.give()
    world.agent.snapshot()
    world.ask(world.agent, "plain", 0)
    world.restart()
    world.give()
    assert world.ask(world.agent, "value") == [0, 0, 0, 3, 0, 4]
    world.sound()


def test_near_calls_are_made_again_and_give_what_they_gave(world):
    @script
    async def calling(me: Agent) -> Any:
        ref = me.made()
        me.log.append(near(ref).plain("first"))
        await me.want(1)
        near(ref).plain("second")
        await me.want(2)
        me.log.append(list(near(ref).seen()))

    world.go("calling")
    world.give()
    world.restart()
    world.give()
    assert world.seen() == ["first", ["first", "second"]]
    world.sound()


def test_one_that_a_near_call_began_comes_back_as_well(world):
    @script
    async def outer(me: Agent) -> Any:
        me.log.append(me.random.integer(0, 9))
        promise = near(me.ref).other("inner", {"x": 1})
        me.log.append(me.random.integer(0, 9))
        got = await promise
        me.log.append(got)

    @script
    async def inner(me: Agent, value: Any) -> Any:
        drawn = [me.random.integer(0, 9), me.new_id()]
        await me.want("inner")
        return [value, drawn]

    reference = Fiberworld()
    for each in (world, reference):
        each.go("outer")
    world.restart()
    for each in (world, reference):
        each.give()
    assert world.seen() == reference.seen()
    assert len(world.seen()) == 3
    world.sound()


def test_several_parts_in_one_crank_come_back(world):
    @script
    async def busy(me: Agent) -> None:
        seen = [await me.ref.plain(number) for number in range(3)]
        await me.want()
        me.value = seen

    world.go("busy")
    world.restart()
    world.give()
    assert world.ask(world.agent, "value") == [0, 1, 2]
    world.sound()


def test_one_begun_by_a_reaction_or_an_event_comes_back(world):
    @actor("waits.hearer", version=1)
    class Hearer(Actor):
        log: List[Any]

        def begin(self) -> None:
            self.observe("(waits.said . _)", self.heard)
            self.device("tool").use(1).then(self.answered, "kept", broken=self.broke, key="k")

        async def heard(self, event: Any) -> None:
            await self.device("tool").use(2)
            self.log.append(["heard", event["text"], self.asker.by])

        async def answered(self, value: Any, *more: Any, **named: Any) -> None:
            await self.device("tool").use(3)
            self.log.append(["answered", value, *more, dict(named), self.asker.via])

        async def broke(self, error: Exception, *more: Any, **named: Any) -> None:
            asker = self.asker
            await self.device("tool").use(4)
            self.log.append(["broke", str(error), *more, dict(named), asker.via, self.asker.by])

    for error in (None, "no"):
        world = Fiberworld(Hearer)
        world.tell(world.agent, "begin")
        world.give("x", error)
        world.observed(world.agent, 1, {"text": "t" * 300})
        world.restart()
        world.give()
        world.give()
        first = ["answered", "x", "kept", {"key": "k"}, "device:tool"]
        other = ["broke", "no", "kept", {"key": "k"}, "device:tool", "device"]
        assert world.ask(world.agent, "log") == [other if error else first, ["heard", "t" * 300, "device"]]
        world.sound()


def test_where_an_observation_began_is_taken_from_the_record(world):
    @script
    async def observing(me: Agent) -> None:
        me.observe("(waits.said . _)", me.plain, after="head")
        await me.want()
        me.log.append("on")

    world.go("observing")
    world.powers.cursor = lambda: "further on"
    world.restart()
    world.give()
    assert world.seen() == ["on"]
    world.sound()


def test_who_asked_is_the_same_after_a_restart(world):
    @script
    async def asking(me: Agent) -> None:
        before = [me.asker.by, me.asker.via, me.asker.request]
        await me.want()
        me.value = before

    world.tell(world.agent, "go", "asking", by="ann", request="r9")
    world.restart()
    world.give()
    assert world.ask(world.agent, "value") == ["ann", "test", "r9"]


def test_who_asked_from_another_vat_is_the_same_after_a_restart(world):
    @script
    async def asking(me: Agent) -> None:
        before = me.asker.via
        await me.want()
        me.value = before

    @script
    async def sending(me: Agent, ref: Any) -> None:
        ref.go("asking")

    other = world.spawn(Agent, "b")
    world.tell(other, "go", "sending", world.agent_ref)
    world.carry_all()
    world.restart()
    world.give()
    assert world.ask(world.agent, "value") == "vat:b"


def test_a_long_string_that_it_was_given_is_read_from_where_it_lies(world):
    @script
    async def long(me: Agent, text: str) -> None:
        got = await me.want(text)
        await me.want("x")
        me.value = [text, got]

    text, answer = "a" * 1000, "b" * 1000
    world.go("long", text)
    world.give(answer)
    world.restart()
    world.give()
    assert world.ask(world.agent, "value") == [text, answer]
    assert_restores(world, world.agent)
