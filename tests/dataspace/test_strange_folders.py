"""Folders that no crash and no owner leaves: each file of a store is something else than it should be."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from segment_folders import opened, segment

from dataspace.log import publishing
from dataspace.log.files import ReadFailed, WriteFailed
from dataspace.log.ownership import PLAUSIBLE
from dataspace.log.store import NotAStore
from dataspace.log.verdicts import LogError
from keeve.testing.stores import Chain, texts

_FILES = ("format", "head", "lock", "log/00000001.seg", "log/00000002.seg", "log/00000003.seg")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A closed store of three segments, with two texts."""
    folder = tmp_path / "store"
    store = opened(folder, segment_bytes=1000)
    chain = Chain()
    store.append([chain.record("x" * 600)])
    store.append([chain.record("y" * 600)])
    store.close()
    return folder


def _pipe(path: Path) -> None:
    os.mkfifo(path)


def _loop(path: Path) -> None:
    path.symlink_to(path.name)


def _device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def _dangling(path: Path) -> None:
    path.symlink_to("/nowhere/at/all")


def _sparse(path: Path) -> None:
    path.touch()
    os.truncate(path, 1 << 32)


@pytest.mark.parametrize("readonly", [False, True])
@pytest.mark.parametrize("name", _FILES)
@pytest.mark.parametrize("put", [_pipe, _loop, _device, _dangling, _sparse, Path.mkdir])
def test_what_is_no_plain_file_is_an_error_or_does_not_matter(
    folder: Path, name: str, put: Callable[[Path], None], readonly: bool
) -> None:
    """Invariant 42: nothing waits for ever, nothing is read without end, and the error is ours."""
    path = folder / name
    if put is _sparse and path.suffix == ".seg":
        return  # zeros after a segment are preallocation, however many
    path.unlink(missing_ok=True)
    put(path)
    with suppress(ReadFailed, WriteFailed, LogError):
        store = opened(folder, readonly=readonly)
        assert len(texts(store)) == 2 or store.fault is not None
        store.close()


@pytest.mark.parametrize("name", ["000000002.seg", "٠٠٠٠٠٠٠٢.seg", "00000002.seg.old", "9" * 60 + ".seg.x"])
def test_a_copy_of_a_segment_under_another_name_is_none(folder: Path, name: str) -> None:
    shutil.copy(segment(folder, 2), folder / "log" / name)
    store = opened(folder)
    assert store.fault is None
    assert len(texts(store)) == 2
    store.close()


@pytest.mark.parametrize("epoch", [PLAUSIBLE, (1 << 32) - 1, 1 << 63, 10**20 - 1])
@pytest.mark.parametrize("file", ["lock", "head"])
def test_no_file_beside_the_log_uses_up_the_epochs(folder: Path, file: str, epoch: int) -> None:
    """Invariant 21: what is derived can be anything, and the store is written to all the same."""
    if file == "lock":
        (folder / "lock").write_bytes((b"pid 7\nepoch %d\n" % epoch).ljust(45) + b"\n")
    else:
        said = publishing.read(folder / "head")
        assert said is not None
        (folder / "head").write_bytes(publishing.pack(said.log_id, epoch % (1 << 64), said.mark))
    store = opened(folder)
    assert store.epoch < PLAUSIBLE
    store.append([Chain("new").record("more")])
    store.close()
    assert len(texts(opened(folder))) == 3


@pytest.mark.parametrize("change", [{"offset": 1 << 63}, {"offset": (1 << 64) - 1}, {"segment": 1 << 63}])
def test_a_head_that_names_no_place_is_no_head(folder: Path, change: dict[str, int]) -> None:
    said = publishing.read(folder / "head")
    assert said is not None
    (folder / "head").write_bytes(publishing.pack(said.log_id, said.epoch, said.mark._replace(**change)))
    for readonly in (True, False):
        store = opened(folder, readonly=readonly)
        assert store.fault is None
        store.close()


@pytest.mark.parametrize("name", ["00000009-5", "00000001-105", f"1-{'9' * 99}", "9" * 20 + "-0", "٣-5"])
@pytest.mark.parametrize("put", [Path.touch, Path.mkdir])
def test_what_recovery_never_saved_is_left_alone(folder: Path, name: str, put: Callable[[Path], None]) -> None:
    stray = folder / "cut" / f"{name}.pending"
    stray.parent.mkdir()
    put(stray)
    store = opened(folder)
    assert store.head.position == 3
    assert stray.exists()
    store.close()


def test_a_format_with_a_number_without_end_is_a_damaged_one(folder: Path) -> None:
    (folder / "format").write_text(f"keeve store\nformat {'9' * 5000}\nlog {'a' * 32}\n")
    store = opened(folder)
    assert len(texts(store)) == 2
    store.close()


@pytest.mark.parametrize("readonly", [False, True])
@pytest.mark.parametrize("name", ["a\0b", "x" * 300])
def test_a_path_that_cannot_be_is_refused(tmp_path: Path, name: str, readonly: bool) -> None:
    with pytest.raises((NotAStore, ReadFailed)):
        opened(tmp_path / name, readonly=readonly)
