"""A backup of a store: what it was at one moment, whatever its owner does meanwhile, whole or not there."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from dataspace.log.backup import Backup, BackupFailed, StillChanging, backup
from dataspace.log.copying import Copy, Source
from dataspace.log.files import DiskFull
from dataspace.log.layout import PlaceTaken
from dataspace.log.segments import SegmentStore
from dataspace.log.store import Erasure
from dataspace.log.verdicts import LogCorrupt
from keeve.testing import CrashFiles, SimulatedCrash
from keeve.testing.chains import Chain
from keeve.testing.disk import Mode
from tests.dataspace import sealed_folders
from tests.dataspace.archive_folders import LATE, TEXTS, archive, filled, sound, texts
from tests.dataspace.segment_folders import content, opened, segment, spoil

ALL = [said * 50 for said in [*TEXTS, LATE]]


def troubles(done: Backup) -> list[str]:
    """What is wrong in it. (The records of `Chain` are no real ones, so that their bodies cannot be taken apart.)"""
    return [what for what in done.troubles if "cannot be read" not in what]


def said_in(folder: Path) -> list[object]:
    """What is said in a backup, which is sound."""
    store = opened(folder)
    try:
        assert (store.fault, store.damaged) == (None, {})
        sound(store)
        return texts(store)
    finally:
        store.close()


def once(act: Callable[[], object]) -> Callable[[int, int], None]:
    """Does something when the first piece was copied."""
    acts = [act]

    def progress(done: int, total: int) -> None:
        if acts:
            acts.pop()()

    return progress


def more(store: SegmentStore) -> Callable[[], None]:
    """Appends records, in a chain of their own, until other segments have begun."""

    def act() -> None:
        chain = Chain("t")
        for n in range(4):
            store.append([chain.record(f"more {n}", cells=["meanwhile" * 200])])

    return act


def test_a_backup_has_all_that_was_durable_and_the_store_goes_on(tmp_path: Path) -> None:
    store, _ = filled(tmp_path)
    before = content(tmp_path / "store")
    done = backup(tmp_path / "store", tmp_path / "new")
    assert content(tmp_path / "store") == before
    assert (done.position, done.hash) == (store.head.position, store.head.hash.hex())
    assert (done.log, troubles(done), done.keys, done.archives) == (store.log_id.hex(), [], "", ())
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == ["format", "head", "log"]
    store.close()
    assert said_in(tmp_path / "new") == ALL


@pytest.mark.parametrize("asked", [True, False])
def test_what_is_written_meanwhile_costs_nothing_of_what_was_there(tmp_path: Path, asked: bool) -> None:
    store, _ = filled(tmp_path)
    end = (lambda: store.mark) if asked else None
    done = backup(tmp_path / "store", tmp_path / "new", end=end, progress=once(more(store)))
    assert troubles(done) == []
    store.close()
    assert said_in(tmp_path / "new")[: len(ALL)] == ALL


def erases(store: SegmentStore) -> Callable[[], object]:
    address = next(iter(store.scan())).next  # the record after that of the store itself: the first one with a cell
    assert address is not None
    return lambda: store.erase([Erasure(address, [0], False)])


def test_what_is_erased_meanwhile_is_not_in_it(tmp_path: Path) -> None:
    store, _ = filled(tmp_path)
    whole = segment(tmp_path / "store").read_bytes()
    backup(tmp_path / "store", tmp_path / "new", progress=once(erases(store)))
    assert segment(tmp_path / "new").read_bytes() == segment(tmp_path / "store").read_bytes() != whole
    store.close()
    assert len(said_in(tmp_path / "new")) == len(ALL)


def test_without_the_second_look_it_would_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, _ = filled(tmp_path)
    whole = segment(tmp_path / "store").read_bytes()
    monkeypatch.setattr(Copy, "_is_steady", lambda copy: True)
    monkeypatch.setattr(Source, "takes_after", lambda source, end: False)
    monkeypatch.setattr(Copy, "spoilt", lambda copy: None)
    backup(tmp_path / "store", tmp_path / "new", progress=once(erases(store)))
    assert segment(tmp_path / "new").read_bytes() == whole
    store.close()


def test_a_store_that_is_written_anew_all_the_time_is_left_at_last(tmp_path: Path) -> None:
    store, _ = filled(tmp_path)
    path = segment(tmp_path / "store")

    def progress(done: int, total: int) -> None:
        path.write_bytes(path.read_bytes())

    with pytest.raises(StillChanging):
        backup(tmp_path / "store", tmp_path / "new", progress=progress)
    store.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["store"]


def test_archives_are_named_and_not_looked_after(tmp_path: Path) -> None:
    store, _ = filled(tmp_path)
    archive(store, tmp_path)
    kept = content(tmp_path / "archive")
    done = backup(tmp_path / "store", tmp_path / "new")
    store.close()
    assert (done.archives, troubles(done)) == ((str(tmp_path / "archive"),), [])
    assert not (tmp_path / "new" / "archived").exists()
    again = opened(tmp_path / "new")
    for each in again.sealed():
        again.weed(each.segment)  # as whoever deletes or erases there does
    assert content(tmp_path / "archive") == kept
    again.archives.also(tmp_path / "archive")
    assert texts(again) == ALL
    again.close()


def test_what_is_damaged_in_the_store_is_named_and_the_rest_is_there(tmp_path: Path) -> None:
    store, _ = filled(tmp_path)
    store.close()
    spoil(tmp_path / "store", TEXTS[0].encode(), TEXTS[0].upper().encode())
    done = backup(tmp_path / "store", tmp_path / "new")
    assert "cell 0 is not what was written" in troubles(done)[0]
    assert content(tmp_path / "new" / "log") == content(tmp_path / "store" / "log")


def test_a_log_of_which_nobody_can_say_where_it_ends_is_refused(tmp_path: Path) -> None:
    store, _ = filled(tmp_path)
    store.close()
    segment(tmp_path / "store", 2).unlink()
    (tmp_path / "store" / "head").unlink()
    with pytest.raises(LogCorrupt):
        backup(tmp_path / "store", tmp_path / "new")
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("head", [True, False])
def test_the_last_batch_of_an_owner_that_died_is_in_it(tmp_path: Path, head: bool) -> None:
    files = CrashFiles()
    store, _ = filled(tmp_path, files=files)
    store.append([Chain("t").record("the last one", cells=[LATE * 2])])
    files.crash()
    with suppress(SimulatedCrash):
        store.settle()
    if not head:
        (tmp_path / "store" / "head").unlink()
    backup(tmp_path / "store", tmp_path / "new")
    assert said_in(tmp_path / "new") == [*ALL, LATE * 2]


@pytest.mark.parametrize("place", ["store", "store/inside", "link/inside", "taken", "new"])
def test_nothing_is_written_where_something_is(tmp_path: Path, place: str) -> None:
    store, _ = filled(tmp_path)
    store.close()
    (tmp_path / "taken").write_text("something")
    (tmp_path / "link").symlink_to(tmp_path / "store")
    (tmp_path / "new.copying").mkdir()
    before = content(tmp_path)
    with pytest.raises(PlaceTaken):
        backup(tmp_path / "store", tmp_path / place)
    assert content(tmp_path) == before


def test_one_that_dies_is_not_taken_for_a_whole_one(tmp_path: Path) -> None:
    store, _ = filled(tmp_path)
    store.close()
    files = CrashFiles()
    backup(tmp_path / "store", tmp_path / "whole", files=files)
    for at in range(1, files.count + 1):
        new = tmp_path / f"new{at}"
        with suppress(SimulatedCrash):
            backup(tmp_path / "store", new, files=CrashFiles(at))
        if new.exists():
            assert content(new) == content(tmp_path / "whole")


@pytest.mark.parametrize("syncs", [True, False])
def test_all_of_it_is_durable_before_it_has_its_name(tmp_path: Path, syncs: bool) -> None:
    store, _ = filled(tmp_path)
    store.close()
    files = CrashFiles(syncs=syncs)
    backup(tmp_path / "store", tmp_path / "whole", files=files)
    named = max(n for n, name in enumerate(files.names, 1) if name.startswith("rename"))
    files = CrashFiles(named, syncs=syncs)
    with pytest.raises(SimulatedCrash):
        backup(tmp_path / "store", tmp_path / "new", files=files)
    files.power_cut(tmp_path, tmp_path / "after", Mode.NOTHING)
    there = content(tmp_path / "after" / "new.copying")
    assert (there == content(tmp_path / "whole")) is syncs


def test_a_full_disk_leaves_nothing(tmp_path: Path) -> None:
    store, _ = filled(tmp_path)
    store.close()
    files = CrashFiles()
    files.fail(28, 4)
    with pytest.raises(BackupFailed) as caught:
        backup(tmp_path / "store", tmp_path / "new", files=files)
    assert isinstance(caught.value.__cause__, DiskFull)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["store"]


def test_an_encrypted_store_is_backed_up_without_its_key_and_with_the_keys_that_go_with_it(tmp_path: Path) -> None:
    first, second = Chain("first"), Chain("second")
    with sealed_folders.opened(tmp_path / "store") as store:
        store.append([first.record("to be deleted"), second.record("to stay")])

        def deletes() -> None:
            store.append([sealed_folders.tombstone(first)])
            store.destroy([first.uid])

        done = backup(tmp_path / "store", tmp_path / "new", progress=once(deletes))
    assert (done.keys, done.sealed > 0, done.troubles) == (str(tmp_path / "new" / "keys"), True, ())
    with sealed_folders.opened(tmp_path / "new") as again:
        assert again.head.position == 4  # the tombstone too: its keys are destroyed in this key file
