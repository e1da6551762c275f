"""Pages of snapshots that cannot be read: nothing is lost by that, whatever comes to them, and whatever takes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trio

from dataspace.log.store import Erasure
from keeve import Actor, List, Settings, actor, open_host
from keeve.looking.reading import reading_of
from keeve.looking.sessions import state
from snapshots.cache import PageCache
from tests.vat.hosts import catalog_of, store_of
from vat.heap.restore import Lineage, restore
from vat.host.host import Host
from vat.host.thinning import Thinning

COUNT = 1000
"""Numbers in a list, which has more than one page then."""


@actor("test.pages.numbers", version=1)
class Numbers(Actor):
    """A list that is changed in place."""

    kept: List[int]
    more: int = 0

    def grow(self) -> None:
        self.kept.extend(range(COUNT))

    def touch(self, at: int) -> None:
        self.kept[at] += 1

    def change(self) -> None:
        for at in range(0, COUNT, 10):
            self.kept[at] += 1

    def little(self) -> None:
        self.more += 1

    def total(self) -> int:
        return sum(self.kept)


TOTAL = sum(range(COUNT))


def host_of(folder: Path) -> Any:
    settings = Settings(reclaim=None, closing_records=10**6, snapshot_records=10**6, first_snapshot=10**6)
    return open_host(folder, actors=[Numbers], settings=settings)


def lineage_of(host: Host, id: str) -> Lineage:
    row = catalog_of(host).session(id)
    assert row is not None
    return Lineage(row.uid, catalog_of(host), store_of(host).read)


def take_pages(host: Host, id: str, seq: int) -> None:
    """Take all but the root from the snapshot at a seq, as no program does."""
    stored = lineage_of(host, id).at(seq)
    store_of(host).erase([Erasure(stored.address, list(range(stored.attachments - 1)), body=False)])


async def roll(host: Host) -> None:
    """Have the log go on in another segment."""
    await trio.to_thread.run_sync(store_of(host).seal, 1)  # type: ignore[attr-defined]  # of a folder


@pytest.mark.parametrize("touched", [5, COUNT - 5])
async def test_a_session_is_restored_though_a_record_comes_to_a_bad_page(tmp_path: Path, touched: int) -> None:
    """Invariant 21: A snapshot may be damaged in any page; the heap is the same, from what is older."""
    async with host_of(tmp_path) as host:
        a = await host.spawn(Numbers, "a")
        await a.grow()
        at = (await a.snapshot()).seq
        await a.touch(touched)
        take_pages(host, "a", at)
        found = restore(lineage_of(host, "a"), catalog_of(host), PageCache(0), at + 1)
        assert (found.snapshot, len(found.passed_over), found.memory.trouble) == (0, 2, None)
    async with host_of(tmp_path) as host:
        a = await host.get("a")
        assert await a.total() == TOTAL + 1
        twin = await a.fork(at=at)
        assert await twin.total() == TOTAL
        assert (
            host.look("a", lambda past: past.heap.state(1).fields["kept"].get(touched, past.heap.page), at) == touched
        )
        await a.touch(touched)
        assert await a.total() == TOTAL + 2


async def test_who_only_looks_is_shown_what_the_records_give(tmp_path: Path) -> None:
    """Invariant 21: The same for who reads without loading anything."""
    async with host_of(tmp_path) as host:
        a = await host.spawn(Numbers, "a")
        await a.grow()
        at = (await a.snapshot()).seq
        take_pages(host, "a", at)
    async with host_of(tmp_path) as host:
        shown = await state(reading_of(host), "a", at)
        assert shown["fields"]["kept"] == list(range(COUNT))


async def test_what_a_snapshot_shares_that_cannot_go_yet_stays(tmp_path: Path) -> None:
    """Invariant 28: An old snapshot that lies where the log is written keeps what it shares with older ones."""
    async with host_of(tmp_path) as host:
        a = await host.spawn(Numbers, "a")
        await a.grow()
        await a.snapshot()
        await roll(host)
        await a.little()
        shares = (await a.snapshot()).seq
        for _ in range(2):
            await a.change()
            await a.snapshot()
        await host.reclaim()
        report = await host.verify()
        assert report.sound, report.troubles
        assert await (await a.fork(at=shares)).total() == TOTAL
        report = await host.verify()
        assert report.sound, report.troubles


async def old_snapshots(host: Host) -> tuple[Any, int]:
    """A session of which a snapshot in each of some segments is old, each with pages of the one before; and the seq of
    the last of those."""
    a = await host.spawn(Numbers, "a")
    await a.grow()
    await a.snapshot()
    for _ in range(2):
        await roll(host)
        await a.little()
        last = (await a.snapshot()).seq
    for _ in range(2):
        await roll(host)
        await a.change()
        await a.snapshot()
    await roll(host)
    return a, last


async def test_a_fork_that_is_made_while_pages_go_keeps_what_it_may_need(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Invariant 28: What is born between the look at who needs what and the moment in which that goes is asked, too."""
    forks: list[Any] = []
    find = Thinning._superseded

    async with host_of(tmp_path) as host:
        a, last = await old_snapshots(host)

        async def fork() -> None:
            twin = await a.fork(at=last, into="twin")
            await twin.touch(0)
            await twin.snapshot()
            forks.append(twin)

        def found_and_forked(self: Thinning, family: Any) -> Any:
            found = find(self, family)
            if found and not forks:
                trio.from_thread.run(fork)
            return found

        monkeypatch.setattr(Thinning, "_superseded", found_and_forked)
        assert (await host.reclaim()).pages == 0
        assert forks
        monkeypatch.undo()
        report = await host.verify()
        assert report.sound, report.troubles
    async with host_of(tmp_path) as host:
        assert await (await host.get("twin")).total() == TOTAL + 1


async def test_whoever_is_interrupted_leaves_no_snapshot_without_what_it_shares(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Invariant 26: Pages go from the newest snapshot that is old, one file at a time; each step leaves all sound."""
    async with host_of(tmp_path) as host:
        a, last = await old_snapshots(host)
        store = store_of(host)
        erase, steps = store.erase, 0

        def once(*args: Any) -> int:
            nonlocal steps
            steps += 1
            if steps > 1:
                raise OSError("interrupted")
            return erase(*args)

        monkeypatch.setattr(store, "erase", once)
        with pytest.raises(OSError, match="interrupted"):
            await host.reclaim()
        monkeypatch.undo()
        assert await (await a.fork(at=last, into="twin")).total() == TOTAL
        report = await host.verify()
        assert report.sound, report.troubles


async def test_what_is_gone_already_ends_no_thinning(tmp_path: Path) -> None:
    """Invariant 26: Whoever was interrupted after the newest files, or comes a second time, has the older ones go."""
    async with host_of(tmp_path) as host:
        idle = await host.spawn(Numbers, "idle")
        await idle.grow()
        for _ in range(3):
            await idle.change()
            await idle.snapshot()
        await roll(host)
        await old_snapshots(host)
        assert (await host.reclaim()).pages > 0
        await idle.change()
        await idle.snapshot()  # so that one is old that lies before all that has gone
        assert (await host.reclaim()).pages > 0
        assert (await host.verify()).sound
