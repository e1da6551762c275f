"""Turns: whoever reads a long past leaves the others of the thread a turn now and then.

The one rule: who reads can be cancelled at any item, and gives way at every sixteenth, and whenever much was read.
"""

from __future__ import annotations

from typing import Final

import trio

TURN: Final = 16
"""Items, or records without one, that are read before others have a turn."""
ROOM: Final = 1 << 18
"""Bytes (or characters) of facts that are, about. One record is read at once, however much it has."""


class Turns:
    """What a reading has read since others had a turn."""

    __slots__ = ("_items", "_size")

    def __init__(self) -> None:
        self._items = 0
        self._size = 0

    @property
    def heavy(self) -> bool:
        """Whether much was read."""
        return self._size >= ROOM

    def reads(self, size: int) -> None:
        """A record is read whose facts have that size."""
        self._size += size

    def ends(self) -> None:
        """Others have a turn before the next item."""
        self._items = TURN

    async def gives_way(self) -> None:
        """Before an item: a cancellation is noticed, and when it is time for that, others have their turn."""
        self._items += 1
        if self._items < TURN and self._size < ROOM:
            await trio.lowlevel.checkpoint_if_cancelled()
        else:
            self._items = self._size = 0
            await trio.lowlevel.checkpoint()
