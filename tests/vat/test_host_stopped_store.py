"""A store that has stopped, and a host that has ended: nothing hangs, and whoever waits is told."""

from __future__ import annotations

from typing import Any

import pytest
import trio
import trio.testing

from dataspace.log.files import SyncFailed
from dataspace.log.store import StoreFailed
from keeve.testing.chains import Chain
from tests.vat.hosts import (
    Caller,
    Counter,
    Worker,
    World,
    settled,
    store_of,
)
from vat.crank.vat import Vat
from vat.host.asking import NotRunning
from vat.host.care import Care
from vat.host.host import Host
from vat.host.residents import Job


async def test_a_failed_sync_stops_writing_for_good_and_every_caller_is_told(world: World) -> None:
    """Invariant 12: A failed fsync is not retried and nothing after it is acknowledged."""
    async with world.host() as host:
        s, other = await host.spawn(Counter, "s"), await host.spawn(Counter, "other")
        await s.add("kept")
        store = store_of(host)
        store.failing.append(SyncFailed("log", "I/O error"))
        attempts = 0
        append = store.append

        def count(batch: Any) -> None:
            nonlocal attempts
            attempts += 1
            append(batch)

        store.append = count
        for ref in (s, other, s):
            with pytest.raises(StoreFailed, match="open it again"):
                await ref.add()
        with pytest.raises(StoreFailed):
            await host.spawn(Counter, "new")
        with pytest.raises(StoreFailed):
            await s.fork()
        with pytest.raises(StoreFailed):
            await s.snapshot()
        with pytest.raises(StoreFailed):
            await host.delete("other")
        assert attempts == 1
        assert await s.seen == ["kept"]  # it can still be read
    async with world.host() as host:
        assert await (await host.get("s")).seen == ["kept"]
        assert [row.id for row in host.sessions()] == ["other", "s"]


async def test_who_waits_for_a_promise_is_told_when_the_store_has_stopped(world: World) -> None:
    """What they wait for could not be recorded any more."""
    world.tool.open = False
    async with world.host() as host, trio.open_nursery() as nursery:
        w, s = await host.spawn(Worker, "w"), await host.spawn(Counter, "s")
        told: list[str] = []

        async def ask() -> None:
            try:
                await w.work("again", 1)
            except StoreFailed as error:
                told.append(type(error).__name__)

        nursery.start_soon(ask)
        await settled(host)
        store_of(host).failing.append(SyncFailed("log", "I/O error"))
        with pytest.raises(StoreFailed):
            await s.add()
        await trio.testing.wait_all_tasks_blocked()
        assert told == ["StoreFailed"]
        nursery.cancel_scope.cancel()


async def test_a_host_whose_store_has_stopped_takes_nothing_up(world: World) -> None:
    """What comes of it could not be recorded, and so it would come again and again."""
    async with world.host() as host:
        c, s = await host.spawn(Caller, "c"), await host.spawn(Counter, "s")
        store = store_of(host)
        taken_up: list[bytes] = []
        host._engine.mail.take_up = lambda resident: taken_up.append(resident.uid)
        store.failing.append(SyncFailed("log", "I/O error"))
        with pytest.raises(StoreFailed):
            await c.burst(s, "add", 1)
        assert await c.answers == []  # loaded again, to be read
        assert taken_up == []


async def undetached(world: World, host: Host) -> Any:
    """A fork whose first crank, which breaks what its parent waits for, was not made yet."""
    world.tool.open = False
    w = await host.spawn(Worker, "w")
    turns = host._engine.turns
    post = turns.post
    turns.post = lambda uid, job: post(uid, job) if uid == w._uid else None
    async with trio.open_nursery() as nursery:
        nursery.start_soon(w.work, "once", 1)
        await trio.testing.wait_all_tasks_blocked()
        twin = await w.fork(into="twin")
        nursery.cancel_scope.cancel()
    turns.post = post
    world.tool.gate.set()
    return twin


async def test_a_fork_is_not_detached_where_that_cannot_be_recorded(world: World) -> None:
    """It can be read, as the others can, and its callers are told."""
    async with world.host() as host:
        twin, s = await undetached(world, host), await host.spawn(Counter, "s")
        store_of(host).failing.append(SyncFailed("log", "I/O error"))
        with pytest.raises(StoreFailed):
            await s.add()
        with trio.fail_after(5):
            assert await twin.results == []
            with pytest.raises(StoreFailed):
                await twin.work("once", 2)


async def test_what_waits_behind_something_that_cannot_be_done_first_is_told(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It would fail at each load, and so nobody would ever have a turn."""

    def fail(vat: Vat) -> Any:
        raise ZeroDivisionError("a mistake of the runtime")

    async with world.host() as host:
        twin = await undetached(world, host)
        with monkeypatch.context() as patch:
            patch.setattr(Care, "first", lambda *_: [Job(None, None, fail)])
            with trio.fail_after(5), pytest.raises(ZeroDivisionError, match="a mistake of the runtime"):
                await twin.results
        assert caplog.text.count("Traceback") == 1
        assert await twin.results == ["Forked"]


async def test_a_record_of_the_stores_own_is_refused_when_the_host_has_ended(world: World) -> None:
    """Whoever waits for one is told, and does not wait for ever."""
    chain = Chain("store")
    told: list[str] = []
    async with trio.open_nursery() as nursery:

        async def put() -> None:
            try:
                await commits.put(chain.record("late"))
            except NotRunning:
                told.append("not running")

        async with world.host() as host:
            commits = host._engine.commits
            commits.writer.enqueue = lambda *records: None  # it never becomes durable
            nursery.start_soon(put)
            await trio.testing.wait_all_tasks_blocked()
        await put()
        nursery.cancel_scope.deadline = trio.current_time() + 5
    assert told == ["not running"] * 2
