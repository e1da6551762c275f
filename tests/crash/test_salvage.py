"""A damaged store, salvaged: everything that is sound is in the new one, nothing else is, and the old one is untouched.

What has to be kept is reckoned by comparing bytes with those of the store before it was damaged.
"""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import ANY

import pytest
import trio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dataspace.drafts import read_deeds
from dataspace.log import patience, salvaging
from dataspace.log.frames import Type, record_head
from dataspace.log.layout import PlaceTaken
from dataspace.log.verdicts import LogTampered, LogTruncated
from dataspace.records import STORE_UID, Kind
from keeve.api import open_store
from tests.crash.crash_audit import standing
from tests.crash.crash_suites import FULL
from tests.crash.damages import DAMAGES, KEY, Lying, Written, fill, frames, segments, sound_chains, state_of, written
from tests.crash.harms import flip_body, opened
from vat.host.aftermath import Salvaged
from vat.host.reports import Report
from vat.host.salvaging import NothingSound, salvage
from vat.host.verifying import verify_at_once

pytestmark = pytest.mark.crash

MADE = (Kind.SALVAGED, Kind.RECLAIMED)
"""What a salvage writes itself."""


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("reference") / "store"
    trio.run(fill, folder)
    return folder


class Records(list[Written]):
    """All records of a store, which nobody wants to see written out."""

    def __repr__(self) -> str:
        return f"<{len(self)} records>"


@pytest.fixture(scope="module")
def records(reference: Path) -> list[Written]:
    return Records(written(reference))


def salvaged(old: Path, new: Path) -> Salvaged:
    return salvage(old, new, now=lambda: standing() + 1_000_000, salts=os.urandom, segment_bytes=9000)


def verified(folder: Path) -> Report:
    store, catalog = open_store(folder, readonly=True, clock=standing)
    try:
        return verify_at_once(store, catalog)
    finally:
        catalog.close()
        store.close()


def chains(folder: Path) -> dict[bytes, list[bytes]]:
    """The hashes of each chain of a store, but for what a salvage has put in."""
    store, catalog = open_store(folder, readonly=True, clock=standing)
    found: dict[bytes, list[bytes]] = {}
    for stored in store.scan():
        buried = stored.header.kind == Kind.DELETE and read_deeds(stored.body().deeds).message["via"] == "salvage"
        if stored.header.kind not in MADE and not buried:
            found.setdefault(stored.header.uid, []).append(stored.header.hash)
    catalog.close()
    store.close()
    return found


def living(folder: Path) -> set[bytes]:
    """The sessions that are not deleted."""
    store, catalog = open_store(folder, readonly=True, clock=standing)
    found = {row.uid for row in catalog.sessions() if not row.deleted}
    catalog.close()
    store.close()
    return found


def check(old: Path, new: Path, records: list[Written]) -> Salvaged | None:
    """Salvage, and hold what comes of it against what was there before the damage."""
    expected = sound_chains(records, old)
    before = list(state_of(old))
    try:
        found = salvaged(old, new)
    except NothingSound:
        assert expected == {}
        assert not new.exists()
        return None
    finally:
        assert list(state_of(old)) == before
    kept = chains(new)
    if STORE_UID not in expected:
        assert len(kept.pop(STORE_UID)) == 1
    assert kept == expected
    assert living(new).isdisjoint(each.uid for each in records if each.kind == Kind.DELETE)
    report = verified(new)
    assert report.troubles == (), report.troubles
    lost = {each.uid for each in found.lost} - {STORE_UID.hex()}
    whole = {each.uid for each in records}
    short = {uid.hex() for uid in whole - {STORE_UID} if len(expected.get(uid, ())) < _length(records, uid)}
    assert lost <= short
    if short - lost:
        assert found.missing, "a session is shorter than it was, and nobody says so"
    there = {each for chain in expected.values() for each in chain}
    assert found.holes_in_all == sum(each.holes(old) for each in records if each.hash in there)
    assert found.whole == (not found.lost and not found.missing and not found.holes)
    return found


def _length(records: list[Written], uid: bytes) -> int:
    return sum(each.uid == uid for each in records)


def test_a_store_that_is_sound_is_salvaged_whole(tmp_path: Path, reference: Path, records: list[Written]) -> None:
    found = check(reference, tmp_path / "new", records)
    assert found is not None
    assert (found.whole, found.marked, found.pageless, found.places) == (True, 0, (), ())
    assert found.checkpoints > 0
    assert len(segments(tmp_path / "new")) > 1


@pytest.mark.parametrize("name", DAMAGES)
def test_all_that_is_sound_is_kept_and_nothing_else(
    tmp_path: Path, reference: Path, records: list[Written], name: str
) -> None:
    """Invariants 4, 22 and 23."""
    for seed in range(12 if FULL else 3):
        old = tmp_path / f"old {seed}"
        shutil.copytree(reference, old)
        DAMAGES[name](old, Random(seed))
        check(old, tmp_path / f"new {seed}", records)


@settings(max_examples=200 if FULL else 30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(damages=st.lists(st.sampled_from(sorted(DAMAGES)), min_size=1, max_size=4), seed=st.integers(0, 1 << 32))
def test_whatever_comes_together(
    tmp_path_factory: pytest.TempPathFactory,
    reference: Path,
    records: list[Written],
    damages: list[str],
    seed: int,
) -> None:
    """Invariants 4 and 42."""
    folder = tmp_path_factory.mktemp("damaged")
    shutil.copytree(reference, folder / "old")
    chance = Random(seed)
    for name in damages:
        try:
            DAMAGES[name](folder / "old", chance)
        except (IndexError, ValueError):  # nothing of that kind is left to be damaged
            continue
    if segments(folder / "old"):
        check(folder / "old", folder / "new", records)
    shutil.rmtree(folder)


def test_without_the_check_of_the_chain_it_would_keep_what_does_not_follow(
    tmp_path: Path, reference: Path, records: list[Written], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Invariant 45."""
    shutil.copytree(reference, tmp_path / "old")
    DAMAGES["a flipped bit in the header of a RECORD"](tmp_path / "old", Random(1))
    monkeypatch.setattr(salvaging.Salvage, "_misfit", lambda *about: "")
    with pytest.raises(AssertionError):
        check(tmp_path / "old", tmp_path / "new", records)


def test_without_the_check_of_bodies_it_would_keep_what_is_wrong(
    tmp_path: Path, reference: Path, records: list[Written], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Invariant 45."""
    shutil.copytree(reference, tmp_path / "old")
    DAMAGES["a flipped bit in the body of a CELL"](tmp_path / "old", Random(1))
    monkeypatch.setattr(salvaging, "body_fits", lambda found, body: True)
    monkeypatch.setattr(salvaging, "content_digest", lambda data: ANY)
    with pytest.raises(AssertionError):
        check(tmp_path / "old", tmp_path / "new", records)


@pytest.mark.parametrize("known", [True, False], ids=["known", "not known"])
def test_a_deleted_session_stays_so_without_its_tombstone_if_the_catalog_knows_of_it(
    tmp_path: Path, reference: Path, records: list[Written], known: bool
) -> None:
    """Invariants 25 and 45: without the catalog the same check fails."""
    shutil.copytree(reference, tmp_path / "old")
    (tombstone,) = [each for each in records if each.kind == Kind.DELETE]
    name, offset, _ = tombstone.pieces[0]
    path = tmp_path / "old" / "log" / name
    with path.open("r+b") as file:
        file.seek(offset)
        file.write(bytes(8))
    if known:
        found = check(tmp_path / "old", tmp_path / "new", records)
        assert found is not None
        assert (found.buried, found.revived) == (("gone",), False)
        return
    (tmp_path / "old" / "catalog.sqlite").unlink()
    with pytest.raises(AssertionError):
        check(tmp_path / "old", tmp_path / "new", records)
    assert salvaged(tmp_path / "old", tmp_path / "again").revived


def crank(folder: Path) -> Lying:
    """A record of a crank in the middle of the log."""
    records = [each for each in frames(folder) if each.frame.type == Type.RECORD]
    cranks = [each for each in records if record_head(each.frame.head)[0].kind == Kind.CRANK]
    return cranks[len(cranks) // 2]


async def test_the_new_store_goes_on_with_every_session_that_it_has(tmp_path: Path, reference: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    shutil.copytree(reference, old)
    flip_body(*[each for each in frames(old) if each.frame.type == Type.CELL][5])  # which costs no session its end
    flip_body(*crank(old))
    found = salvaged(old, new)
    assert found.holes_in_all == 1
    (lost,) = [each for each in found.lost if each.uid != STORE_UID.hex()]
    async with opened(old, readonly=True) as host:
        before = {row.id: row.seq for row in host.sessions()}
    async with opened(new, signer=KEY) as host:
        assert {row.id for row in host.sessions()} == set(before)
        for row in host.sessions():
            session = await host.get(row.id)
            count = (await session.state())["count"]
            assert await session.add("after the salvage") == count + 1
            assert row.seq == (lost.kept + 1 if row.id == lost.session else before[row.id])
        assert (await host.verify()).sound
        (of_store,) = [event for event in host.query("(salvaged . _)") if event.session == ""]
        assert dict(of_store.value.keywords)["lost"] == 1
        assert dict(of_store.value.keywords)["from"] == str(old)
        (of_session,) = [event for event in host.query("(salvaged . _)") if event.session]
        assert of_session.session == lost.session
        assert dict(of_session.value.keywords) == {"at": lost.kept, "lost": lost.last - lost.kept}
    async with opened(new, signer=KEY) as host:
        assert (await host.verify()).sound


async def test_a_session_that_lost_its_end_counts_on_where_it_never_has(tmp_path: Path, reference: Path) -> None:
    """Invariant 13: no effect of it has the id of one that may have been carried out."""
    old, new = tmp_path / "old", tmp_path / "new"
    shutil.copytree(reference, old)
    flip_body(*crank(old))
    found = salvaged(old, new)
    marked = [each.session for each in found.lost]
    async with opened(new) as host:
        for row in host.sessions():
            resident = host._engine.residents.use(row.uid)
            await (await host.get(row.id)).state()
            counters = resident.vat.heap.counters if resident.vat is not None else {}
            assert (counters["effect"] > standing()) is (row.id in marked)
            assert (counters["message"] > standing()) is (row.id in marked)


def test_snapshots_are_let_go_where_a_page_is_wrong(tmp_path: Path, reference: Path, records: list[Written]) -> None:
    """Invariant 21."""
    old, new = tmp_path / "old", tmp_path / "new"
    shutil.copytree(reference, old)
    for path, frame in frames(old):
        if frame.type == Type.PAGE:
            flip_body(path, frame)
    found = check(old, new, records)
    assert found is not None
    assert found.whole
    assert set(found.pageless) >= {"a", "b"}
    assert trio.run(_states, new) == trio.run(_states, reference)


async def _states(folder: Path) -> Any:
    async with opened(folder, readonly=True) as host:
        return {row.id: await (await host.get(row.id)).state() for row in host.sessions()}


async def test_a_checkpoint_of_before_the_loss_still_holds_and_a_later_one_does_not(
    tmp_path: Path, reference: Path
) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    shutil.copytree(reference, old)
    async with opened(old, signer=KEY) as host:
        late = host.checkpoint()
    path, frame = [each for each in frames(old) if each.frame.type == Type.RECORD][-12]
    flip_body(path, frame)
    found = salvaged(old, new)
    assert found.lost
    with pytest.raises(LogTampered if found.records >= late_size(late) else LogTruncated):
        async with opened(new, signer=KEY, expect=late):
            pass
    assert found.checkpoints > 0


def late_size(note: str) -> int:
    return int(note.splitlines()[1])


def test_a_salvage_that_fails_leaves_nothing(tmp_path: Path, reference: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Invariant 43."""

    def full(*about: Any) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("dataspace.log.rewriting.Rewriter.end", full)
    with pytest.raises(OSError, match="No space"):
        salvaged(reference, tmp_path / "new")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("place", ["something", ".", "inside"])
def test_nothing_is_written_where_something_is(tmp_path: Path, reference: Path, place: str) -> None:
    """Invariant 43."""
    (tmp_path / "something").mkdir()
    (tmp_path / "something" / "else").touch()
    new = {"something": tmp_path / "something", ".": reference, "inside": reference / "new"}[place]
    before = list(state_of(reference))
    with pytest.raises(PlaceTaken):
        salvaged(reference, new)
    assert list(state_of(reference)) == before


def test_a_log_without_one_sound_record_is_refused(tmp_path: Path, reference: Path) -> None:
    shutil.copytree(reference, tmp_path / "old")
    for path in segments(tmp_path / "old"):
        path.write_bytes(os.urandom(path.stat().st_size))
    with pytest.raises(NothingSound):
        salvaged(tmp_path / "old", tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_blocks_that_the_disk_cannot_read_are_lost_and_nothing_else(
    tmp_path: Path, reference: Path, records: list[Written], monkeypatch: pytest.MonkeyPatch
) -> None:
    old = tmp_path / "old"
    shutil.copytree(reference, old)
    path = segments(old)[1]
    inode = path.stat().st_ino

    def failing(fd: int, length: int, offset: int) -> bytes:
        if os.fstat(fd).st_ino == inode and offset < 8192 and offset + length > 4096:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return pread(fd, length, offset)

    pread = os.pread
    with monkeypatch.context() as patched:
        patched.setattr(patience.Patient.__init__, "__defaults__", (failing,))
        found = salvaged(old, tmp_path / "new")
    assert "the disk cannot read them" in found.places[0]
    zeroed = path.read_bytes()
    path.write_bytes(zeroed[:4096] + bytes(4096) + zeroed[8192:])
    assert {uid: hashes for uid, hashes in chains(tmp_path / "new").items() if uid in sound_chains(records, old)} == (
        sound_chains(records, old)
    )
    assert verified(tmp_path / "new").troubles == ()
