"""The file layer: what a failed call leaves, and what each call makes durable."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from pathlib import Path

import pytest

from dataspace.log.files import DiskFull, Files, SyncFailed, WriteFailed
from keeve.testing.crashes import CrashFiles, SimulatedCrash
from keeve.testing.disk import Mode


def opened(files: Files, path: Path, content: bytes = b"") -> int:
    path.write_bytes(content)
    return files.open(path)


def test_a_short_write_is_continued(tmp_path: Path) -> None:
    class Short:
        def __getattr__(self, name: str) -> object:
            return getattr(os, name)

        def pwrite(self, fd: int, data: bytes, offset: int) -> int:
            return os.pwrite(fd, data[:3], offset)

    files = Files(Short())  # type: ignore[arg-type] # the other calls are os's
    fd = opened(files, tmp_path / "f")
    files.write(fd, 0, b"0123456789", 0)
    assert (tmp_path / "f").read_bytes() == b"0123456789"


@pytest.mark.parametrize("partial", range(11))
def test_a_write_that_fails_at_the_end_of_a_file_leaves_no_fragment(tmp_path: Path, partial: int) -> None:
    files = CrashFiles()
    fd = opened(files, tmp_path / "f", b"before")
    files.fail(errno.ENOSPC, partial=partial)
    with suppress(DiskFull):
        files.write(fd, 6, b"0123456789", 6)
    assert (tmp_path / "f").read_bytes() in (b"before", b"before0123456789")
    assert (tmp_path / "f").read_bytes() == b"before" or partial == 10


@pytest.mark.parametrize("partial", range(10))
def test_a_write_that_fails_over_zeros_leaves_zeros(tmp_path: Path, partial: int) -> None:
    files = CrashFiles()
    for zeros in (0, 4, 20):
        before = b"before" + bytes(zeros)
        fd = opened(files, tmp_path / "f", before)
        files.fail(errno.ENOSPC, partial=partial)
        with pytest.raises(DiskFull) as caught:
            files.write(fd, 6, b"0123456789", len(before))
        assert caught.value.undone
        assert (tmp_path / "f").read_bytes() == before


def test_a_write_that_cannot_be_undone_says_so(tmp_path: Path) -> None:
    files = CrashFiles()
    fd = opened(files, tmp_path / "f")
    files.fail(errno.EIO, partial=3, times=3)
    with pytest.raises(WriteFailed) as caught:
        files.write(fd, 0, b"0123456789", 0)
    assert not caught.value.undone
    assert not isinstance(caught.value, DiskFull)


def test_a_failed_sync_names_the_file(tmp_path: Path) -> None:
    files = CrashFiles()
    fd = opened(files, tmp_path / "f")
    files.fail(errno.EIO)
    with pytest.raises(SyncFailed, match=str(tmp_path / "f")):
        files.sync(fd)


def test_replacing_a_file_is_whole_or_not_at_all(tmp_path: Path) -> None:
    old, new = b"old" * 1000, b"new" * 1000
    folder = tmp_path / "folder"
    folder.mkdir()
    path = folder / "f"
    for at in range(1, 20):
        path.write_bytes(old)
        files = CrashFiles(at, partial=700)
        with suppress(SimulatedCrash):
            files.replace(path, new)
        assert path.read_bytes() in (old, new)
        for mode in Mode:
            files.power_cut(folder, tmp_path / f"{at} {mode.value}", mode, seed=at)
            left = (tmp_path / f"{at} {mode.value}" / "f").read_bytes()
            assert left in (old, new)
            assert left == new or files.dead
        if not files.dead:
            break
    else:
        raise AssertionError("a replacement takes fewer calls than that")


@pytest.mark.parametrize("at", range(4))
def test_a_replacement_without_space_leaves_the_old_file(tmp_path: Path, at: int) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"old")
    files = CrashFiles()
    files.fail(errno.ENOSPC, after=at, partial=1)
    with pytest.raises((WriteFailed, SyncFailed)):
        files.replace(path, b"new")
    assert [each.name for each in tmp_path.iterdir()] == ["f"]
    assert path.read_bytes() == b"old"


def test_what_is_not_synced_is_not_on_the_disk(tmp_path: Path) -> None:
    files = CrashFiles()
    folder = tmp_path / "folder"
    files.make_folder(folder)
    fd = files.open(folder / "f", create=True)
    files.write(fd, 0, b"one", 0)
    files.sync(fd)
    files.write(fd, 3, b"two", 3)

    def left(name: str, mode: Mode) -> bytes | None:
        files.power_cut(folder, tmp_path / name, mode)
        path = tmp_path / name / "f"
        return path.read_bytes() if path.exists() else None

    assert left("nothing", Mode.NOTHING) is None
    assert left("all", Mode.ALL) == b"onetwo"
    files.sync_folder(folder)
    assert left("named", Mode.NOTHING) == b"one"
    assert left("sizes", Mode.SIZES) == b"one\0\0\0"
    files.sync(fd)
    assert left("synced", Mode.NOTHING) == b"onetwo"
    files.remove(folder / "f")
    assert left("removed", Mode.NOTHING) == b"onetwo"
    files.sync_folder(folder)
    assert left("gone", Mode.NOTHING) is None


def test_nothing_goes_on_after_a_crash(tmp_path: Path) -> None:
    files = CrashFiles(1)
    fd = opened(files, tmp_path / "f")
    for _ in range(2):
        with pytest.raises(SimulatedCrash):
            files.write(fd, 0, b"x", 0)
    with pytest.raises(SimulatedCrash):
        files.open(tmp_path / "f")
    assert (tmp_path / "f").read_bytes() == b""
