"""Backing up: a copy of a host's store, made in another thread while the host goes on.

The one rule: the host says how far it is durable, so that all that it has acknowledged is in the copy; and it is told
which sessions the check has found damaged, so that they are refused as wherever that is found.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import trio

from dataspace.log.backup import Backup, backup
from dataspace.log.segments import SegmentStore
from dataspace.log.store import NotAStore, Store

__all__ = ["Backup", "backed_up"]


async def backed_up(store: Store, new: Path) -> Backup:
    """Make a backup at `new`. Raises as `backup` does, and `NotAStore` for a store in memory. It cannot be interrupted,
    since it leaves nothing half done."""
    if not isinstance(store, SegmentStore):
        raise NotAStore("this host", "its store is in memory, and has no folder")
    end = None if store.readonly else (lambda: store.mark)
    return await trio.to_thread.run_sync(partial(backup, store.folder, new, end=end, damaged=store.know))
