"""The bytes of a segment, read when they are looked at: through a window that moves on.

They are not mapped into memory: to touch a mapped page that the file no longer has ends the process, and anybody may
cut a file. Here it is an error that says so.

The one rule: how long a segment is, is settled before the first look, and nothing beyond that is ever read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from dataspace.log.files import ReadFailed

_FIRST: Final = 1 << 13
_MOST: Final = 1 << 18
"""Bytes of a window: the first of a row, and what it grows to while it moves on without a gap."""


class Window:
    """`length` bytes that `read(offset, length)` gives, as slices with a start and a stop.

    `name` is theirs in errors. A slice within the window costs about 0.3 µs, another one a call of `read`. Raises what
    that raises, and `ReadFailed` where there are fewer.
    """

    __slots__ = ("_end", "_length", "_name", "_read", "_size", "_start", "_view")

    def __init__(self, read: Callable[[int, int], bytes], length: int, name: str) -> None:
        self._read = read
        self._length = length
        self._name = name
        self._start = self._end = 0
        self._size = _FIRST // 2
        self._view = memoryview(b"")

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, where: slice) -> memoryview:
        start, stop = where.start, where.stop
        if start < self._start or stop > self._end:
            start, stop, _ = where.indices(self._length)
            if stop - start > _MOST // 2:
                return memoryview(self._whole(start, stop - start))
            self._size = min(2 * self._size, _MOST) if self._start <= start <= self._end else _FIRST
            wanted = min(max(self._size, stop - start), self._length - start)
            self._view = memoryview(self._whole(start, wanted))
            self._start, self._end = start, start + wanted
        first = self._start
        return self._view[start - first : max(start, stop) - first]

    def _whole(self, offset: int, length: int) -> bytes:
        data = self._read(offset, length)
        if len(data) < length:
            raise ReadFailed(self._name, f"it ends at offset {offset + len(data)}, and was longer a moment ago")
        return data
