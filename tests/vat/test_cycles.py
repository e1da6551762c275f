"""What waits for itself is found, whatever the way, and looking for it costs little while chains of waits are built."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest
from drawn_fibers import methods
from fiber_stories import disturbances, moves, same
from hypothesis import HealthCheck, given, settings
from vatmaker import Log, assert_restores
from waits import Agent, Fiberworld, near, script, value_of

from dataspace.values import FrozenList
from vat.crank import awaiting, promises
from vat.errors import PromiseCycle
from vat.heap.cycles import cycle
from vat.heap.entries import KEPT, REACTIONS, STATE, Resend, Then
from vat.heap.fibers import ALL, EVERY, FIRST, RESULT, WAITING
from vat.heap.heap import Heap
from vat.heap.opcodes import Op, To
from vat.heap.operations import APPLY
from vat.heap.refs import Ref


def waiting_for(heap: Heap, goal: int) -> set[int]:
    """All promises that wait for one: whatever reacts to one of them is another, until there are no more."""
    promises = dict(heap.entries("promises"))
    found, before = {goal}, 0
    while len(found) > before:
        before = len(found)
        for here in list(found & promises.keys()):
            for reaction in promises[here][REACTIONS]:
                if reaction[0] == To.FIBER:
                    fiber = heap.find("fibers", reaction[1])
                    mode, *waits = fiber[WAITING]
                    if mode != FIRST or found.issuperset(waits):
                        found.add(fiber[RESULT])
                elif reaction[0] in (To.FOLLOW, To.THEN, To.RESEND):
                    place = {To.FOLLOW: 1, To.THEN: Then.RESULT, To.RESEND: Resend.RESULT}[reaction[0]]
                    found.add(reaction[place])
    return found


# Heaps of drawn promises.


class Web:
    """A heap with promises that wait for each other, of chance; none of them for itself."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.heap = Heap(Log())
        self.fibers = 0
        for _ in range(30):
            self.chance.choice((self.made, self.reaction, self.message, self.follows, self.passed, *[self.fiber] * 3))()
            if self.chance.random() < 0.2:
                self.goes_on()

    def do(self, *operation: Any) -> None:
        APPLY[operation[0]](self.heap, *operation[1:])

    def made(self, *settler: Any) -> int:
        number = self.heap.counters["promise"] + 1
        self.do(Op.MADE, number, FrozenList(settler or ["effect", "d", "m"]))
        return number

    def some(self) -> int:
        pending = [number for number, entry in self.heap.entries("promises") if entry[STATE] < KEPT]
        return self.chance.choice(pending) if pending else self.made()

    def reaction(self, other: int | None = None) -> None:
        other = other or self.some()
        result = self.made("reaction", other)
        self.do(Op.REACTS, other, FrozenList([To.THEN, 1, "m", None, None, FrozenList(), {}, result]))

    def message(self, other: int | None = None) -> None:
        other = other or self.some()
        result = self.made("send")
        self.do(Op.REACTS, other, FrozenList([To.RESEND, Ref(b"u", 1), "m", FrozenList(), {}, result]))

    def joined(self) -> tuple[int, int] | None:
        """A new promise for which others wait, and one that does not wait for it."""
        one, other = self.made("send"), self.some()
        self.chance.choice((self.reaction, self.message))(one)
        return None if other in waiting_for(self.heap, one) else (one, other)

    def follows(self) -> None:
        pair = self.joined()
        if pair is not None:
            self.do(Op.FOLLOWS, *pair)
            self.do(Op.REACTS, pair[1], FrozenList([To.FOLLOW, pair[0]]))

    def passed(self) -> None:
        pair = self.joined()
        if pair is not None:
            self.do(Op.PASSED, *pair)

    def fiber(self) -> None:
        self.fibers += 1
        waits = [self.chance.choice((ALL, FIRST, EVERY)), *{self.some() for _ in range(self.chance.randint(1, 3))}]
        result = self.made("fiber", self.fibers)
        self.do(
            *(Op.SUSPENDED, self.fibers, 1, 1, FrozenList(waits), FrozenList(), FrozenList()),
            *(1, "m", 1, result),
        )

    def goes_on(self) -> None:
        """A fiber waits for something else now, if that does not wait for it."""
        number = self.chance.randint(0, self.fibers)
        entry = self.heap.find("fibers", number)
        if entry is not None and (other := self.some()) not in waiting_for(self.heap, entry[RESULT]):
            self.do(Op.RESUMED, number, 1, 1)
            self.do(Op.SUSPENDED, number, 1, 1, FrozenList([ALL, other]), FrozenList(), FrozenList())


@pytest.mark.parametrize("seed", range(60))
def test_what_is_found_in_drawn_heaps_is_what_is_there(seed: int) -> None:
    """Invariant 15."""
    heap = Web(seed).heap
    all_promises = [number for number, _ in heap.entries("promises")]
    for goal in all_promises:
        there = waiting_for(heap, goal)
        for promise in all_promises:
            assert (cycle(heap, goal, promise) is not None) == (promise in there), (goal, promise)


@settings(max_examples=10, suppress_health_check=list(HealthCheck))
@given(methods, moves, disturbances)
def test_what_is_found_in_drawn_sessions_is_what_is_there(code: Any, story: Any, disturbed: Any) -> None:
    """Invariant 15."""

    def checked(heap: Heap, goal: int, promise: int) -> str | None:
        found = cycle(heap, goal, promise)
        assert (found is not None) == (promise in waiting_for(heap, goal))
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(awaiting, "cycle", checked)
        patch.setattr(promises, "cycle", checked)
        same(code, story, disturbed)


# What it costs.


@script
async def down(me: Agent, count: int) -> Any:
    return await (me.ref.other("down", count - 1) if count else me.want())


@script
async def down_near(me: Agent, count: int) -> Any:
    await me.ref.plain()
    return await (near(me.ref).other("down_near", count - 1) if count else me.want())


@script
async def waits_for_value(me: Agent) -> Any:
    return await me.value


@script
async def up(me: Agent, count: int) -> Any:
    me.value = me.want()
    for _ in range(count):
        me.value = near(me.ref).other("waits_for_value")
    return await me.value


@script
async def reacting(me: Agent, count: int) -> Any:
    promise = me.want()
    for _ in range(count):
        promise = promise.then(me.plain)
    return await promise


@pytest.mark.parametrize("name", ["down", "down_near", "up", "reacting"])
def test_a_chain_of_waits_is_built_in_steps_that_grow_with_its_length(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: Counter[int] = Counter()
    find = Heap.find

    def counted(self: Heap, what: str, key: Any) -> Any:
        steps[length] += 1
        return find(self, what, key)

    monkeypatch.setattr(Heap, "find", counted)
    for length in (20, 80):
        world = Fiberworld()
        got = world.go(name, length)
        world.give("came")
        assert value_of(got) == "came"
    assert steps[80] < 5 * steps[20], steps


def test_chains_that_are_joined_in_the_middle_cost_the_shorter_one(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[int] = []
    heap = Heap(Log())

    def chain(length: int) -> tuple[int, int]:
        """Promises that react to each other: the first one, which waits for nothing, and the last one."""
        first = last = heap.counters["promise"] + 1
        APPLY[Op.MADE](heap, first, FrozenList(["send"]))
        for number in range(first + 1, first + length):
            APPLY[Op.MADE](heap, number, FrozenList(["reaction", last]))
            APPLY[Op.REACTS](heap, last, FrozenList([To.THEN, 1, "m", None, None, FrozenList(), {}, number]))
            last = number
        return first, last

    (long_first, long_last), (short_first, short_last) = chain(1000), chain(10)
    find = Heap.find
    monkeypatch.setattr(Heap, "find", lambda self, what, key: looked.append(key) or find(self, what, key))
    assert cycle(heap, long_first, short_last) is None
    assert cycle(heap, short_first, long_last) is None
    assert len(looked) < 100
    assert cycle(heap, long_first, long_last) is not None


# A way that goes through a message.


def test_a_message_that_is_to_carry_what_waits_for_its_answer_is_a_cycle() -> None:
    """Invariant 15."""
    world = Fiberworld()
    other = world.spawn(Agent, "b")

    @script
    async def carried_away(me: Agent, to: Ref) -> Any:
        await me.want()
        try:
            return await to.plain(me.value)
        except PromiseCycle as error:
            return str(error)

    @script
    async def keep_it(me: Agent, to: Ref) -> Any:
        me.value = near(me.ref).other("carried_away", to)
        return me.value

    got = world.go("keep_it", Ref(other.vat.uid, 1))
    world.give()
    assert "comes of a message that is to carry" in value_of(got)
    assert_restores(world, world.agent)
