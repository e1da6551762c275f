"""Reading from a disk that fails: what cannot be read is zeros, and is named.

The one rule: only what is to be looked at or saved is read so. Whoever relies on what he reads wants the error.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from typing import Final

BLOCK: Final = 4096
"""Bytes that are given up at once where a read fails."""
_FAILING: Final = frozenset({errno.EIO, errno.EREMOTEIO, errno.EILSEQ, errno.ENODATA})
"""What a bad sector, a remote disk or a file system's checksum says."""

Read = Callable[[int, int, int], bytes]
"""`os.pread`: a descriptor, a length, an offset."""


class Patient:
    """Reads the file of a descriptor, and goes on where it fails. `unread` are the offsets of the blocks given up."""

    def __init__(self, fd: int, read: Read = os.pread) -> None:
        self._fd = fd
        self._read = read
        self.unread: set[int] = set()

    def read(self, offset: int, length: int) -> bytes:
        """Bytes of the file, fewer where it ends; zeros for what cannot be read. Raises any other `OSError`."""
        try:
            return self._read(self._fd, length, offset)
        except OSError as error:
            if error.errno not in _FAILING:
                raise
        pieces = []
        while length > 0:
            size = min(BLOCK - offset % BLOCK, length)
            try:
                piece = self._read(self._fd, size, offset)
            except OSError as error:
                if error.errno not in _FAILING:
                    raise
                self.unread.add(offset - offset % BLOCK)
                piece = bytes(size)
            pieces.append(piece)
            if len(piece) < size:
                break
            offset, length = offset + size, length - size
        return b"".join(pieces)
