"""A disk that has space for records, and none for a segment that is to be written anew."""

from __future__ import annotations

import errno
import os
from typing import Any

from dataspace.log.files import Files


class _Calls:
    """The system's calls. While it is `full`, a write to a segment that is written anew puts down the first bytes."""

    def __init__(self) -> None:
        self.full = False
        self._anew: set[int] = set()

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def open(self, path: str, flags: int, mode: int = 0o777, /) -> int:
        fd = os.open(path, flags, mode)
        self._anew.discard(fd)
        if path.endswith("erasing.new"):
            self._anew.add(fd)
        return fd

    def pwrite(self, fd: int, data: bytes | memoryview, offset: int, /) -> int:
        if self.full and fd in self._anew:
            if offset or len(data) < 100:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            data = data[:100]
        return os.pwrite(fd, data, offset)


class TightDisk(Files):
    """The file layer of a store on such a disk: `full` from the moment that it is set."""

    def __init__(self, *, full: bool = False) -> None:
        self._tight = _Calls()
        self._tight.full = full
        super().__init__(self._tight)

    @property
    def full(self) -> bool:
        return self._tight.full

    @full.setter
    def full(self, full: bool) -> None:
        self._tight.full = full
