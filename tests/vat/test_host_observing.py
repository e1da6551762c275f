"""Observers of a host: actors that observe, and handlers in tasks of their own."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import trio
import trio.testing

from dataspace.errors import KeeveError
from dataspace.log.files import DiskFull
from dataspace.observe.dataspace import ObserverFailed
from tests.vat.hosts import Counter, Watcher, World, settled, store_of
from vat.host.subscriptions import FAR

SAID = '(test.said "s1" _)'


async def said(host: Any, *words: str) -> None:
    s = await host.get("s1")
    for word in words:
        await s.state(word)


async def test_an_actor_hears_what_was_said_and_what_is_said(either: World) -> None:
    async with either.host() as host:
        await host.spawn(Counter, "s1")
        await said(host, "a", "b")
        w = await host.spawn(Watcher, "w")
        await w.watch(SAID)
        await said(host, "c")
        await settled(host)
        assert await w.heard == [["s1", "a"], ["s1", "b"], ["s1", "c"]]


async def test_an_actor_that_observes_from_the_head_hears_only_what_comes(world: World) -> None:
    async with world.host() as host:
        await host.spawn(Counter, "s1")
        await said(host, "a")
        w = await host.spawn(Watcher, "w")
        await w.watch(SAID, "head")
        await said(host, "b")
        await settled(host)
        assert await w.heard == [["s1", "b"]]


@pytest.mark.parametrize("pause", range(0, 24, 3))
async def test_each_event_takes_effect_once_whatever_dies(either: World, pause: int) -> None:
    """Invariant 31: Past and live, any interruption: in order, without gap or duplicate."""
    words: list[str] = []
    async with either.host(dies=True) as host:
        await host.spawn(Counter, "s1")
        await (await host.spawn(Watcher, "w")).watch(SAID)
    for life in range(4):
        async with either.host(dies=True) as host:
            new = [f"{life}.{n}" for n in range(5)]
            await said(host, *new)
            words += new
            for _ in range(pause):
                await trio.lowlevel.checkpoint()
    async with either.host() as host:
        await settled(host)
        assert [word for _, word in await (await host.get("w")).heard] == words


async def test_each_event_takes_effect_once_whatever_batch_fails(world: World, autojump_clock: Any) -> None:
    async with world.host() as host:
        await host.spawn(Counter, "s1")
        w = await host.spawn(Watcher, "w")
        await w.watch(SAID)
        for word in "abcdef":
            await said(host, word)
            store_of(host).failing.append(DiskFull("log", "no space", True))
            await trio.sleep(3)
            await settled(host)
            store_of(host).failing.clear()
        assert [word for _, word in await w.heard] == list("abcdef")


async def test_a_subscription_that_ended_hears_nothing_more(either: World) -> None:
    async with either.host() as host:
        await host.spawn(Counter, "s1")
        w = await host.spawn(Watcher, "w")
        await w.watch(SAID)
        await said(host, "a")
        await settled(host)
        await w.unwatch(SAID)
        await said(host, "b")
        await settled(host)
        assert await w.heard == [["s1", "a"]]
        assert host._engine.subscriptions._tasks == {}
    async with either.host() as host:
        assert host.sessions("w")[0].pending == 0
        await said(host, "c")
        assert await (await host.get("w")).heard == [["s1", "a"]]


async def test_a_deleted_sessions_subscriptions_end(world: World) -> None:
    async with world.host() as host:
        await host.spawn(Counter, "s1")
        w = await host.spawn(Watcher, "w")
        await w.watch(SAID)
        await host.delete("w")
        await said(host, "a")
        await settled(host)
        assert host._engine.subscriptions._tasks == {}


async def test_a_fork_hears_nothing_for_its_parent(either: World) -> None:
    """Invariant 34: Restore and fork wake no observer with what it has seen."""
    async with either.host() as host:
        await host.spawn(Counter, "s1")
        w = await host.spawn(Watcher, "w")
        await w.watch(SAID)
        await said(host, "a")
        await settled(host)
        twin = await w.fork(into="twin")
        await host.restore_latest("w")
        await said(host, "b")
        await settled(host)
        assert await w.heard == [["s1", "a"], ["s1", "b"]]
        assert await twin.heard == [["s1", "a"]]


async def test_an_observing_actor_is_loaded_when_it_has_left_memory(world: World) -> None:
    async with world.host(vats=1) as host:
        await host.spawn(Counter, "s1")
        w = await host.spawn(Watcher, "w")
        await w.watch(SAID)
        for number in range(5):
            await host.spawn(Counter, str(number))
            await said(host, str(number))
        await settled(host)
        assert [word for _, word in await w.heard] == list("01234")


async def test_an_actor_may_observe_what_it_causes(world: World) -> None:
    async with world.host() as host:
        w = await host.spawn(Watcher, "w")
        await w.watch("(spawn ? . _)")
        await settled(host)
        assert await w.heard == [["w"]]


# Handlers


async def test_a_handler_is_called_with_each_event(either: World) -> None:
    async with either.host() as host:
        await host.spawn(Counter, "s1")
        await said(host, "a")
        heard: list[str] = []
        observer = host.observe(SAID, lambda event: heard.append(event.value.fields[1]))
        await said(host, "b")
        await settled(host)
        assert heard == ["a", "b"]
        observer.cancel()
        await observer.wait()
        await said(host, "c")
        assert heard == ["a", "b"]


async def test_for_a_handler_the_head_is_that_of_the_moment_in_which_it_was_given(world: World) -> None:
    """Invariant 31: whatever becomes durable before its task comes to it."""
    async with world.host() as host:
        await host.spawn(Counter, "s1")
        await said(host, "before")
        tasks: list[Any] = []
        engine, heard, past = host._engine, list[str](), list[str]()
        nursery, engine._nursery = engine._nursery, SimpleNamespace(start_soon=tasks.append)
        try:
            host.observe(SAID, lambda event: heard.append(event.value.fields[1]), after="head")
            host.observe(SAID, lambda event: past.append(event.value.fields[1]), until="head")
        finally:
            engine._nursery = nursery
        await said(host, "after")
        for task in tasks:
            nursery.start_soon(task)
        await settled(host)
        assert (heard, past) == (["after"], ["before"])


async def test_a_handler_that_raises_stops_alone_at_a_known_cursor(either: World) -> None:
    """Invariant 32: An observer that raises costs the others nothing; it stops at a known cursor."""
    async with either.host() as host:
        await host.spawn(Counter, "s1")
        heard: list[str] = []
        well: list[str] = []

        def handle(event: Any) -> None:
            if event.value.fields[1] == "b":
                raise ValueError("not this one")
            heard.append(event.value.fields[1])

        observer = host.observe(SAID, handle)
        host.observe(SAID, lambda event: well.append(event.value.fields[1]))
        await said(host, "a", "b", "c")
        await settled(host)
        with pytest.raises(ObserverFailed) as failed:
            await observer.wait()
        assert isinstance(failed.value.__cause__, ValueError)
        host.observe(SAID, lambda event: heard.append(event.value.fields[1]), after=failed.value.cursor)
        await settled(host)
        assert heard == ["a", "b", "c"]
        assert well == ["a", "b", "c"]


async def test_a_subscription_does_not_read_again_what_did_not_concern_it(either: World) -> None:
    async with either.host() as host:
        await host.spawn(Counter, "s1")
        w = await host.spawn(Watcher, "w")
        await w.watch('(test.said "s1" "z")')
        await said(host, *["a"] * (FAR + 10))
        await settled(host)
    async with either.host() as host:
        reads = 0
        store = store_of(host)
        read = store.read

        def count(address: int) -> Any:
            nonlocal reads
            reads += 1
            return read(address)

        store.read = count
        await (await host.get("w")).heard
        await settled(host)
        assert reads < 20
        await said(host, "z")
        await settled(host)
        assert await (await host.get("w")).heard == [["s1", "z"]]


async def test_an_event_that_could_not_be_recorded_is_not_passed_over_at_a_stop(either: World) -> None:
    async with either.host(retry=60) as host:
        await host.spawn(Counter, "s1")
        w = await host.spawn(Watcher, "w")
        await w.watch('(test.said "s1" "z")')
        await said(host, *["a"] * (FAR + 10))
        await settled(host)
        store = store_of(host)
        append = store.append

        def fail(batch: Any) -> None:
            if any(record.uid == w._uid for record in batch):
                raise DiskFull("log", "no space", True)
            append(batch)

        store.append = fail
        await said(host, "z")
        await trio.testing.wait_all_tasks_blocked()
        store.append = append
        await w.heard
    async with either.host() as host:
        await settled(host)
        assert await (await host.get("w")).heard == [["s1", "z"]]


class NotNow(KeeveError, quotes=False):
    """What it says quotes nothing."""


@pytest.mark.parametrize("error", [NotNow("not now"), ValueError("a mistake")], ids=["ours", "another"])
@pytest.mark.parametrize("where", ["reading", "bringing"])
async def test_a_subscription_that_failed_reads_on_later(
    world: World, error: Exception, where: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with world.host(retry=0.01) as host:
        await host.spawn(Counter, "s1")
        w = await host.spawn(Watcher, "w")
        await w.watch(SAID)
        await said(host, "a")
        await settled(host)
        subscriptions = host._engine.subscriptions
        tried = 0
        often = trio.Event()

        def fails(*_: Any, **how: Any) -> Any:
            nonlocal tried
            tried += 1
            if tried == 3:
                often.set()
            raise error

        if where == "reading":
            monkeypatch.setattr("dataspace.observe.search.Search.said", fails)
        else:
            monkeypatch.setattr(subscriptions, "_done", fails)
        await said(host, "b")
        with trio.fail_after(10):
            await often.wait()
        assert str(error) in caplog.text
        monkeypatch.undo()
        await said(host, "c")
        with trio.fail_after(10):
            while len(await w.heard) < 3:
                await trio.lowlevel.checkpoint()
        assert await w.heard == [["s1", "a"], ["s1", "b"], ["s1", "c"]]
        assert len(subscriptions._tasks) == 1
