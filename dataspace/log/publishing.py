"""The durable head, published for other processes: one small file, overwritten in place after each batch.

    0    8s   KEEVEHED
    8    16s  log id
    24   u64  epoch
    32   u64  segment
    40   u64  offset, just after the commit
    48   u64  position of the newest record
    56   32s  hash of that record
    88   32s  hash of the commit frame
    120  u32  CRC-32 of what stands before

Integers are little endian. It is derived and not synced: who finds it missing or torn reads the log. But it
never says more than what was durable, so a log that ends before it has lost something.

The one rule: it is written after the sync, and only after it.
"""

from __future__ import annotations

import os
import struct
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

from dataspace.log.files import Files, ReadFailed, WriteFailed, small_file
from dataspace.log.marks import Mark
from dataspace.log.ownership import PLAUSIBLE

_HEAD = struct.Struct("<8s16sQQQQ32s32s")
_MAGIC = b"KEEVEHED"
LENGTH = _HEAD.size + 4
_LOOK = 64
"""Publications after which it is time to look whether the file is still there."""


class Published(NamedTuple):
    """What an owner has last published."""

    log_id: bytes
    epoch: int
    mark: Mark


def pack(log_id: bytes, epoch: int, mark: Mark) -> bytes:
    """The content of a head file."""
    data = _HEAD.pack(_MAGIC, log_id, epoch, *mark)
    return data + crc32(data).to_bytes(4, "little")


def unpack(data: bytes) -> Published | None:
    """What a head file says; None when it is torn, damaged or no head file."""
    if len(data) != LENGTH or crc32(data[:-4]) != int.from_bytes(data[-4:], "little"):
        return None
    magic, log_id, epoch, *rest = _HEAD.unpack(data[:-4])
    mark = Mark(*rest)
    sound = magic == _MAGIC and epoch < PLAUSIBLE and mark.segment < 1 << 24 and mark.offset < 1 << 40
    return Published(log_id, epoch, mark) if sound else None


def read(path: Path, tries: int = 100) -> Published | None:
    """What is published at `path`; None when nothing is. Reads again when it meets a write half-way."""
    for _ in range(tries):
        try:
            found = unpack(small_file(path, LENGTH) or b"")
        except ReadFailed:
            return None
        if found is not None:
            return found
    return None


class Publisher:
    """The owner's hand on the head file. Where the file is gone, or is another one, it is made anew."""

    def __init__(self, path: Path, files: Files, log_id: bytes, epoch: int) -> None:
        self._path = path
        self._name = str(path)
        self._files = files
        self._log_id = log_id
        self._epoch = epoch
        self._fd: int | None = None
        self._inode = 0
        self._unlooked = 0

    def publish(self, mark: Mark, *, look: bool = False) -> None:
        """Say that the log is durable up to `mark`. What the disk refuses here is left: the batch is durable.

        Whether the file is still there is seen with `look`, and otherwise now and then: it costs more than writing.
        """
        with suppress(WriteFailed):
            fd = self._fd
            self._unlooked += 1
            if look or self._unlooked >= _LOOK:
                self._unlooked = 0
                fd = fd if self._leads_here() else None
            if fd is None:
                fd = self._opened()
            self._files.write(fd, 0, pack(self._log_id, self._epoch, mark))

    def _leads_here(self) -> bool:
        try:
            return os.stat(self._name).st_ino == self._inode
        except OSError:
            return False

    def _opened(self) -> int:
        self.close()
        fd = self._fd = self._files.open(self._path, create=True)
        found = os.fstat(fd)
        self._inode = found.st_ino
        if found.st_size > LENGTH:
            self._files.truncate(fd, 0)
        return fd

    def close(self) -> None:
        """Say no more. What was said stays."""
        fd, self._fd = self._fd, None
        if fd is not None:
            self._files.close(fd)
