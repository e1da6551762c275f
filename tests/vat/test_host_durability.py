"""The embargo, and batches that fail: nothing leaves before it is durable, and what is not durable never happened."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import trio
import trio.testing

from dataspace.log import store as log_store
from dataspace.log.files import DiskFull, WriteFailed
from dataspace.records import Kind
from tests.vat.hosts import (
    Caller,
    Counter,
    Watcher,
    Worker,
    World,
    heap_of,
    held,
    records,
    resident_of,
    settled,
    store_of,
    without_embargo,
)
from vat.host.host import Host


async def nothing_leaves_early(world: World) -> None:
    """Do one of each thing that the world can see, and look while none of it is durable."""
    async with world.host() as host, trio.open_nursery() as nursery:
        s, c, w = await host.spawn(Counter, "s"), await host.spawn(Caller, "c"), await host.spawn(Worker, "w")
        watcher = await host.spawn(Watcher, "o")
        await watcher.watch("(test.said . _)")
        await settled(host)
        answered: list[Any] = []
        observed: list[Any] = []
        host.observe("(test.said . _)", observed.append)

        async def ask(what: Any) -> None:
            answered.append(await what())

        with held(host):
            nursery.start_soon(ask, s.add)
            nursery.start_soon(ask, lambda: s.state("x"))
            nursery.start_soon(ask, lambda: c.send(s, "add"))
            nursery.start_soon(ask, lambda: w.work("once", 1))
            nursery.start_soon(ask, lambda: s.fork(into="twin"))
            nursery.start_soon(ask, lambda: host.spawn(Counter, "new"))
            await trio.testing.wait_all_tasks_blocked()
            nursery.start_soon(ask, s.total)  # a read of what is not durable
            await trio.testing.wait_all_tasks_blocked()
            assert answered == []
            assert observed == []
            assert world.tool.calls == []
            assert len(host.sessions()) == 4
            resident = resident_of(host, s._uid)
            assert resident is not None
            assert resident.vat is not None
            assert resident.vat.heap.counters["message"] == 0  # nobody's message has come
        await settled(host)
        assert len(answered) == 7
        assert world.tool.calls == [("once", 1)]
        assert len(observed) == 1
        assert await watcher.heard == [["s", "x"]]


async def test_nothing_leaves_before_it_is_durable(either: World) -> None:
    """Invariant 7: A sent message, reply or effect is never undone: nothing leaves before its record is durable."""
    await nothing_leaves_early(either)


async def test_without_the_embargo_that_would_be_seen(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Invariant 45: The suites fail when the embargo is taken out."""
    without_embargo(monkeypatch)
    with pytest.RaisesGroup(AssertionError, flatten_subgroups=True, allow_unwrapped=True):
        await nothing_leaves_early(world)


async def heard(hear: list[Any], what: Any) -> None:
    try:
        hear.append(await what())
    except Exception as error:  # noqa: BLE001  # whatever it is is looked at
        hear.append(type(error).__name__)


REFUSED: list[tuple[str, Any]] = [
    ("RequestConflict", lambda host, s: s.add("b", request="k")),
    ("NoSuchPoint", lambda host, s: s.fork(at=9)),
    ("NoSuchMethod", lambda host, s: s.what()),
    ("IdInUse", lambda host, s: host.spawn(Counter, "new")),
    ("IdInUse", lambda host, s: s.fork(into="new")),
]


@pytest.mark.parametrize(("name", "ask"), REFUSED, ids=[name for name, _ in REFUSED])
async def test_no_refusal_leaves_before_what_it_follows_from_is_durable(either: World, name: str, ask: Any) -> None:
    """Invariant 7."""
    async with either.host() as host, trio.open_nursery() as nursery:
        s = await host.spawn(Counter, "s")
        refused: list[Any] = []
        with held(host):
            nursery.start_soon(lambda: s.add("a", request="k"))
            nursery.start_soon(host.spawn, Counter, "new")
            await trio.testing.wait_all_tasks_blocked()
            nursery.start_soon(heard, refused, lambda: ask(host, s))
            await trio.testing.wait_all_tasks_blocked()
            assert refused == []
        await settled(host)
        await trio.testing.wait_all_tasks_blocked()
        assert refused == [name]
        await heard(refused, lambda: ask(host, s))  # and at once where nothing is on its way
        assert refused == [name] * 2


@pytest.mark.parametrize(("name", "ask"), REFUSED[:3], ids=[name for name, _ in REFUSED[:3]])
async def test_who_would_be_refused_hears_why_what_it_follows_from_is_not_durable(
    world: World, name: str, ask: Any
) -> None:
    async with world.host() as host, trio.open_nursery() as nursery:
        s = await host.spawn(Counter, "s")
        refused: list[Any] = []
        store_of(host).failing.append(DiskFull("log", "no space", True))
        with held(host):
            for what in (lambda: s.add("a", request="k"), lambda: ask(host, s)):
                nursery.start_soon(heard, refused, what)
                await trio.testing.wait_all_tasks_blocked()
        await settled(host)
        assert refused == ["DiskFull"] * 2
        assert await s.add("b", request="k") == 1


async def test_an_id_is_free_again_when_the_session_that_was_to_have_it_could_not_be_made(world: World) -> None:
    async with world.host() as host, trio.open_nursery() as nursery:
        made: list[Any] = []
        store_of(host).failing.append(DiskFull("log", "no space", True))
        with held(host):
            for _ in range(3):
                nursery.start_soon(heard, made, lambda: host.spawn(Counter, "new"))
                await trio.testing.wait_all_tasks_blocked()
        await settled(host)
        await trio.testing.wait_all_tasks_blocked()
        # Those who waited for the first one go on beside each other, and hear at once what became of the second one.
        first, *others = (each if isinstance(each, str) else "made" for each in made)
        assert (first, sorted(others)) == ("DiskFull", ["IdInUse", "made"])


async def test_a_repeated_message_is_acknowledged_only_when_the_first_is_durable(world: World) -> None:
    async with world.host() as host:
        s, c = await host.spawn(Counter, "s"), await host.spawn(Caller, "c")
        with held(host):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(c.burst, s, "add", 1)
                await trio.testing.wait_all_tasks_blocked()
                host._engine.commits.writer.commit_now()
                await trio.testing.wait_all_tasks_blocked()  # it is in the receiver, and not durable there
                sender = resident_of(host, c._uid)
                assert sender is not None
                host._engine.mail.take_up(sender)  # it is brought again
                await trio.testing.wait_all_tasks_blocked()
                assert sender.vat is not None
                assert sender.vat.acked == set()
        await settled(host)
        assert await s.count == 1


# Batches that fail


@pytest.mark.parametrize("failure", [DiskFull, WriteFailed])
async def test_a_batch_that_fails_leaves_no_trace(either: World, failure: type[WriteFailed]) -> None:
    """Invariant 5: A failed batch leaves no trace in state, messages, effects, observers or the next hash."""
    async with either.host() as host:
        refs = [await host.spawn(Counter, f"s{number}") for number in range(5)]
        for ref in refs:
            await ref.add("before")
        before = [heap_of(host, f"s{number}") for number in range(5)]
        rows = host.sessions()
        outcomes: list[Any] = []

        async def attempt(ref: Any) -> None:
            try:
                outcomes.append(await ref.add("lost"))
            except WriteFailed as error:
                outcomes.append(type(error).__name__)

        with failing(host, failure("log", "no", True)):
            async with trio.open_nursery() as nursery:
                for ref in refs:
                    nursery.start_soon(attempt, ref)
        assert outcomes == [failure.__name__] * 5
        assert host.sessions() == rows
        assert [heap_of(host, f"s{number}") for number in range(5)] == before
        for ref in refs:
            assert await ref.add("after") == 2
            assert await ref.seen == ["before", "after"]


@contextmanager
def failing(host: Host, error: Exception) -> Iterator[None]:
    """Every append fails."""
    store = store_of(host)

    def fail(batch: Any) -> None:
        raise error

    store.append = fail
    try:
        yield
    finally:
        del store.append


async def test_what_was_queued_behind_a_batch_fails_with_it(world: World) -> None:
    async with world.host() as host, trio.open_nursery() as nursery:
        s = await host.spawn(Counter, "s")
        outcomes: list[str] = []

        async def attempt() -> None:
            try:
                await s.add()
            except DiskFull:
                outcomes.append("full")

        store_of(host).failing.append(DiskFull("log", "no space", True))
        with held(host):
            for _ in range(10):
                nursery.start_soon(attempt)
            await trio.testing.wait_all_tasks_blocked()
        await settled(host)
        assert outcomes == ["full"] * 10
        assert await s.count == 0


async def test_work_goes_on_when_there_is_space_again(either: World, autojump_clock: Any) -> None:
    """Invariant 11: Disk full: shown at once, nothing acknowledged lost, work goes on when there is space."""
    async with either.host() as host:
        s, c, w = await host.spawn(Counter, "s"), await host.spawn(Caller, "c"), await host.spawn(Worker, "w")
        either.tool.open = False
        async with trio.open_nursery() as nursery:
            nursery.start_soon(w.work, "once", 1)
            await settled(host)
            nursery.cancel_scope.cancel()
        await c.burst(s, "add", 3)
        with failing(host, DiskFull("log", "no space", True)):
            either.tool.gate.set()
            for _ in range(3):
                with pytest.raises(DiskFull):
                    await s.add("no")
                await trio.sleep(5)
        for _ in range(3):
            await trio.sleep(2)
            await settled(host)
        assert await s.seen == ["0", "1", "2"]
        assert await c.answers == [1, 2, 3]
        assert await w.results == ["once 1"]
        assert either.tool.calls == [("once", 1)]


async def test_both_records_of_a_fork_are_one_commit(either: World) -> None:
    """Invariant 2: A fork is whole or absent."""
    async with either.host() as host:
        s = await host.spawn(Counter, "s")
        await s.add()
        batches: list[list[int]] = []
        store = store_of(host)
        append = store.append

        def note(batch: Any) -> None:
            batches.append([record.kind for record in batch])
            append(batch)

        store.append = note
        host._engine.commits.writer._batch_bytes = 1
        await s.fork()
        assert batches == [[Kind.FORK, Kind.FORKED]]


async def test_a_record_that_no_store_takes_fails_alone(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    async with world.host() as host, trio.open_nursery() as nursery:
        s, other = await host.spawn(Counter, "s"), await host.spawn(Counter, "other")
        monkeypatch.setattr(log_store, "MAX_RECORD", 10_000)
        errors: list[str] = []

        async def attempt() -> None:
            try:
                await s.add("x" * 20_000)
            except Exception as error:  # noqa: BLE001  # it is compared
                errors.append(type(error).__name__)

        with held(host):
            nursery.start_soon(attempt)
            nursery.start_soon(other.add, "fine")
            await trio.testing.wait_all_tasks_blocked()
        await settled(host)
        assert errors == ["RecordTooLarge"]
        assert await s.add("small") == 1
        assert await other.seen == ["fine"]


async def test_what_comes_behind_a_refused_record_waits_for_those_before_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with world.host() as host, trio.open_nursery() as nursery:
        s = await host.spawn(Counter, "s")
        monkeypatch.setattr(log_store, "MAX_RECORD", 10_000)

        async def attempt() -> None:
            with pytest.raises(log_store.RecordTooLarge):
                await s.add("x" * 20_000)

        with held(host):
            for what in (lambda: s.add("a"), attempt, lambda: s.add("b")):
                nursery.start_soon(what)
                await trio.testing.wait_all_tasks_blocked()
        await settled(host)
        assert await s.seen == ["a", "b"]


async def test_a_snapshot_whose_batch_failed_is_made_again(either: World) -> None:
    async with either.host(first_snapshot=4) as host:
        s = await host.spawn(Counter, "s")
        await s.add("1")
        await s.add("2")
        with failing(host, DiskFull("log", "no space", True)), pytest.raises(DiskFull):
            await s.add("lost")
        await s.add("3")
        await settled(host)
        assert records(host, "s")[-1] == Kind.SNAPSHOT
        assert await s.seen == ["1", "2", "3"]
    async with either.host() as host:
        assert await (await host.get("s")).seen == ["1", "2", "3"]
