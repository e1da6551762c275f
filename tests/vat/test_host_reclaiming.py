"""Reclaiming through a host: what of deleted sessions goes, and what living forks keep."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
import trio

from dataspace.log.files import DiskFull
from dataspace.log.memory import MemoryStore
from dataspace.log.store import BodyErased, StoreReadOnly
from dataspace.records import Kind
from dataspace.values import ERASED
from tests.vat.hosts import Counter, World, catalog_of, heap_of, store_of
from vat.errors import Deleted
from vat.heap.messages import Observed
from vat.host import reclaiming
from vat.host.host import ErasureUnfinished, Host, Reclaimed
from vat.host.residents import Job
from vat.host.sessions import Busy


def bodies(host: Host, id: str) -> list[int]:
    """The seqs of a session's own records, deleted or not, whose body is there."""
    catalog, store = catalog_of(host), store_of(host)
    row = catalog.session(id)
    assert row is not None
    found = []
    for stored in store.scan():
        if stored.header.uid == row.uid:
            try:
                stored.body()
            except BodyErased:
                continue
            found.append(stored.header.seq)
    return found


async def until(condition: Callable[[], bool]) -> None:
    """Let time go by until something is so. It goes by at once, and what is done in threads takes its own."""
    for _ in range(5000):
        if condition():
            return
        await trio.sleep(1)
        await trio.to_thread.run_sync(int)
    raise AssertionError("it never came to that")


async def counted(host: Host, id: str, *words: str) -> Any:
    """A session that has counted some words: with seqs 1 for its birth, and one for each of them."""
    session = await host.spawn(Counter, id)
    for word in words:
        await session.add(word)
    return session


async def test_of_a_deleted_session_only_headers_and_the_tombstone_stay(either: World) -> None:
    async with either.host() as host:
        await counted(host, "s1", "one", "two")
        await counted(host, "s2", "three")
        await host.delete("s1")
        hashes = [stored.header.hash for stored in store_of(host).scan()]
        assert await host.reclaim() == Reclaimed(1, 3)
        assert bodies(host, "s1") == [4]
        assert bodies(host, "s2") == [1, 2]
        assert [stored.header.hash for stored in store_of(host).scan()][: len(hashes)] == hashes
        assert await host.reclaim() == Reclaimed(0, 0)
        assert (await host.verify()).sound


async def test_the_id_of_a_reclaimed_session_stays_taken_whatever_becomes_of_the_catalog(either: World) -> None:
    """Invariant 25: A deleted id never comes back, when its content is gone and the catalog is made anew either."""
    async with either.host() as host:
        session = await counted(host, "s1", "one")
        snapshot = await session.snapshot()
        await session.fork(into="s2")
        await host.delete("s2")
        await host.delete("s1")
        await host.reclaim()
        rows = host.sessions(deleted=True)
    if either.folder is not None:
        (either.folder / "catalog.sqlite").unlink()
    async with either.host() as host:
        assert host.sessions(deleted=True) == rows
        assert [(row.id, bool(row.deleted)) for row in rows] == [("s1", True), ("s2", True)]
        for id in ("s1", "s2"):
            with pytest.raises(Deleted):
                await host.spawn(Counter, id)
            with pytest.raises(Deleted):
                await host.get(id)
        with pytest.raises(Deleted):
            await host.restore(snapshot)
        assert (await host.verify()).sound


async def test_what_a_living_fork_has_of_its_parent_stays_and_nothing_else(either: World) -> None:
    """Invariant 26: Deleting a parent leaves its forks whole; what no fork needs goes."""
    async with either.host() as host:
        parent = await counted(host, "parent", "one", "two", "three")
        child = await parent.fork(at=3, into="child")
        await child.add("other")
        before = heap_of(host, "child")
        await host.delete("parent")
        await host.reclaim()
        assert bodies(host, "parent") == [1, 2, 3, 6]
        assert heap_of(host, "child") == before
    async with either.host() as host:
        child = await host.get("child")
        assert await child.seen == ["one", "two", "other"]
        assert (await host.verify()).sound


async def test_content_goes_with_its_last_user(either: World) -> None:
    """Invariant 26: What a deleted parent has left to its forks goes when the last fork that needs it is deleted."""
    async with either.host() as host:
        parent = await counted(host, "parent", "one", "two", "three")
        early = await parent.fork(at=2, into="early")
        late = await parent.fork(at=4, into="late")
        grandchild = await late.fork(into="grandchild")
        await grandchild.add("four")
        await host.delete("parent")
        await host.reclaim()
        assert bodies(host, "parent") == [1, 2, 3, 4, 7]
        await host.delete("late")
        await host.reclaim()
        assert bodies(host, "parent") == [1, 2, 3, 4, 7]
        assert await grandchild.seen == ["one", "two", "three", "four"]
        await host.delete("grandchild")
        await host.reclaim()
        assert bodies(host, "parent") == [1, 2, 7]
        assert [len(bodies(host, id)) for id in ("late", "grandchild")] == [1, 1]
        assert await early.seen == ["one"]
        await host.delete("early")
        await host.reclaim()
        assert bodies(host, "parent") == [7]
        assert (await host.verify()).sound


async def test_a_fork_of_what_was_its_parents_past_keeps_only_that(either: World) -> None:
    async with either.host() as host:
        parent = await counted(host, "parent", "one", "two", "three")
        child = await parent.fork(into="child")
        await child.add("four")
        grandchild = await child.fork(at=2, into="grandchild")
        await host.delete("child")
        await host.delete("parent")
        await host.reclaim()
        assert bodies(host, "parent") == [1, 2, 6]
        assert len(bodies(host, "child")) == 1
        assert await grandchild.seen == ["one"]
    if either.folder is not None:
        (either.folder / "catalog.sqlite").unlink()
    async with either.host() as host:
        assert await (await host.get("grandchild")).seen == ["one"]
        assert (await host.verify()).sound


async def test_snapshots_of_a_deleted_parent_serve_its_forks(either: World) -> None:
    async with either.host() as host:
        parent = await counted(host, "parent", *map(str, range(100)))
        await parent.snapshot()
        child = await parent.fork(into="child")
        await parent.add("later")
        await parent.snapshot()
        await host.delete("parent")
        await host.reclaim()
        assert await child.seen == [*map(str, range(100))]
    async with either.host() as host:
        child = await host.get("child")
        assert await child.seen == [*map(str, range(100))]
        assert host.loaded("child") is not None
        assert (await host.verify()).sound


async def test_observers_see_headers_of_what_is_gone_pass_by(either: World) -> None:
    async with either.host() as host:
        await counted(host, "s1", "one")
        await counted(host, "s2", "two")
        await host.delete("s1")
        await host.reclaim()
        told = [(event.session, event.value.label) async for event in host.observe("(_ . _)", until="head")]
        assert ("s1", "deleted") in told
        assert [label for session, label in told if session == "s1"] == ["deleted"]
        assert "reclaimed" in [label for _, label in told]


async def test_reclaiming_is_for_an_owner(either: World) -> None:
    async with either.host() as host:
        await counted(host, "s1", "one")
        await host.delete("s1")
        async with either.host(readonly=True) as reader:
            with pytest.raises(StoreReadOnly):
                await reader.reclaim()
        await host.reclaim()


async def test_a_host_that_only_reads_goes_on_beside_it(tmp_path: Any) -> None:
    world = World(tmp_path / "store")
    async with world.host() as host:
        await counted(host, "s1", "one")
        await counted(host, "s2", "two")
        async with world.host(readonly=True) as reader:
            other = await reader.get("s2")
            assert await other.seen == ["two"]
            await host.delete("s1")
            await host.reclaim()
            with pytest.raises(Deleted):
                await reader.get("s1")
            assert [row.id for row in reader.sessions()] == ["s2"]
            assert await other.seen == ["two"]


async def test_a_disk_that_refuses_is_told_and_it_goes_on_later(world: World) -> None:
    """Invariant 11: A full disk while remains are reclaimed is shown, and the work goes on when there is space."""
    async with world.host() as host:
        await counted(host, "s1", "one")
        await host.delete("s1")
        store: Any = world.last
        store.failing.append(DiskFull("(memory)", "no space", True))
        with pytest.raises(DiskFull):
            await host.reclaim()
        assert await host.reclaim() == Reclaimed(1, 0)
        assert bodies(host, "s1") == [3]


async def test_what_it_says_is_in_the_chain_of_the_store(either: World) -> None:
    async with either.host() as host:
        await counted(host, "s1", "one")
        await host.delete("s1")
        await host.reclaim()
        last = [stored.header for stored in store_of(host).scan()][-1]
        assert (last.kind, last.uid) == (Kind.RECLAIMED, bytes(16))


async def test_a_host_reclaims_by_itself_in_a_quiet_while(world: World, autojump_clock: Any) -> None:
    async with world.host(reclaim=60) as host:
        await counted(host, "s1", "one")
        await counted(host, "s2", "two")
        await host.delete("s1")
        await host.delete("s2")
        assert len(bodies(host, "s1")) == 3
        await until(lambda: bodies(host, "s1") == bodies(host, "s2") == [3])


async def test_what_was_deleted_before_a_start_is_reclaimed_after_it(world: World, autojump_clock: Any) -> None:
    async with world.host(reclaim=None) as host:
        await counted(host, "s1", "one")
        await host.delete("s1")
        await trio.sleep(1000)
        assert len(bodies(host, "s1")) == 3
    async with world.host(reclaim=60) as host:
        await until(lambda: bodies(host, "s1") == [3])


async def test_by_itself_a_host_ends_no_file_that_is_hardly_begun(tmp_path: Any) -> None:
    world = World(tmp_path / "store")
    async with world.host(reclaim=0) as host:
        await counted(host, "s1", "one")
        await host.delete("s1")
        for _ in range(50):
            await trio.lowlevel.checkpoint()
        assert len(bodies(host, "s1")) == 3
        assert await host.reclaim() == Reclaimed(1, 2)


async def test_a_host_opens_although_an_erasure_cannot_be_ended_and_ends_it_later(
    world: World, autojump_clock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Invariant 11: A disk that is full when a host opens keeps it from nothing else."""
    async with world.host() as host:
        s = await counted(host, "s1", "one" * 200)
        erase = MemoryStore.erase
        full = DiskFull("(memory)", "no space", True)

        def fails(*_: Any) -> int:
            raise full

        monkeypatch.setattr(MemoryStore, "erase", fails)
        with pytest.raises(ErasureUnfinished) as caught:
            await host.erase("s1", seq=2)
        assert caught.value.cause is full
        assert await s.seen == [ERASED]
    async with world.host(reclaim=60) as host:
        s = await host.get("s1")
        assert await s.seen == [ERASED]
        monkeypatch.setattr(MemoryStore, "erase", erase)
        await until(lambda: not host._engine.reclaiming.pending)
        await host.restore_latest("s1")
        assert await s.seen == [ERASED]


async def test_while_the_disk_refuses_it_is_tried_again_and_again_and_less_and_less_often(
    world: World, autojump_clock: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Invariant 11: What a disk refused is done when it no longer refuses, and nobody has to ask."""

    def fails(*_: Any) -> int:
        raise DiskFull("(memory)", "no space", True)

    def waits() -> list[str]:
        return [found[1] for found in map(re.compile("is tried again in ([0-9]+) s").search, caplog.messages) if found]

    async with world.host(reclaim=60) as host:
        await counted(host, "s1", "one" * 200)
        with monkeypatch.context() as patch:
            patch.setattr(MemoryStore, "erase", fails)
            with pytest.raises(ErasureUnfinished):
                await host.erase("s1", seq=2)
            await until(lambda: len(waits()) >= 6)
        assert waits()[:6] == ["120", "240", "480", "600", "600", "600"]
        assert len(store_of(host).withheld) == 1
        await until(lambda: not host._engine.reclaiming.pending)
        assert len(store_of(host).withheld) == 0


async def test_an_event_on_its_way_that_may_say_it_again_is_waited_for(world: World) -> None:
    async with world.host() as host:
        s = await counted(host, "s1", "one" * 200)
        row = host.sessions()[0]
        engine = host._engine
        engine.turns.hold([row.uid])
        engine.turns.post(row.uid, Job(Observed(1, "one" * 200, "")))
        with pytest.raises(Busy, match="events are on their way"):
            await host.erase("s1", seq=2)
        assert await s.seen == ["one" * 200]
        await host.erase("s1", seq=2)
        assert await s.seen == [ERASED]


async def test_a_fault_in_it_ends_no_host(world: World, autojump_clock: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    async with world.host(reclaim=1) as host:
        s = await counted(host, "s2", "two")
        await counted(host, "s1", "one")
        asked = []

        def fails(*_: Any) -> int:
            asked.append(1)
            raise LookupError("something that nobody thought of")

        monkeypatch.setattr(MemoryStore, "erase", fails)
        await host.delete("s1")
        await until(lambda: bool(asked))
        assert await s.seen == ["two"]


async def test_others_go_on_while_many_small_sessions_are_looked_through(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reclaiming, "SLICE", 2)
    turns, looks, look = 0, [], reclaiming.remains

    def looked(catalog: Any, place: int) -> Any:
        looks.append(turns)
        return look(catalog, place)

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await trio.lowlevel.checkpoint()

    monkeypatch.setattr(reclaiming, "remains", looked)
    async with world.host(reclaim=None) as host, trio.open_nursery() as nursery:
        for number in range(6):
            await counted(host, f"s{number}")
            await host.delete(f"s{number}")
        nursery.start_soon(other)
        await host.reclaim()
        nursery.cancel_scope.cancel()
    assert len(set(looks[:6])) >= 3
