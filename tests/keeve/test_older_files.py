"""Files of several ages in one store, as of a backup that was put back in part: what is told then, and what is kept."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from dataspace.log.frames import Type, record_head
from dataspace.log.packed import SegmentFile
from dataspace.records import Kind
from keeve import Session, Settings, open_host
from keeve.api import now
from keeve.errors import Deleted, IdInUse
from tests.crash.harms import frames
from tests.vat.hosts import store_of
from vat.host.salvaging import salvage

QUIET = Settings(reclaim=None, follow=1000.0)


def host_of(store: Path, **options: Any) -> Any:
    return open_host(store, settings=QUIET, segment_bytes=3000, **options)


def without_derived(store: Path) -> None:
    for path in (*store.glob("catalog*"), store / "head", store / "checkpoint"):
        path.unlink(missing_ok=True)


async def test_an_older_head_hides_nothing_of_a_log_that_nobody_owns(store_folder: Path) -> None:
    """A reader would show a past in which deleted sessions are there; one that knows better stays where it is."""
    async with host_of(store_folder) as host:
        await (await host.spawn(Session, "gone")).turn("for a while " * 40)
    older = (store_folder / "head").read_bytes()
    async with host_of(store_folder) as host:
        await host.delete("gone")
        await host.reclaim()
        await (await host.spawn(Session, "later")).turn("hello " * 100)
        position = store_of(host).head.position
    (store_folder / "head").write_bytes(older)
    async with open_host(store_folder, readonly=True, settings=QUIET) as reader:
        assert [row.id for row in reader.sessions()] == ["later"]
        assert (await reader.verify()).troubles == ()
        assert store_of(reader).refresh().position == position
        async with host_of(store_folder) as host:
            await (await host.get("later")).turn("and on")
            assert store_of(reader).refresh().position > position


async def test_an_id_stays_taken_when_what_its_first_record_said_has_gone(store_folder: Path) -> None:
    """A tombstone that a salvage makes says what every other does, so that the id needs nothing else."""
    store, saved = store_folder / "store", store_folder / "saved"
    async with host_of(store) as host:
        await (await host.spawn(Session, "gone")).turn("for a while")
        await host.spawn(Session, "kept")
    shutil.copytree(store / "log", store_folder / "older")
    async with host_of(store) as host:
        await host.delete("gone")
    shutil.rmtree(store / "log")
    (store_folder / "older").rename(store / "log")
    (store / "head").unlink()
    assert salvage(store, saved, now=now, salts=os.urandom).buried == ("gone",)
    async with host_of(saved) as host:
        await host.reclaim()
    without_derived(saved)
    async with host_of(saved) as host:
        assert (await host.verify()).sound
        with pytest.raises((IdInUse, Deleted)):
            await host.spawn(Session, "gone")


async def test_a_session_whose_first_record_has_gone_was_deleted(store_folder: Path) -> None:
    """Nothing but a tombstone takes a record's body: where that is lost, there would be a session without a name."""
    store, saved = store_folder / "store", store_folder / "saved"
    async with host_of(store) as host:
        gone = await host.spawn(Session, "gone")
        uid = host.row("gone").uid.hex()
        for _ in range(4):
            await gone.turn("for a while " * 40)
        await host.delete("gone")
        await host.reclaim()
    for path in sorted((store / "log").iterdir())[2:]:
        path.unlink()
    without_derived(store)
    assert salvage(store, saved, now=now, salts=os.urandom).buried == (uid,)
    async with host_of(saved) as host:
        assert host.sessions() == []
        assert (await host.verify()).sound


async def test_a_salvage_says_how_many_erasures_may_be_among_what_is_lost(store_folder: Path) -> None:
    store = store_folder / "store"
    async with host_of(store) as host:
        for id in ("first", "second"):
            await (await host.spawn(Session, id)).turn("a secret " * 200)
            await host.erase(id, turn=1)
    [(lost, _), _] = [each for each in frames(store, Type.RECORD) if record_head(each[1].head)[0].kind == Kind.ERASE]
    lost.unlink()
    assert salvage(store, store_folder / "saved", now=now, salts=os.urandom).unerased > 0


async def test_a_salvage_sees_that_the_end_is_missing_after_a_packed_segment(store_folder: Path) -> None:
    """A segment is packed when another one has followed, so that an end cut off there has left a trace."""
    store = store_folder / "store"
    async with host_of(store) as host:
        await (await host.spawn(Session, "s")).turn("a secret " * 200)
        await host.erase("s", turn=1)
    lie = [SegmentFile(path, number) for number, path in enumerate(sorted((store / "log").iterdir()), 1)]
    packed = [number for number, each in enumerate(lie, 1) if each.packed]
    for each in lie:
        each.close()
    for path in (store / "log").iterdir():
        if int(path.stem) > packed[0]:
            path.unlink()
    without_derived(store)
    found = salvage(store, store_folder / "saved", now=now, salts=os.urandom)
    assert not found.whole
    assert (found.missing, found.marked) == (1, 1)
