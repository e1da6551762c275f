"""Random bytes from the system, fetched many at a time: every record takes some, and a system call each is dear.

The one rule: no byte is given twice, neither here nor in a forked child, which fetches its own.
"""

from __future__ import annotations

import os
from typing import Final

_FETCHED: Final = 8192


class Entropy:
    """`entropy(n)` gives n bytes of `os.urandom`."""

    def __init__(self) -> None:
        self._bytes = b""
        self._at = 0
        self._process = 0

    def __call__(self, count: int) -> bytes:
        at = self._at
        end = at + count
        if end > len(self._bytes) or self._process != os.getpid():
            self._process = os.getpid()
            self._bytes = os.urandom(max(_FETCHED, count))
            at, end = 0, count
        self._at = end
        return self._bytes[at:end]
