"""What records did goes to an archive as well: sessions go on from a base, and who goes back behind it is told."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from dataspace.log.archives import Archived
from dataspace.log.frames import Type, record_head
from dataspace.log.store import BodyErased
from dataspace.records import Kind
from keeve import ERASED, Settings, Text, open_host, signing_key
from keeve.testing.crashes import CrashFiles
from keeve.testing.hosts import FakeClock
from snapshots.cache import PageCache
from tests.crash.damages import frames
from tests.dataspace.segment_folders import opened
from tests.keeve.canaries import found
from tests.keeve.test_archives import (
    LONG,
    NEW,
    SAID,
    Note,
    heard,
    host_of,
    take_away,
    talked,
    without_catalog,
    written,
)
from tests.vat.hosts import settled
from vat.heap.restore import Lineage, restore
from vat.host import basing
from vat.host.host import Host
from vat.host.salvaging import salvage
from vat.host.within import dataspace_of


@pytest.fixture(autouse=True)
def _worth(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bases are written for the little that these sessions do."""
    monkeypatch.setattr(basing, "WORTH", 1)


def world(folder: Path, **options: Any) -> Any:
    """A host on a disk that syncs nothing: nobody dies here."""
    return host_of(folder, files=CrashFiles(), **options)


def restored_from(host: Host, id: str, without: int | None = None) -> int:
    """The snapshot from which a session is restored, of those before a seq."""
    space = dataspace_of(host)
    row = space.catalog.session(id)
    assert row is not None
    lineage = Lineage(row.uid, space.catalog, space.store.read)
    return restore(lineage, space.catalog, PageCache(1 << 20), row.seq, without=without).snapshot


async def base_of(host: Host, id: str) -> int:
    """The seq of a session's newest base."""
    return [event.seq async for event in host.observe(f'(base "{id}" . _)', after="start", until="head")][-1]


async def test_sessions_go_on_without_what_their_records_did(tmp_path: Path) -> None:
    """Invariants 21 and 22: No restore, no catalog, no fact and no receipt needs what a base stands for."""
    async with world(tmp_path, signer=signing_key(tmp_path / "key", make=True)) as host:
        await written(host)
        said = await talked(host, "s")
        turns = await heard(host, "(turn . _)")
        done = await host.archive(tmp_path / "archive", records=True)
        assert done.records > 20
        assert (done.bases, done.whole) == (2, ())
        assert await heard(host, "(turn . _)") == turns
        report = await host.verify()
        assert report.sound, report.troubles
        assert (report.counts.archived, report.counts.away) == (done.pieces, 0)
        kept = host.checkpoint()
    take_away(tmp_path)
    without_catalog(tmp_path)
    async with world(tmp_path, expect=kept) as host:
        assert {row.id for row in host.sessions()} == {"n", "s"}
        note = await host.get("n")
        assert await note.text == f"{NEW}{LONG}"
        assert await note.write(Text("and on")) == 14
        s = await host.get("s")
        assert list(await s.messages) == said
        assert await heard(host, "(turn . _)") == turns
        async for event in host.observe('(turn ?n "s" . _)', after="start", until="head"):
            dataspace_of(host).proof(event).verify(event)
        await s.turn("going on")
        report = await host.verify(expect=kept)
        assert report.sound, report.troubles
        assert report.counts.away == report.counts.archived >= done.records


async def test_who_goes_back_behind_a_base_is_told_where_the_archive_should_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Invariant 22: What is elsewhere is an error that names the place, and no session is made that could not go on."""
    async with world(tmp_path) as host:
        note = await written(host)
        await host.archive(tmp_path / "archive", records=True)
        assert host.look("n", lambda seen: seen.seq, at=4) == 4
        with monkeypatch.context() as patch:
            patch.setattr("vat.heap.restore.follow", None)  # nothing is replayed to see that all of it is there
            twin = await note.fork(at=4, into="twin")
        assert await twin.write(Text("another way")) == 4
    take_away(tmp_path)
    async with world(tmp_path) as host:
        note = await host.get("n")
        with pytest.raises(Archived, match=str(tmp_path / "archive")):
            host.look("n", lambda seen: seen.seq, at=4)
        with pytest.raises(Archived):
            await note.fork(at=4, into="unborn")
        assert [row.id for row in host.sessions()] == ["n", "twin"]
        assert await (await note.fork()).count == 13
        await host.bring_back(tmp_path / "elsewhere")
        shutil.rmtree(tmp_path / "elsewhere")
        assert await (await note.fork(at=4)).count == 3
        report = await host.verify()
        assert (report.sound, report.counts.archived) == (True, 0), report.troubles


async def test_a_session_is_restored_from_its_newest_base_when_all_newer_snapshots_are_bad(tmp_path: Path) -> None:
    """Invariant 21: However many there are; and reclaiming leaves a base until a newer one has taken its place."""
    async with world(tmp_path) as host:
        note = await written(host)
        await host.archive(tmp_path / "archive", records=True)
        first = await base_of(host, "n")
        for n in range(10):
            await note.write(Text(f"{n}{LONG}"))
            await note.snapshot()
        assert (await host.archive(tmp_path / "archive", before=first)).bases == 0
        await host.reclaim()
        assert restored_from(host, "n") > first
        assert restored_from(host, "n", without=first + 1) == first
        done = await host.archive(tmp_path / "archive", records=True)
        assert (done.bases, done.records > 3) == (1, True)
        second = await base_of(host, "n")
        await note.snapshot()
        await host.reclaim()
        report = await host.verify()
        assert report.sound, report.troubles
    take_away(tmp_path)
    async with world(tmp_path) as host:
        assert restored_from(host, "n", without=second + 1) == second > first
        with pytest.raises(Archived):
            restored_from(host, "n", without=second)
        assert await (await host.get("n")).count == 23


async def test_where_the_newest_base_does_not_stand_an_older_one_is_gone_on_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Invariant 21: And not from the beginning, which may be away."""
    async with world(tmp_path) as host:
        note = await written(host)
        await host.archive(tmp_path / "archive", records=True)
        first = await base_of(host, "n")
        for n in range(4):
            await note.write(Text(f"{n}{LONG}"))
        await host.archive(tmp_path / "archive", records=True)
        second = await base_of(host, "n")
        real = basing.stands
        monkeypatch.setattr(basing, "stands", lambda *given: given[2].seq != second and real(*given))
        row = dataspace_of(host).catalog.session("n")
        assert row is not None
        works = basing.Basing(host._engine, dataspace_of(host).store)  # type: ignore[arg-type]  # likewise
        found = works._standing(row.uid)
        assert found is not None
        assert found.seq == first < second


async def test_forks_have_bases_of_their_own_or_their_parents_and_go_on_without_that(tmp_path: Path) -> None:
    """Invariant 26: What a fork goes back to stays, whatever its parent needs and whether it lives."""
    async with world(tmp_path) as host:
        note = await host.spawn(Note, "n")
        for n in range(4):
            await note.write(Text(f"{n}{LONG}"))
        await note.fork(into="early")
        for n in range(12):
            await note.write(Text(f"{n}{LONG}"))
        assert (await host.archive(tmp_path / "archive", records=True)).bases == 2
        await note.fork(into="late")
    take_away(tmp_path)
    async with world(tmp_path) as host:
        for id, count in (("early", 4), ("late", 16), ("n", 16)):
            assert await (await host.get(id)).count == count
        await host.delete("n")
        await host.reclaim()
    async with world(tmp_path) as host:
        for id, count in (("early", 4), ("late", 16)):
            assert await (await host.get(id)).write(Text("on")) == count + 1
        report = await host.verify()
        assert report.sound, report.troubles


async def test_who_can_write_no_base_keeps_what_its_records_did(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Invariants 16 and 45: A fiber that waits, a type that is not here, a base that is not what it was made of."""
    async with world(tmp_path, clock=FakeClock()) as host:
        twin = await (await written(host)).fork(into="twin")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(twin.wait)
            await settled(host)
            assert host._engine.turns.unload(twin._uid)
            done = await host.archive(tmp_path / "archive", records=True)
            assert (done.whole, done.records, done.bases) == (("twin",), 0, 1)  # its parent has one behind it
            assert host._engine.residents.get(twin._uid).vat is None  # nobody has loaded it for that
            nursery.cancel_scope.cancel()
        await written(host, "m")
        with monkeypatch.context() as patch:
            patch.setattr(basing, "stands", lambda *arguments: False)
            done = await host.archive(tmp_path / "archive", records=True)
            assert (done.whole, done.records, done.bases) == (("m", "n", "twin"), 0, 0)
    settings = Settings(reclaim=None)
    async with open_host(tmp_path / "store", settings=settings, segment_bytes=10_000, files=CrashFiles()) as host:
        done = await host.archive(tmp_path / "archive", records=True)
        # What has a base goes, by whomever it was written; nobody here could write one.
        assert (done.whole, done.bases, done.records > 9) == (("twin",), 0, True)
    take_away(tmp_path)
    async with world(tmp_path, clock=FakeClock()) as host:
        assert host.look("twin", lambda seen: seen.seq, at=4) == 4
        assert await (await host.get("m")).count == 13
        with pytest.raises(Archived):
            host.look("m", lambda seen: seen.seq, at=4)


async def test_what_is_erased_or_deleted_comes_back_by_no_base_and_no_archive(tmp_path: Path) -> None:
    """Invariant 26."""
    async with world(tmp_path) as host:
        await talked(host, "s", 5)
        await talked(host, "t", 5)
        assert await host.erase("s", turn=2) > 0
        await host.archive(tmp_path / "archive", records=True)
        assert await host.erase("s", turn=3) > 0
        assert not found(tmp_path, f"{SAID} s 1", f"{SAID} s 2")
        await host.delete("t")
        await host.reclaim()
        assert not found(tmp_path, f"{SAID} t")
        await host.bring_back()
        assert not found(tmp_path, f"{SAID} s 1", f"{SAID} s 2", f"{SAID} t")
        assert list(await (await host.get("s")).history)[1:3] == [ERASED, ERASED]
        report = await host.verify()
        assert report.sound, report.troubles


async def test_of_an_encrypted_store_what_is_left_is_sealed_as_well(tmp_path: Path) -> None:
    key = b"k" * 32
    async with world(tmp_path, key=key) as host:
        note = await written(host)
        await note.fork(into="twin")
        await note.write(Text("on"))
        done = await host.archive(tmp_path / "archive", records=True)
        assert (done.bases, done.records > 9) == (2, True)
        assert not found(tmp_path, "test.wrote")
    take_away(tmp_path)
    without_catalog(tmp_path)
    async with world(tmp_path, key=key) as host:
        assert await (await host.get("twin")).count == 13
        assert await (await host.get("n")).count == 14
        assert len([event async for event in host.observe("(base . _)", after="start", until="head")]) == 2
        report = await host.verify()
        assert report.sound, report.troubles
        await host.delete("n")
        await host.bring_back(tmp_path / "elsewhere")
        assert await (await (await host.get("twin")).fork(at=4)).count == 3


async def test_what_records_did_goes_after_what_idle_sessions_said(tmp_path: Path) -> None:
    async with world(tmp_path) as host:
        await talked(host, "s", 16)
        first = await host.archive(tmp_path / "archive", keep=1, idle=True)
        second = await host.archive(tmp_path / "archive", keep=1, idle=True, records=True)
        assert (first.records, second.records > 10, second.bases) == (0, True, 1)
        assert (await host.archive(tmp_path / "archive", keep=1, idle=True, records=True)).bases == 0
        await host.bring_back()
        shutil.rmtree(tmp_path / "archive")
        assert len(list(await (await host.get("s")).history)) == 16
        report = await host.verify()
        assert (report.sound, report.counts.archived) == (True, 0), report.troubles


def test_a_salvage_without_the_archive_keeps_sessions_by_their_bases(tmp_path: Path) -> None:
    """Invariant 21."""

    async def make() -> None:
        async with world(tmp_path) as host:
            note = await written(host)
            await host.archive(tmp_path / "archive", records=True)
            await note.write(Text("and on"))

    async def look() -> None:
        async with world(tmp_path / "new") as host:
            note = await host.get("n")
            assert await note.count == 14
            assert await note.write(Text("further")) == 15
            report = await host.verify()
            assert report.sound, report.troubles
            with pytest.raises(BodyErased):
                host.look("n", lambda seen: seen.seq, at=4)

    trio.run(make)
    take_away(tmp_path)
    (tmp_path / "new").mkdir()
    saved = salvage(tmp_path / "store", tmp_path / "new" / "store", now=int, salts=os.urandom)
    assert (saved.lost, saved.missing, saved.away > 9) == ((), 0, True)
    trio.run(look)


def test_a_base_with_a_bad_page_is_done_without_while_the_archive_is_there(tmp_path: Path) -> None:
    """Invariant 22: And when it is not, that is asked for; nothing is called lost."""

    async def make() -> None:
        async with world(tmp_path) as host:
            await written(host)
            await host.archive(tmp_path / "archive", records=True)

    async def look(there: bool) -> None:
        async with world(tmp_path) as host:
            note = await host.get("n")
            if there:
                assert await note.count == 13
            else:
                with pytest.raises(Archived, match=str(tmp_path / "archive")):
                    await note.count
            report = await host.verify()
            assert (report.integrity.verdict, report.counts.away == 0) == ("damaged", there)

    trio.run(make)
    base = False
    for path, frame in frames(tmp_path / "store"):
        if frame.type == Type.RECORD:
            base = record_head(frame.head)[0].kind == Kind.BASE
        elif base:
            data = bytearray(path.read_bytes())
            data[frame.body_offset + 20] ^= 1
            path.write_bytes(data)
    without_catalog(tmp_path)  # so that the log is looked at from its beginning
    trio.run(look, True)
    take_away(tmp_path)
    trio.run(look, False)


def test_what_records_did_and_somebody_took_out_is_named(tmp_path: Path) -> None:
    """Invariant 25: What no record of the store's chain tells of was taken out by a hand, however well all fits."""

    async def make() -> None:
        async with world(tmp_path) as host:
            await written(host, times=4)

    async def look() -> None:
        async with world(tmp_path) as host:
            report = await host.verify()
            assert report.integrity.verdict == "altered"
            assert any("its message and operations (archived, it says): gone" in each.what for each in report.troubles)

    trio.run(make)
    store = opened(tmp_path / "store")
    store.seal(0)
    assert store.archive(1, tmp_path / "archive", lambda *cell: True, leaves=lambda *record: True).records == 5
    store.close()
    take_away(tmp_path)
    trio.run(look)
