"""What an earlier host has left of a device that this one was not given: it waits, whatever else goes on."""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import Any

import pytest
import trio

from actors.models import EchoModel
from actors.session import Session
from dataspace.errors import KeeveError
from dataspace.log.memory import MemoryLog
from keeve.testing import memory_host
from tests.vat.hosts import Tool, Worker, World, settled
from vat.devices.devices import Effect, effect
from vat.host.host import Host
from vat.host.settings import Settings


class Slow:
    """A model that never comes to an answer."""

    @effect(on_crash="retry")
    async def complete(self, effect: Effect, messages: Any, **options: Any) -> None:
        await trio.sleep_forever()


async def asked(host: Host, ref: Any, method: str, *args: Any) -> None:
    """Ask for something, and go away while nothing has come of it."""

    async def ask() -> None:
        with suppress(KeeveError):
            await getattr(ref, method)(*args)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask)
        await settled(host)
        nursery.cancel_scope.cancel()


async def said(ref: Any) -> list[Any]:
    """All that was said in a session."""
    return [message["content"] for message in await ref.messages]


async def left(log: MemoryLog, method: str = "again") -> None:
    """A worker that waits for a tool, in a store whose host has ended."""
    tool = Tool()
    tool.open = False
    async with memory_host(log, actors=[Worker], devices={"tool": tool}, settings=Settings(grace=0.0)) as host:
        await asked(host, await host.spawn(Worker, "s1"), "work", method, 1)
        assert tool.calls


async def test_what_was_asked_of_a_device_waits_for_a_host_that_has_it(caplog: pytest.LogCaptureFixture) -> None:
    """Invariant 13: a host without the device neither runs nor breaks it."""
    log = MemoryLog()
    await left(log)
    with caplog.at_level(logging.WARNING, "keeve"):
        async with memory_host(log, actors=[Worker]) as host:
            await settled(host)
            assert [(each.device, each.state) for each in host.effects()] == [("tool", "wanted")]
            assert await (await host.get("s1")).results == []
    [said] = [record.getMessage() for record in caplog.records]
    assert "s1" in said
    assert "tool.again" in said
    assert "devices={'tool': ...}" in said
    async with memory_host(log, actors=[Worker], devices={"tool": Tool()}) as host:
        await settled(host)
        assert await (await host.get("s1")).results == ["again 1"]


async def test_what_had_started_of_an_absent_device_stays_for_a_host_that_may_hold_it() -> None:
    """Invariant 13: what nobody knows is not broken by a host that knows no policy for it."""
    log = MemoryLog()
    await left(log, "once")
    async with memory_host(log, actors=[Worker]) as host:
        await settled(host)
        assert [(each.device, each.state) for each in host.effects()] == [("tool", "unknown")]
    async with memory_host(log, actors=[Worker], devices={"tool": Tool()}) as host:
        await settled(host)
        assert await (await host.get("s1")).results == ["OutcomeUnknown"]


async def test_what_waits_for_a_device_can_be_settled_by_hand() -> None:
    log = MemoryLog()
    await left(log)
    async with memory_host(log, actors=[Worker]) as host:
        await settled(host)
        [waiting] = host.effects()
        await host.resolve(waiting.id, value="by hand")
        await settled(host)
        assert host.effects() == []
        assert await (await host.get("s1")).results == ["by hand"]


async def test_what_is_called_now_of_a_device_that_there_is_not_breaks_at_once() -> None:
    log = MemoryLog()
    await left(log)
    async with memory_host(log, actors=[Worker]) as host:
        assert await (await host.get("s1")).work("again", 2) == "UnknownDevice"


async def test_the_echo_that_stands_in_answers_no_question_that_was_put_to_another_model() -> None:
    log = MemoryLog()
    async with memory_host(log, devices={"model": Slow()}) as host:
        await asked(host, await host.spawn(Session, "s1"), "turn", "what is it?")
    async with memory_host(log) as host:
        await settled(host)
        assert [each.device for each in host.effects()] == ["model"]
        assert await said(await host.get("s1")) == ["what is it?"]
        assert await (await host.spawn(Session, "s2")).turn("now") == "now"
    async with memory_host(log, devices={"model": EchoModel()}) as host:
        await settled(host)
        assert await said(await host.get("s1")) == ["what is it?", "what is it?"]


async def test_the_echo_that_stands_in_answers_what_is_asked_now_though_the_session_left_memory() -> None:
    log = MemoryLog()
    async with memory_host(log) as host:
        s = await host.spawn(Session, "s1")
        uid = host._engine.dataspace.catalog.session("s1").uid
        runner = host._engine.errands.runner
        want, runner.want = runner.want, lambda wanted: None
        await asked(host, s, "turn", "hello")
        runner.want = want
        host._engine.errands._running.clear()
        host._engine._wake(uid)
        await settled(host)
        assert await said(s) == ["hello", "hello"]


async def test_a_device_that_was_forgotten_is_told_to_who_runs_the_host(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """Those who ask may be a model, which cannot do anything about it."""
    async with world.host() as host:
        w = await host.spawn(Worker, "w")
        assert await w.use("mailer", "send") == "UnknownDevice"
    said = "session w wants mailer.send, and this host has no such device: give it with devices={'mailer'"
    assert said in caplog.text
