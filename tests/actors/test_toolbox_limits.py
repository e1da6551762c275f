"""A toolbox in a loop of one's own: a limit on its calls, and what is no call."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
import trio

from actors.chat import MOST_CALLS, BadAnswer
from actors.toolbox import Toolbox
from actors.tools import Tools, tool
from dataspace.log.memory import MemoryLog
from keeve.testing.hosts import FakeClock, memory_host
from tests.actors.scenes import calls
from tests.vat.hosts import settled
from vat.objects.actor import Actor, actor
from vat.objects.collections import List
from vat.objects.waiting import within


@actor("toolbox.limited", version=1)
class Limited(Actor):
    tools: Toolbox
    said: List[str]

    async def go(self, tool_calls: list[Any], seconds: float = 60) -> None:
        try:
            for call, outcome in await within(seconds, self.tools.run_all(tool_calls)):
                self.said.append(tool(call, outcome)["content"])
        except BadAnswer as error:
            self.said.append(str(error))


@tool(approval=True)
async def rare() -> str:
    """Has to be approved of."""
    return "done"


@tool
async def loops() -> str:
    """Believes in asyncio."""
    await asyncio.sleep(1)
    return "slept"


async def test_calls_within_a_time_have_what_they_came_to_or_were_given_up(caplog: pytest.LogCaptureFixture) -> None:
    tools = Tools(rare, loops)
    clock = FakeClock()
    options = {"actors": [Limited], "devices": {"tools": tools}, "clock": clock}
    async with memory_host(**options) as host, trio.open_nursery() as nursery:
        agent = await host.spawn(Limited, "a", tools=tools)
        nursery.start_soon(agent.go, [calls("a", "loops"), calls("b", "rare")], 60)
        await settled(host)
        assert len(await (await agent.tools).waiting()) == 1
        clock.move(61)
        await settled(host)
        looped, waited = await agent.said
        assert "asyncio has no loop here, since Keeve runs on trio" in looped
        assert "session a: tools.loops failed" in caplog.text
        assert waited.startswith("This call failed: TimeLimit: nothing came of it within 60 seconds")
        assert await (await agent.tools).waiting() == []
        assert host.effects() == []


@pytest.mark.parametrize(
    ("call", "wrong"),
    [
        ({"id": "c", "function": None}, "tool call 1 has no name of a function"),
        ({"function": {"name": "rare"}}, "tool call 1 has no 'id'"),
        ("rare", "tool call 1 has no 'id'"),
    ],
)
async def test_what_is_no_call_is_said_before_any_is_made(call: Any, wrong: str) -> None:
    tools = Tools(rare)
    async with memory_host(actors=[Limited], devices={"tools": tools}) as host:
        agent = await host.spawn(Limited, "a", tools=tools)
        await agent.go([calls("a", "rare"), call])
        [said] = await agent.said
        assert said.startswith(f"this is no tool call that can be made: {wrong}. Give it as a model does: ")
        assert (host.effects(), await (await agent.tools).waiting()) == ([], [])


@actor("toolbox.many", version=1)
class Many(Actor):
    tools: Toolbox
    said: List[str]

    async def go(self, count: int) -> None:
        try:
            for call, outcome in await self.tools.run_all(calls(f"c{n}", "none") for n in range(count)):
                self.said.append(tool(call, outcome)["content"])
        except BadAnswer as error:
            self.said.append(str(error))


async def test_so_many_calls_are_made_at_once_and_none_of_more() -> None:
    async with memory_host(actors=[Many], devices={"tools": Tools(rare)}) as host:
        most = await host.spawn(Many, "most", tools=Tools(rare))
        await most.go(MOST_CALLS)
        assert len(await most.said) == MOST_CALLS
        more = await host.spawn(Many, "more", tools=Tools(rare))
        await more.go(MOST_CALLS + 1)
        [said] = await more.said
        assert said.startswith(
            "this is no tool call that can be made: there are more than 1000 of them; ask for so many"
        )
        assert host.effects() == []


@actor("toolbox.limited", version=2)
class Newer(Actor):
    tools: Toolbox
    said: List[str]


async def test_a_call_is_withdrawn_with_the_method_that_waited_for_it_and_waits_in_a_fork() -> None:
    tools, log = Tools(rare), MemoryLog()
    async with memory_host(log, actors=[Limited], devices={"tools": tools}) as host, trio.open_nursery() as nursery:
        agent = await host.spawn(Limited, "a", tools=tools)
        nursery.start_soon(agent.go, [calls("b", "rare")])
        async for _ in host.observe("(approval-wanted . _)", after="start"):
            break
        fork = await agent.fork(into="f")
        assert len(await (await fork.tools).waiting()) == 1
        await (await fork.tools).approve("b")
        await settled(host)
        assert await fork.said == ["done"]
        nursery.cancel_scope.cancel()
    async with memory_host(log, actors=[Newer], devices={"tools": tools}) as host:
        agent = await host.get("a")
        assert (await (await agent.tools).waiting(), host.effects()) == ([], [])
        [over] = host.query("(approval-withdrawn . _)")
        assert over.value.keywords["error"]["error"] == "FiberDiverged"
