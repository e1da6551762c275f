"""Fibers in a fork: they go on there with `Forked`, and in the parent as if nothing had happened."""

from __future__ import annotations

from typing import Any

import pytest
from vatmaker import assert_restores
from waits import Agent, Fiberworld, cancel, gather, near, script, value_of, within

from vat.errors import Forked
from vat.heap.entries import KEPT, SETTLER, STATE
from vat.objects.owing import owe
from vat.objects.waiting import TimeLimit


@pytest.fixture
def world() -> Fiberworld:
    return Fiberworld()


@script
async def asking_slowly(me: Agent) -> None:
    mark = ["local", me.session_id, me.new_id()]
    try:
        got = await me.want("slow")
    except Forked as error:
        got = type(error).__name__
    me.log.append([mark, got, me.session_id])
    await me.want("more")
    me.log.append("over")


def test_the_child_is_told_and_the_parent_goes_on(world):
    """Invariants 16 and 27: locals come along, and name the parent where they did."""
    world.go("asking_slowly")
    child = world.fork(world.agent, "child")
    assert world.seen() == []
    ((mark, got, now),) = world.ask(child, "seen")
    assert (mark[:2], got, now) == (["local", "a"], "Forked", "child")
    world.give("parent's")
    ((same, got, now),) = world.seen()
    assert (same, got, now) == (mark, "parent's", "a")
    for session in (child, world.agent):
        world.settle(session)
        assert world.ask(session, "seen")[-1] == "over"
        assert_restores(world, session)


def test_a_fork_of_a_fork_runs_the_parts_of_both_ancestors_again(world):
    @script
    async def travelling(me: Agent) -> None:
        seen = []
        for _ in range(4):
            seen.append([me.session_id, len(me.new_id())])
            try:
                await me.want()
            except Forked:
                seen.append("forked")
        me.value = seen

    world.go("travelling")
    world.give()
    child = world.fork(world.agent, "child")
    grandchild = world.fork(child, "grandchild")
    grandchild = world.reload(grandchild)
    world.settle(grandchild)
    seen = world.ask(grandchild, "value")
    assert seen == [["a", 32], ["a", 32], "forked", ["child", 32], "forked", ["grandchild", 32]][: len(seen)]
    assert len(seen) == 6
    assert_restores(world, grandchild)


def test_the_effects_of_a_part_that_is_run_again_are_the_parents(world):
    """Invariant 13: an effect's id follows from who wanted it, and is the same when the part is run again."""

    @script
    async def wanting(me: Agent) -> None:
        first = me.want("kept")
        try:
            await me.want("other")
        except Forked:
            me.log.append(cancel(first, ValueError("mine")))

    world.go("wanting")
    ids = [entry[0] for _, entry in world.agent.heap.entries("effects")]
    child = world.fork(world.agent, "child")
    assert world.ask(child, "seen") == [False], "it is the parent's, and settled for the child"
    assert [entry[0] for _, entry in world.agent.heap.entries("effects")] == ids
    assert child.steps[-1].record is None or not child.steps[-1].cancelled


def test_what_is_settled_inside_comes_along(world):
    """Invariant 27: a promise that is settled in the vat is settled in the fork."""

    @script
    async def partly(me: Agent) -> None:
        done, open = me.want("done"), me.want("open")
        outcomes = await gather(done, open, failures=True)
        me.log.append([outcomes[0], type(outcomes[1]).__name__])

    world.go("partly")
    world.give("settled", effect=1)
    child = world.fork(world.agent, "child")
    assert world.ask(child, "seen") == [["settled", "Forked"]]
    assert world.seen() == []


def test_fibers_that_wait_for_fibers_go_on_in_the_fork(world):
    @script
    async def inner_forked(me: Agent) -> Any:
        return await me.want()

    @script
    async def outer_forked(me: Agent) -> None:
        try:
            await near(me.ref).other("inner_forked")
        except Forked:
            me.log.append("told")

    world.go("outer_forked")
    child = world.fork(world.agent, "child")
    assert world.ask(child, "seen") == ["told"]
    assert (child.heap.system["fibers"].count, world.waiting) == (0, 2)


def test_nobody_answers_the_parents_caller_from_the_fork(world):
    """The caller's answer is the parent's."""
    got = world.go("asking_slowly")
    child = world.fork(world.agent, "child")
    world.settle(child)
    assert got == []
    world.give()
    world.give()
    assert value_of(got) is None


@script
async def limited_owed(me: Agent) -> None:
    me.value = owe(me)
    try:
        me.log.append(await within(60, me.value))
    except (Forked, TimeLimit) as error:
        me.log.append(type(error).__name__)


def test_a_limit_on_what_goes_on_in_the_fork_is_measured_there_as_well(world):
    """To the same moment; each is over on its own."""
    world.go("limited_owed")
    child = world.fork(world.agent, "child")
    assert world.ask(child, "seen") == []
    (mine,), (its,) = ([list(e) for _, e in each.heap.entries("effects")] for each in (world.agent, child))
    assert (its[1:5], its[0] != mine[0]) == (mine[1:5], True)
    assert its[1:3] == ["timer", "until"]
    child = world.reload(child)
    world.settle(child)
    assert (world.ask(child, "seen"), world.seen()) == (["TimeLimit"], [])
    assert_restores(world, child)


def test_a_limit_on_what_is_the_parents_is_over_with_it(world):
    @script
    async def limited_effect(me: Agent) -> None:
        try:
            await within(60, me.want())
        except Forked:
            me.log.append("Forked")

    world.go("limited_effect")
    child = world.fork(world.agent, "child")
    assert (world.ask(child, "seen"), child.heap.system["effects"].count) == (["Forked"], 0)


def test_what_a_fiber_that_ends_with_forked_has_waited_for_is_given_up_in_the_fork(world):
    @script
    async def both_owed(me: Agent) -> None:
        other = me.spawn(Agent)
        await gather(me.want(), near(other).owing())

    world.go("both_owed")
    child = world.fork(world.agent, "child")
    assert world.ask(child, "seen") == []
    pending = [entry[SETTLER] for _, entry in child.heap.entries("promises") if entry[STATE] < KEPT]
    assert pending == []
    assert world.waiting == 1
