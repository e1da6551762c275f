"""Sessions on a real host with a store in memory: in order, through restarts, stopped, and asked from another vat."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
import trio

from actors.models import EchoModel
from actors.session import UNKNOWN, BadSetting, Session, TurnInterrupted
from actors.tools import Tools
from dataspace.log.memory import MemoryLog
from keeve.testing.hosts import memory_host
from tests.actors.scenes import Does, Says, calls, says, schema, tool, user
from vat.devices.devices import Effect, effect
from vat.heap.refs import Promise, Ref
from vat.objects.actor import Actor, actor
from vat.objects.collections import List


class Waits:
    """A model or a tool that begins and does not end by itself."""

    def __init__(self) -> None:
        self.began = trio.Event()
        self.stopped = trio.Event()

    @effect(on_crash="retry")
    async def complete(self, effect: Effect, messages: Sequence[Any], **options: Any) -> Any:
        await self._wait()

    @effect
    async def run(self, effect: Effect, call: Mapping[str, Any]) -> Any:
        await self._wait()

    async def _wait(self) -> None:
        self.began.set()
        try:
            await trio.sleep_forever()
        finally:
            self.stopped.set()


async def test_turns_taken_at_once_run_in_the_order_of_acceptance() -> None:
    """Invariant 18."""
    said: dict[int, str] = {}
    async with memory_host() as host:
        s = await host.spawn(Session, "s1")

        async def take(n: int) -> None:
            said[n] = await s.turn(f"input {n}")

        async with trio.open_nursery() as nursery:
            for n in range(20):
                nursery.start_soon(take, n)
        history = await s.history
        messages = await s.messages
    assert said == {n: f"input {n}" for n in range(20)}
    assert sorted(history) == sorted(said.values())
    assert [message["content"] for message in messages[::2]] == history
    assert [message["content"] for message in messages[1::2]] == history


async def test_a_turn_that_waits_for_its_model_goes_on_in_the_next_host() -> None:
    """Invariant 14."""
    log, model = MemoryLog(), Waits()
    async with memory_host(log, devices={"model": model}) as host, trio.open_nursery() as nursery:
        s = await host.spawn(Session, "s1")
        nursery.start_soon(s.turn, "hello")
        await model.began.wait()
        nursery.cancel_scope.cancel()
    async with memory_host(log, devices={"model": EchoModel()}) as host:
        s = await host.get("s1")
        assert await s.turn("again") == "again"
        assert [message["content"] for message in await s.messages] == ["hello", "hello", "again", "again"]


async def test_a_tool_that_was_running_when_the_host_ended_is_not_run_again() -> None:
    """Invariant 13."""
    log, waits, tools = MemoryLog(), Waits(), Does(a="x")
    model = Says(says(None, calls("a")), says("done"), says("more"))
    async with memory_host(log, devices={"model": model, "tools": waits}) as host, trio.open_nursery() as nursery:
        s = await host.spawn(Session, "s1", tools=[schema("look")])
        nursery.start_soon(s.turn, "go")
        await waits.began.wait()
        nursery.cancel_scope.cancel()
    async with memory_host(log, devices={"model": model, "tools": tools}) as host:
        s = await host.get("s1")
        assert await s.turn("go on") == "more"
    assert tools.calls == []
    assert model.asked[1][0] == [user("go"), says(None, calls("a"))["message"], tool("a", UNKNOWN)]


async def test_an_interrupt_stops_the_model() -> None:
    """Invariant 19."""
    waits = Waits()
    async with memory_host(devices={"model": waits}) as host, trio.open_nursery() as nursery:
        s = await host.spawn(Session, "s1")

        async def take() -> None:
            with pytest.raises(TurnInterrupted, match="turn 1"):
                await s.turn("hello")

        nursery.start_soon(take)
        await waits.began.wait()
        assert await s.interrupt() == 1
        await waits.stopped.wait()
        assert (await s.status())["running"] is None


async def test_a_session_is_found_again_with_all_that_it_was_given() -> None:
    log = MemoryLog()
    schema = {"type": "function", "function": {"name": "look"}}
    async with memory_host(log) as host:
        s = await host.spawn(Session, "s1", system="Be brief.", mode="chat", max_steps=3, tools=[schema])
        twin = await s.fork(into="s2")
        await twin.turn("hello")
    async with memory_host(log) as host:
        for id in ("s1", "s2"):
            s = await host.get(id)
            assert [await s.system, await s.mode, await s.max_steps] == ["Be brief.", "chat", 3]
            assert await s.tools == [schema]


@actor("test.boss", version=1)
class Boss(Actor):
    """Does with messages alone what a program does with a host: spawns a session, talks to it, forks, observes."""

    done: List[str]

    def begin(self) -> Promise:
        self.observe('(turn-done ?n "worker" . _)', self.told)
        return self.directory.spawn("keeve.session", "worker", {"mode": "chat"}).then(self._made)

    def ask(self, worker: Ref, input: str) -> Promise:
        return worker.turn(input)

    def told(self, event: Mapping[str, Any]) -> None:
        self.assert_fact("boss.told", event["captures"]["n"])

    def _made(self, worker: Ref) -> Promise:
        return worker.turn("one").then(self._said, worker)

    def _said(self, output: str, worker: Ref) -> Promise:
        self.done.append(output)
        return worker.fork(into="twin").then(self._forked, worker)

    def _forked(self, twin: Ref, worker: Ref) -> Promise:
        worker.turn("two")
        return twin.turn("another way").then(self._ended)

    def _ended(self, output: str) -> Promise:
        self.done.append(output)
        return self.directory.list()


async def test_an_actor_of_another_vat_runs_a_session_with_messages_alone() -> None:
    async with memory_host(actors=[Boss]) as host:
        boss = await host.spawn(Boss, "boss")
        listed = await boss.begin()
        worker, twin = await host.get("worker"), await host.get("twin")
        async for _ in host.observe("(boss.told 2)"):
            break
        assert [each["id"] for each in listed] == ["boss", "twin", "worker"]
        assert await boss.done == ["one", "another way"]
        assert await worker.history == ["one", "two"]
        assert await twin.history == ["one", "another way"]
        assert [held.fact.fields for held in host.facts("(boss.told _)")] == [(1,), (2,)]


class Gate(EchoModel):
    """An echo that is held back until it may answer."""

    def __init__(self) -> None:
        self.asked = trio.Event()
        self.open = trio.Event()

    @effect(on_crash="retry")
    async def complete(self, effect: Effect, messages: Sequence[Any], **options: Any) -> Any:
        self.asked.set()
        await self.open.wait()
        return await super().complete(effect, messages)


async def test_a_fork_in_the_middle_of_a_turn_does_not_answer_who_asked_its_parent() -> None:
    """Invariants 9 and 34."""
    gate = Gate()
    answers: list[str] = []
    async with memory_host(actors=[Boss], devices={"model": gate}) as host:
        boss, worker = await host.spawn(Boss, "boss"), await host.spawn(Session, "worker")

        async def ask() -> None:
            answers.append(await boss.ask(worker, "one"))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask)
            await gate.asked.wait()
            twin = await worker.fork(into="twin")
            async for _ in host.observe('(turn-failed 1 "twin" . _)'):
                break
            gate.open.set()
        assert answers == ["one"]
        assert await twin.turn("two") == "two"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("mode", "talk"),
        *(("max_steps", value) for value in (0, -1, 2.5, "4", True, None)),
        *(("max_tokens", value) for value in (-1, "many", None)),
        ("options", [1]),
    ],
)
async def test_a_setting_that_cannot_be_meant_makes_no_session(field: str, value: Any) -> None:
    async with memory_host() as host:
        with pytest.raises(BadSetting, match=field):
            await host.spawn(Session, "s1", **{field: value})
        with pytest.raises(BadSetting, match=field):
            await host.directory.spawn("keeve.session", "s1", {field: value})
        assert host.sessions() == []


async def test_tools_are_given_as_they_are_or_as_their_schemas() -> None:
    async def look(at: str) -> str:
        """Looks."""
        return at

    tools = Tools(look)
    async with memory_host(devices={"tools": tools}) as host:
        one, two = await host.spawn(Session, tools=tools), await host.spawn(Session, tools=tools.schemas)
        assert await one.tools == await two.tools == tools.schemas
