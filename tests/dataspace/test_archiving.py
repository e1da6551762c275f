"""Archiving what lies in segment files: what goes, what stays, how it is read, and what a crash can do to it."""

from __future__ import annotations

import shutil
import struct
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from dataspace.errors import KeeveError
from dataspace.log import archives, archiving
from dataspace.log.archives import Archived, NotAnArchive
from dataspace.log.files import DiskFull, SyncFailed
from dataspace.log.segments import SegmentStore
from dataspace.log.store import Erasure
from dataspace.log.verify import Counts, Verification
from dataspace.records import Record
from dataspace.values import ERASED
from keeve.testing import CrashFiles, SimulatedCrash
from keeve.testing.chains import Chain
from keeve.testing.disk import Mode
from tests.dataspace.segment_folders import content, opened

GOES, STAYS, LATE = "what goes to the archive", "what is still needed", "what is said now"
TEXTS = [GOES, STAYS] * 3


def filled(folder: Path, **options: Any) -> tuple[SegmentStore, list[Record]]:
    """A store with six records in small sealed segments, and one in that which is written to."""
    chain = Chain()
    store = opened(folder / "store", segment_bytes=3000, **options)
    records = []
    for n, said in enumerate([*TEXTS, LATE]):
        records.append(chain.record(f"body {n}", cells=[said * 50]))
        store.append(records[-1:])
    store.seal(0)
    return store, records


def stays(uid: bytes, seq: int, number: int) -> bool:
    return bool(seq % 2 == 0)


def archive(store: SegmentStore, folder: Path) -> int:
    return sum(store.archive(each.segment, folder / "archive", stays)[0] for each in store.sealed())


def texts(store: SegmentStore) -> list[Any]:
    return [stored.cell(0) for stored in store.scan() if stored.attachments]


def in_store(folder: Path, said: str) -> bool:
    return any(said.encode() in data for data in content(folder / "store").values())


def sound(store: SegmentStore) -> Counts:
    with store.still() as (segments, evidence):
        check = Verification(segments, evidence, archives=store.archives.found)
        # The records of `Chain` are no real ones, so that their bodies cannot be taken apart.
        assert [found for found in check.findings() if "cannot be read" not in found.what] == []
    return check.counts


def test_what_is_archived_is_in_the_archive_and_read_from_there(tmp_path: Path) -> None:
    store, _ = filled(tmp_path)
    places, head = [stored.address for stored in store.scan()], store.head
    assert archive(store, tmp_path) == 4  # the late one as well: its seq is odd
    assert not in_store(tmp_path, GOES)
    assert in_store(tmp_path, STAYS)
    assert texts(store) == [said * 50 for said in [*TEXTS, LATE]]
    assert ([stored.address for stored in store.scan()], store.head) == (places, head)
    counts = sound(store)
    assert (counts.archived, counts.away, counts.erased) == (4, 0, 0)
    store.close()
    again = opened(tmp_path / "store")
    assert (again.fault, dict(again.damaged), again.head) == (None, {}, head)
    assert texts(again) == [said * 50 for said in [*TEXTS, LATE]]
    again.close()


def test_without_its_archive_what_is_archived_says_where_it_went(tmp_path: Path) -> None:
    """Invariant 22: What is elsewhere is an error that names the place, never an absence, and never damage."""
    store, records = filled(tmp_path)
    archive(store, tmp_path)
    store.close()
    (tmp_path / "archive").rename(tmp_path / "elsewhere")
    store = opened(tmp_path / "store")
    assert (store.fault, dict(store.damaged)) == (None, {})
    with pytest.raises(Archived, match=f"position {records[0].position} was archived.*{tmp_path / 'archive'}"):
        store.read(records[0].address).cell(0)
    assert store.read(records[0].address).body().deeds == b"body 0"
    assert store.read(records[1].address).cell(0) == STAYS * 50
    assert sound(store).away == 4
    store.archives.also(tmp_path / "elsewhere")
    assert store.read(records[0].address).cell(0) == GOES * 50
    store.close()


def test_what_was_archived_comes_back(tmp_path: Path) -> None:
    store, _ = filled(tmp_path)
    before = {path.name: len(path.read_bytes()) for path in (tmp_path / "store" / "log").iterdir()}
    archive(store, tmp_path)
    assert sum(store.bring_back(each.segment) for each in store.sealed()) == 4
    shutil.rmtree(tmp_path / "archive")
    assert texts(store) == [said * 50 for said in [*TEXTS, LATE]]
    assert sound(store).archived == 0
    assert sum(store.bring_back(each.segment) for each in store.sealed()) == 0
    assert {path.name for path in (tmp_path / "store" / "log").iterdir()} == set(before)
    store.close()


def test_what_cannot_be_brought_back_whole_is_left_as_it_is(tmp_path: Path) -> None:
    store, _ = filled(tmp_path)
    archive(store, tmp_path)
    shutil.rmtree(tmp_path / "archive")
    store.archives.renew()
    before = content(tmp_path / "store" / "log")
    with pytest.raises(Archived):
        store.bring_back(1)
    assert content(tmp_path / "store" / "log") == before
    store.close()


def test_archiving_more_of_a_segment_keeps_what_went_before(tmp_path: Path) -> None:
    store, _ = filled(tmp_path)
    archive(store, tmp_path)
    for each in store.sealed():
        store.archive(each.segment, tmp_path / "archive", lambda *place: False)
    assert not in_store(tmp_path, STAYS)
    assert texts(store) == [said * 50 for said in [*TEXTS, LATE]]
    assert sum(store.bring_back(each.segment) for each in store.sealed()) == 7
    assert texts(store) == [said * 50 for said in [*TEXTS, LATE]]
    store.close()


def test_another_body_in_an_archive_is_not_given_out(tmp_path: Path) -> None:
    """Invariant 4: What somebody or a disk has changed in an archive is not taken for what was archived."""
    store, records = filled(tmp_path)
    archive(store, tmp_path)
    path = tmp_path / "archive" / "00000001.seg"
    path.write_bytes(path.read_bytes().replace(b"goes", b"GOES"))
    store.archives.renew()
    with pytest.raises(Archived):
        store.read(records[0].address).cell(0)
    assert sound(store).away > 0
    store.close()


def test_what_is_erased_after_it_was_archived_goes_from_the_archive_as_well(tmp_path: Path) -> None:
    store, records = filled(tmp_path)
    archive(store, tmp_path)
    store.erase([Erasure(records[0].address, [0], body=False), Erasure(records[2].address, [0], body=False)])
    assert [texts(store)[0], texts(store)[2]] == [ERASED, ERASED]
    found = [path.read_bytes().count(GOES.encode()) for path in (tmp_path / "archive").glob("*.seg")]
    assert sum(found) == 50  # the third one is not erased
    assert sum(store.bring_back(each.segment) for each in store.sealed()) == 2
    assert texts(store)[0] is ERASED
    store.close()


def copies(folder: Path, said: str) -> int:
    """How often something was said in all files of an archive, whatever they are called."""
    return sum(path.read_bytes().count(said.encode()) for path in (folder / "archive").glob("*")) // 50


@pytest.mark.parametrize("elsewhere", [False, True], ids=["in its place", "from elsewhere"])
def test_what_is_erased_after_it_came_back_goes_from_the_archive_as_well(tmp_path: Path, elsewhere: bool) -> None:
    """Invariant 26: A copy that the store does not need any more is a copy."""
    store, records = filled(tmp_path)
    archive(store, tmp_path)
    if elsewhere:
        (tmp_path / "store" / "archived").write_text(f"{tmp_path / 'gone'}\n")
        store.note_archive(tmp_path / "archive")
        store.close()
        store = opened(tmp_path / "store")
    back(store, tmp_path)
    assert copies(tmp_path, GOES) == 3
    store.erase([Erasure(record.address, [0], body=False) for record in (records[0], records[2])])
    assert copies(tmp_path, GOES) == 1
    assert store.erase([Erasure(records[4].address)]) == 2
    assert copies(tmp_path, GOES) == 0
    store.close()


def test_what_an_archive_has_of_it_in_damaged_frames_goes_too(tmp_path: Path) -> None:
    store, records = filled(tmp_path)
    archive(store, tmp_path)
    back(store, tmp_path)
    path = tmp_path / "archive" / "00000001.seg"
    whole = path.read_bytes()
    head = whole.rindex(struct.pack("<QI", records[0].position, 0), 0, whole.index(GOES.encode()))
    path.write_bytes(whole[:head] + b"!" + whole[head + 1 :])
    store.erase([Erasure(records[0].address)])
    assert path.read_bytes().count(GOES.encode()) == whole.count(GOES.encode()) - 50
    store.close()


def test_the_archive_of_another_log_in_the_same_place_is_left_alone(tmp_path: Path) -> None:
    """Invariant 43."""
    store, records = filled(tmp_path)
    archive(store, tmp_path)
    other, _ = filled(tmp_path / "other")
    archive(other, tmp_path / "other")
    other.close()
    shutil.rmtree(tmp_path / "archive")
    (tmp_path / "other" / "archive").rename(tmp_path / "archive")
    (tmp_path / "archive" / archives.ASIDE).write_bytes(b"of the other one")
    before = content(tmp_path / "archive")
    store.erase([Erasure(record.address) for record in records])
    assert sum(store.weed(each.segment) for each in store.sealed()) == 0
    assert content(tmp_path / "archive") == before
    store.close()


def test_another_segment_of_the_same_log_is_not_written_over(tmp_path: Path) -> None:
    """Invariant 43: The archive of a store from which this one was salvaged has its id, and maybe the only copy."""
    store, records = filled(tmp_path)
    archive(store, tmp_path)
    back(store, tmp_path)
    path = tmp_path / "archive" / "00000001.seg"
    second = (tmp_path / "archive" / "00000002.seg").read_bytes()
    path.write_bytes(second)
    with pytest.raises(NotAnArchive, match="salvaged from"):
        archive(store, tmp_path)
    store.erase([Erasure(records[0].address)])
    assert path.read_bytes() == second
    store.close()


def test_killed_at_any_file_operation_what_is_erased_later_is_in_no_file(tmp_path: Path) -> None:
    """Invariant 26: What archiving leaves when it dies, under whatever name, goes with what is erased."""
    for at in range(0, operations(tmp_path / "count", archive) + 1, 2):
        folder = tmp_path / f"at {at}"
        killed(folder, at, archive, partial=3000)
        store = opened(folder / "store")
        asked = [Erasure(each.address, [0], body=False) for each in store.scan() if each.header.seq in (1, 3, 5)]
        store.erase([each for each in asked if store.read(each.address).attachments])
        assert not in_store(folder, GOES)
        assert copies(folder, GOES) == 0, at
        store.close()
        shutil.rmtree(folder)


def test_an_archive_that_was_away_is_weeded_when_it_is_back(tmp_path: Path) -> None:
    store, records = filled(tmp_path)
    archive(store, tmp_path)
    (tmp_path / "archive").rename(tmp_path / "elsewhere")
    store.archives.renew()
    assert store.erase([Erasure(records[0].address, [0], body=False)]) == 1
    (tmp_path / "elsewhere").rename(tmp_path / "archive")
    assert sum(store.weed(each.segment) for each in store.sealed()) == 1
    assert sum(store.weed(each.segment) for each in store.sealed()) == 0
    found = [path.read_bytes().count(GOES.encode()) for path in (tmp_path / "archive").glob("*.seg")]
    assert sum(found) == 100
    store.close()


def test_a_folder_that_is_no_archive_of_this_log_is_refused(tmp_path: Path) -> None:
    """Invariant 43."""
    store, _ = filled(tmp_path)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letters").write_text("dear")
    with pytest.raises(NotAnArchive, match="letters"):
        store.archive(1, tmp_path / "mine", stays)
    other, _ = filled(tmp_path / "other")
    archive(other, tmp_path / "other")
    other.close()
    with pytest.raises(NotAnArchive, match="of log"):
        store.archive(1, tmp_path / "other" / "archive", stays)
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["letters"]
    assert in_store(tmp_path, GOES)
    assert not (tmp_path / "store" / "archived").exists()
    store.close()


def test_a_full_disk_leaves_all_as_it_was_and_archiving_works_later(tmp_path: Path) -> None:
    """Invariant 11."""
    full = CrashFiles()
    store, _ = filled(tmp_path, files=full)
    for after in range(1, 14):
        full.fail(28, after)
        with suppress(DiskFull, SyncFailed):
            archive(store, tmp_path)
        assert texts(store) == [said * 50 for said in [*TEXTS, LATE]]
    full.fail(28, 10_000)
    archive(store, tmp_path)
    assert not in_store(tmp_path, GOES)
    store.close()


# Crashes.

Act = Callable[[SegmentStore, Path], object]


def back(store: SegmentStore, folder: Path) -> None:
    for each in store.sealed():
        store.bring_back(each.segment)


def killed(folder: Path, at: int, act: Act, *, partial: int = 0, syncs: bool = True) -> CrashFiles:
    """Die in the file operation `at` of something; dead or not, these are the files."""
    files = CrashFiles(syncs=syncs)
    store, _ = filled(folder, files=files)
    if act is back:
        archive(store, folder)
    files.crash(at, partial=partial)
    with suppress(SimulatedCrash):
        act(store, folder)
    with suppress(SimulatedCrash):
        store.close()
    return files


def operations(folder: Path, act: Act) -> int:
    return killed(folder, 10_000, act).count - killed(folder / "again", 0, act).count


def holds(folder: Path) -> None:
    """Check that nothing is lost, and that it can be done to the end and undone."""
    store = opened(folder / "store")
    assert store.fault is None
    assert not store.damaged
    noted = folder / "store" / "archived"
    if noted.exists():  # where it went, by the name that this copy of the folder has
        noted.write_text(f"{folder / 'archive'}\n")
    assert texts(store) == [said * 50 for said in [*TEXTS, LATE]]
    sound(store)
    archive(store, folder)
    assert not in_store(folder, GOES)
    assert texts(store) == [said * 50 for said in [*TEXTS, LATE]]
    back(store, folder)
    shutil.rmtree(folder / "archive")
    assert texts(store) == [said * 50 for said in [*TEXTS, LATE]]
    store.close()


@pytest.mark.parametrize("act", [archive, back], ids=["archiving", "bringing back"])
def test_killed_at_any_file_operation_nothing_is_lost(tmp_path: Path, act: Act) -> None:
    """Invariant 10: Archiving is killed at every step; whatever was done, all is there, and it goes on from there."""
    for at in range(operations(tmp_path / "count", act) + 1):
        folder = tmp_path / f"at {at}"
        killed(folder, at, act, partial=at * 37 % 500)
        holds(folder)
        shutil.rmtree(folder)


@pytest.mark.parametrize("mode", list(Mode))
@pytest.mark.parametrize("act", [archive, back], ids=["archiving", "bringing back"])
def test_a_power_cut_at_any_file_operation_loses_nothing(tmp_path: Path, act: Act, mode: Mode) -> None:
    """Invariant 10: The power is cut at every step of archiving, in the store and in the archive."""
    for at in range(0, operations(tmp_path / "count", act) + 1, 3):
        folder = tmp_path / f"at {at}"
        killed(folder, at, act).power_cut(folder, tmp_path / "left", mode, seed=at)
        holds(tmp_path / "left")
        shutil.rmtree(folder)
        shutil.rmtree(tmp_path / "left")


def missed(tmp_path: Path, end: Callable[[Path, int], Path]) -> bool:
    for at in range(operations(tmp_path / "count", archive), 0, -1):
        left = end(tmp_path / f"at {at}", at)
        try:
            holds(left)
        except (AssertionError, KeeveError):  # a broken store may be told in any way
            return True
    return False


def test_without_syncs_a_power_cut_would_lose_what_was_archived(tmp_path: Path) -> None:
    """Invariant 45."""

    def end(folder: Path, at: int) -> Path:
        killed(folder, at, archive, syncs=False).power_cut(folder, folder.with_name("left"), Mode.NOTHING, at)
        return folder.with_name("left")

    assert missed(tmp_path, end)


def test_without_a_copy_archiving_would_lose_what_it_archives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Invariant 45: These tests fail when content leaves the store before it is elsewhere."""
    from dataspace.log import sealed

    monkeypatch.setattr(sealed, "copy_out", lambda *arguments: None)

    def end(folder: Path, at: int) -> Path:
        killed(folder, at, archive)
        return folder

    assert missed(tmp_path, end)


def test_a_copy_that_does_not_read_back_is_not_relied_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, _ = filled(tmp_path)
    monkeypatch.setattr(archiving, "body_in", lambda *arguments: None)
    with pytest.raises(Exception, match="does not read back"):
        archive(store, tmp_path)
    monkeypatch.setattr(archiving, "body_in", archives.body_in)
    assert in_store(tmp_path, GOES)
    assert partial(texts, store)() == [said * 50 for said in [*TEXTS, LATE]]
    store.close()
