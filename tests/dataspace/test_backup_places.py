"""Where a backup is made: a folder that one process makes, which is told from another's, and is gone when it fails."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from dataspace.log.backup import BackupFailed, backup
from dataspace.log.files import DiskFull, Files, ReadFailed, SyncFailed
from dataspace.log.layout import Layout, PlaceTaken
from dataspace.log.making import Making
from keeve.testing import CrashFiles, SimulatedCrash
from tests.dataspace.archive_folders import filled
from tests.dataspace.segment_folders import content, segment


def once(act: Callable[[], object]) -> Callable[[int, int], None]:
    """Does something when the first piece was copied."""
    acts = [act]

    def progress(done: int, total: int) -> None:
        if acts:
            acts.pop()()

    return progress


@pytest.fixture
def store(tmp_path: Path) -> Path:
    store, _ = filled(tmp_path)
    store.close()
    return tmp_path / "store"


def test_of_two_to_one_place_the_second_is_refused_and_the_first_goes_on(tmp_path: Path, store: Path) -> None:
    def another() -> None:
        with pytest.raises(PlaceTaken, match="another backup to this place is being made; wait for that, or name"):
            backup(store, tmp_path / "new")

    backup(store, tmp_path / "new", progress=once(another))
    assert content(tmp_path / "new" / "log") == content(store / "log")


def test_what_is_left_of_one_that_was_killed_is_told_and_stays(tmp_path: Path, store: Path) -> None:
    with suppress(SimulatedCrash):
        backup(store, tmp_path / "new", files=CrashFiles(12))
    left = content(tmp_path / "new.copying")
    with pytest.raises(PlaceTaken, match="left of a backup that was interrupted, and is no backup; remove it, or name"):
        backup(store, tmp_path / "new")
    assert content(tmp_path / "new.copying") == left != {}
    shutil.rmtree(tmp_path / "new.copying")
    backup(store, tmp_path / "new")


def test_another_folder_of_its_name_is_left_alone(tmp_path: Path, store: Path) -> None:
    def exchange() -> None:
        shutil.rmtree(tmp_path / "new.copying")
        shutil.copytree(store, tmp_path / "new.copying")
        segment(tmp_path / "new.copying", 2).write_text("of another backup")
        theirs.update(content(tmp_path / "new.copying"))

    theirs: dict[str, bytes] = {}
    with pytest.raises(PlaceTaken, match="it was removed while a backup was made in it"):
        backup(store, tmp_path / "new", progress=once(exchange))
    assert content(tmp_path / "new.copying") == theirs
    assert not (tmp_path / "new").exists()


def test_it_is_not_exchanged_for_another_folder_before_it_has_its_name(tmp_path: Path, store: Path) -> None:
    with Making(tmp_path / "new", Files()) as making:
        making.layout.folder.rename(tmp_path / "elsewhere")
        making.layout.folder.mkdir()
        with pytest.raises(PlaceTaken):
            making.name()
    assert (tmp_path / "new.copying").is_dir()
    assert not (tmp_path / "new").exists()


def test_what_others_have_put_into_it_stays(tmp_path: Path, store: Path) -> None:
    def fails() -> None:
        (tmp_path / "new.copying" / "notes").write_text("of somebody")
        (tmp_path / "new.copying" / "log" / "more").mkdir()
        raise RuntimeError("it fails")

    with pytest.raises(RuntimeError, match="it fails"):
        backup(store, tmp_path / "new", progress=once(fails))
    assert content(tmp_path / "new.copying") == {"notes": b"of somebody"}
    assert os.listdir(tmp_path / "new.copying" / "log") == ["more"]


def test_something_that_has_its_name_by_then_stays(tmp_path: Path, store: Path) -> None:
    with pytest.raises(PlaceTaken, match="something is there"):
        backup(store, tmp_path / "new", progress=once(lambda: (tmp_path / "new").write_text("something")))
    assert (tmp_path / "new").read_text() == "something"
    assert not (tmp_path / "new.copying").exists()


def test_a_full_disk_anywhere_leaves_nothing_and_the_store_as_it_was(tmp_path: Path, store: Path) -> None:
    before = content(store)
    files = CrashFiles()
    backup(store, tmp_path / "above" / "new", files=files)
    shutil.rmtree(tmp_path / "above")
    writes = [n for n, name in enumerate(files.names) if name.startswith(("write", "create", "make folder"))]
    for at in writes:
        failing = CrashFiles()
        failing.fail(28, at)
        with pytest.raises(BackupFailed, match="No space left on device") as caught:
            backup(store, tmp_path / "above" / "new", files=failing)
        assert isinstance(caught.value.__cause__, DiskFull)
        assert caught.value.left == ""
        assert sorted(path.name for path in tmp_path.iterdir()) == ["store"]
    assert content(store) == before
    assert len(writes) > 10


@pytest.mark.parametrize("kind", ["sync", "truncate", "rename"])
def test_so_does_one_that_fails(tmp_path: Path, store: Path, kind: str) -> None:
    files = CrashFiles()
    backup(store, tmp_path / "above" / "new", files=files)
    shutil.rmtree(tmp_path / "above")
    for at in [n for n, name in enumerate(files.names) if name.startswith(kind)]:
        failing = CrashFiles()
        failing.fail(5, at)
        with pytest.raises(BackupFailed, match="Input/output error"):
            backup(store, tmp_path / "above" / "new", files=failing)
        assert sorted(path.name for path in tmp_path.iterdir()) == ["store"]


def test_a_name_that_is_not_durable_is_taken_back(tmp_path: Path, store: Path) -> None:
    files = CrashFiles()
    backup(store, tmp_path / "whole", files=files)
    assert files.names[-1].startswith("sync folder")
    failing = CrashFiles()
    failing.fail(5, len(files.names) - 1)
    with pytest.raises(BackupFailed) as caught:
        backup(store, tmp_path / "new", files=failing)
    assert isinstance(caught.value.__cause__, SyncFailed)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["store", "whole"]


def test_what_cannot_be_removed_is_named(tmp_path: Path, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Stuck(CrashFiles):
        def remove(self, path: Path) -> None:
            raise DiskFull(str(path), "it is stuck", True)

    failing = Stuck()
    failing.fail(28, 11)
    with pytest.raises(BackupFailed, match=f"what is left of it is {tmp_path / 'new.copying'}: remove that") as caught:
        backup(store, tmp_path / "new", files=failing)
    assert caught.value.left == str(tmp_path / "new.copying")


def test_neither_a_link_nor_a_mounted_file_system_gets_its_place(
    tmp_path: Path, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "to nothing").symlink_to(tmp_path / "nothing")
    (tmp_path / "to it").symlink_to(tmp_path / "empty")
    for name in ("to nothing", "to it"):
        with pytest.raises(PlaceTaken, match="something is there"):
            backup(store, tmp_path / name)
    monkeypatch.setattr(os.path, "ismount", lambda path: os.path.basename(path) == "empty")
    with pytest.raises(PlaceTaken, match="a file system is mounted there"):
        backup(store, tmp_path / "empty")
    monkeypatch.undo()
    backup(store, tmp_path / "empty")
    assert content(tmp_path / "empty" / "log") == content(store / "log")


def forbidden(*asked: object) -> bool:
    raise PermissionError(13, os.strerror(13))


def test_where_this_user_may_not_look_that_is_told(
    tmp_path: Path, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os.path, "ismount", forbidden)
    with pytest.raises(BackupFailed, match=r"Permission denied.*who may write there"):
        backup(store, tmp_path / "new")
    monkeypatch.setattr(Layout, "state", forbidden)
    with pytest.raises(ReadFailed, match=r"Permission denied.*who may read it"):
        backup(store, tmp_path / "new")
    assert [path.name for path in tmp_path.iterdir()] == ["store"]


def test_a_folder_that_cannot_be_opened_leaves_nothing(
    tmp_path: Path, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.open

    def full(path: str | Path, flags: int, *rest: int) -> int:
        if str(path).endswith(".copying"):
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), str(path))
        return real(path, flags, *rest)

    monkeypatch.setattr(os, "open", full)
    with pytest.raises(BackupFailed, match=r"new\.copying.*Too many open files") as caught:
        backup(store, tmp_path / "above" / "new")
    assert caught.value.left == ""
    assert sorted(path.name for path in tmp_path.iterdir()) == ["store"]
