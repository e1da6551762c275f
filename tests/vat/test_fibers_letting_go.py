"""Promises that no local of a fiber has any more are let go at its next wait, not when Python happens to collect."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import pytest
from vatmaker import operations
from waits import Agent, Fiberworld, gather, script, value_of, within

from vat.heap.opcodes import Op


@pytest.fixture
def world() -> Iterator[Fiberworld]:
    gc.disable()
    yield Fiberworld()
    gc.enable()


@script
async def again(me: Agent, together: bool) -> Any:
    asked = [me.want("a"), me.want("b")]
    first = await gather(asked) if together else [await one for one in asked]
    await me.want("between")
    return [first, await gather(asked), await asked[0]]


@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize("together", [False, True])
def test_what_was_awaited_can_be_awaited_again_while_a_local_has_it(world, together, restarted):
    got = world.go("again", together)
    for effect in (1, 2, 3):
        if restarted:
            waiters = world.agent.vat.waiters
            world.restart()
            world.agent.vat.waiters.update(waiters)
        world.give(f"value {effect}", effect=effect)
    values = ["value 1", "value 2"]
    assert world.waiting == 0
    assert restarted or value_of(got) == [values, values, "value 1"]
    world.sound()


def test_what_was_awaited_and_no_local_has_is_not_kept(world):
    @script
    async def one_by_one(me: Agent) -> None:
        for number in range(3):
            await me.want(number)

    world.go("one_by_one")
    for _ in range(2):
        world.give()
        assert not world.agent.heap.system["owned"].count


@script
async def gathers(me: Agent) -> Any:
    return await gather(me.want(1), me.want(2))


@script
async def waits_for_one(me: Agent) -> Any:
    kept = [me.want(1), me.want(2)]
    return await kept[0]


@script
async def waits_some_time(me: Agent) -> Any:
    kept = [me.want(1), me.want(2)]
    return await within(5, kept[0])


@script
async def letting_go(me: Agent, which: Any) -> None:
    try:
        await which(me)
    except ValueError:
        me.count += 1
    await me.want(3)


@pytest.mark.parametrize("which", [gathers, waits_for_one, waits_some_time])
def test_what_failed_keeps_no_promise(world, which):
    @script
    async def failing_later(me: Agent) -> None:
        await letting_go(me, which)

    world.go("failing_later")
    kept = [promise for promise, _ in world.agent.heap.entries("owned")]
    world.give(error="no", effect=1)
    (ended,) = [op for op in operations(world.agent.records[-1]) if op[0] == Op.SUSPENDED][-1:]
    assert world.ask(world.agent, "count") == 1
    assert kept
    assert not list(world.agent.heap.entries("owned")), ended
    world.sound()
