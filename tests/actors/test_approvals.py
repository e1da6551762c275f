"""Calls that wait for a person: through a toolbox, over restarts, forks and eviction, and what the log says of them."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
import trio.testing

from actors.approvals import Approvals, NothingWaits
from actors.toolbox import Toolbox
from actors.tools import Tools, tool
from dataspace.log.memory import MemoryLog
from keeve.testing.hosts import memory_host
from tests.actors.toolcalls import a_call
from vat.errors import BadCall
from vat.heap.refs import cancel
from vat.objects.actor import Actor, actor
from vat.objects.collections import List


@actor("approvals.clerk", version=1)
class Clerk(Actor):
    tools: Toolbox
    heard: List[Any]
    asked: Any = None
    hired: Any = None

    def go(self, call: Any) -> None:
        promise = self.tools.call(call)
        self.asked = promise
        promise.then(self.done, call, broken=self.done)

    def done(self, outcome: Any, call: Any) -> None:
        self.heard.append(tool(call, outcome)["content"])

    def hire(self) -> None:
        self.hired = self.spawn(Clerk, tools=Shop().tools.schemas)

    def forget(self) -> bool:
        return cancel(self.asked, LookupError("never mind"))

    def names(self) -> list[str]:
        return [schema["function"]["name"] for schema in self.tools.view()]

    def offer(self, schemas: Any) -> None:
        self.tools.replace(schemas)


class Shop:
    """Tools, and what was done with them."""

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


@asynccontextmanager
async def a_host(shop: Shop, log: MemoryLog | None = None) -> AsyncIterator[Any]:
    async with memory_host(log, actors=[Clerk], devices={"tools": shop.tools}) as host:
        yield host


async def heard(host: Any, clerk: Any, count: int = 1) -> Any:
    """What the clerk has heard, when it has heard so much."""
    with trio.fail_after(30):
        while len(found := await clerk.heard) < count:  # noqa: ASYNC110 - the host has no event for it
            await trio.sleep(0.005)
    return found


async def waiting(clerk: Any, count: int = 1) -> Any:
    """The calls that wait, when there are so many."""
    box = await clerk.tools
    with trio.fail_after(30):
        while len(found := await box.waiting()) < count:  # noqa: ASYNC110 - as above
            await trio.sleep(0.005)
    return found


DROP = a_call("drop", {"table": "users"}, "c1")


async def test_a_tool_without_approval_is_called_at_once() -> None:
    async with a_host(Shop()) as host:
        clerk = await host.spawn(Clerk, "clerk", tools=Shop().tools)
        await clerk.go(a_call("look"))
        assert await heard(host, clerk) == ["nothing here"]


async def test_a_call_waits_until_a_person_has_approved_of_it() -> None:
    shop = Shop()
    async with a_host(shop) as host:
        clerk = await host.spawn(Clerk, "clerk", tools=shop.tools)
        await clerk.go(DROP)
        [asked] = await waiting(clerk)
        assert (asked["id"], asked["name"], asked["arguments"]) == ("c1", "drop", '{"table": "users"}')
        assert shop.done == []
        await (await clerk.tools).approve("c1")
        assert await heard(host, clerk) == ["dropped users"]
        assert await (await clerk.tools).waiting() == []


async def test_a_call_that_waits_for_a_person_is_no_failure_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="keeve")
    shop = Shop()
    async with a_host(shop) as host:
        clerk = await host.spawn(Clerk, "clerk", tools=shop.tools)
        await clerk.go(DROP)
        await waiting(clerk)
    assert "session clerk: drop was not called yet: wait until a person has approved of it" in caplog.text
    assert "Traceback" not in caplog.text


async def test_what_is_refused_is_not_called_and_the_model_is_told_why() -> None:
    shop = Shop()
    async with a_host(shop) as host:
        clerk = await host.spawn(Clerk, "clerk", tools=shop.tools)
        await clerk.go(DROP)
        await waiting(clerk)
        await (await clerk.tools).refuse("c1", "too dangerous")
        assert await heard(host, clerk) == [
            "This call failed: CallRefused: a person has refused this call, so it was not made: too dangerous"
        ]
    assert shop.done == []


async def test_a_call_that_waits_survives_and_a_fork_has_its_own() -> None:
    shop, log = Shop(), MemoryLog()
    async with a_host(shop, log) as host:
        clerk = await host.spawn(Clerk, "clerk", tools=shop.tools)
        await clerk.go(DROP)
        await waiting(clerk)
    async with a_host(shop, log) as host:
        clerk = await host.get("clerk")
        twin = await clerk.fork(into="twin")
        await (await twin.tools).refuse("c1")
        assert "refused" in (await heard(host, twin))[0]
        assert await clerk.heard == []
        await (await clerk.tools).approve("c1")
        assert await heard(host, clerk) == ["dropped users"]
    assert shop.done == ["users"]


async def test_calls_of_one_id_wait_under_ids_of_their_own() -> None:
    shop = Shop()
    async with a_host(shop) as host:
        clerk = await host.spawn(Clerk, "clerk", tools=shop.tools)
        await clerk.go(DROP)
        await waiting(clerk)
        await clerk.go(a_call("drop", {"table": "rows"}, "c1"))
        both = await waiting(clerk, 2)
        assert [each["id"] for each in both] == ["c1", "c1.2"]
        await (await clerk.tools).approve("c1.2")
        assert await heard(host, clerk) == ["dropped rows"]


async def test_a_call_that_was_given_up_waits_no_longer() -> None:
    shop = Shop()
    async with a_host(shop) as host:
        clerk = await host.spawn(Clerk, "clerk", tools=shop.tools)
        await clerk.go(DROP)
        await waiting(clerk)
        assert await clerk.forget()
        assert await heard(host, clerk) == ["This call failed: LookupError: never mind"]
        box = await clerk.tools
        assert await box.waiting() == []
        with pytest.raises(NothingWaits):
            await box.approve("c1")
        [over] = host.query('(approval-withdrawn 0 "clerk" "c1" . _)')
        assert over.value.keywords == {"error": {"error": "LookupError", "message": "never mind"}}
    assert shop.done == []


async def test_a_word_that_is_said_again_is_for_no_other_call() -> None:
    """Not for one of the same id, by whichever actor of the session, after a restart, or in a fork."""
    shop, log = Shop(), MemoryLog()
    async with a_host(shop, log) as host:
        clerk = await host.spawn(Clerk, "clerk", tools=shop.tools)
        await clerk.hire()
        await clerk.go(DROP)
        await waiting(clerk)
        await (await clerk.tools).approve("c1")
    async with a_host(shop, log) as host:
        clerk = await host.get("clerk")
        twin, other = await clerk.fork(into="twin"), await clerk.hired
        for each, id in ((clerk, "c1.2"), (twin, "c1.2"), (other, "c1.1")):
            await each.go(a_call("drop", {"table": "rows"}, "c1"))
            [asked] = await waiting(each)
            assert asked["id"] == id
            with pytest.raises(NothingWaits):
                await (await each.tools).approve("c1")
    assert shop.done == ["users"]


async def test_a_word_on_what_does_not_wait_is_refused() -> None:
    shop = Shop()
    async with a_host(shop) as host:
        clerk = await host.spawn(Clerk, "clerk", tools=shop.tools)
        await clerk.go(DROP)
        await waiting(clerk)
        box = await clerk.tools
        with pytest.raises(NothingWaits, match="no call 'c2' waits for approval; these do: c1"):
            await box.approve("c2")
        await box.approve("c1")
        with pytest.raises(NothingWaits, match="waits for approval; none does"):
            await box.refuse("c1")


async def test_what_was_asked_and_said_is_in_the_log() -> None:
    shop = Shop()
    async with a_host(shop) as host:
        clerk = await host.spawn(Clerk, "clerk", tools=shop.tools)
        await clerk.go(DROP)
        await waiting(clerk)
        box = await clerk.tools
        await box.approve("c1")
        await clerk.go(DROP)
        await waiting(clerk)
        await box.refuse("c1.2", "no")
        [first] = host.query('(approval-wanted 0 "clerk" "c1" . _)')
        assert first.value.keywords == {"name": "drop", "arguments": '{"table": "users"}'}
        [given] = host.query('(approval-given 0 "clerk" "c1" . _)')
        assert "by" in given.value.keywords
        [refused] = host.query('(approval-refused 0 "clerk" "c1.2" . _)')
        assert refused.value.keywords["reason"] == "no"


async def test_a_ref_to_it_only_decides() -> None:
    shop = Shop()
    async with a_host(shop) as host:
        clerk = await host.spawn(Clerk, "clerk", tools=shop.tools)
        box = await clerk.tools
        assert (await box.describe())["methods"] == ["approve", "refuse", "waiting"]
        decide = await box.narrow("approve")
        await clerk.go(DROP)
        await waiting(clerk)
        with pytest.raises(PermissionError):
            await decide.refuse("c1")
        await decide.approve("c1")
        assert await heard(host, clerk) == ["dropped users"]


async def test_a_toolbox_offers_what_it_was_given_last() -> None:
    shop = Shop()
    async with a_host(shop) as host:
        clerk = await host.spawn(Clerk, "clerk", tools=shop.tools)
        assert await clerk.names() == ["drop", "look"]
        await clerk.offer(shop.tools.schemas[1:])
        assert await clerk.names() == ["look"]
        assert await (await host.spawn(Clerk, "bare")).names() == []


@actor("approvals.traveller", version=1)
class Traveller(Actor):
    approvals: Approvals
    count: int = 0

    async def travel(self, what: Any) -> bool:
        self.count += 1
        return bool(await self.approvals.ask(what))


@pytest.mark.parametrize(
    "what", ["may I?", {"id": "t1"}, {"id": 7, "function": {"name": "travel"}}, {"id": "t1", "function": {"name": 7}}]
)
async def test_what_is_asked_for_in_another_form_than_a_calls_is_refused_by_name(what: Any) -> None:
    async with memory_host(actors=[Traveller]) as host:
        traveller = await host.spawn(Traveller, "t1")
        with pytest.raises(BadCall, match="in the form of a tool call: give it an id and a name"):
            await traveller.travel(what)
        assert await traveller.count == 0
        assert list(host.query("(approval-wanted . _)")) == []


async def test_a_call_that_waits_does_so_also_where_its_tool_wants_no_approval_any_more() -> None:
    log, shop = MemoryLog(), Shop()
    async with memory_host(log, actors=[Clerk], devices={"tools": shop.tools}) as host:
        clerk = await host.spawn(Clerk, "clerk", tools=shop.tools)
        await clerk.go(a_call("drop", {"table": "users"}))
        async for _ in host.observe("(approval-wanted . _)"):
            break

    @tool
    async def drop(table: str) -> None:
        """Drop a table."""
        shop.done.append(table)

    async with memory_host(log, actors=[Clerk], devices={"tools": Tools(drop)}) as host:
        clerk = await host.get("clerk")
        [waiting] = await (await clerk.tools).waiting()
        assert (waiting["name"], shop.done) == ("drop", [])
        await (await clerk.tools).approve(waiting["id"])
        while not await clerk.heard:
            await trio.testing.wait_all_tasks_blocked()
        assert shop.done == ["users"]
