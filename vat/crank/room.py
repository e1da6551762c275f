"""Room on the stack: as much of it as if nothing were on it yet.

The recursion limit is the process's: while any thread has a block of these, all have its room.

The one rule: the limit of before stands again when the last block is over.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_MORE: Final = 50
"""Frames of the runtime's own."""

_lock = threading.Lock()
_blocks: list[int] = []
_before = 0


@contextmanager
def room() -> Iterator[None]:
    """What runs in the block may recurse as deep as if it ran at the bottom of the stack, and some more."""
    global _before
    depth, frame = 0, sys._getframe()
    while (outer := frame.f_back) is not None:
        depth, frame = depth + 1, outer
    with _lock:
        if not _blocks:
            _before = sys.getrecursionlimit()
        _blocks.append(depth)
        sys.setrecursionlimit(_before + max(_blocks) + _MORE)
    try:
        yield
    finally:
        with _lock:
            _blocks.remove(depth)
            sys.setrecursionlimit(_before + max(_blocks) + _MORE if _blocks else _before)
