"""What fails and nobody waits for is told: in the host's log, and, of a fiber, by a fact."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from dataspace.log.memory import MemoryLog
from keeve.testing import memory_host
from tests.vat.hosts import Tool, settled
from vat.heap.refs import cancel
from vat.host.host import Host
from vat.objects.actor import Actor, actor


@actor("unheard.clerk", version=1)
class Clerk(Actor):
    said: str = ""
    kept: Any = None

    async def work(self) -> str:
        return str(await self.device("tool").again("bad"))

    async def rest(self) -> None:
        await self.sleep(1000)

    def begin(self) -> None:
        self.ref.work()

    def begin_with_care(self) -> None:
        self.ref.work().then(None, broken=self.hear)

    def begin_and_keep(self) -> None:
        self.kept = self.ref.work()

    def begin_then(self) -> None:
        self.ref.work().then(self.hear)

    def give_up(self) -> None:
        cancel(self.ref.rest(), TimeoutError("enough"))

    def send(self) -> None:
        self.ref.fail()

    def fail(self) -> None:
        raise ValueError("not so")

    def hear(self, what: Any) -> None:
        self.said = str(what)


@actor("unheard.clerk", version=2)
class NewClerk(Actor):
    said: str = ""


async def told(host: Host, method: str) -> list[Any]:
    """What is stated of fibers that failed, when a clerk has done that."""
    clerk = await host.spawn(Clerk, "s1")
    await getattr(clerk, method)()
    await settled(host)
    return [event.value for event in host.query("(fiber-failed . _)")]


def warnings(caplog: pytest.LogCaptureFixture, of: str) -> list[str]:
    return [
        record.getMessage()
        for record in caplog.records
        if record.levelno == logging.WARNING and of in record.getMessage()
    ]


@pytest.mark.parametrize("method", ["begin", "begin_then"])
async def test_a_fiber_that_fails_and_nobody_waits_for_says_so(method: str, caplog: pytest.LogCaptureFixture) -> None:
    async with memory_host(actors=[Clerk], devices={"tool": Tool()}) as host:
        [fact] = await told(host, method)
    assert list(fact.fields) == [1, "s1"]
    assert fact.keywords["method"] == "work"
    assert fact.keywords["type"] == "unheard.clerk"
    assert dict(fact.keywords["error"]) == {"error": "ValueError", "message": "the tool is broken"}
    [said] = warnings(caplog, "nobody waits")
    assert "session s1" in said
    assert "unheard.clerk.work (actor 1): ValueError: the tool is broken" in said


@pytest.mark.parametrize("method", ["begin_with_care", "begin_and_keep", "give_up"])
async def test_one_that_somebody_reacts_to_or_that_was_given_up_is_not_told_of(
    method: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with memory_host(actors=[Clerk], devices={"tool": Tool()}) as host:
        assert await told(host, method) == []
    assert warnings(caplog, "nobody waits") == []


async def test_a_send_that_fails_and_nobody_waits_for_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    async with memory_host(actors=[Clerk]) as host:
        assert await told(host, "send") == []
    [said] = warnings(caplog, "nobody waits")
    assert "unheard.clerk.fail (actor 1): ValueError: not so" in said


async def test_a_fiber_that_an_upgrade_breaks_is_told_of(caplog: pytest.LogCaptureFixture) -> None:
    """Invariant 16: nobody waits for it after a restart."""
    log, tool = MemoryLog(), Tool()
    tool.open = False
    async with memory_host(log, actors=[Clerk], devices={"tool": tool}) as host:
        await told(host, "begin")
    async with memory_host(log, actors=[NewClerk], devices={"tool": tool}) as host:
        await settled(host)
        [fact] = [event.value for event in host.query("(fiber-failed . _)")]
        assert fact.keywords["error"]["error"] == "FiberDiverged"
    assert "FiberDiverged" in warnings(caplog, "a method that waited is over")[0]
