"""Turns: whoever reads a long past leaves the others of the thread a turn now and then.

The one rule: who reads can be cancelled at any item, and gives way at every sixteenth.
"""

from __future__ import annotations

from typing import Final

import trio

TURN: Final = 16
"""Items, or records without one, that are read before others have a turn."""


async def gives_way(item: int) -> None:
    """Before item number `item` of a reading, from 1: a cancellation is noticed, and each `TURN`th waits for others."""
    if item % TURN:
        await trio.lowlevel.checkpoint_if_cancelled()
    else:
        await trio.lowlevel.checkpoint()
