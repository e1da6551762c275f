"""The loop that the docs show, in an actor of one's own: what becomes of its calls when it breaks off or is lost."""

from __future__ import annotations

import logging

import pytest
import trio

from actors.approvals import CallWithdrawn, NothingWaits
from actors.messages import user
from actors.talking import Model
from actors.toolbox import Toolbox
from actors.tools import Tools, tool
from dataspace.log.memory import MemoryLog
from dataspace.values import Text
from keeve.testing.hosts import memory_host
from tests.actors.scenes import Says, calls, says
from vat.heap.refs import Promise, near
from vat.objects.actor import Actor, actor
from vat.objects.collections import List
from vat.objects.waiting import gather


class Code:
    """What the code of the agent does with an input now."""

    said = staticmethod(str)


@actor("loops.agent", version=1)
class Agent(Actor):
    model: Model
    tools: Toolbox
    messages: List[dict]
    last: Promise | None = None

    def turn(self, text: Text) -> Promise:
        self.last = near(self.ref).answer(text, self.last)
        return self.last

    async def answer(self, text: Text, before: Promise | None) -> Text:
        if before is not None:
            await gather(before, failures=True)
        return await near(self.ref).loop(text)

    async def loop(self, text: Text) -> Text:
        self.messages.append(user(Code.said(text)))
        while True:
            reply = await self.model.complete(self.messages.view(), tools=self.tools.view())
            self.messages.append(reply)
            if not reply.get("tool_calls"):
                return reply["content"]
            for call, outcome in await self.tools.run_all(reply["tool_calls"]):
                self.messages.append(tool(call, outcome))


class Shop:
    """A tool that has to be approved of."""

    def __init__(self) -> None:
        self.paid: list[int] = []
        self.tools = Tools(self.pay)

    @tool(approval=True)
    async def pay(self, amount: int) -> str:
        """Pay."""
        self.paid.append(amount)
        return "paid"


@pytest.fixture
def shop() -> Shop:
    return Shop()


async def waiting_for_a_person(log: MemoryLog, shop: Shop) -> None:
    """An agent in the log whose payment waits for a person, as its host ends."""
    model = Says(says(None, calls("c1", "pay", amount=3)))
    async with memory_host(log, actors=[Agent], devices={"model": model, "tools": shop.tools}) as host:
        agent = await host.spawn(Agent, "a", tools=shop.tools)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(agent.turn, "pay")
            async for _ in host.observe("(approval-wanted . _)", after="start"):
                break
            nursery.cancel_scope.cancel()


async def test_nobody_approves_of_a_call_whose_method_cannot_go_on(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Invariant 16: though a field holds its promise, it is told that it is over, and whoever says yes hears why."""
    log = MemoryLog()
    await waiting_for_a_person(log, shop)
    monkeypatch.setattr(Code, "said", staticmethod(str.upper))
    async with memory_host(log, actors=[Agent], devices={"model": Says(), "tools": shop.tools}) as host:
        tools = await (await host.get("a")).tools
        with pytest.raises(
            CallWithdrawn, match=r"'c1' was withdrawn .* loops\.agent\.loop cannot go on where it waited"
        ):
            await tools.approve("c1")
        assert (shop.paid, host.effects(), await tools.waiting()) == ([], [], [])
        with pytest.raises(NothingWaits):
            await tools.approve("c1")
        stated = [event.value for event in host.query("(fiber-failed . _)")]
        assert {fact.keywords["method"] for fact in stated} == {"loop", "answer"}
        assert {fact.keywords["error"]["error"] for fact in stated} == {"FiberDiverged"}
        assert list(host.query("(approval-given . _)")) == []
        assert len(list(host.query("(approval-withdrawn . _)"))) == 1
    said = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert sum("a method that waited is over: loops.agent." in line for line in said) == 2


async def test_an_approval_goes_through_where_the_method_comes_back(shop: Shop) -> None:
    log = MemoryLog()
    await waiting_for_a_person(log, shop)
    model = Says(says("done"))
    async with memory_host(log, actors=[Agent], devices={"model": model, "tools": shop.tools}) as host:
        agent = await host.get("a")
        await (await agent.tools).approve("c1")
        async for _ in host.observe("(approval-given . _)", after="start"):
            break
        await agent.last
        assert shop.paid == [3]
        assert (await agent.messages)[-1]["content"] == "done"
        assert list(host.query("(fiber-failed . _)")) == []
