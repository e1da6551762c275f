"""An agent of one's own: a loop in an `async def`, with a model, tools that run beside each other, and approval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
import trio

from actors.chat import BadAnswer, message_in
from actors.messages import user
from actors.talking import Model
from actors.toolbox import Toolbox
from actors.tools import Tools, tool
from dataspace.log.memory import MemoryLog, MemoryStore
from dataspace.values import Text
from keeve.testing.hosts import memory_host
from tests.actors.scenes import calls, says
from vat.devices.devices import Effect, Policy, effect
from vat.host.settings import Settings
from vat.objects.actor import Actor, actor
from vat.objects.collections import List
from vat.objects.waiting import gather


@actor("toolbox.agent", version=1)
class Agent(Actor):
    model: Model
    tools: Toolbox
    messages: List[dict[str, Any]]

    async def turn(self, text: Text) -> Text:
        self.messages.append(user(text))
        while True:
            reply = await self.model.complete(self.messages.view(), tools=self.tools.view())
            self.messages.append(reply)
            if not reply.get("tool_calls"):
                return reply["content"]
            for call, outcome in await self.tools.run_all(reply["tool_calls"]):
                self.messages.append(tool(call, outcome))


class Plays:
    """A model that says these things, one after another, and hears all."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.heard: list[Any] = []
        self.offered: list[Any] = []

    @effect(on_crash="retry")
    async def complete(self, effect: Effect, messages: Sequence[Any], *, tools: Any = None, **options: Any) -> Any:
        self.heard.append(list(messages))
        self.offered.append([schema["function"]["name"] for schema in tools])
        return self.answers[sum(message["role"] == "assistant" for message in messages)]


def heard(messages: Sequence[Mapping[str, Any]]) -> list[Any]:
    return [message["content"] for message in messages if message["role"] == "tool"]


async def weather(city: str) -> str:
    """The weather in a city."""
    return f"rain in {city}"


async def test_an_agent_calls_tools_and_answers() -> None:
    model = Plays(says(None, calls("a", "weather", city="Oslo"), calls("b", "weather", city="Bergen")), says("Rain."))
    tools = Tools(weather)
    async with memory_host(actors=[Agent], devices={"model": model, "tools": tools}) as host:
        agent = await host.spawn(Agent, "agent", tools=tools)
        assert await agent.turn("How is the weather?") == "Rain."
        messages = await agent.messages
    assert heard(messages) == ["rain in Oslo", "rain in Bergen"]
    assert [message["role"] for message in messages] == ["user", "assistant", "tool", "tool", "assistant"]
    assert model.offered == [["weather"], ["weather"]]


async def test_the_calls_of_an_answer_run_beside_each_other_and_are_told_in_their_order() -> None:
    both = trio.Event()

    async def first() -> str:
        await both.wait()
        return "first"

    async def second() -> str:
        both.set()
        return "second"

    model = Plays(says(None, calls("a", "first"), calls("b", "second")), says("done"))
    tools = Tools(first, second)
    async with memory_host(actors=[Agent], devices={"model": model, "tools": tools}) as host:
        agent = await host.spawn(Agent, "agent", tools=tools)
        assert await agent.turn("go") == "done"
        assert heard(await agent.messages) == ["first", "second"]


async def test_whatever_goes_wrong_in_a_call_is_told_to_the_model() -> None:
    def fails() -> None:
        raise LookupError("no such row")

    @tool(timeout=0.01)
    async def hangs() -> None:
        await trio.sleep_forever()

    wrong = [calls("a", "fails"), calls("b", "hangs"), calls("c", "sings"), calls("d", "weather", town="Oslo")]
    tools = Tools(fails, hangs, weather)
    model = Plays(says(None, *wrong), says("done"))
    async with memory_host(actors=[Agent], devices={"model": model, "tools": tools}) as host:
        agent = await host.spawn(Agent, "agent", tools=tools)
        assert await agent.turn("go") == "done"
        told = heard(await agent.messages)
    assert told[0] == "This call failed: LookupError: no such row"
    assert "EffectTimeout: tools.hangs did not answer in its 0.01 s" in told[1]
    assert "there is no tool 'sings'" in told[2]
    assert "unknown field `town`" in told[3]


async def test_what_is_not_offered_is_not_called_whatever_the_device_has() -> None:
    called: list[str] = []

    async def danger() -> str:
        called.append("danger")
        return "gone"

    model = Plays(says(None, calls("a", "danger"), calls("b", "weather", city="Oslo")), says("done"))
    async with memory_host(actors=[Agent], devices={"model": model, "tools": Tools(weather, danger)}) as host:
        agent = await host.spawn(Agent, "agent", tools=Tools(weather))
        assert await agent.turn("go") == "done"
        told = heard(await agent.messages)
    assert told == ["This call failed: NoSuchTool: there is no tool 'danger'; there are weather", "rain in Oslo"]
    assert called == []


class Slow:
    """Tools, one of which is under way when the host ends."""

    def __init__(self) -> None:
        self.began = trio.Event()
        self.ran: list[str] = []
        self.tools = Tools(self.pay, self.look, policies={"look": Policy(on_crash="retry")})
        self.wait = True

    async def pay(self) -> str:
        """Pay."""
        return await self._run("pay")

    async def look(self) -> str:
        """Look."""
        return await self._run("look")

    async def _run(self, what: str) -> str:
        self.ran.append(what)
        if len(self.ran) >= 2:
            self.began.set()
        if self.wait:
            await trio.sleep_forever()
        return what


async def test_after_a_crash_each_call_comes_to_what_its_tool_has_declared() -> None:
    """Invariant 13. Invariant 16."""
    log, slow = MemoryLog(), Slow()
    model = Plays(says(None, calls("a", "pay"), calls("b", "look")), says("done"))
    devices = {"model": model, "tools": slow.tools}
    at_once = Settings(grace=0)
    async with (
        memory_host(log, actors=[Agent], devices=devices, settings=at_once) as host,
        trio.open_nursery() as nursery,
    ):
        agent = await host.spawn(Agent, "agent", tools=slow.tools)
        nursery.start_soon(agent.turn, "go")
        await slow.began.wait()
        nursery.cancel_scope.cancel()
    slow.wait = False
    async with memory_host(log, actors=[Agent], devices=devices) as host:
        agent = await host.get("agent")
        with trio.fail_after(30):
            while len(messages := await agent.messages) < 5:  # noqa: ASYNC110 - the host has no event for it
                await trio.sleep(0.01)
    told = heard(messages)
    assert "outcome of this call is unknown" in told[0]
    assert told[1] == "look"
    assert sorted(slow.ran) == ["look", "look", "pay"]


async def test_a_tool_that_has_come_to_be_repeatable_is_not_held_for_a_person() -> None:
    log, slow = MemoryLog(), Slow()
    model = Plays(says(None, calls("a", "pay"), calls("b", "look")), says("done"))
    quick, hold = Settings(grace=0), Settings(hold_unknown=True)
    devices = {"model": model, "tools": slow.tools}
    async with (
        memory_host(log, actors=[Agent], devices=devices, settings=quick) as host,
        trio.open_nursery() as nursery,
    ):
        agent = await host.spawn(Agent, "agent", tools=slow.tools)
        nursery.start_soon(agent.turn, "go")
        await slow.began.wait()
        nursery.cancel_scope.cancel()
    slow.wait = False
    devices["tools"] = Tools(slow.pay, slow.look, policy=Policy(on_crash="retry"))
    async with memory_host(log, actors=[Agent], devices=devices, settings=hold) as host:
        agent = await host.get("agent")
        with trio.fail_after(30):
            while len(messages := await agent.messages) < 5:  # noqa: ASYNC110 - the host has no event for it
                await trio.sleep(0.01)
    assert heard(messages) == ["pay", "look"]


async def test_a_fork_in_the_middle_of_calls_is_told_that_they_are_its_parents() -> None:
    slow = Slow()
    model = Plays(says(None, calls("a", "pay"), calls("b", "look")), says("done"))
    devices = {"model": model, "tools": slow.tools}
    quick = Settings(grace=0)
    async with memory_host(actors=[Agent], devices=devices, settings=quick) as host, trio.open_nursery() as nursery:
        agent = await host.spawn(Agent, "agent", tools=slow.tools)
        nursery.start_soon(agent.turn, "go")
        await slow.began.wait()
        twin = await agent.fork(into="twin")
        with trio.fail_after(30):
            while len(messages := await twin.messages) < 5:  # noqa: ASYNC110 - the host has no event for it
                await trio.sleep(0.01)
        assert len(await agent.messages) == 2
        nursery.cancel_scope.cancel()
    assert all(content.startswith("This call failed: Forked: ") for content in heard(messages))
    assert slow.ran == ["pay", "look"] or slow.ran == ["look", "pay"]


async def test_an_agent_asks_a_person_before_a_call_that_wants_approval() -> None:
    done: list[str] = []

    @tool(approval=True)
    async def drop(table: str) -> str:
        done.append(table)
        return "dropped"

    tools = Tools(drop, weather)
    model = Plays(
        says(
            None, calls("a", "drop", table="users"), calls("b", "weather", city="Oslo"), calls("c", "drop", table="x")
        ),
        says("done"),
    )
    log = MemoryLog()
    devices = {"model": model, "tools": tools}
    async with memory_host(log, actors=[Agent], devices=devices) as host, trio.open_nursery() as nursery:
        agent = await host.spawn(Agent, "agent", tools=tools)
        nursery.start_soon(agent.turn, "go")
        with trio.fail_after(30):
            while len(await (await agent.tools).waiting()) < 2:  # noqa: ASYNC110 - as above
                await trio.sleep(0.01)
        nursery.cancel_scope.cancel()
    async with memory_host(log, actors=[Agent], devices=devices) as host:
        agent = await host.get("agent")
        box = await agent.tools
        assert sorted(each["id"] for each in await box.waiting()) == ["a", "c"]
        await box.approve("a")
        await box.refuse("c", "not that one")
        with trio.fail_after(30):
            while len(messages := await agent.messages) < 6:  # noqa: ASYNC110 - as above
                await trio.sleep(0.01)
    assert heard(messages) == [
        "dropped",
        "rain in Oslo",
        "This call failed: CallRefused: a person has refused this call, so it was not made: not that one",
    ]
    assert done == ["users"]


async def test_what_is_said_is_kept_as_content_that_can_be_erased() -> None:
    tools = Tools(weather)
    model = Plays(says(None, calls("a", "weather", city="Oslo")), says("Rain."))
    log = MemoryLog()
    async with memory_host(log, actors=[Agent], devices={"model": model, "tools": tools}) as host:
        agent = await host.spawn(Agent, "agent", tools=tools)
        assert await agent.turn("How is it?") == "Rain."
    for said in (b"How is it?", b"rain in Oslo", b"Rain."):
        assert not [record for record in bodies(log) if said in record]


def bodies(log: MemoryLog) -> list[bytes]:
    """What stands in the records themselves, without their cells."""
    store = MemoryStore(log, readonly=True)
    return [bytes(part) for stored in store.scan() for part in (stored.body().deeds, stored.body().facts)]


@actor("toolbox.several", version=1)
class Several(Actor):
    model: Model
    tools: Toolbox

    async def both(self) -> list[Any]:
        one = self.model.complete([user("one")], tools=self.tools.view())
        two = self.model.complete([user("two")], tools=self.tools.view())
        return [message["content"] for message in await gather(one, two)]


@actor("toolbox.keeper", version=1)
class Keeper(Actor):
    tools: Toolbox

    async def refresh(self) -> list[str]:
        self.tools.replace(await self.device("tools").offer())
        return [schema["function"]["name"] for schema in self.tools.view()]


async def test_an_actor_asks_its_device_which_tools_there_are_now_and_offers_those() -> None:
    def one() -> str:
        """One."""
        return "1"

    def two() -> str:
        """Two."""
        return "2"

    async with memory_host(actors=[Keeper], devices={"tools": Tools(one, two)}) as host:
        keeper = await host.spawn(Keeper, "k", tools=Tools(one))
        assert await keeper.refresh() == ["one", "two"]


async def test_messages_can_be_waited_for_together() -> None:
    async with memory_host(actors=[Several], devices={"model": Plays(says("hello"))}) as host:
        assert await (await host.spawn(Several, "s")).both() == ["hello", "hello"]


async def test_an_answer_that_is_none_breaks_the_promise_of_the_message() -> None:
    model = Plays({"nothing": 1})
    async with memory_host(actors=[Agent], devices={"other": model}) as host:
        agent = await host.spawn(Agent, "agent", model="other")
        with pytest.raises(BadAnswer, match="it has no 'message'"):
            await agent.turn("go")


@pytest.mark.parametrize(
    ("role", "says"),
    [("user", '"user"'), (None, "#nil"), (10**9000, r'#int\("28dde05')],
    ids=["another", "none", "a huge number"],
)
def test_an_answer_of_another_role_is_told_whatever_that_is(role: object, says: str) -> None:
    with pytest.raises(BadAnswer, match=f"the message has the role {says}"):
        message_in({"message": {"role": role, "content": "hello"}})


def test_a_user_says_a_text_or_parts() -> None:
    assert user([{"type": "text", "text": "hello"}])["content"] == [{"type": "text", "text": "hello"}]
