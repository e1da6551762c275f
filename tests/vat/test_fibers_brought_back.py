"""Bringing fibers back: what it costs, what it leaves alone, and what their locals keep from being collected."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from vatmaker import operations
from waits import SCRIPTS, Agent, Fiberworld, cancel, gather, near, script, value_of

from vat.errors import FiberDiverged
from vat.heap.opcodes import Op
from vat.objects.actor import Actor, actor
from vat.objects.owing import owe


@pytest.fixture
def world() -> Fiberworld:
    return Fiberworld()


@script
async def collecting(me: Agent, count: int) -> Any:
    total = []
    for number in range(count):
        total.append(await me.want(number))
        me.log.append(list(total))
    return total


def test_coming_back_reads_its_own_parts_and_not_the_past(world):
    """Invariant 36: however much happened before, between and since."""

    def reads(between: int) -> int:
        world = Fiberworld()
        for _ in range(between):
            world.ask(world.agent, "plain", 0)
            if world.agent.vat.seq % 32 == 0:
                world.agent.snapshot()
        world.go("collecting", 4)
        for number in range(3):
            for _ in range(between):
                world.ask(world.agent, "plain", 0)
                if world.agent.vat.seq % 32 == 0:
                    world.agent.snapshot()
            world.give(number)
        world.restart()
        world.agent.log.read.clear()
        world.give(3)
        return len(world.agent.log.read)

    for between in (64, 512):
        assert reads(between) <= 4 + 4 * 33  # its parts, and at most what lies between two snapshots for each


def test_a_thousand_waits_cost_a_thousand_records_once(world):
    world.go("collecting", 300)
    for number in range(299):
        world.give(number)
    world.restart()
    world.agent.log.read.clear()
    world.give(299)
    assert world.waiting == 0
    assert len(world.agent.log.read) <= 310


def test_it_is_run_again_once_and_then_stays_in_memory(world):
    world.go("collecting", 5)
    world.give(0)
    world.restart()
    world.give(1)
    world.agent.log.read.clear()
    world.give(2)
    assert world.agent.log.read == []


def test_a_crank_that_is_abandoned_takes_back_what_its_fibers_did(world):
    """Invariant 5."""
    world.go("collecting", 2)
    broken = KeyboardInterrupt()

    @script
    async def interrupted(me: Agent) -> None:
        await me.want("other")
        raise broken

    world.go("interrupted")
    with pytest.raises(KeyboardInterrupt):
        world.give("never", effect=2)
    assert world.agent.heap.mark() == 0
    world.give("a", effect=1)
    world.give("b", effect=3)
    assert world.seen() == [["a"], ["a", "b"]]
    assert world.waiting == 1


def test_one_that_went_on_in_a_crank_that_was_abandoned_goes_on_from_before_it(world):
    """Invariant 5."""
    interrupt = [KeyboardInterrupt()]

    @script
    async def first_of_two(me: Agent) -> None:
        me.value = me.want("shared")
        me.log.append(["first", await me.value])
        me.log.append(["second", await me.want("mine")])

    @script
    async def interrupting(me: Agent) -> None:
        await me.value
        if interrupt:
            raise interrupt.pop()

    world.go("first_of_two")
    world.go("interrupting")
    with pytest.raises(KeyboardInterrupt):
        world.give("a")
    assert (world.seen(), world.waiting) == ([], 2)
    world.give("b")
    world.give("c")
    assert world.seen() == [["first", "b"], ["second", "c"]]
    world.sound()


def test_what_cannot_be_read_abandons_the_crank_and_not_the_fiber(world):
    """Invariant 22."""
    world.go("collecting", 2)
    world.give("a")
    world.restart()
    past = world.agent.vat.crank.fibers.past
    record, past.record = past.record, lambda seq: (_ for _ in ()).throw(OSError("no disk"))
    seq = world.agent.vat.seq
    with pytest.raises(OSError, match="no disk"):
        world.give("b")
    assert (world.agent.vat.seq, world.waiting) == (seq, 1)
    past.record = record
    world.give("b")
    assert (world.seen()[-1], world.waiting) == (["a", "b"], 0)
    world.sound()


def test_an_actor_that_only_a_local_refers_to_is_not_collected(world):
    @script
    async def keeping(me: Agent) -> Any:
        refs = {"deep": [me.made()]}

        def inner() -> Any:
            return refs["deep"][0]

        await me.want()
        near(inner()).plain("there")
        me.log.append(list(near(inner()).seen()))

    for again in (False, True):
        world = Fiberworld()
        world.go("keeping")
        world.ask(world.agent, "made")
        garbage = Fiberworld.spawn_garbage(world)
        if again:
            world.restart()
        step = world.agent.keep(world.agent.vat.collect())
        assert step is not None
        collected = next(op for op in operations(step.record) if op[0] == Op.COLLECTED)[1]
        assert garbage in collected
        world.give()
        assert world.seen() == [["there"]]
        world.sound()


HASHED = """
import sys
sys.path[:0] = {paths!r}
from waits import Fiberworld, script

@script
async def setting(me):
    names = {{"a", "b", "c", "d", "e", "f"}}
    await me.want(sorted(names))
    me.value = sorted(names)

world = Fiberworld()
world.go("setting")
world.restart()
world.give()
print(world.ask(world.agent, "value"), world.agent.records[-1].hash.hex())
"""


def test_another_hash_seed_changes_nothing_that_is_sorted():
    here = Path(__file__).parent
    code = HASHED.format(paths=[str(here), str(here.parent.parent)])
    told = set()
    for seed in ("1", "2", "77"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        told.add(subprocess.run([sys.executable, "-c", code], env=environment, check=True, capture_output=True).stdout)
    assert len(told) == 1


def test_all_of_several_comes_back_with_what_is_settled_already(world):
    @script
    async def both(me: Agent) -> None:
        me.value = await gather(me.want(1), me.want(2))

    world.go("both")
    world.give("one", effect=1)
    world.restart()
    world.give("two", effect=2)
    assert world.ask(world.agent, "value") == ["one", "two"]
    world.sound()


@script
async def following(me: Agent, of: str) -> None:
    me.log.append(f"{of} began")
    await me.value
    me.log.append(of)
    await me.want(of)
    me.count += 1


@script
async def several(me: Agent, count: int) -> None:
    for number in range(count):
        me.ref.go("following", f"{number}")


@script
async def holding_one(me: Agent) -> None:
    me.value = me.want("one for all")


def test_all_that_wait_for_one_promise_are_brought_back_on_one_heap(world):
    """Invariant 36: what lies between their parts is read once."""
    world.go("holding_one")
    world.go("several", 20)
    for number in range(20):
        world.go("following", f"late {number}")
    world.restart()
    before, begun = world.agent.vat.crank.fibers.past.before, []

    def counted(seq: int, heap: Any, at: int) -> Any:
        begun.append(heap is None)
        return before(seq, heap, at)

    world.agent.vat.crank.fibers.past.before = counted
    world.agent.log.read.clear()
    world.give("all")
    assert begun.count(True) == 1
    assert len(world.agent.log.read) <= 2 * world.agent.vat.seq
    assert sorted(world.seen()[40:]) == sorted(
        [*(f"{number}" for number in range(20)), *(f"late {number}" for number in range(20))]
    )
    world.restart()
    while world.waiting:
        world.give()
    assert world.ask(world.agent, "count") == 40
    world.sound()


def test_one_of_many_that_has_diverged_breaks_alone(world):
    world.go("holding_one")
    got = [world.go("following", f"{number}") for number in range(5)]
    promises = [entry[1][3] for entry in world.agent.heap.entries("fibers")]
    world.restart()
    for promise, answers in zip(promises, got, strict=True):
        world.agent.vat.waiters[promise] = [answers.append]
    before = SCRIPTS["following"]

    async def other(me: Agent, of: str) -> None:
        if of == "2":
            me.count += 100
            me.log.append("something else")
        await before(me, of)

    SCRIPTS["following"] = other
    try:
        world.give("all")
    finally:
        SCRIPTS["following"] = before
    assert [len(answers) for answers in got] == [0, 0, 1, 0, 0]
    with pytest.raises(FiberDiverged):
        value_of(got[2])
    assert world.seen()[5:] == ["0", "1", "3", "4"]
    assert world.ask(world.agent, "count") == 0
    world.sound()


@script
async def near_ones(me: Agent, count: int) -> None:
    started = [near(me.ref).go("following", f"{number}") for number in range(count)]
    await me.value
    for one in started:
        await one


def test_those_that_began_within_a_part_of_another_come_back_as_well(world):
    world.go("holding_one")
    world.go("near_ones", 3)
    world.restart()
    world.give("all")
    assert world.seen()[3:] == ["0", "1", "2"]
    world.restart()
    while world.waiting:
        world.give()
    assert world.ask(world.agent, "count") == 3
    world.sound()


def test_one_that_gives_up_who_has_begun_it_comes_back_as_well(world):
    """Who runs cannot be given up, by those that it calls either."""

    @script
    async def beginning(me: Agent) -> Any:
        await me.want("first")
        near(me.ref).other("forbidding")
        await me.want("second")
        me.log.append("over")

    @script
    async def forbidding(me: Agent) -> None:
        me.log.append(cancel(me.value, ValueError("no")))
        await me.want("third")
        me.log.append("after it")

    @script
    async def both(me: Agent) -> None:
        me.value = me.ref.other("beginning")

    world.go("both")
    world.give()
    world.restart()
    world.give(effect=3)
    world.restart()
    world.give()
    assert world.seen() == [False, "over", "after it"]
    world.sound()


@actor("again.debtor", version=1)
class Debtor(Actor):
    def ask(self) -> Any:
        return owe(self)


def test_one_that_went_on_when_somebody_was_collected_comes_back(world):
    """Each message that the runtime has a vat take says whose it is, when it is read as well."""
    world = Fiberworld(Agent, Debtor)

    @script
    async def trusting(me: Agent) -> Any:
        try:
            await near(me.spawn(Debtor)).ask()
        except Exception as error:  # noqa: BLE001  # it is told
            me.log.append(type(error).__name__)
        await me.want("on")
        me.log.append("over")

    world.go("trusting")
    world.agent.keep(world.agent.vat.collect())
    world.restart()
    world.give()
    assert world.seen() == ["Unpaid", "over"]
    world.sound()
