"""A file that records what is written to it and when it is synced: a FUSE file system of one file, for a loop device.

    python -m tests.crash.block_file FOLDER SIZE RECORD

It is mounted at FOLDER, which then has the file `disk`, SIZE bytes of zeros held in memory. RECORD gets each write and
each sync, in order, as they are asked for; `recorded` reads it. It ends when FOLDER is unmounted.

The protocol is the kernel's (`linux/fuse.h`, version 7.31), as far as one file needs it.

The one rule: a write is recorded before it is answered, and so before any sync that covers it.
"""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from struct import Struct
from typing import BinaryIO, Final, NamedTuple

NAME: Final = "disk"
_ROOT, _FILE = 1, 2
_MOST: Final = 1 << 17
"""Bytes of one write, at the most."""

_IN: Final = Struct("<IIQQIIII")
_OUT: Final = Struct("<IiQ")
_ATTRIBUTES: Final = Struct("<6Q10I")
_WRITE: Final = Struct("<QQIIQII")
_READ: Final = Struct("<QQI")
_RECORD: Final = Struct("<QI")

_LOOKUP, _FORGET, _GETATTR, _SETATTR, _OPEN, _READS, _WRITES = 1, 2, 3, 4, 14, 15, 16
_RELEASE, _FSYNC, _FLUSH, _INIT, _INTERRUPT, _DESTROY, _FORGETS, _FALLOCATE = 18, 20, 25, 26, 36, 38, 42, 43
_SYNC: Final = (1 << 64) - 1
"""What stands for the offset where a sync is recorded."""


class Write(NamedTuple):
    """A write that was recorded; a sync has no offset."""

    offset: int | None
    data: bytes
    end: int
    """Where it ends in the record."""


def recorded(record: Path) -> list[Write]:
    """What was recorded, in order."""
    found, data, at = [], record.read_bytes(), 0
    while at < len(data):
        offset, length = _RECORD.unpack_from(data, at)
        at += _RECORD.size
        found.append(Write(None if offset == _SYNC else offset, data[at : at + length], at + length))
        at += length
    return found


class _Server:
    """Answers the kernel."""

    def __init__(self, size: int, record: BinaryIO) -> None:
        self._disk = bytearray(size)
        self._record = record

    def answer(self, request: bytes) -> bytes | int | None:
        """What to answer: bytes, an errno, or nothing at all."""
        _, code, _, node, *_ = _IN.unpack_from(request)
        body = memoryview(request)[_IN.size :]
        if code == _INIT:
            return Struct("<IIIIHHIIHHI28x").pack(7, 31, _MOST, 0, 16, 12, _MOST, 1, 0, 0, 0)
        if code == _LOOKUP:
            if bytes(body).rstrip(b"\0").decode() != NAME:
                return errno.ENOENT
            return Struct("<4QII").pack(_FILE, 0, 3600, 3600, 0, 0) + self._attributes(_FILE)
        if code in (_GETATTR, _SETATTR):
            return Struct("<QII").pack(3600, 0, 0) + self._attributes(node)
        if code == _OPEN:
            return Struct("<QII").pack(0, 0, 0)
        if code == _READS:
            _, offset, length = _READ.unpack_from(body)
            return bytes(self._disk[offset : offset + length])
        if code == _WRITES:
            _, offset, length, *_ = _WRITE.unpack_from(body)
            data = bytes(body[_WRITE.size : _WRITE.size + length])
            self._disk[offset : offset + length] = data
            self._note(offset, data)
            return Struct("<II").pack(length, 0)
        if code == _FSYNC:
            self._note(_SYNC, b"")
            return b""
        if code in (_FORGET, _FORGETS, _INTERRUPT):
            return None
        if code in (_RELEASE, _FLUSH, _DESTROY):
            return b""
        return errno.EOPNOTSUPP if code == _FALLOCATE else errno.ENOSYS

    def _attributes(self, node: int) -> bytes:
        mode = stat.S_IFDIR | 0o755 if node == _ROOT else stat.S_IFREG | 0o600
        size = 0 if node == _ROOT else len(self._disk)
        return _ATTRIBUTES.pack(node, size, size // 512, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)

    def _note(self, offset: int, data: bytes) -> None:
        self._record.write(_RECORD.pack(offset, len(data)) + data)


def _requests(device: int) -> Iterator[bytes]:
    while True:
        try:
            request = os.read(device, _MOST + 4096)
        except OSError as error:
            if error.errno == errno.ENODEV:
                return  # it was unmounted
            if error.errno not in (errno.EINTR, errno.ENOENT):
                raise
        else:
            yield request


def main(folder: str, size: int, record: str) -> None:
    """Mount, say so, and serve until it is unmounted."""
    device = os.open("/dev/fuse", os.O_RDWR)
    options = f"fd={device},rootmode=40000,user_id=0,group_id=0"
    subprocess.run(["mount", "-i", "-t", "fuse", "-o", options, "keeve", folder], check=True, pass_fds=[device])
    print("mounted", flush=True)
    with Path(record).open("wb", buffering=0) as file:
        server = _Server(size, file)
        for request in _requests(device):
            answer = server.answer(request)
            if answer is None:
                continue
            error, data = (-answer, b"") if isinstance(answer, int) else (0, answer)
            unique = _IN.unpack_from(request)[2]
            os.write(device, _OUT.pack(_OUT.size + len(data), error, unique) + data)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
