"""Stores of every kind, salvaged: encrypted ones, and those in which something was erased or deleted."""

from __future__ import annotations

import os
from pathlib import Path
from random import Random
from typing import Any

import pytest
from attrs import evolve

from actors.session import Session
from dataspace.catalog.connections import connect
from dataspace.encryption.errors import HostKeyNeeded, WrongHostKey
from dataspace.errors import KeeveError
from dataspace.log.frames import Type, record_head
from dataspace.log.notices import erase
from dataspace.log.segments import SegmentStore
from dataspace.records import STORE_UID, Kind
from keeve import Settings, open_host
from keeve.api import now
from tests.crash.damages import DAMAGES, Lying, frames
from tests.crash.harms import flip_body
from vat.host import salvaging
from vat.host.aftermath import Salvaged, buried
from vat.host.reclaiming import Reclaiming
from vat.host.salvaging import salvage

KEY = bytes(range(32))
SECRET = "a sentence that nobody else is to read " * 8


def salvaged(old: Path, new: Path, **how: Any) -> Salvaged:
    return salvage(old, new, now=now, salts=os.urandom, **how)


async def messages(store: Path, **options: Any) -> dict[str, Any]:
    async with open_host(store, readonly=True, **options) as host:
        return {row.id: await (await host.get(row.id)).messages for row in host.sessions()}


async def encrypted(store: Path) -> None:
    async with open_host(store, key=KEY) as host:
        for id in ("one", "other"):
            session = await host.spawn(Session, id)
            await session.turn(f"{id}: {SECRET}")
            await session.turn("again")
            await session.snapshot()
        await (await (await host.get("one")).fork(into="twin")).turn("in the twin")


def cranks(store: Path) -> list[Lying]:
    """Where the records of cranks lie."""
    records = [each for each in frames(store) if each.frame.type == Type.RECORD]
    return [each for each in records if record_head(each.frame.head)[0].kind == Kind.CRANK]


def holds(store: Path, content: bytes) -> bool:
    return any(content in path.read_bytes() for path in store.rglob("*") if path.is_file())


async def test_an_encrypted_store_is_salvaged_under_its_own_keys(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    await encrypted(old)
    before = await messages(old, key=KEY)
    found = salvaged(old, new, key=KEY)
    assert found.whole
    assert await messages(new, key=KEY) == before
    assert not holds(new, SECRET[:20].encode())
    async with open_host(new, key=KEY) as host:
        assert (await host.verify()).sound
        await (await host.get("twin")).turn("and on")
        await (await host.get("one")).fork(into="later")
    with pytest.raises(HostKeyNeeded):
        await messages(new)


@pytest.mark.parametrize("reclaimed", [False, True], ids=["deleted", "reclaimed"])
async def test_an_encrypted_store_in_which_sessions_were_deleted_is_salvaged(tmp_path: Path, reclaimed: bool) -> None:
    """Their keys are destroyed: what forks share of them is written anew under the keys that these hold."""
    old, new = tmp_path / "old", tmp_path / "new"
    await encrypted(old)
    async with open_host(old, key=KEY) as host:
        one = await host.get("one")
        await one.turn("after the twin")
        await (await (await host.get("twin")).fork(into="third")).turn("in the third")
        for id in ("one", "twin", "other"):
            await host.delete(id)
        if reclaimed:
            await host.reclaim()
    before = await messages(old, key=KEY)
    assert salvaged(old, new, key=KEY).whole
    assert list(before) == ["third"]
    assert await messages(new, key=KEY) == before
    async with open_host(new, key=KEY) as host:
        assert [row.id for row in host.sessions(deleted=True) if row.deleted] == ["one", "other", "twin"]
        report = await host.verify()
        assert report.sound, report.troubles
        await (await host.get("third")).turn("and on")
        await host.delete("third")
        await host.reclaim()


@pytest.mark.parametrize("seed", range(3))
async def test_a_damaged_encrypted_store_keeps_what_is_sound_at_other_positions(tmp_path: Path, seed: int) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    await encrypted(old)
    before = await messages(old, key=KEY)
    DAMAGES["a flipped bit in the header of a RECORD" if seed else "a flipped bit in the body of a CELL"](
        old, Random(seed)
    )
    found = salvaged(old, new, key=KEY)
    assert not found.whole
    lost = {each.session for each in found.lost if each.uid != STORE_UID.hex()}
    after = await messages(new, key=KEY)
    for id, said in after.items():
        if id not in lost:
            assert len(said) == len(before[id])
            assert said == before[id] or found.holes
    async with open_host(new, key=KEY) as host:
        assert (await host.verify()).troubles == ()


async def test_without_the_right_key_nothing_is_made(tmp_path: Path) -> None:
    """Invariant 43."""
    await encrypted(tmp_path / "old")
    with pytest.raises(HostKeyNeeded):
        salvaged(tmp_path / "old", tmp_path / "new")
    with pytest.raises(WrongHostKey):
        salvaged(tmp_path / "old", tmp_path / "new", key=bytes(32))
    assert os.listdir(tmp_path) == ["old"]


async def test_a_deleted_session_stays_deleted_though_something_before_its_tombstone_is_lost(tmp_path: Path) -> None:
    """Invariant 25."""
    old, new = tmp_path / "old", tmp_path / "new"
    async with open_host(old) as host:
        for id in ("kept", "gone"):
            await (await host.spawn(Session, id)).turn(SECRET)
        await host.delete("gone")
    flip_body(*cranks(old)[-1])
    (lost,) = salvaged(old, new).lost
    assert lost.session == "gone"
    async with open_host(new) as host:
        assert (await host.verify()).sound
        assert [(row.id, bool(row.deleted)) for row in host.sessions(deleted=True)] == [("gone", True), ("kept", False)]


def is_kind(lying: Lying, kind: Kind) -> bool:
    return lying.frame.type == Type.RECORD and record_head(lying.frame.head)[0].kind == kind


def without_tombstone(store: Path) -> None:
    """Spoil the header of the record that says a session is deleted."""
    for path, frame in frames(store):
        if is_kind(Lying(path, frame), Kind.DELETE):
            data = bytearray(path.read_bytes())
            data[data.index(frame.head) + 20] ^= 1
            path.write_bytes(data)


async def deleted(store: Path, **options: Any) -> None:
    """A store in which a session was deleted that has a fork, and its tombstone is lost."""
    settings = Settings(reclaim=None)
    async with open_host(store, settings=settings, **options) as host:
        for id in ("kept", "gone"):
            await (await host.spawn(Session, id)).turn(f"{id}: {SECRET}")
        await (await (await host.get("gone")).fork(into="fork")).turn("on")
        await host.delete("gone")
        await (await host.get("kept")).turn("and on")
    without_tombstone(store)


async def states(store: Path, **options: Any) -> dict[str, bool]:
    async with open_host(store, settings=Settings(reclaim=None), **options) as host:
        report = await host.verify()
        assert report.troubles == ()
        return {row.id: bool(row.deleted) for row in host.sessions(deleted=True)}


@pytest.mark.parametrize("knows", ["the catalog", "the key file", "a catalog with a journal", "nobody", "damaged"])
async def test_a_deleted_session_whose_tombstone_is_lost_comes_back_only_where_nobody_knows(
    tmp_path: Path, knows: str
) -> None:
    """Invariant 25: The catalog says what was deleted, and so does the key file; where neither can, it is said."""
    old, new = tmp_path / "old", tmp_path / "new"
    options = {"key": KEY} if knows == "the key file" else {}
    await deleted(old, **options)
    catalog = old / "catalog.sqlite"
    if knows in ("the key file", "nobody"):
        catalog.unlink()
    elif knows == "damaged":
        catalog.write_bytes(catalog.read_bytes()[:5000])
    elif knows == "a catalog with a journal":
        cut_short(catalog)
    before = {path: path.read_bytes() for path in old.rglob("*") if path.is_file()}
    found = salvaged(old, new, **options)
    assert {path: path.read_bytes() for path in old.rglob("*") if path.is_file()} == before
    known = knows not in ("nobody", "damaged")
    assert (found.buried, found.missing, found.revived, found.whole) == (
        ("gone",) if known else (),
        1,
        not known,
        False,
    )
    assert any("it tells nothing of deletions" in place for place in found.places) is (knows == "damaged")
    assert await states(new, **options) == {"fork": False, "gone": known, "kept": False}
    assert not [path for path in new.iterdir() if "new" in path.name]
    if known:
        async with open_host(new, **options) as host:
            await (await host.get("fork")).turn("goes on")
            with pytest.raises(KeeveError, match="gone"):
                await host.spawn(Session, "gone")


def cut_short(catalog: Path) -> None:
    """Leave a catalog as a process does that dies while it writes: half of a transaction, and its journal."""
    db = connect(catalog, 100)
    db.execute("PRAGMA cache_size = 1; BEGIN IMMEDIATE; DELETE FROM sessions; DELETE FROM spans; DELETE FROM threads")
    db.cache_flush()
    copies = [(path, path.read_bytes()) for path in catalog.parent.glob("catalog.sqlite*")]
    db.execute("ROLLBACK")
    db.close()
    assert len([data for _, data in copies if data]) == 2
    for path, data in copies:
        path.write_bytes(data)


@pytest.mark.parametrize("lost", ["the tombstone", "the parent's as well", "the segment", "what names it"])
async def test_a_fork_that_was_gone_is_buried_as_what_it_was(tmp_path: Path, lost: str) -> None:
    """Invariant 25: Of its first record only the header is left, which tells where it began, and after which record."""
    old, new = tmp_path / "old", tmp_path / "new"
    settings = Settings(reclaim=None)
    async with open_host(old, settings=settings, segment_bytes=1 << 12) as host:
        s = await host.spawn(Session, "s1")
        for n in range(4):
            await s.turn(f"{n} of s1")
        f = await s.fork(into="f")
        await f.turn(f"of f, {SECRET}")
        await (await f.fork(at=3, into="twig")).turn("of the twig")
        other = await host.spawn(Session, "other")
        await host.delete("f")
        if lost == "the parent's as well":
            await host.delete("s1")
        for n in range(20):
            await other.turn(f"{n} {SECRET}")
        await host.reclaim()
        was = {row.id: row for row in host.sessions(deleted=True)}
        for id in ("gone", "again"):
            await (await host.spawn(Session, id)).turn(f"{id} {SECRET}")
        await host.delete("gone")
    path = next(lying.path for lying in frames(old) if is_kind(lying, Kind.DELETE))
    if lost == "the segment":
        path.unlink()
    else:
        without_tombstone(old)
    if lost == "what names it":
        for lying in frames(old):
            if is_kind(lying, Kind.FORK) or is_kind(lying, Kind.FORKED):
                flip_body(*lying)
    found = salvaged(old, new)
    assert "f" in found.buried
    async with open_host(new, settings=settings) as host:
        assert (await host.verify()).troubles == ()
        assert (await host.reclaim()).bodies > 0
        assert (await host.verify()).troubles == ()
        for row in host.sessions(deleted=True):
            if row.id in ("f", "gone"):
                assert row.deleted
                assert row[6:8] == was.get(row.id, row)[6:8], "the parent, and where it left it"
                assert (row.type, row.created) == (was.get(row.id, row).type, was.get(row.id, row).created)
        if "tombstone" in lost or "parent" in lost:
            assert await (await host.get("twig")).turn("on")
        with pytest.raises(KeeveError, match="f"):
            await host.spawn(Session, "f")
    assert not holds(new, b"gone a sentence")


async def test_what_is_named_and_not_there_keeps_nothing_else_from_going(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Invariant 25: A tombstone that does not say where its fork began; a record that erases what no store ever had."""
    old, new = tmp_path / "old", tmp_path / "new"
    async with open_host(old, settings=Settings(reclaim=None)) as host:
        s = await host.spawn(Session, "s1")
        await s.turn("of s1")
        await (await s.fork(into="f")).turn(f"of f, {SECRET}")
        await host.delete("f")
        await host.reclaim()
        await (await host.spawn(Session, "gone")).turn(f"gone, {SECRET}")
        await host.delete("gone")
    without_tombstone(old)
    unsaid = {"type": "", "parent": None, "at": 0, "created": 0}
    monkeypatch.setattr(
        salvaging, "buried", lambda chain, *how: buried(evolve(chain, born=unsaid) if chain.first > 1 else chain, *how)
    )
    assert set(salvaged(old, new).buried) >= {"f"}
    async with open_host(new, settings=Settings(reclaim=None)) as host:
        absent = {1_000_000: [0]}
        await host._engine.reclaiming.say(lambda chain, *how: erase(chain, STORE_UID, "s1", absent, {}, *how))
        assert (await host.verify()).troubles == ()
        assert (await host.reclaim()).bodies > 0
        assert (await host.verify()).troubles == ()
    assert not holds(new, SECRET[:20].encode())


async def test_a_catalog_that_the_log_gainsays_buries_nobody(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    await deleted(old)
    with connect(old / "catalog.sqlite", 100) as db:
        db.execute("UPDATE sessions SET deleted = 3 WHERE id = 'kept'")
    db.close()
    assert salvaged(old, new).buried == ("gone",)
    assert await states(new) == {"fork": False, "gone": True, "kept": False}


async def test_what_was_erased_stays_erased_wherever_it_lies_then(tmp_path: Path) -> None:
    """Content is erased by the position of its record; another one has that position in the new store."""
    old, new = tmp_path / "old", tmp_path / "new"
    async with open_host(old) as host:
        first, second = await host.spawn(Session, "first"), await host.spawn(Session, "second")
        await first.turn("what is lost, " + SECRET)
        await second.turn("what is erased, " + SECRET)
        await second.turn("what stays, " + SECRET)
        await host.erase("second", turn=1)
    flip_body(*cranks(old)[0])
    assert salvaged(old, new).lost
    assert not holds(new, b"what is erased")
    async with open_host(new) as host:
        assert "what stays" in str(await (await host.get("second")).messages)
        assert (await host.verify()).sound
        await host.reclaim()
        assert "what stays" in str(await (await host.get("second")).messages)
        assert (await host.verify()).sound


async def test_what_was_to_be_erased_and_was_not_yet_is_erased_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A crash between the record that says what is erased and the erasing; then a salvage, which moves all records."""
    old, new = tmp_path / "old", tmp_path / "new"

    def crashed(*about: Any) -> int:
        raise OSError("the power is out")

    async with open_host(old) as host:
        first, second = await host.spawn(Session, "first"), await host.spawn(Session, "second")
        await first.turn("what is lost, " + SECRET)
        await second.turn("what is erased, " + SECRET)
        for number in range(4):
            await second.turn(f"what stays {number}, " + SECRET)
        with monkeypatch.context() as patched:
            patched.setattr(SegmentStore, "erase", crashed)
            patched.setattr(Reclaiming, "finish", crashed)
            with pytest.raises(OSError, match="power"):
                await host.erase("second", turn=1)
    assert holds(old, b"what is erased")
    flip_body(*cranks(old)[0])
    assert salvaged(old, new).lost
    assert not holds(new, b"what is erased")
    async with open_host(new) as host:
        await host.reclaim()
        said = str(await (await host.get("second")).messages)
        assert all(f"what stays {number}" in said for number in range(4))
        assert (await host.verify()).sound


@pytest.mark.parametrize("where", ["its own records", "its fork's", "its parent's"])
async def test_a_session_whose_beginning_is_lost_is_named_by_what_others_say_of_it(tmp_path: Path, where: str) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    async with open_host(old) as host:
        ill = await host.spawn(Session, "ill")
        if where == "its own records":
            await ill.turn("hello")
        elif where == "its fork's":
            await ill.fork(into="twin")
        else:
            ill = await ill.fork(into="ill in turn")
        uid = host.row((await ill.describe())["id"]).uid
        first = host.row(uid).position if where == "its parent's" else 2
    lying = [each for each in frames(old) if each.frame.type == Type.RECORD][first - 1]
    flip_body(lying.path, lying.frame)
    found = salvaged(old, new)
    assert found.lost[0].uid == uid.hex()
    assert found.lost[0].session == ("ill in turn" if where == "its parent's" else "ill")
