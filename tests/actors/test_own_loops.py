"""The loop that the docs show, in an actor of one's own: what becomes of its calls when it breaks off or is lost."""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import trio

from actors.approvals import CallWithdrawn, NothingWaits
from actors.chat import BadAnswer
from actors.messages import NO_RESULT, user, with_results
from actors.models.answers import body_of
from actors.session import TurnInterrupted
from actors.talking import Model
from actors.toolbox import Toolbox
from actors.tools import Tools, tool
from dataspace.log.memory import MemoryLog
from dataspace.values import Text
from keeve.testing.hosts import FakeClock, memory_host
from tests.actors.scenes import Says, calls, says
from tests.vat.hosts import settled
from vat.devices.devices import Effect, effect
from vat.heap.past import NotYet, StoredPast
from vat.heap.refs import Promise, cancel, near
from vat.objects.actor import Actor, actor
from vat.objects.collections import List
from vat.objects.waiting import TimeLimit, gather, within


class Code:
    """What the code of the agent does with an input now."""

    said = staticmethod(str)


@actor("loops.agent", version=1)
class Agent(Actor):
    model: Model
    tools: Toolbox
    messages: List[dict]
    steered: List[Text]
    last: Promise | None = None
    running: Promise | None = None

    def turn(self, text: Text) -> Promise:
        self.last = near(self.ref)._answer(text, self.last)
        return self.last

    def steer(self, text: Text) -> None:
        self.steered.append(text)

    def interrupt(self) -> bool:
        return self.running is not None and cancel(self.running, TurnInterrupted("somebody has interrupted it"))

    async def _answer(self, text: Text, before: Promise | None) -> Text:
        if before is not None:
            await gather(before, failures=True)
        self.running = near(self.ref)._loop(text)
        return await within(600, self.running)

    async def _loop(self, text: Text) -> Text:
        self.messages.append(user(Code.said(text)))
        spent = self.model.usage.get("total_tokens", 0)
        for _ in range(5):
            while self.steered:
                self.messages.append(user(self.steered.pop(0)))
            reply = await self.model.complete(self.messages.view(), tools=self.tools.view())
            self.messages.append(reply)
            if not reply.get("tool_calls") and not self.steered:
                return reply["content"]
            if self.model.usage.get("total_tokens", 0) - spent > 1000:
                return Text("no more tokens")
            for call, outcome in await self.tools.run_all(reply.get("tool_calls", [])):
                self.messages.append(tool(call, outcome))
        return Text("no more steps")


class Service(Says):
    """A model behind a service, which refuses a conversation in which a call has no result; keeps what it was sent."""

    @effect(on_crash="retry")
    async def complete(self, effect: Effect, messages: Any, **options: Any) -> Any:
        sent = json.loads(body_of("m", messages, None, {}, stream=False))["messages"]
        open_calls: set[str] = set()
        for message in sent:
            assert message["role"] == "tool" or not open_calls, "400: a call has no result"
            open_calls -= {message.get("tool_call_id")}
            open_calls |= {call["id"] for call in message.get("tool_calls", ())}
        self.asked.append((sent, {}))
        return self.answers.pop(0)


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
    model = Service(says(None, calls("c1", "pay", amount=3)))
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
    devices = {"model": Service(says("well")), "tools": shop.tools}
    async with memory_host(log, actors=[Agent], devices=devices) as host:
        agent = await host.get("a")
        tools = await agent.tools
        with pytest.raises(
            CallWithdrawn, match=r"'c1' was withdrawn .* loops\.agent\._loop, which asked .* in _loop\. "
        ):
            await tools.approve("c1")
        assert (shop.paid, await tools.waiting()) == ([], [])
        assert {each.device for each in host.effects()} <= {"timer"}
        with pytest.raises(NothingWaits):
            await tools.approve("c1")
        stated = [event.value for event in host.query("(fiber-failed . _)")]
        assert {fact.keywords["method"] for fact in stated} == {"_loop", "_answer"}
        assert {fact.keywords["error"]["error"] for fact in stated} == {"FiberDiverged"}
        assert list(host.query("(approval-given . _)")) == []
        assert len(list(host.query("(approval-withdrawn . _)"))) == 1
        assert await agent.turn("go on") == "well"
    said = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert sum("a method that waited is over: loops.agent." in line for line in said) == 2


async def test_an_approval_goes_through_where_the_method_comes_back(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And waits until it can, where a record of the method is on its way."""
    log, read, asked = MemoryLog(), StoredPast.record, []

    def record(self: StoredPast, seq: int) -> Any:
        asked.append(seq)
        if len(asked) == 1:
            raise NotYet
        return read(self, seq)

    monkeypatch.setattr(StoredPast, "record", record)
    await waiting_for_a_person(log, shop)
    model = Service(says("done"))
    async with memory_host(log, actors=[Agent], devices={"model": model, "tools": shop.tools}) as host:
        agent = await host.get("a")
        await (await agent.tools).approve("c1")
        async for _ in host.observe("(approval-given . _)", after="start"):
            break
        await agent.last
        assert shop.paid == [3]
        assert len(asked) > 1
        assert (await agent.messages)[-1]["content"] == "done"
        assert list(host.query("(fiber-failed . _)")) == []


async def interrupted(agent: Any, clock: FakeClock) -> None:
    assert await agent.interrupt() is True


async def out_of_time(agent: Any, clock: FakeClock) -> None:
    clock.move(601)


PAY = calls("c1", "pay", amount=3)


@pytest.mark.parametrize(
    ("call", "breaks_off", "error", "sent"),
    [
        (PAY, interrupted, TurnInterrupted, ["pay", None, NO_RESULT, "go on"]),
        (PAY, out_of_time, TimeLimit, ["pay", None, NO_RESULT, "go on"]),
        ({"id": "c1", "function": {}}, None, BadAnswer, ["pay", "go on"]),
    ],
)
async def test_a_turn_that_breaks_off_among_its_calls_is_in_the_way_of_none(
    shop: Shop,
    call: Any,
    breaks_off: Callable[[Any, FakeClock], Awaitable[None]] | None,
    error: type[Exception],
    sent: list[Any],
) -> None:
    clock, failures = FakeClock(), []
    model = Service(says(None, call), says("well"))
    options = {"devices": {"model": model, "tools": shop.tools}, "clock": clock}
    async with memory_host(actors=[Agent], **options) as host, trio.open_nursery() as nursery:
        agent = await host.spawn(Agent, "a", tools=shop.tools)

        async def first() -> None:
            try:
                await agent.turn("pay")
            except (TurnInterrupted, TimeLimit, BadAnswer) as raised:
                failures.append(raised)

        nursery.start_soon(first)
        await settled(host, 0.05)
        if breaks_off is not None:
            await breaks_off(agent, clock)
            await settled(host, 0.05)
        assert isinstance(failures[0], error)
        assert await agent.interrupt() is False
        assert await (await agent.tools).waiting() == []
        assert await agent.turn("go on") == "well"
        assert [message["content"] for message in model.asked[-1][0]] == sent
    assert shop.paid == []


async def test_what_is_steered_joins_at_the_next_step_and_tokens_and_steps_are_limited(shop: Shop) -> None:
    look = calls("c1", "look")
    used = {"total_tokens": 600}
    model = Service(
        *(says(None, look, usage=used), says("first"), says(None, look, usage=used), says(None, look, usage=used)),
        *(says(None, look) for _ in range(5)),
    )
    async with memory_host(actors=[Agent], devices={"model": model, "tools": shop.tools}) as host:
        agent = await host.spawn(Agent, "a", tools=shop.tools)
        await agent.steer("and be quick")
        assert await agent.turn("go") == "first"
        assert [message["content"] for message in model.asked[0][0]] == ["go", "and be quick"]
        assert await agent.turn("again") == "no more tokens"
        assert (await (await agent.model).usage) == {"total_tokens": 1800}
        assert await agent.turn("and again") == "no more steps"
        assert len(await agent.messages) == 20


def call(id: str | None) -> dict[str, Any]:
    made = {"type": "function", "function": {"name": "pay", "arguments": "{}"}}
    return made if id is None else {"id": id, **made}


def answer(*ids: str | None) -> dict[str, Any]:
    return {"role": "assistant", "content": None, "tool_calls": [call(id) for id in ids]}


def result(id: str, said: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": id, "content": said}


def test_a_result_that_came_later_is_sent_in_its_place_and_once() -> None:
    sent = with_results([answer("c1", "c2"), result("c2", "two"), user("and?"), result("c1", "one")])
    assert [each.get("tool_call_id", each["role"]) for each in sent] == ["assistant", "c2", "c1", "user"]
    assert [each["content"] for each in sent[1:3]] == ["two", "one"]


def test_an_id_that_is_used_again_is_another_call() -> None:
    sent = with_results([answer("c1"), user("and?"), answer("c1"), result("c1", "of the second")])
    assert [each["role"] for each in sent] == ["assistant", "tool", "user", "assistant", "tool"]
    assert [each["content"] for each in sent if each["role"] == "tool"] == [NO_RESULT, "of the second"]


@pytest.mark.parametrize("odd", ["no message", {"role": "assistant", "tool_calls": ["no call"]}, answer(None)])
def test_what_is_no_call_is_sent_as_it_is(odd: Any) -> None:
    assert with_results([user("hello"), odd]) == [user("hello"), odd]
