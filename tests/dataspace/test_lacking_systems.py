"""What a system may lack: file descriptors, for a while, and locks. What is refused then costs nothing else."""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path
from typing import Any

import pytest
from segment_folders import content, opened

from dataspace.log.files import Files, ReadFailed, WriteFailed
from dataspace.log.ownership import NoLocks
from keeve.testing.chains import Chain, texts


class NoneLeft:
    """The system's calls; while there are `few` descriptors, no folder is opened."""

    few = False

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def open(self, path: str, flags: int, mode: int = 0o777, /) -> int:
        if self.few and flags & os.O_DIRECTORY:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), path)
        return os.open(path, flags, mode)


def test_a_folder_that_cannot_be_opened_to_sync_it_changes_nothing_and_stops_nothing(tmp_path: Path) -> None:
    """It is opened before anything is named in it: a failed sync would be the end of the store."""
    calls, chain = NoneLeft(), Chain()
    store = opened(tmp_path / "store", files=Files(calls), segment_bytes=1500)
    store.append([chain.record("first" * 200)])
    before = content(tmp_path / "store")
    calls.few = True
    record = chain.record("second" * 200)
    with pytest.raises(WriteFailed):
        store.append([record])
    assert content(tmp_path / "store").keys() == before.keys()
    with pytest.raises(WriteFailed):
        Files(calls).replace(tmp_path / "store" / "format", b"other")
    calls.few = False
    store.append([record])
    store.close()
    again = opened(tmp_path / "store")
    assert texts(again) == ["first" * 200, "second" * 200]
    assert (tmp_path / "store" / "format").read_bytes() == before["format"]
    again.close()


def test_a_log_whose_folder_cannot_be_listed_is_said_to_be_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(path: Path) -> None:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), str(path))

    store = opened(tmp_path / "store")
    store.append([Chain().record()])
    with monkeypatch.context() as patched:
        patched.setattr(Path, "iterdir", refused)
        with pytest.raises(ReadFailed), store.still():
            pass
    store.close()


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EOPNOTSUPP])
def test_a_file_system_without_locks_holds_no_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """Nothing would keep two hosts from writing at once; who only reads takes no lock."""
    store = opened(tmp_path / "store")
    store.close()
    before = content(tmp_path / "store")

    def refused(fd: int, how: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", refused)
    with pytest.raises(NoLocks, match="local file system"):
        opened(tmp_path / "store")
    assert content(tmp_path / "store") == before
    opened(tmp_path / "store", readonly=True).close()
