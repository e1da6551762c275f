"""Old snapshots: their pages go from the files, and every session, fork and fiber is what it was."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from dataspace.catalog.lookups import Leg, SnapshotRow
from dataspace.errors import KeeveError
from dataspace.records import Kind
from keeve import Actor, List, Session, Settings, actor, open_host
from tests.vat.hosts import settled, store_of
from vat.heap import reaching
from vat.heap.restore import Lineage, bases
from vat.host import thinning
from vat.host.host import Host

LONG = " and so on" * 30


def host_of(folder: Path, **options: Any) -> Any:
    settings = Settings(reclaim=None, snapshot_records=6, first_snapshot=4, closing_records=1)
    return open_host(folder, settings=settings, segment_bytes=20_000, **options)


async def talk(session: Any, turns: int, what: str = "turn") -> None:
    for n in range(turns):
        await session.turn(f"{what} {n}{LONG}")


def whole_pages(host: Host) -> int:
    """How many heap pages are in the store."""
    found = 0
    for stored in store_of(host).scan():
        if stored.header.kind == Kind.SNAPSHOT:
            for number in thinning.pages(stored):
                try:
                    stored.page(number)
                    found += 1
                except KeeveError:
                    pass
    return found


def without_catalog(folder: Path) -> None:
    for path in folder.glob("catalog.sqlite*"):
        path.unlink()


async def heard(host: Host, *ids: str) -> list[Any]:
    return [[message["content"] for message in await (await host.get(id)).messages] for id in ids]


async def test_pages_of_old_snapshots_go_and_the_session_is_what_it_was(tmp_path: Path) -> None:
    async with host_of(tmp_path) as host:
        s = await host.spawn(Session, "s1")
        await talk(s, 24)
        before, heap = whole_pages(host), await heard(host, "s1")
        taken = sum(path.stat().st_size for path in (tmp_path / "log").iterdir())
        gone = (await host.reclaim()).pages
        assert gone > before / 3
        assert whole_pages(host) == before - gone
        assert sum(path.stat().st_size for path in (tmp_path / "log").iterdir()) < taken
        await talk(s, 3, "and on")
        assert (await heard(host, "s1"))[0][: len(heap[0])] == heap[0]
    async with host_of(tmp_path) as host:
        assert (await heard(host, "s1"))[0][: len(heap[0])] == heap[0]
        report = await host.verify()
        assert report.sound, report.troubles
        assert (await host.reclaim()).pages >= 0
        assert (await host.reclaim()).pages == 0


async def test_forks_keep_the_pages_that_they_share(tmp_path: Path) -> None:
    """Invariant 26: What a fork needs of its parent stays when the parent goes on without it."""
    async with host_of(tmp_path) as host:
        s = await host.spawn(Session, "s1")
        await talk(s, 10)
        await s.fork(into="twin")
        await talk(s, 12, "later")
        said = await heard(host, "s1", "twin")
    async with host_of(tmp_path) as host:
        assert (await host.reclaim()).pages > 0
    without_catalog(tmp_path)
    async with host_of(tmp_path) as host:
        assert await heard(host, "s1", "twin") == said
        report = await host.verify()
        assert report.sound, report.troubles


async def test_a_fork_at_a_point_whose_snapshots_are_gone_holds_what_was_before_it(tmp_path: Path) -> None:
    """Invariant 28: A fork holds exactly what was before its point, whatever was compacted since."""
    async with host_of(tmp_path) as host:
        s = await host.spawn(Session, "s1")
        await talk(s, 3)
        at, said = (await s.snapshot()).seq, await heard(host, "s1")
        await talk(s, 20, "later")
        assert (await host.reclaim()).pages > 0
        await s.fork(at=at, into="then")
        assert await heard(host, "then") == said


@actor("test.thinning.waiter", version=1)
class Waiter(Actor):
    """Waits in a fiber for as long as nobody settles what it waits for."""

    said: List[str]

    async def begin(self) -> str:
        mine = list(self.said)
        await self.sleep(1e9)
        return " ".join(mine)

    def say(self, what: str) -> None:
        self.said.append(what)


async def test_a_session_with_a_fiber_that_waits_keeps_all(tmp_path: Path) -> None:
    """Invariant 16: What brings a fiber back is not taken away while it waits."""
    async with host_of(tmp_path, actors=[Waiter]) as host:
        w = await host.spawn(Waiter, "w")
        for n in range(30):
            await w.say(f"{n}{LONG}")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(w.begin)
            await settled(host)
            for n in range(30):
                await w.say(f"{n}{LONG}")
            assert (await host.reclaim()).pages == 0
            nursery.cancel_scope.cancel()


async def test_what_a_walk_would_miss_is_missed_by_the_restore(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Invariant 45: These tests fail when pages go that are needed."""
    monkeypatch.setattr(reaching._Walk, "trees", lambda self, heap: None)
    async with host_of(tmp_path) as host:
        s = await host.spawn(Session, "s1")
        await talk(s, 24)
        await host.reclaim()
    async with host_of(tmp_path) as host:
        await heard(host, "s1")
        report = await host.verify()
        assert not report.sound


def test_whoever_looks_for_bases_reads_no_other_snapshot() -> None:
    class Index:
        def lineage(self, uid: bytes) -> list[Leg]:
            return []

        def locate(self, uid: bytes, seq: int) -> int:
            return seq

        def snapshots(self, uid: bytes, upto: int) -> list[SnapshotRow]:
            return [SnapshotRow(uid, seq, seq == 3) for seq in range(min(upto, 40), 0, -1)][:8]

    read: list[int] = []

    def damaged(address: int) -> Any:
        read.append(address)
        raise KeeveError("this record cannot be read")

    lineage = Lineage(b"\1" * 16, Index(), damaged)
    assert list(bases(lineage, Index(), 1 << 40)) == []
    assert read == [3]
