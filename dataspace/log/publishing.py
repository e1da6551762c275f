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

from dataspace.log.files import Files, WriteFailed
from dataspace.log.marks import Mark

_HEAD = struct.Struct("<8s16sQQQQ32s32s")
_MAGIC = b"KEEVEHED"
LENGTH = _HEAD.size + 4


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
    magic, log_id, epoch, *mark = _HEAD.unpack(data[:-4])
    return Published(log_id, epoch, Mark(*mark)) if magic == _MAGIC else None


def read(path: Path, tries: int = 100) -> Published | None:
    """What is published at `path`; None when nothing is. Reads again when it meets a write half-way."""
    for _ in range(tries):
        try:
            found = unpack(path.read_bytes())
        except OSError:
            return None
        if found is not None:
            return found
    return None


class Publisher:
    """The owner's hand on the head file."""

    def __init__(self, path: Path, files: Files, log_id: bytes, epoch: int) -> None:
        self._path = path
        self._files = files
        self._log_id = log_id
        self._epoch = epoch
        self._fd = files.open(path, create=True)
        if os.fstat(self._fd).st_size > LENGTH:
            files.truncate(self._fd, 0)

    def publish(self, mark: Mark) -> None:
        """Say that the log is durable up to `mark`. What the disk refuses here is left: the batch is durable."""
        with suppress(WriteFailed):
            self._files.write(self._fd, 0, pack(self._log_id, self._epoch, mark))

    def close(self) -> None:
        """Say no more. What was said stays."""
        self._files.close(self._fd)
