"""The segment that is written to: what it has on the disk, and zeros ahead of that.

A sync is a third faster when the file does not grow, so zeros are written ahead of what is needed: 4 KiB at first,
since whoever opens a store waits for that, then each time twice as many, up to 256 KiB. Where there is no space for
them it goes on without.

The one rule: `size` is what the file's length must be, and `_last` what it must end with before the zeros,
whatever failed. The owner compares them before every write.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Final

from dataspace.log.files import DiskFull, Files, WriteFailed
from dataspace.log.frames import COMMIT_SIZE

_FIRST: Final = 4 << 10
_MOST: Final = 256 << 10
_KNOWN: Final = COMMIT_SIZE
"""Bytes by which the end is known again: a commit names all that is before it."""


class Tail:
    """An open segment file, of which this process is the only writer. `end` is where its content ends."""

    __slots__ = ("_ahead", "_end", "_fd", "_files", "_last", "folder", "inode", "path", "size")

    def __init__(self, files: Files, path: Path, fd: int, end: int) -> None:
        self._files = files
        self._fd = fd
        self._end = end
        self._ahead = _FIRST
        self._last = os.pread(fd, min(end, _KNOWN), max(0, end - _KNOWN))
        self.path = str(path)
        self.folder = str(path.parent)
        found = os.fstat(fd)
        self.inode = found.st_ino
        self.size = found.st_size

    @classmethod
    def begin(cls, files: Files, path: Path, head: bytes) -> Tail:
        """A new segment with its first frame: durable when this returns, its name too.

        Raises `WriteFailed` and leaves no file, or `SyncFailed`.
        """
        with files.naming(path.parent):
            fd = files.open(path, create=True)
            try:
                files.truncate(fd, 0)
                files.write(fd, 0, head, 0)
                files.sync(fd)
            except BaseException as error:
                files.close(fd)
                if isinstance(error, WriteFailed):
                    with suppress(WriteFailed):
                        files.remove(path)
                raise
        return cls(files, path, fd, len(head))

    def changed(self) -> str:
        """How the file is not as it was left; nothing when it is. (Its times are not asked for, see `Ownership.check`.)

        A file of the right length that ends with something else is an older or another copy of it.
        """
        length = os.lseek(self._fd, 0, os.SEEK_END)
        if length != self.size:
            return f"{self.path} has {length} bytes and had {self.size}"
        last = self._last
        if os.pread(self._fd, len(last), self._end - len(last)) != last:
            return f"{self.path} does not end with what was last written to it"
        return ""

    def put(self, offset: int, data: bytes, *, ahead: bool = True) -> None:
        """Write `data` at `offset`, over zeros or at the end: durable when this returns.

        Raises `WriteFailed` and leaves nothing of it, or `SyncFailed`, after which nobody knows.
        """
        end = offset + len(data)
        size = self.size
        try:
            if end <= size:
                self._files.write(self._fd, offset, data, size)
            elif ahead:
                self._grow(offset, data, end)
            else:
                self._files.write(self._fd, offset, data, size)
                self.size = end
        except WriteFailed as error:
            if error.undone:  # until that is durable, a power cut could bring back what is told to have failed
                self._files.sync(self._fd)
            raise
        self._files.sync(self._fd)
        self._end = end
        self._last = data[-_KNOWN:]

    def _grow(self, offset: int, data: bytes, end: int) -> None:
        size = end + -end % self._ahead
        self._ahead = min(2 * self._ahead, _MOST)
        try:
            self._files.write(self._fd, offset, data + bytes(size - end), self.size)
        except DiskFull as error:
            if not error.undone:
                raise
            size = end
            self._files.write(self._fd, offset, data, self.size)
        self.size = size

    def cut(self, length: int) -> None:
        """Cut off the zeros after `length`. Durable after `sync`, or the next `put`."""
        self._files.truncate(self._fd, length)
        self.size = length

    def sync(self) -> None:
        """Make what the file is now durable. Raises `SyncFailed`."""
        self._files.sync(self._fd)

    def close(self) -> None:
        """Close the file. Makes nothing durable."""
        self._files.close(self._fd)
