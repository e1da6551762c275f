"""Verification through a host: what is sound is called so, and what is not is named."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio

from keeve import open_host
from tests.cli_runner import keeve
from tests.vat.hosts import Caller, Counter, Worker, World, catalog_of, flip, settled, store_of
from vat.heap.checking import check_snapshots
from vat.host import verifying
from vat.host.host import Host


async def fill(world: World) -> None:
    async with world.host(first_snapshot=4, snapshot_records=6) as host:
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
        assert report.counts.records == store_of(host).head.position
        assert report.sessions == 5
        assert report.snapshots > 5


async def test_verifying_changes_nothing_and_works_while_others_write(either: World) -> None:
    await fill(either)
    async with either.host() as host:
        head = store_of(host).head
        assert (await host.verify()).sound
        assert store_of(host).head == head
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
    catalog = catalog_of(host)
    catalog.flush()
    catalog._tables._reader.execute("UPDATE sessions SET pending = 7")


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
        catalog, store = catalog_of(host), store_of(host)
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


async def test_a_host_goes_on_serving_while_it_verifies(either: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Records and snapshots are looked at in another thread, the catalog between other tasks."""
    await fill(either)
    here = threading.current_thread()
    elsewhere: list[bool] = []
    told: list[str] = []
    moments: list[int] = []

    def progress(look: str, done: int, total: int) -> None:
        assert threading.current_thread() is here
        told.append(look)

    async with either.host() as host:
        s = await host.get("s")

        def look(*arguments: Any) -> Any:
            elsewhere.append(threading.current_thread() is not here)
            trio.from_thread.run(s.add)  # it would never be answered if the host waited for this
            return check_snapshots(*arguments)

        monkeypatch.setattr(verifying, "check_snapshots", look)

        async def other() -> None:
            while True:
                moments.append(len(told))
                await trio.lowlevel.checkpoint()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(other)
            report = await host.verify(progress)
            nursery.cancel_scope.cancel()
        assert report.troubles == ()
        assert elsewhere == [True] * report.sessions
        assert set(told) >= {"snapshots", "catalog"}
        # If it held the others up, there would be moments before the look at the catalog and after it, none between.
        assert len({number for number in moments if told[:number].count("catalog")}) > 1


async def test_a_verification_can_be_given_up(either: World) -> None:
    await fill(either)
    async with either.host() as host:
        with trio.CancelScope() as scope:
            await host.verify(lambda look, done, total: scope.cancel())
        assert scope.cancelled_caught
        assert (await host.verify()).sound


async def test_a_log_that_is_corrupt_is_not_called_sound_by_a_host_that_reads(tmp_path: Path) -> None:
    world = World(tmp_path / "store")
    await fill(world)
    segment = tmp_path / "store" / "log" / "00000001.seg"
    data = bytearray(segment.read_bytes())
    data[len(data) // 2 : len(data) // 2 + 64] = bytes(64)
    segment.write_bytes(data)
    async with open_host(tmp_path / "store", readonly=True) as host:
        report = await host.verify()
    assert not report.sound
    assert report.troubles[0].look == "log"
    assert str(report.troubles[0].place).startswith("segment 1, offset ")


@pytest.mark.parametrize("harm", [b"", b"half a write that a crash has left"])
async def test_a_host_and_the_command_line_find_the_same(tmp_path: Path, harm: bytes) -> None:
    folder = tmp_path / "store"
    await fill(World(folder))
    with open(folder / "log" / "00000001.seg", "ab") as segment:  # noqa: ASYNC230  # nothing else runs here
        segment.write(harm)
    said = keeve("verify", "--store", folder, "--json").json
    async with open_host(folder, readonly=True) as host:
        report = await host.verify()
    assert [trouble.harmless for trouble in report.troubles] == [True] * bool(harm)
    assert report.sound
    assert said == json.loads(json.dumps({"format": 1, "sound": True, **attrs.asdict(report)}))
