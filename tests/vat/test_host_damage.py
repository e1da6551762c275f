"""Sessions that cannot be read in full, or not by this host: named, left as they are, and in nobody's way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from dataspace.log.files import ReadFailed
from dataspace.log.marks import Damage
from dataspace.log.verdicts import SessionDamaged
from dataspace.records import Kind
from tests.vat.hosts import (
    ACTORS,
    Caller,
    Counter,
    Worker,
    World,
    carry_no_messages,
    catalog_of,
    flip,
    records,
    settled,
    store_of,
)
from vat.crank.upgrading import UpgradeFailed
from vat.host.host import Host
from vat.objects.actor import Actor, actor
from vat.objects.collections import List
from vat.objects.types import NewerVersion, UnknownActorType

# Code that does not fit


async def others_go_on(host: Host) -> None:
    """What holds beside a session that cannot be loaded."""
    other = await host.get("other")
    before = await other.count
    assert await other.add() == before + 1
    await host.spawn(Counter)
    assert "s1" in [row.id for row in host.sessions()]


async def test_a_session_of_an_unknown_type_is_refused_by_name_and_left_alone(either: World) -> None:
    """Invariant 23: A malformed session never stops another from being listed, opened, written or deleted."""
    async with either.host() as host:
        c = await host.spawn(Caller, "s1")
        await host.spawn(Counter, "other")
        await c.burst(await host.get("other"), "add", 1)
        await settled(host)
    either.actors = (Counter,)
    async with either.host() as host:
        before = records(host, "s1")
        for _ in range(2):
            with pytest.raises(UnknownActorType, match=r"test\.caller"):
                await (await host.get("s1")).answers
        with pytest.raises(UnknownActorType):
            await host.delete("s1")
        await others_go_on(host)
        assert records(host, "s1") == before
    either.actors = ACTORS
    async with either.host() as host:
        assert await (await host.get("s1")).answers == [1]


async def test_pending_work_of_a_session_that_cannot_be_loaded_does_not_keep_a_host_from_starting(
    either: World,
) -> None:
    either.tool.open = False
    async with either.host(dies=True) as host:
        s, c = await host.spawn(Counter, "s1"), await host.spawn(Caller, "c")
        await host.spawn(Counter, "other")
        carry_no_messages(host)
        await c.burst(s, "add", 2)
    either.actors = (Counter,)
    async with either.host() as host:
        await others_go_on(host)
        assert host.sessions("c")[0].pending == 2


async def test_a_newer_version_is_refused_and_left_alone(either: World) -> None:
    @actor("test.counter", version=2)
    class Newer(Actor):
        count: int = 0
        seen: List[str]
        more: int = 1

        def add(self, who: str = "") -> int:
            self.count += self.more
            return self.count

    either.actors = (Newer,)
    async with either.host() as host:
        await host.spawn(Newer, "s1")
    either.actors = ACTORS
    async with either.host() as host:
        await host.spawn(Counter, "other")
        before = records(host, "s1")
        with pytest.raises(NewerVersion):
            await (await host.get("s1")).count
        await others_go_on(host)
        assert records(host, "s1") == before


async def test_an_older_session_is_upgraded_in_a_record_of_its_own_when_it_is_first_used(either: World) -> None:
    @actor("test.counter", version=2)
    class Newer(Actor):
        total: int = 0
        seen: List[str]

        @classmethod
        def upgrade(cls, state: Any, from_version: int) -> None:
            state["total"] = state.pop("count") * 10

        def add(self, who: str = "") -> int:
            self.total += 1
            return self.total

    async with either.host() as host:
        await (await host.spawn(Counter, "s1")).add()
    either.actors = (Newer,)
    async with either.host() as host:
        s = await host.get("s1")
        assert await s.total == 10
        assert await s.add() == 11
        assert records(host, "s1")[-2:] == [Kind.CRANK, Kind.CRANK]
        twin = await s.fork(at=2)
        assert await twin.add() == 11


async def test_an_upgrade_that_fails_leaves_the_session_to_the_older_code(either: World) -> None:
    @actor("test.counter", version=2)
    class Newer(Actor):
        total: int = 0

        @classmethod
        def upgrade(cls, state: Any, from_version: int) -> None:
            raise ValueError("cannot")

    async with either.host() as host:
        s = await host.spawn(Counter, "s1")
        await s.add(request="r")
        await s.fork(into="twin")  # a fork has more than one thing to do before its first message
    either.actors = (Newer,)
    async with either.host() as host:
        for id in ("s1", "twin"):
            for _ in range(2):
                with pytest.raises(UpgradeFailed, match="cannot"):
                    await (await host.get(id)).total
    either.actors = ACTORS
    async with either.host() as host:
        assert await (await host.get("s1")).add() == 2
        assert await (await host.get("twin")).add() == 2


# Damage


@pytest.fixture
def disk(tmp_path: Path) -> World:
    return World(tmp_path / "store")


@pytest.mark.parametrize("catalog", [True, False])
async def test_a_damaged_session_is_readable_up_to_there_and_others_go_on(disk: World, catalog: bool) -> None:
    """Invariant 4 and 23: Damage is reported by name, never skipped, and stops nobody else."""
    async with disk.host() as host:
        s = await host.spawn(Counter, "s1")
        await host.spawn(Counter, "other")
        for number in range(6):
            await s.add(f"word {number}")
        await (await host.get("other")).add()
        flip(disk, host, "s1", 4, b"word 2")
    assert disk.folder is not None
    if not catalog:
        (disk.folder / "catalog.sqlite").unlink()
    async with disk.host() as host:
        s = await host.get("s1")
        if catalog:  # what was judged once is not judged again, so nobody has met it yet
            with pytest.raises(SessionDamaged, match=r"session s1 is damaged at seq 4"):
                await s.seen
        assert await s.seen == ["word 0", "word 1"]
        assert await s.total() == 2
        with pytest.raises(SessionDamaged, match=r"session s1 is damaged at seq 4") as caught:
            await s.add("more")
        assert caught.value.seq == 4
        with pytest.raises(SessionDamaged):
            await s.snapshot()
        assert await s.seen == ["word 0", "word 1"]
        fork = await s.fork(at=3, into="salvaged")
        assert await fork.add("word 2 again") == 3
        await others_go_on(host)
    async with disk.host() as host:
        assert await (await host.get("salvaged")).seen == ["word 0", "word 1", "word 2 again"]
        await others_go_on(host)


async def test_who_meets_damage_first_is_told_and_then_it_is_as_damage_that_recovery_finds(disk: World) -> None:
    """Invariant 22: A failed read is an error, never an empty history."""
    async with disk.host(vats=1) as host:
        s = await host.spawn(Counter, "s1")
        await host.spawn(Counter, "other")
        long = "a long text " * 100
        await s.add(long)
        await s.add("short")
        await (await host.get("other")).add()
        flip(disk, host, "s1", 2, b"a long text")
        with pytest.raises(SessionDamaged, match="session s1 is damaged at seq 2"):
            await s.seen  # not an empty history: who meets it first is told
        for _ in range(2):
            assert await s.seen == []
            with pytest.raises(SessionDamaged, match="session s1 is damaged at seq 2"):
                await s.add("more")
            await others_go_on(host)


async def test_who_waits_for_a_promise_of_a_session_that_turns_out_to_be_damaged_is_told(disk: World) -> None:
    async with disk.host(vats=1) as host, trio.open_nursery() as nursery:
        w = await host.spawn(Worker, "w")
        await w.work("again", "long " * 100)
        await host.spawn(Counter, "other")
        disk.tool.open = False
        told: list[str] = []

        async def ask() -> None:
            try:
                await w.work("again", "short")
            except SessionDamaged as error:
                told.append(type(error).__name__)

        nursery.start_soon(ask)
        await settled(host)
        flip(disk, host, "w", 3, b"again long")
        with pytest.raises(SessionDamaged, match="session w is damaged at seq 3"):
            await w.results
        assert await w.results == []
        await trio.testing.wait_all_tasks_blocked()
        assert told == ["SessionDamaged"]
        nursery.cancel_scope.cancel()


async def test_an_unreadable_page_is_passed_over_and_the_call_done_all_the_same(disk: World) -> None:
    """Invariant 21: Every snapshot bad: the same heap, from the beginning."""
    async with disk.host(first_snapshot=4, snapshot_records=8) as host:
        s = await host.spawn(Counter, "s1")
        for number in range(40):
            await s.add(f"word {number}")
        snapshots = [seq for seq, kind in enumerate(records(host, "s1"), 1) if kind == Kind.SNAPSHOT]
        words = await s.seen
        catalog, store = catalog_of(host), store_of(host)
        row = catalog.session("s1")
        assert row is not None
        pages = []
        for seq in snapshots:
            address = catalog.locate(row.uid, seq)
            assert address is not None
            stored = store.read(address)
            pages += [(seq, stored.page(number)) for number in range(stored.attachments)]
    for seq, page in pages:
        async with disk.host() as host:
            flip(disk, host, "s1", seq, page[:40])
        async with disk.host() as host:
            s = await host.get("s1")
            assert await s.seen == words
            assert await s.count == len(words)
    async with disk.host(first_snapshot=10_000) as host:
        s = await host.get("s1")
        assert await s.add("more") == len(words) + 1
        assert await (await s.fork(at=20)).count == await (await s.fork(at=20)).total()


async def test_a_damaged_sender_or_receiver_stops_no_other_conversation(disk: World) -> None:
    async with disk.host() as host:
        s, c = await host.spawn(Counter, "s1"), await host.spawn(Caller, "c")
        await host.spawn(Counter, "other")
        await s.add("word 0")
        flip(disk, host, "s1", 2, b"word 0")
    async with disk.host() as host:
        c = await host.get("c")
        await c.burst(await host.get("s1"), "add", 2)
        await c.burst(await host.get("other"), "add", 2)
        await settled(host)
        assert await c.answers == [1, 2]
        assert host.sessions("c")[0].pending == 2
        await others_go_on(host)
    async with disk.host() as host:
        await others_go_on(host)


async def test_who_asks_a_damaged_session_waits_and_the_log_says_for_what(disk: World, caplog: Any) -> None:
    async with disk.host() as host:
        s = await host.spawn(Counter, "s1")
        await host.spawn(Caller, "c")
        await s.add("word 0")
        flip(disk, host, "s1", 2, b"word 0")
    async with disk.host() as host:
        caplog.clear()
        await (await host.get("c")).burst(await host.get("s1"), "add", 3)
        await settled(host)
        said = [record.getMessage() for record in caplog.records if "messages" in record.getMessage()]
        assert [line.split(": ")[:2] for line in said] == [["session s1", "messages from c wait"]]
        assert "damaged at seq 2" in said[0]


async def test_a_session_whose_first_record_is_damaged_is_listed_and_refused(disk: World) -> None:
    async with disk.host() as host:
        s = await host.spawn(Counter, "s1")
        await host.spawn(Counter, "other")
        await s.add()
        flip(disk, host, "s1", 1, b"test.counter")
    assert disk.folder is not None
    (disk.folder / "catalog.sqlite").unlink()
    async with disk.host() as host:
        (row,) = [row for row in host.sessions() if row.id != "other"]
        with pytest.raises(SessionDamaged, match="seq 1"):
            await (await host.get(row.id)).count
        assert await (await host.get("other")).add() == 1


async def test_a_store_in_memory_knows_damage_too(world: World) -> None:
    async with world.host() as host:
        s = await host.spawn(Counter, "s1")
        await s.add("a")
        await s.add("b")
        uid = s._uid
    world.log.damaged[uid] = Damage(3, 4, 4, "a test says so")
    async with world.host() as host:
        s = await host.get("s1")
        assert await s.seen == ["a"]
        with pytest.raises(SessionDamaged, match="a test says so"):
            await s.add("c")


async def test_a_read_that_fails_for_now_is_an_error_and_no_damage(world: World) -> None:
    """Invariant 22: A failed read is an error, never an empty history."""
    async with world.host(vats=0) as host:
        s = await host.spawn(Counter, "s1")
        await s.add("a long text " * 100)
        store = store_of(host)
        read = store.read

        class Failing:
            def __init__(self, stored: Any) -> None:
                self.stored = stored

            def cell(self, number: int) -> Any:
                raise ReadFailed("log", "I/O error")

            def __getattr__(self, name: str) -> Any:
                return getattr(self.stored, name)

        store.read = lambda address: Failing(read(address))
        for _ in range(2):
            with pytest.raises(ReadFailed):
                await s.seen
        store.read = read
        assert await s.add("b") == 2
        assert len(await s.seen) == 2
