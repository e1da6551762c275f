"""Verification through a host: what is sound is called so, and what is not is named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trio

from tests.vat.hosts import Caller, Counter, Worker, World, flip, settled
from vat.host.host import Host


async def fill(world: World) -> None:
    async with world.host(first_snapshot=4, snapshot_cranks=6) as host:
        s, c, w = await host.spawn(Counter, "s"), await host.spawn(Caller, "c"), await host.spawn(Worker, "w")
        for number in range(20):
            await s.add(f"word {number} " + "x" * 300)
        await c.burst(s, "add", 5)
        await w.work("once", 1)
        await settled(host)
        twin = await s.fork(at=10, into="twin")
        for number in range(10):
            await twin.add(f"twin {number}")
        await (await twin.fork()).add("again")
        await host.spawn(Counter, "gone")
        await host.delete("gone")


async def test_a_store_that_was_used_is_sound(either: World) -> None:
    await fill(either)
    async with either.host() as host:
        report = await host.verify()
        assert report.troubles == ()
        assert report.sound
        assert report.records == host._engine.store.head.position
        assert report.sessions == 5
        assert report.snapshots > 5


async def test_verifying_changes_nothing_and_works_while_others_write(either: World) -> None:
    await fill(either)
    async with either.host() as host:
        head = host._engine.store.head
        assert (await host.verify()).sound
        assert host._engine.store.head == head
        s = await host.get("s")
        async with trio.open_nursery() as nursery:
            reports: list[Any] = []

            async def look() -> None:
                reports.append(await host.verify())

            nursery.start_soon(look)
            for _ in range(50):
                await s.add()
        assert [report.troubles for report in reports] == [()]


@pytest.mark.parametrize("seq", [2, 6, 8])
async def test_a_changed_body_is_named_by_session_and_seq(tmp_path: Path, seq: int) -> None:
    world = World(tmp_path / "store")
    await fill(world)
    async with world.host() as host:
        flip(world, host, "s", seq, b"word")
        report = await host.verify()
        assert not report.sound
        first = report.troubles[0]
        assert (first.look, first.session, first.seq) == ("log", "s", seq)


def change_catalog(host: Host) -> None:
    catalog = host._engine.dataspace.catalog
    catalog.flush()
    catalog._tables._writer.execute("UPDATE sessions SET pending = 7")


async def test_a_catalog_that_says_something_else_is_found(either: World) -> None:
    await fill(either)
    async with either.host() as host:
        change_catalog(host)
        report = await host.verify()
        assert {trouble.look for trouble in report.troubles} == {"catalog"}
        assert "pending" in report.troubles[0].what


async def test_a_page_that_is_not_what_was_written_is_named_with_its_snapshot(tmp_path: Path) -> None:
    world = World(tmp_path / "store")
    await fill(world)
    async with world.host() as host:
        catalog, store = host._engine.dataspace.catalog, host._engine.store
        row = catalog.session("s")
        assert row is not None
        snapshot = catalog.snapshots(row.uid)[0]
        address = catalog.locate(row.uid, snapshot.seq)
        assert address is not None
        page = store.read(address).page(0)
        flip(world, host, "s", snapshot.seq, page[:40])
        report = await host.verify()
        (trouble,) = [trouble for trouble in report.troubles if trouble.look == "snapshots"]
        assert trouble.session == "s"
        assert f"snapshot at seq {snapshot.seq}" in trouble.what
