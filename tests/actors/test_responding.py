"""Conversations by requests: whole requests, continuing and forking, the tools of clients and of the host."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio

from actors.chat import BadInput
from actors.messages import NOT_RUN
from actors.responding import BadRequest, Responding, TurnRuns
from actors.responding.asking import check_how
from actors.responding.numbering import open_calls
from dataspace.log.memory import MemoryLog
from keeve.testing.hosts import memory_host
from tests.actors.scenes import Does, Says, calls, says, tool, user
from tests.actors.test_session_on_host import Waits
from vat.host.host import Host
from vat.host.outside import HostRef


def how(**given: Any) -> dict[str, Any]:
    """What a request asks for."""
    usual = {"model": "model", "system": "", "tools": [], "own": False, "tool_device": "tools", "options": {}}
    return {**usual, "about": {}, **given}


def schema(name: str) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "parameters": {"type": "object"}}}


@asynccontextmanager
async def hosted(log: MemoryLog | None = None, **devices: Any) -> AsyncIterator[Host]:
    async with memory_host(log, actors=[Responding], devices=devices) as host:
        yield host


async def over(host: Host, s: HostRef[Any], n: int) -> dict[str, Any]:
    """A turn, when it is over."""
    events = host.observe(f"(_ {n} . _)", after="head")
    while True:
        turn: dict[str, Any] = await s.response(n)
        if turn["status"] not in ("queued", "in_progress"):
            return turn
        async for event in events:
            if event.value.label in ("turn-done", "turn-failed", "turn-interrupted"):
                break


async def asked(host: Host, s: HostRef[Any], input: Any, after: int | None = None, **given: Any) -> dict[str, Any]:
    """What came of a request."""
    messages = [user(input)] if isinstance(input, str) else input
    accepted = await s.respond(messages, how(**given), after=after)
    return await over(host, s, accepted["turn"])


def said(turn: Mapping[str, Any]) -> list[Any]:
    return [told["message"]["content"] for told in turn["output"]]


async def test_a_turn_says_what_it_is_to_be_done_with_and_the_next_one_says_it_anew() -> None:
    model = Says(says("one"), says("two"), says("three"))
    async with hosted(model=model) as host:
        s = await host.spawn(Responding, "s1")
        first = await asked(host, s, "a", system="Be brief.", options={"temperature": 0.5}, about={"x": 1})
        await asked(host, s, "b", system="Be long.")
        third = await asked(host, s, "c")
        messages = await s.messages
    assert [options for _, options in model.asked] == [{"temperature": 0.5}, {}, {}]
    assert [[message["role"] for message in told] for told, _ in model.asked] == [
        ["system", "user"],
        ["system", "user", "assistant", "user"],
        ["user", "assistant", "user", "assistant", "user"],
    ]
    assert model.asked[1][0][0]["content"] == "Be long."
    assert (said(first), said(third)) == (["one"], ["three"])
    assert first["asked"]["about"] == {"x": 1}
    assert first["asked"]["system"] == "Be brief."
    assert len(messages) == 6


async def test_of_two_that_continue_one_turn_the_second_is_told_that_it_has_moved_on_and_forks() -> None:
    async with hosted() as host:
        s = await host.spawn(Responding, "s1")
        await asked(host, s, "one")
        await asked(host, s, "two", after=1)
        assert await s.respond([user("other")], how(), after=1) == {"moved": 1}
        twin = await s.fork(at=await s.point(1))
        await over(host, twin, (await twin.respond([user("other")], how(), after=1))["turn"])
        assert [message["content"] for message in await s.messages] == ["one", "one", "two", "two"]
        assert [message["content"] for message in await twin.messages] == ["one", "one", "other", "other"]


async def test_a_fork_at_the_end_of_a_turn_has_nothing_of_the_one_that_began_in_the_same_record() -> None:
    model = Waits()
    async with hosted(model=model) as host, trio.open_nursery() as nursery:
        s = await host.spawn(Responding, "s1")
        await s.respond([user("one")], how())
        await s.respond([user("two")], how())
        await model.began.wait()
        await s.interrupt(1)
        await over(host, s, 1)
        twin = await s.fork(at=await s.point(1))
        accepted = await twin.respond([user("other")], how(), after=1)
        assert accepted == {"turn": 3}
        assert [message["content"] for message in await twin.messages] == ["one", "other"]
        assert [message["content"] for message in await s.messages] == ["one", "two"]
        nursery.cancel_scope.cancel()


async def test_a_fork_has_nothing_of_a_request_that_its_parent_is_being_answered() -> None:
    model = Waits()
    async with hosted(model=model) as host, trio.open_nursery() as nursery:
        s = await host.spawn(Responding, "s1")
        await s.add([user("zero"), says(None, calls("c1"))["message"]])
        await s.respond([user("one"), user("two"), tool("c1", "x")], how(system="Be brief."))
        await model.began.wait()
        twin = await s.fork()
        assert [message["role"] for message in await twin.messages] == ["system", "user", "assistant"]
        assert await twin.add([tool("c1", "y")]) == {"from": 2, "to": 3}
        nursery.cancel_scope.cancel()


async def test_a_turn_that_calls_a_tool_of_the_client_is_over_and_goes_on_with_what_came_of_it() -> None:
    call = calls("c1", "theirs")
    model = Says(says("look", call), says("rain"))
    async with hosted(model=model) as host:
        s = await host.spawn(Responding, "s1")
        first = await asked(host, s, "weather?", tools=[schema("theirs")])
        assert (first["status"], first["span"]["limit"]) == ("completed", "client")
        second = await asked(host, s, [tool("c1", "wet")], tools=[schema("theirs")], after=1)
        assert said(second) == ["rain"]
    assert model.asked[1][0][1:] == [says("look", call)["message"], tool("c1", "wet")]


async def test_a_call_whose_outcome_never_comes_is_told_as_not_carried_out() -> None:
    model = Says(says(None, calls("c1", "theirs"), calls("c2", "theirs")), says("well"))
    async with hosted(model=model) as host:
        s = await host.spawn(Responding, "s1")
        await asked(host, s, "weather?", tools=[schema("theirs")])
        await asked(host, s, [user("never mind"), tool("c2", "wet")])
    assert model.asked[1][0][2:] == [tool("c1", NOT_RUN), tool("c2", "wet"), user("never mind")]


async def test_an_outcome_of_a_call_that_nobody_made_is_refused_and_nothing_has_happened() -> None:
    async with hosted() as host:
        s = await host.spawn(Responding, "s1")
        with pytest.raises(BadRequest, match="no call 'c9'"):
            await s.respond([tool("c9", "wet")], how())
        with pytest.raises(BadInput):
            await s.respond([{"role": "nobody", "content": "x"}], how())
        assert await s.history == []


async def test_tools_of_the_host_are_called_here_and_those_of_the_client_by_the_client_in_one_answer_too() -> None:
    model = Says(says("both", calls("c1", "theirs"), calls("c2", "ours")), says("done"))
    tools = Does(c2="from here")
    async with hosted(model=model, tools=tools) as host:
        s = await host.spawn(Responding, "s1", offered=[schema("ours")])
        first = await asked(host, s, "go", tools=[schema("theirs")], own=True)
        assert tools.calls == ["c2"]
        assert first["span"]["limit"] == "client"
        answer = first["output"][0]
        assert [call["id"] for call in answer["message"]["tool_calls"]] == ["c2", "c1"]
        assert answer["own"] == 1
        await asked(host, s, [tool("c1", "from there")], own=True, tools=[schema("theirs")])
    assert model.asked[1][0][2:] == [tool("c2", "from here"), tool("c1", "from there")]
    assert [each["function"]["name"] for each in model.asked[0][1]["tools"]] == ["ours", "theirs"]


async def test_a_request_that_is_sent_twice_is_one_turn_after_a_restart_too() -> None:
    """Invariant 30."""
    log = MemoryLog()
    async with hosted(log) as host:
        s = await host.spawn(Responding, "s1", request="r0")
        assert await s.respond([user("one")], how(), request="r1") == {"turn": 1}
        await over(host, s, 1)
    async with hosted(log) as host:
        s = await host.spawn(Responding, "s1", request="r0")
        assert await s.respond([user("one")], how(), request="r1") == {"turn": 1}
        assert await s.history == ["one"]


async def test_what_waits_in_the_queue_changes_nothing_before_it_begins() -> None:
    model = Waits()
    async with hosted(model=model) as host, trio.open_nursery() as nursery:
        s = await host.spawn(Responding, "s1")
        await s.respond([user("one")], how(system="A"))
        await s.respond([user("two")], how(system="B"), after=1)
        assert await s.status_of(2) == "queued"
        assert (await s.messages)[0]["content"] == "A"
        await s.interrupt(2)
        assert (await s.response(2))["status"] == "cancelled"
        await s.interrupt(1)
        assert (await over(host, s, 1))["status"] == "cancelled"
        nursery.cancel_scope.cancel()


async def test_a_turn_whose_model_fails_has_failed_and_can_be_continued() -> None:
    model = Says(LookupError("no such model"), says("well"))
    async with hosted(model=model) as host:
        s = await host.spawn(Responding, "s1")
        failed = await asked(host, s, "one")
        assert failed["status"] == "failed"
        assert failed["span"]["error"] == {"error": "LookupError", "message": "no such model"}
        assert said(await asked(host, s, "two", after=1)) == ["well"]


async def test_a_session_by_requests_is_talked_to_as_any_other() -> None:
    async with hosted() as host:
        s = await host.spawn(Responding, "s1")
        await asked(host, s, "one", system="Be brief.")
        assert await s.turn("two") == "two"
        await s.configure(system="Be long.")
        assert await s.turn("three") == "three"
        assert said(await s.response(2)) == ["two"]
        assert [message["role"] for message in await s.messages] == ["system", *["user", "assistant"] * 3]
        assert (await s.messages)[0]["content"] == "Be long."
        assert said(await asked(host, s, "four", after=3)) == ["four"]


async def test_messages_keep_their_numbers_when_others_are_removed() -> None:
    async with hosted() as host:
        s = await host.spawn(Responding, "s1")
        assert await s.add([user("zero"), says("one")["message"], user("two")]) == {"from": 0, "to": 3}
        assert await s.remove(1) is True
        assert await s.remove(1) is False
        assert [(told["number"], told["message"]["content"]) for told in await s.listed(0, 10)] == [
            (0, "zero"),
            (2, "two"),
        ]
        turn = await asked(host, s, "three", system="Now with instructions.")
        assert [told["number"] for told in turn["output"]] == [4]
        assert [told["number"] for told in await s.listed(1, 4)] == [2, 3]
        assert await s.extent() == 5


async def test_with_a_call_goes_what_came_of_it() -> None:
    async with hosted() as host:
        s = await host.spawn(Responding, "s1")
        await s.add([user("a"), says("b", calls("c1"), calls("c2"))["message"], tool("c1", "x"), tool("c2", "y")])
        assert await s.remove(1, 1) is True
        assert [told["message"] for told in await s.listed(1, 9)] == [
            says("b", calls("c2"))["message"],
            tool("c2", "y"),
        ]
        assert await s.remove(1) is True
        assert [told["message"]["content"] for told in await s.listed(0, 9)] == ["a"]


async def test_calls_that_were_added_wait_for_outcomes_that_are_added_next() -> None:
    async with hosted() as host:
        s = await host.spawn(Responding, "s1")
        await s.add([user("a"), says(None, calls("c1"))["message"]])
        await s.add([tool("c1", "x")])
        await s.add([says("b")["message"]])
        assert [told["message"]["role"] for told in await s.listed(0, 9)] == ["user", "assistant", "tool", "assistant"]


async def test_nothing_is_added_while_a_turn_runs() -> None:
    model = Waits()
    async with hosted(model=model) as host:
        s = await host.spawn(Responding, "s1")
        await s.respond([user("one")], how())
        with pytest.raises(TurnRuns, match="turn 1 is not over"):
            await s.add([user("two")])
        await s.interrupt(1)
        await s.add([user("two")])


async def test_what_is_forgotten_is_told_no_more() -> None:
    async with hosted() as host:
        s = await host.spawn(Responding, "s1")
        await asked(host, s, "one")
        assert await s.forget(1) is True
        assert await s.forget(1) is False
        assert await s.response(1) is None
        assert await s.response(2) is None


async def test_a_turn_under_way_goes_on_after_a_restart() -> None:
    log, model = MemoryLog(), Waits()
    async with hosted(log, model=model) as host:
        s = await host.spawn(Responding, "s1")
        await s.respond([user("one")], how())
        await model.began.wait()
    async with hosted(log, model=Says(says("here"))) as host:
        s = await host.get("s1")
        assert said(await over(host, s, 1)) == ["here"]


def test_what_a_client_sends_many_of_is_looked_at_once() -> None:
    """Each name and id is compared with none of the others: 4 MB of them would be minutes."""
    compared = 0

    class Name(str):
        __slots__ = ()
        __hash__ = str.__hash__

        def __eq__(self, other: object) -> bool:
            nonlocal compared
            compared += self is not other
            return str.__eq__(self, other)

    names = [Name(f"n{n}") for n in range(300)]
    check_how(how(tools=[schema(name) for name in names]))
    answer = {"role": "assistant", "content": None, "tool_calls": [{"id": name} for name in names]}
    outcomes = [{"role": "tool", "content": "", "tool_call_id": name} for name in names[1:]]
    assert open_calls([answer, *outcomes]) == names[:1]
    assert compared < 3000
    with pytest.raises(BadRequest, match="two tools of the name 'n7'"):
        check_how(how(tools=[schema(name) for name in (*names, "n7")]))
