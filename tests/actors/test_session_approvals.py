"""Tool calls of a session that wait for a person."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from actors.session import NOT_RUN, Session, TurnInterrupted
from actors.tools import Tools, tool
from dataspace.log.memory import MemoryLog
from keeve.testing.hosts import memory_host
from tests.actors.scenes import Says, calls, says
from tests.actors.scenes import tool as message


class Shop:
    """Tools, one of which a person has to approve of, and what was done with them."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.tools = Tools(self.drop, self.look)

    @tool(approval=True)
    async def drop(self, table: str) -> str:
        """Drop a table."""
        self.done.append(table)
        return f"dropped {table}"

    async def look(self) -> str:
        """Look around."""
        return "nothing here"


def model() -> Says:
    wanted = says("well", calls("a", "drop", table="users"), calls("b", "look"))
    return Says(wanted, says("done"), says("next"), says("last"))


@asynccontextmanager
async def a_host(shop: Shop, model: Says, log: MemoryLog | None = None) -> AsyncIterator[Any]:
    async with memory_host(log, devices={"model": model, "tools": shop.tools}) as host:
        yield host


async def wanted(host: Any, session: str = "s1") -> None:
    """Wait until a person is asked, and the other call is over."""
    for pattern in (f'(approval-wanted 1 "{session}" . _)', f'(tool-result 1 "{session}" "b" . _)'):
        async for _ in host.observe(pattern):
            break


async def over(host: Any, label: str, n: int, session: str = "s1") -> Any:
    async for event in host.observe(f'({label} {n} "{session}" . _)'):
        return event.value.keywords
    raise AssertionError("an observation without an end has ended")


@pytest.mark.parametrize("restarts", [False, True])
async def test_a_call_waits_for_a_person_and_the_others_do_not(restarts: bool) -> None:
    shop, says, log = Shop(), model(), MemoryLog()
    async with a_host(shop, says, log) as host, trio.open_nursery() as nursery:
        s = await host.spawn(Session, "s1", tools=shop.tools)
        nursery.start_soon(s.turn, "go")
        await wanted(host)
        assert (await s.messages)[2:] == [message("b", "nothing here")]
        if not restarts:
            await (await s.approvals).approve("a")
            await over(host, "turn-done", 1)
        nursery.cancel_scope.cancel()
    if restarts:
        async with a_host(shop, says, log) as host:
            s = await host.get("s1")
            assert [each["id"] for each in await (await s.approvals).waiting()] == ["a"]
            await (await s.approvals).approve("a")
            await over(host, "turn-done", 1)
    assert shop.done == ["users"]
    assert says.asked[1][0][2:] == [message("a", "dropped users"), message("b", "nothing here")]


async def test_the_model_is_told_that_a_person_has_refused() -> None:
    shop, says = Shop(), model()
    async with a_host(shop, says) as host, trio.open_nursery() as nursery:
        s = await host.spawn(Session, "s1", tools=shop.tools, parallel=False)
        nursery.start_soon(s.turn, "go")
        async for _ in host.observe("(approval-wanted . _)"):
            break
        await (await s.approvals).refuse("a", "not that one")
        await over(host, "turn-done", 1)
    assert shop.done == []
    assert "not that one" in says.asked[1][0][2]["content"]
    assert says.asked[1][0][3] == message("b", "nothing here")


async def test_an_interrupt_leaves_nothing_to_approve_and_says_that_it_was_not_run() -> None:
    """Invariant 19."""
    shop, says = Shop(), model()
    async with a_host(shop, says) as host, trio.open_nursery() as nursery:
        s = await host.spawn(Session, "s1", tools=shop.tools)

        async def take() -> None:
            with pytest.raises(TurnInterrupted):
                await s.turn("go")

        nursery.start_soon(take)
        await wanted(host)
        assert await s.interrupt(1) == 1
        assert await (await s.approvals).waiting() == []
        assert await s.turn("again") == "done"
        assert [*host.query("(tool-unknown . _)", session="s1")] == []
    assert says.asked[1][0][2:4] == [message("a", NOT_RUN), message("b", "nothing here")]
    assert shop.done == []


async def test_a_call_that_is_given_up_right_after_the_yes_was_not_carried_out(autojump_clock: MockClock) -> None:
    """It is not durable that it is wanted, so nobody can have begun with it; and nobody is told that it may be done."""
    shop, says = Shop(), model()
    async with a_host(shop, says) as host, trio.open_nursery() as nursery:
        s = await host.spawn(Session, "s1", tools=shop.tools)
        nursery.start_soon(failing, s.turn, "go")
        await wanted(host)
        approvals, uid, turns = await s.approvals, host.sessions()[0].uid, host._engine.turns
        turns.hold([uid])
        for ask in (partial(approvals.approve, "a"), s.interrupt):
            nursery.start_soon(ask)
            await wait_all_tasks_blocked()
        turns.release([uid])
        await over(host, "turn-interrupted", 1)
        assert list(host.query("(tool-unknown . _)")) == []
        (said,) = [each.value.keywords for each in host.query('(tool-result 1 "s1" "a" . _)')]
        assert said["error"]["error"] == "EffectCancelled"
        assert message("a", NOT_RUN) in await s.messages
    assert shop.done == []


async def failing(ask: Any, *said: Any) -> None:
    with pytest.raises(TurnInterrupted):
        await ask(*said)


async def test_a_fork_waits_for_a_word_of_its_own_and_takes_no_input_of_its_parents() -> None:
    """What waits for a person is cloned; the inputs that wait stay with the parent."""
    shop, says = Shop(), model()
    async with a_host(shop, says) as host, trio.open_nursery() as nursery:
        s = await host.spawn(Session, "s1", tools=shop.tools)
        nursery.start_soon(s.turn, "go")
        await wanted(host)
        nursery.start_soon(s.turn, "and then")
        nursery.start_soon(s.steer, "faster")
        async for _ in host.observe("(steer . _)"):
            break
        twin = await s.fork(into="s2")
        await (await twin.approvals).approve("a")
        assert (await over(host, "turn-done", 1, "s2"))["output"] == "done"
        assert [event.value.fields[0] for event in host.query("(turn-failed . _)", session="s2")] == [2]
        assert [each["content"] for each in await twin.messages if each["role"] == "user"] == ["go"]
        assert (await twin.status())["running"] is None
        assert await (await s.approvals).waiting() != []
        await (await s.approvals).refuse("a")
        await over(host, "turn-done", 2)
        nursery.cancel_scope.cancel()
    assert shop.done == ["users"]


async def test_an_interrupt_in_a_fork_that_waits_begins_none_of_the_parents_inputs() -> None:
    """Invariant 19."""
    shop, says = Shop(), model()
    async with a_host(shop, says) as host, trio.open_nursery() as nursery:
        s = await host.spawn(Session, "s1", tools=shop.tools)
        nursery.start_soon(s.turn, "go")
        await wanted(host)
        nursery.start_soon(s.turn, "and then")
        async for _ in host.observe('(turn 2 "s1" . _)'):
            break
        twin = await s.fork(into="s2")
        assert await twin.interrupt(1) == 1
        assert (await twin.status())["running"] is None
        assert await twin.turn("other") == "done"
        assert [each["content"] for each in await twin.messages if each["role"] == "user"] == ["go", "other"]
        nursery.cancel_scope.cancel()
