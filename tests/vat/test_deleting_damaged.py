"""Sessions that are damaged are deleted as any other: whatever of them cannot be read, and whoever leans on them."""

from __future__ import annotations

import os
from pathlib import Path
from random import Random
from typing import Any

import pytest
import trio
import trio.testing

from dataspace.encryption.key_file import unpacked
from dataspace.log.frames import Type
from dataspace.log.store import StoreDamaged
from dataspace.log.verdicts import SessionDamaged
from keeve import Session, blocking, open_host
from keeve.api import now
from tests.crash.damages import DAMAGES
from tests.crash.harms import flip_body, frames, lying
from tests.vat.hosts import Caller, Counter, World, carry_no_messages, flip, settled
from vat.errors import Deleted
from vat.host.salvaging import salvage

LONG = "a word that is longer than what stands in a record itself " * 8


@pytest.fixture
def disk(tmp_path: Path) -> World:
    return World(tmp_path / "store")


def log_of(disk: World) -> bytes:
    """All bytes of the log."""
    assert disk.folder is not None
    return b"".join(lying(path) for path in sorted((disk.folder / "log").glob("*.seg")))


HARMS = {
    "the facts of a record": lambda disk, host: flip(disk, host, "s1", 4, b"word 2"),
    "a text of a record": lambda disk, host: flip(disk, host, "s1", 7, b"a word that is longer"),
    "the newest record": lambda disk, host: flip(disk, host, "s1", host.row("s1").seq, b"the last"),
    "the first record": lambda disk, host: flip(disk, host, "s1", 1, b"test.counter"),
}


@pytest.mark.parametrize("catalog", [True, False], ids=["noted", "read anew"])
@pytest.mark.parametrize("harm", HARMS.values(), ids=list(HARMS))
async def test_a_damaged_session_is_deleted(disk: World, harm: Any, catalog: bool) -> None:
    """Invariant 23: A damaged session never stops another from being deleted, nor is it there for ever itself."""
    async with disk.host(reclaim=None) as host:
        s = await host.spawn(Counter, "s1")
        await host.spawn(Counter, "other")
        for number in range(4):
            await s.state(f"word {number}")
        twin = await s.fork(at=3, into="twin")  # before what is to be damaged, but for the first record
        await s.add("before")
        await s.add(LONG)
        await s.state("the last")
        await twin.add("of the twin")
        harm(disk, host)
    assert disk.folder is not None
    if not catalog:
        (disk.folder / "catalog.sqlite").unlink()
    first = harm is HARMS["the first record"]
    async with disk.host(reclaim=None) as host:
        name = next(row.id for row in host.sessions() if row.id not in ("other", "twin"))
        uid = host.row(name).uid
        assert name == (uid.hex() if first and not catalog else "s1")
        await host.delete(name)
        with pytest.raises(Deleted):
            await host.get(name)
        assert [row.id for row in host.sessions()] == ["other", "twin"]
        assert host.facts('(test.said "s1" _)', session=uid) == []
        assert [event.value.label for event in host.query("(deleted . _)", session=uid)] == ["deleted"]
        if not first:
            assert await (await host.get("twin")).seen == ["of the twin"]
            assert len(host.facts("(test.said . _)", session="twin", lineage=True)) == 2
        gone = await host.reclaim()
        assert gone.bodies > 0
    assert b"the last" not in log_of(disk)
    assert LONG.encode() not in log_of(disk)
    (disk.folder / "catalog.sqlite").unlink()
    async with disk.host() as host:
        assert name not in [row.id for row in host.sessions()]
        if not first:
            assert await (await host.get("twin")).seen == ["of the twin"]
            with pytest.raises(Deleted):
                await host.spawn(Counter, "s1")
            assert (await host.verify()).sound
        assert await (await host.get("other")).add() == 1


async def test_a_session_whose_snapshot_pages_are_damaged_is_deleted(disk: World) -> None:
    async with disk.host() as host:
        s = await host.spawn(Counter, "s1")
        for number in range(30):
            await s.add(f"{number}")
        await s.present()
        await s.snapshot()
    assert disk.folder is not None
    for path, frame in list(frames(disk.folder, Type.PAGE)):
        flip_body(path, frame)
    async with disk.host() as host:
        await host.delete("s1")
        assert host.sessions() == []
        assert host.facts("(test.here . _)") == []
        assert [event.kind for event in host.query('(test.here "s1")')] == ["retract"]


async def test_others_who_wait_for_a_damaged_session_are_told_when_it_is_deleted(disk: World) -> None:
    """Invariant 15: No promise is pending with nobody to settle it."""
    async with disk.host(dies=True) as host:
        s, caller = await host.spawn(Counter, "s1"), await host.spawn(Caller, "caller")
        await s.add("word")
        carry_no_messages(host)
        await caller.burst(s, "add", 1)
        await settled(host)
        flip(disk, host, "s1", 2, b"word")
    async with disk.host() as host:
        caller = await host.get("caller")
        await settled(host)
        assert await caller.answers == []
        observed: list[Any] = []

        async def listen() -> None:
            with pytest.raises(Exception) as caught:  # noqa: PT011  # either tells: it is damaged, and then deleted
                await anext(host.observe("(nothing)", session="s1"))
            observed.append(caught.value)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(listen)
            await settled(host)
            await host.delete("s1")
        await settled(host)
        assert await caller.answers == ["Deleted"]
        with pytest.raises(Deleted):
            await host.delete("s1")


async def test_presence_of_a_damaged_session_is_taken_back_once(disk: World) -> None:
    async with disk.host() as host:
        s = await host.spawn(Counter, "s1")
        await s.present()
        await s.add("word")
        flip(disk, host, "s1", 3, b"word")
    assert disk.folder is not None
    (disk.folder / "catalog.sqlite").unlink()
    async with disk.host() as host:
        head = host.observe("(_)", after="head").cursor
        await host.delete("s1")
        told = [(event.kind, event.value.label) for event in host.query("(_ . _)", after=head)]
        assert told == [("retract", "test.here"), ("assert", "deleted")]


async def test_two_deletions_of_a_damaged_session_make_one_tombstone(disk: World) -> None:
    async with disk.host() as host:
        s = await host.spawn(Counter, "s1")
        await s.add("word")
        flip(disk, host, "s1", 2, b"word")
    told: list[str] = []
    async with disk.host() as host, trio.open_nursery() as nursery:
        uid = host.row("s1").uid

        async def delete() -> None:
            try:
                await host.delete("s1")
                told.append("done")
            except Deleted:
                told.append("deleted")

        for _ in range(3):
            nursery.start_soon(delete)
    assert sorted(told) == ["deleted", "deleted", "done"]
    async with disk.host() as host:
        assert len(list(host.query("(deleted . _)", session=uid))) == 1


async def test_the_keys_of_a_damaged_session_are_destroyed_with_it(store_folder: Path) -> None:
    key, folder = bytes(range(32)), store_folder / "s"

    def held() -> int:
        return len(unpacked((folder / "keys").read_bytes(), key, "keys")[0].newest)

    async with open_host(folder, key=key) as host:
        s = await host.spawn(Session, "s1")
        await s.turn(LONG)
        await (await s.fork(into="twin")).turn("in the twin")
        await s.turn("the last")
        place = max(host.row("s1").position, 1)
        path, frame = [each for each in frames(folder, Type.RECORD) if each[1].head][place - 1]
    flip_body(path, frame)
    (folder / "catalog.sqlite").unlink()
    async with open_host(folder, key=key) as host:
        before = held()
        with pytest.raises(SessionDamaged):
            await (await host.get("s1")).turn("more")
        await host.delete("s1")
        assert held() == before - 1
        assert await (await host.get("twin")).history == [LONG, "in the twin"]
        await host.reclaim()
    async with open_host(folder, key=key) as host:
        assert [row.id for row in host.sessions()] == ["twin"]
        assert (await host.verify()).sound


def test_where_the_log_itself_is_damaged_a_session_is_deleted_from_what_was_salvaged(store_folder: Path) -> None:
    """Frames, chain, a segment that is missing: nothing is written there, and the new store takes the deletion."""
    old, new = store_folder / "old", store_folder / "new"
    with blocking.open_host(old) as host:
        s = host.spawn(Session, "s1")
        for number in range(3):
            s.turn(f"line {number}")
        host.spawn(Session, "other").turn("I go on")
    DAMAGES["a flipped bit in the header of a RECORD"](old, Random(1))
    (old / "catalog.sqlite").unlink()
    with blocking.open_host(old) as host, pytest.raises(StoreDamaged, match="keeve salvage"):
        host.delete("s1")
    salvage(old, new, now=now, salts=os.urandom)
    with blocking.open_host(new) as host:
        for row in host.sessions():
            host.delete(row.id)
        assert host.sessions() == []
        host.reclaim()
