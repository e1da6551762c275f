"""Reading from a disk that fails: all that can be read is, and what cannot is named."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from dataspace.log.patience import BLOCK, Patient

CONTENT = os.urandom(5 * BLOCK + 100)


@pytest.fixture
def fd(tmp_path: Path) -> Iterator[int]:
    (tmp_path / "file").write_bytes(CONTENT)
    opened = os.open(tmp_path / "file", os.O_RDONLY)
    yield opened
    os.close(opened)


def failing(*blocks: int, error: int = errno.EIO):
    """`os.pread` of a disk on which these blocks cannot be read."""

    def read(fd: int, length: int, offset: int) -> bytes:
        if any(offset < BLOCK * (block + 1) and BLOCK * block < offset + length for block in blocks):
            raise OSError(error, os.strerror(error))
        return os.pread(fd, length, offset)

    return read


def test_a_disk_that_works_is_read_at_once(fd: int) -> None:
    calls: list[int] = []

    def read(fd: int, length: int, offset: int) -> bytes:
        calls.append(length)
        return os.pread(fd, length, offset)

    patient = Patient(fd, read)
    assert patient.read(0, 1 << 20) == CONTENT
    assert (calls, patient.unread) == ([1 << 20], set())


@pytest.mark.parametrize("begin", [0, 100, BLOCK, 3 * BLOCK - 1])
def test_what_cannot_be_read_is_zeros_and_everything_else_is_there(fd: int, begin: int) -> None:
    patient = Patient(fd, failing(1, 3))
    expected = bytearray(CONTENT)
    for block in (1, 3):
        expected[BLOCK * block : BLOCK * (block + 1)] = bytes(BLOCK)
    assert patient.read(begin, 1 << 20) == bytes(expected[begin:])
    assert patient.unread == {block for block in (BLOCK, 3 * BLOCK) if block + BLOCK > begin}


def test_a_file_ends_where_it_ends(fd: int) -> None:
    assert len(Patient(fd, failing(0)).read(0, 1 << 20)) == len(CONTENT)


def test_other_failures_are_raised(fd: int) -> None:
    with pytest.raises(PermissionError):
        Patient(fd, failing(0, error=errno.EACCES)).read(0, 100)
