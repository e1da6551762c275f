"""Archiving what lies in segment files: what goes, what stays, how it is read, and what a crash can do to it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from dataspace.errors import KeeveError
from dataspace.log import archives, archiving
from dataspace.log.archives import Archived, NotAnArchive
from dataspace.log.files import DiskFull, SyncFailed
from dataspace.log.store import Erasure
from dataspace.values import ERASED
from keeve.testing import CrashFiles
from keeve.testing.disk import Mode
from tests.dataspace.archive_folders import (
    GOES,
    LATE,
    STAYS,
    TEXTS,
    Act,
    archive,
    back,
    filled,
    holds,
    in_store,
    killed,
    operations,
    sound,
    stays,
    texts,
)
from tests.dataspace.segment_folders import content, opened


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


@pytest.mark.parametrize("back", [False, True], ids=["erased", "brought back"])
def test_a_reader_that_still_has_the_old_file_reads_what_became_of_it(tmp_path: Path, back: bool) -> None:
    """Its owner's process erased it, here and in the archive, or had it back and the archive is elsewhere by now."""
    store, records = filled(tmp_path)
    archive(store, tmp_path)
    reader = opened(tmp_path / "store", readonly=True)
    stored = reader.read(records[0].address)
    assert stored.cell(0) == GOES * 50
    if back:
        for each in store.sealed():
            store.bring_back(each.segment)
        (tmp_path / "archive").rename(tmp_path / "elsewhere")
    else:
        store.erase([Erasure(records[0].address, [0], body=False)])
    reader.archives.renew()
    assert (stored.cell(0), reader.read(records[0].address).cell(0)) == ((GOES * 50,) * 2 if back else (ERASED,) * 2)
    reader.close()
    store.close()
