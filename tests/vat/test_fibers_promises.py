"""Promises in the locals of fibers: kept for as long as a local has them, however it came by them."""

from __future__ import annotations

from copy import copy, deepcopy
from typing import Any

import pytest
from waits import Agent, Fiberworld, near, script

WAYS: dict[str, Any] = {
    "a device's": lambda me: me.want("first"),
    "of a send": lambda me: me.ref.want("first"),
    "of an own method": lambda me: Agent.want(me, "first"),
    "of a near call": lambda me: near(me.ref).want("first"),
    "of a near call of an async method": lambda me: near(me.ref).ask("first"),
    "of one that gives a promise": lambda me: near(me.ref).other("promising"),
    "of a reaction": lambda me: me.want("first").then(me.plain),
    "copied": lambda me: copy(me.want("first")),
    "copied deep": lambda me: deepcopy([me.want("first")])[0],
    "from a field": lambda me: _by_a_field(me),
}


def _by_a_field(me: Agent) -> Any:
    me.value = near(me.ref).want("first")
    found, me.value = me.value, None
    return found


@script
async def promising(me: Agent) -> Any:
    return me.want("first")


@script
async def possessing(me: Agent, way: str) -> Any:
    promise = WAYS[way](me)
    await me.want("second")
    me.log.append("second is over")
    return await promise


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("settled", ["while it waits for another", "when it waits for it"])
@pytest.mark.parametrize("way", WAYS)
def test_one_that_a_local_has_is_there_whatever_it_is_waited_for_meanwhile(
    way: str, settled: str, restarts: bool
) -> None:
    world = Fiberworld()
    got = world.go("possessing", way)
    order = {"while it waits for another": ("first", "second"), "when it waits for it": ("second", "first")}[settled]
    for what in order:
        if restarts:
            world.restart()
        [number] = [number for number, entry in world.agent.heap.entries("effects") if list(entry[3]) == [what]]
        world.give(f"what {what} gave", effect=number)
    assert world.agent.steps[-1].failure is None
    assert world.waiting == 0
    if not restarts:
        assert got[0].payload == "what first gave"
    world.sound()


def test_one_that_no_local_has_any_more_goes() -> None:
    @script
    async def discarding(me: Agent) -> None:
        promise = near(me.ref).want("first")
        await me.want("second")
        del promise
        await me.want("third")

    world = Fiberworld()
    world.go("discarding")
    world.give()
    world.give()
    assert [entry[3][0] for _, entry in world.agent.heap.entries("effects")] == ["third"]
    assert world.agent.heap.system["promises"].count == 2  # of what is waited for, and of the fiber itself
    world.give()
    world.sound()
