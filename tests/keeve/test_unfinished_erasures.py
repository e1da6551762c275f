"""Erasures that cannot be ended yet: from their record on nobody reads what is erased, whatever is in the files."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from dataspace.log.files import DiskFull
from dataspace.log.frames import Frame, Type, record_head
from dataspace.log.withheld import Withheld
from dataspace.records import Kind
from dataspace.values import ERASED
from keeve import host_key
from keeve.api import now
from keeve.errors import ErasureUnfinished, NothingToErase
from tests.cli_runner import keeve
from tests.crash.harms import flip_body, frames
from tests.full_disks import TightDisk
from tests.keeve.canaries import Keeper, Model, converse, found, host_of
from tests.vat.hosts import store_of
from vat.host.host import Host
from vat.host.salvaging import salvage

FIRST, SECOND = "CANARYONE", "CANARYTWO"
NEVER: dict[str, Any] = {"settings": {"reclaim": None}}


@pytest.fixture(params=["plain", "encrypted"])
def options(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, Any]:
    """How to open a store: in the clear, and with a key."""
    return {} if request.param == "plain" else {"key": host_key(tmp_path / "host.key", make=True)}


async def unfinished(folder: Path, **options: Any) -> None:
    """A store with a turn that is erased, and whose bytes lie in it yet."""
    disk = TightDisk()
    async with host_of(folder, files=disk, **options) as host:
        await converse(host, "talk", f"{FIRST} is said", f"{SECOND} is said")
        disk.full = True
        with pytest.raises(ErasureUnfinished):
            await host.erase("talk", turn=1)


@asynccontextmanager
async def left(folder: Path, **options: Any) -> AsyncIterator[Host]:
    """A host of such a store, whose disk is as full as it was."""
    async with host_of(folder, files=TightDisk(full=True), **options) as host:
        yield host


async def told(host: Host) -> str:
    """All that a host tells of such a session: what is in it, and what was said in the store."""
    talk = await host.get("talk")
    held = host.facts("(_ . _)")
    facts = [event.value async for event in host.observe("(_ . _)", until="head")]
    return f"{await talk.history} {await talk.messages} {await talk.describe()} {facts} {held}"


async def test_the_host_that_erased_reads_it_no_more_and_tells_nobody(tmp_path: Path, options: dict[str, Any]) -> None:
    """Invariant 11: A disk that is full is told; what it could not do is not taken for undone."""
    folder, disk, model = tmp_path / "store", TightDisk(), Model()
    async with host_of(folder, files=disk, model=model, **options) as host:
        await converse(host, "talk", f"{FIRST} is said", f"{SECOND} is said")
        disk.full = True
        with pytest.raises(ErasureUnfinished, match=r"make space.*keeve gc") as caught:
            await host.erase("talk", turn=1)
        assert caught.value.pieces > 3
        assert isinstance(caught.value.cause, DiskFull)
        assert FIRST not in await told(host)
        assert SECOND in await told(host)
        del model.asked[:]
        talk = await host.get("talk")
        live = host.observe("(_ . _)", after="head")
        await talk.turn("go on")
        async for event in live:
            assert FIRST not in str(event.value)
            if event.value.label == "turn-done":
                break
        child = await talk.fork(into="child")
        await child.turn("go on")
        assert "go on" in str(model.asked)
        assert FIRST not in f"{model.asked} {await child.messages}"
        if not options:
            assert found(folder, FIRST), "the bytes are there, or there is nothing to show"


async def test_the_next_host_reads_it_no_more_either(tmp_path: Path, options: dict[str, Any]) -> None:
    folder = tmp_path / "store"
    await unfinished(folder, **options)
    for _ in range(2):
        async with left(folder, **options) as host:
            assert (await (await host.get("talk")).history)[0] is ERASED
            assert FIRST not in await told(host)
            await (await host.get("talk")).turn("go on")
            assert FIRST not in await told(host)
        (folder / "catalog.sqlite").unlink()  # and whoever makes the catalog anew


async def test_nor_does_a_host_that_only_reads(tmp_path: Path, options: dict[str, Any]) -> None:
    folder = tmp_path / "store"
    await unfinished(folder, **options)
    for _ in range(2):
        async with host_of(folder, readonly=True, **options) as host:
            assert FIRST not in await told(host)
            assert SECOND in await told(host)
        (folder / "catalog.sqlite").unlink(missing_ok=True)  # and whoever makes one anew


async def test_nor_does_one_that_has_read_it_before(tmp_path: Path, options: dict[str, Any]) -> None:
    folder, disk = tmp_path / "store", TightDisk()
    async with host_of(folder, files=disk, **options) as owner:
        await converse(owner, "talk", f"{FIRST} is said", f"{SECOND} is said")
        await (await owner.get("talk")).fork(into="child")
        async with host_of(folder, readonly=True, settings={"follow": 0.01}, **options) as reader:
            for id in ("talk", "child"):
                assert FIRST in str(await (await reader.get(id)).messages)
            assert FIRST in await told(reader)
            disk.full = True
            with pytest.raises(ErasureUnfinished):
                await owner.erase("talk", turn=1)
            for id in ("talk", "child"):
                assert FIRST not in str(await (await reader.get(id)).messages)
            assert FIRST not in await told(reader)
            disk.full = False
            await owner.erase("child", turn=2)
            await owner.reclaim()
            for id in ("talk", "child"):
                said = str(await (await reader.get(id)).messages)
                assert FIRST not in said
                assert SECOND not in said


async def test_when_there_is_space_the_next_host_ends_it(tmp_path: Path, options: dict[str, Any]) -> None:
    folder = tmp_path / "store"
    await unfinished(folder, **options)
    async with host_of(folder, **NEVER, **options) as host:
        assert len(store_of(host).withheld) == 0
        assert FIRST not in await told(host)
        with pytest.raises(NothingToErase):
            await host.erase("talk", turn=1)
        report = await host.verify()
        assert report.sound, report.troubles
        assert report.withheld == 0
        assert report.counts.erased > 3
    assert found(folder, FIRST) == []


async def test_a_host_tries_again_by_itself(tmp_path: Path) -> None:
    folder, disk = tmp_path / "store", TightDisk()
    async with host_of(folder, files=disk, settings={"reclaim": 0.01}) as host:
        await converse(host, "talk", f"{FIRST} is said", f"{SECOND} is said")
        disk.full = True
        with pytest.raises(ErasureUnfinished):
            await host.erase("talk", turn=1)
        disk.full = False
        with trio.fail_after(60):
            while found(folder, FIRST):  # noqa: ASYNC110  # nothing else tells of it
                await trio.sleep(0.01)
        assert FIRST not in await told(host)


async def test_erasing_it_again_works_on_what_is_left(tmp_path: Path) -> None:
    folder, disk = tmp_path / "store", TightDisk()
    async with host_of(folder, files=disk, **NEVER) as host:
        await converse(host, "talk", f"{FIRST} is said", f"{SECOND} is said")
        seq = next(event.seq for event in host.query("(turn 1 . _)"))
        disk.full = True
        with pytest.raises(ErasureUnfinished) as first:
            await host.erase("talk", turn=1)
        with pytest.raises(ErasureUnfinished):
            await host.erase("talk", turn=1)
        with pytest.raises(ErasureUnfinished):
            await host.erase("talk", seq=seq)
        with pytest.raises(NothingToErase):
            await host.erase("talk", turn=9)
        with pytest.raises(ErasureUnfinished) as more:
            await host.erase("talk", turn=2)
        assert more.value.pieces > first.value.pieces
        assert SECOND not in await told(host)
        disk.full = False
        assert await host.erase("talk", turn=1) >= first.value.pieces
        assert found(folder, FIRST, SECOND) == []
        for turn in (1, 2):
            with pytest.raises(NothingToErase):
                await host.erase("talk", turn=turn)
        assert (await host.verify()).sound


async def test_what_the_disk_refused_while_reclaiming_is_undone_and_said_so(tmp_path: Path) -> None:
    folder, disk = tmp_path / "store", TightDisk()
    async with host_of(folder, files=disk, **NEVER) as host:
        await converse(host, "talk", f"{FIRST} is said")
        await host.delete("talk")
        disk.full = True
        with pytest.raises(DiskFull, match="make space, then try again") as caught:
            await host.reclaim()
        assert caught.value.undone
        assert not (folder / "log" / "erasing.new").exists()
        disk.full = False
        await host.reclaim()
    assert found(folder, FIRST) == []


def test_commands_do_not_show_it_and_say_that_it_is_not_ended(tmp_path: Path) -> None:
    trio.run(unfinished, tmp_path)
    for command in (("show", "talk"), ("log", "(_ . _)"), ("log", "(_ . _)", "--json"), ("show", "talk", "--json")):
        said = keeve(*command, "--store", tmp_path)
        assert FIRST not in said.out + said.err
        assert said.code == 0
    verified, doctor = keeve("verify", "--store", tmp_path), keeve("doctor", "--store", tmp_path)
    assert verified.code == doctor.code == 0
    assert "of content that nobody reads any more may lie in the files yet" in verified.out
    assert "of content that nobody reads any more may lie in the files yet" in doctor.out
    assert keeve("verify", "--store", tmp_path, "--json").json["withheld"] > 3
    keeve("gc", "--store", tmp_path)
    assert found(tmp_path, FIRST) == []
    for command in ("verify", "doctor"):
        assert "nobody reads any more" not in keeve(command, "--store", tmp_path).out


async def test_what_was_kept_in_any_way_is_withheld(tmp_path: Path, options: dict[str, Any]) -> None:
    """A record with a hundred cells, in fields, collections and facts."""
    folder, long = tmp_path / "store", FIRST + " and so on" * 40
    disk = TightDisk()
    async with host_of(folder, files=disk, **options) as host:
        keeper = await host.spawn(Keeper, "s", last="nothing")
        await keeper.keep(long, 100)
        disk.full = True
        with pytest.raises(ErasureUnfinished):
            await host.erase("s", seq=2)
    for readonly in (True, False):
        async with host_of(folder, files=TightDisk(full=True), readonly=readonly, **options) as host:
            keeper = await host.get("s")
            assert set(await keeper.lines) == set((await keeper.by_name).values()) == {ERASED}
            assert await keeper.last is ERASED
            assert [event.value.keywords["long"] for event in host.query("(tests.kept . _)")] == [ERASED]


async def test_these_tests_fail_where_nothing_is_withheld(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Invariant 45."""
    folder = tmp_path / "store"
    await unfinished(folder)
    monkeypatch.setattr(Withheld, "has", lambda *_: False)
    async with host_of(folder, readonly=True) as host:
        assert FIRST in await told(host)
    async with left(folder) as host:
        assert FIRST in await told(host)


def erasure(folder: Path) -> tuple[Path, Frame]:
    """The record that says what is erased, and its file."""
    (one,) = [each for each in frames(folder, Type.RECORD) if record_head(each[1].head)[0].kind == Kind.ERASE]
    return one


async def test_an_erasure_that_cannot_be_read_and_was_not_ended_is_said_by_a_salvage(tmp_path: Path) -> None:
    """What it took out may be there again: nothing else says what that was. One that was ended took it out for good."""
    folder = tmp_path / "store"
    await unfinished(folder)
    path, record = erasure(folder)
    whole = path.read_bytes()
    flip_body(path, record)
    salvaged = salvage(folder, tmp_path / "told", now=now, salts=os.urandom)
    assert salvaged.unerased == 1
    path.write_bytes(whole)
    async with host_of(folder) as host:  # which ends it
        await host.reclaim()
    flip_body(*erasure(folder))
    assert salvage(folder, tmp_path / "ended", now=now, salts=os.urandom).unerased == 0
    assert not found(tmp_path / "ended", FIRST)
