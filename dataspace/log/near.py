"""Bytes that were read for one record of a segment, and serve those that lie near before it.

Who follows references back through a log asks for one record after another, each mostly a little before the last. So
what is read ends behind the record that is asked for, and reaches back the further the better that served.

The one rule: it answers with bytes of the place that is asked for, read now or a moment ago, knowing no frames.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

AHEAD: Final = 8192
"""Bytes from a record on that are read with it."""
FURTHEST: Final = 1 << 16
"""Bytes that are read at once, at the most."""


class Near:
    """What was read last. It keeps up to `FURTHEST` bytes, until somebody lets go of it."""

    __slots__ = ("_base", "_bytes", "_segment", "_size")

    def __init__(self) -> None:
        self._segment = self._base = 0
        self._bytes = b""
        self._size = AHEAD

    def at(self, pread: Callable[[int, int, int], bytes], segment: int, offset: int) -> tuple[bytes, int]:
        """Bytes of a segment, and where in them its `offset` is. Raises what `pread` raises."""
        start = offset - self._base
        if segment == self._segment:
            if 0 <= start < len(self._bytes) - AHEAD or start == 0:
                return self._bytes, start
            self._size = min(2 * self._size, FURTHEST) if 0 < -start <= FURTHEST else AHEAD
        else:
            self._size = AHEAD
        base = max(0, offset + AHEAD - self._size)
        self._bytes = pread(segment, base, offset + AHEAD - base)
        self._segment, self._base = segment, base
        return self._bytes, offset - base
