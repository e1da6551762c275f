"""A new key for a host: the key file written anew under it, and nothing of the log.

The one rule: whatever dies and when, the key file opens with the old key or with the new one.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from dataspace.encryption.errors import NotEncrypted
from dataspace.encryption.keys import Random
from dataspace.log.files import Files
from dataspace.log.keyring import open_keys
from dataspace.log.layout import Layout, State
from dataspace.log.ownership import Ownership
from dataspace.log.store import NotAStore


def rekeyed(folder: Path, key: bytes | None, new: Callable[[], bytes], files: Files, random: Random) -> None:
    """Wrap all data keys of the store in `folder` anew, as its owner. Durable when this returns.

    The new key is asked for when all else is well. Raises `NotAStore`, `StoreOwned`, `NotEncrypted`, what is wrong with
    the key or the key file, or what the disk refuses; and has done nothing then, unless the last sync failed.
    """
    layout = Layout(folder)
    if layout.state() is State.NEW:
        raise NotAStore(str(layout.folder))
    if open_keys(layout, key, files, random) is None:
        raise NotEncrypted(str(layout.folder))
    owner = Ownership(layout.lock, files)
    try:
        keys = open_keys(layout, key, files, random)
        if keys is None:
            raise NotEncrypted(str(layout.folder))
        keys.rewrap(new())
    finally:
        owner.release()
