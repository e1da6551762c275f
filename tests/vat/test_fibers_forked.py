"""Fibers in a fork: they go on there with `Forked`, and in the parent as if nothing had happened."""

from __future__ import annotations

from typing import Any

import pytest
from vatmaker import assert_restores
from waits import Agent, Fiberworld, cancel, gather, near, script, value_of

from vat.errors import Forked


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
