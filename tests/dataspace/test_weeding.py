"""Weeding: what is erased goes from the archives as well, whatever became of it meanwhile."""

from __future__ import annotations

import shutil
import struct
from pathlib import Path

import pytest

from dataspace.log import archives
from dataspace.log.archives import NotAnArchive
from dataspace.log.store import Erasure
from tests.dataspace.archive_folders import GOES, archive, back, filled, in_store, killed, operations
from tests.dataspace.segment_folders import content, opened


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
