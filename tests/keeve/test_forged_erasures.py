"""What is gone from a store without a record that allows it, and what is there although a record says it is gone."""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from dataspace.log.archives import Archived
from dataspace.log.frames import Frame, Type, erased, record_head
from dataspace.log.packed import SegmentFile
from dataspace.log.verdicts import SessionDamaged
from dataspace.records import Kind
from dataspace.values import ERASED
from keeve import host_key
from keeve.errors import NothingToErase
from tests.cli_runner import keeve
from tests.crash.damages import frames
from tests.keeve.canaries import LONG, Keeper, converse, found, host_of
from vat.host.archiving import Archiving
from vat.host.host import Host
from vat.host.reports import Report
from vat.host.salvaging import salvage

SMALL: dict[str, Any] = {"segment_bytes": 30_000, "settings": {"reclaim": None}}


@asynccontextmanager
async def opened(folder: Path, **options: Any) -> AsyncIterator[Host]:
    async with host_of(folder, **{**SMALL, "settings": dict(SMALL["settings"]), **options}) as host:
        yield host


async def lived(folder: Path, **options: Any) -> None:
    """A store in which all went that can go: a turn, a session with and one without a fork, pages of old snapshots."""
    async with opened(folder, **options) as host:
        for id in ("talk", "parent", "gone"):
            await converse(host, id, "ONE is said", "TWO is said", "THREE is said")
        keeper = await host.spawn(Keeper, "keeper")
        for n in range(6):
            await keeper.keep(f"{n}{LONG}", 8)
            await keeper.snapshot()
        await (await (await host.get("parent")).fork(into="child")).turn("and on")
        await host.erase("talk", turn=1)
        for id in ("parent", "gone"):
            await host.delete(id)
        reclaimed = await host.reclaim()
        assert reclaimed.bodies
        assert reclaimed.pages


async def report_of(folder: Path, **options: Any) -> Report:
    async with opened(folder, **options) as host:
        return await host.verify()


def forge(folder: Path, which: Callable[[Frame, bytes], bool], kind: Type = Type.ERASED) -> bool:
    """Have the first frame of a store which is meant, and has its body, say that this is gone."""
    for path, frame in frames(folder):
        number = int(path.stem)
        file = SegmentFile(path, number)
        body, data = file.read(frame.body_offset, frame.body_length), bytearray(file.read(0, file.length))
        file.close()
        if frame.type == frame.was and which(frame, body):
            data[frame.offset : frame.offset + frame.size] = erased(frame, number, kind).ljust(frame.size, b"\0")
            path.write_bytes(data)
            return True
    return False


def is_record(kind: Kind) -> Callable[[Frame, bytes], bool]:
    return lambda frame, body: frame.type == Type.RECORD and record_head(frame.head)[0].kind == kind


def without_catalog(folder: Path) -> None:
    for path in folder.glob("catalog*"):
        path.unlink()


def says(word: bytes) -> Callable[[Frame, bytes], bool]:
    return lambda frame, body: frame.type == Type.CELL and word in body


@pytest.mark.parametrize("encrypted", [False, True])
async def test_all_that_goes_as_it_should_is_allowed_to(tmp_path: Path, encrypted: bool) -> None:
    options = {"key": host_key(tmp_path / "host.key", make=True)} if encrypted else {}
    await lived(tmp_path / "store", **options)
    report = await report_of(tmp_path / "store", **options)
    assert report.troubles == ()
    assert report.counts.erased > 50
    salvage(tmp_path / "store", tmp_path / "new", now=lambda: 1, salts=os.urandom, key=options.get("key"))
    report = await report_of(tmp_path / "new", **options)
    assert report.troubles == ()
    assert report.counts.erased > 50


@pytest.mark.parametrize("kind", [Type.ERASED, Type.ARCHIVED])
async def test_a_cell_that_nobody_erased_or_archived_is_named_and_refused(tmp_path: Path, kind: Type) -> None:
    """Invariant 25."""
    await lived(tmp_path)
    async with opened(tmp_path) as host:
        await converse(host, "late", "FIRST is said", "SECOND is said")
    assert forge(tmp_path, says(b"SECOND is said"), kind)
    async with opened(tmp_path) as host:
        report = await host.verify()
        (trouble,) = [each for each in report.troubles if each.look == "log"]
        assert (trouble.session, trouble.nature, report.integrity.verdict) == ("late", "altered", "altered")
        assert "cell 0" in trouble.what
        with pytest.raises((SessionDamaged, Archived)):
            await (await host.get("late")).history
        assert (await (await host.get("talk")).history)[0] == ERASED
    assert keeve("verify", "--store", tmp_path).code == 1


@pytest.mark.parametrize("catalog", [True, False])
async def test_a_body_of_a_living_session_or_of_the_store_itself_that_is_gone_is_named(
    tmp_path: Path, catalog: bool
) -> None:
    async with opened(tmp_path) as host:
        for id in ("first", "second"):
            await converse(host, id, "ONE is said")
        await host.erase("first", turn=1)

    assert forge(tmp_path, is_record(Kind.ERASE))
    assert forge(tmp_path, is_record(Kind.CRANK))
    if not catalog:
        without_catalog(tmp_path)
    told = [each for each in (await report_of(tmp_path)).troubles if "its body" in each.what]
    assert len(told) == 2
    assert {each.session is None for each in told} == {True, False}


async def test_what_a_living_fork_needs_of_a_deleted_parent_may_not_go(tmp_path: Path) -> None:
    await lived(tmp_path)
    async with opened(tmp_path) as host:
        await converse(host, "root", "SHARED is said")
        await (await (await host.get("root")).fork(into="branch")).turn("and on")
        await host.delete("root")
        await host.reclaim()
        assert (await host.verify()).troubles == ()
        assert (await (await host.get("branch")).history)[0] == "SHARED is said"
    assert forge(tmp_path, says(b"SHARED is said"))
    told = [each for each in (await report_of(tmp_path)).troubles if each.look == "log"]
    assert [each.session for each in told] == ["root"]


async def test_pages_of_the_newest_snapshots_may_not_go(tmp_path: Path) -> None:
    async with opened(tmp_path) as host:
        keeper = await host.spawn(Keeper, "keeper")
        for n in range(3):
            await keeper.keep(f"{n}{LONG}", 8)
            await keeper.snapshot()
    newest = [each.offset for _, each in frames(tmp_path) if each.type == Type.PAGE][-1]
    assert forge(tmp_path, lambda frame, body: frame.type == Type.PAGE and frame.offset == newest)
    assert any("page" in each.what and each.session == "keeper" for each in (await report_of(tmp_path)).troubles)


async def test_an_older_file_of_a_segment_brings_nothing_back(tmp_path: Path) -> None:
    """Invariant 11: What was erased is read by nobody, whatever is in the files; and it is told, and goes again."""
    store, old = tmp_path / "store", tmp_path / "old"
    async with opened(store) as host:
        for id in ("talk", "gone"):
            await converse(host, id, f"{id}CANARY is said", "and more")
        await converse(host, "other", *[f"{n}{LONG}" * 9 for n in range(9)])
    shutil.copytree(store / "log", old)
    async with opened(store) as host:
        await host.erase("talk", turn=1)
        await host.delete("gone")
        await host.reclaim()
    assert not found(store, "talkCANARY", "goneCANARY")
    for path in sorted(old.iterdir())[:-1]:
        shutil.copy(path, store / "log" / path.name)
    assert found(store, "talkCANARY")
    doctor, verified = keeve("doctor", "--store", store), keeve("verify", "--store", store)
    assert "older file" in doctor.out
    assert (verified.code, verified.out.count("keeve gc")) >= (1, 2)
    async with opened(store) as host:
        assert (await (await host.get("talk")).history)[0] == ERASED
        with pytest.raises(NothingToErase):
            await host.erase("talk", turn=1)
        told = {each.session for each in (await host.verify()).troubles}
        assert told == {"talk", "gone"}
        await host.reclaim()
        assert not found(store, "talkCANARY", "goneCANARY")
        assert (await host.verify()).troubles == ()


async def test_a_salvage_says_what_it_has_left_out(tmp_path: Path) -> None:
    """What was erased before is told apart in the new store from what somebody takes out of it later."""
    store, new = tmp_path / "store", tmp_path / "new"
    async with opened(store) as host:
        await converse(host, "talk", "ONE is said", "TWO is said")
        await host.erase("talk", turn=1)
    salvage(store, new, now=lambda: 1, salts=os.urandom)
    assert (await report_of(new)).troubles == ()
    assert forge(new, says(b"TWO is said"))
    report = await report_of(new)
    assert {each.session for each in report.troubles} == {"talk"}
    again = tmp_path / "again"
    salvage(new, again, now=lambda: 1, salts=os.urandom)
    async with opened(again) as host:
        assert (await (await host.get("talk")).history)[0] == ERASED


async def test_what_archiving_had_begun_to_take_is_allowed_to_be_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A host that dies before it has said how much went has said that it was about to go."""

    async def nothing(*_: object) -> None: ...

    monkeypatch.setattr(Archiving, "_said", nothing)
    store = tmp_path / "store"
    async with opened(store) as host:
        await converse(host, "talk", *[f"{n} is said{LONG * 9}" for n in range(6)])
        assert (await host.archive(tmp_path / "cold", idle=True)).pieces
    (tmp_path / "cold").rename(tmp_path / "away")
    report = await report_of(store)
    assert report.counts.away
    assert report.troubles == ()
