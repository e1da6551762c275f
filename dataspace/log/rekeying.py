"""A new key for a host: the key file written anew under it, and nothing of the log.

An older copy of the key file is not given another key: written anew it would pass for the newest one.

The one rule: whatever dies and when, the key file opens with the old key or with the new one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

from dataspace.encryption.cipher import ENCRYPTED, Unopened, named
from dataspace.encryption.errors import NotEncrypted
from dataspace.encryption.keys import Random
from dataspace.log.files import Files
from dataspace.log.frames import SEGMENT_SIZE, Frame, Type, body_fits
from dataspace.log.keyring import open_keys
from dataspace.log.layout import Layout, State
from dataspace.log.opening import looked_at
from dataspace.log.ownership import Ownership
from dataspace.log.scan import Batch, read_batch
from dataspace.log.store import NotAStore
from dataspace.log.verdicts import SegmentBytes


def rekeyed(folder: Path, key: bytes | None, new: Callable[[], bytes], files: Files, random: Random) -> None:
    """Wrap all data keys of the store in `folder` anew, as its owner. Durable when this returns.

    The new key is asked for when all else is well. Raises `NotAStore`, `StoreOwned`, `NotEncrypted`, what is wrong with
    the key or the key file (`KeyFileOlder` among it), or what the disk refuses; and has done nothing then, unless the
    last sync failed.
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
        keys.check_serial(newest_serial(layout))
        keys.rewrap(new())
    finally:
        owner.release()


def newest_serial(layout: Layout) -> int:
    """The highest number of a key file that the newest segment with records names. About 5 µs for each frame in it."""
    with looked_at(layout) as segments:
        for segment in reversed(segments):
            serials = [serial for serial in map(partial(_serial, segment), _records(segment)) if serial]
            if serials:
                return max(serials)
    return 0


def _records(segment: SegmentBytes) -> Iterator[Frame]:
    """The sealed records in the sound batches of a segment."""
    batch = read_batch(segment, SEGMENT_SIZE)
    while isinstance(batch, Batch):
        yield from (each for each in batch.frames if each.type == Type.RECORD and each.flags & ENCRYPTED)
        batch = read_batch(segment, batch.end)


def _serial(segment: SegmentBytes, found: Frame) -> int:
    stored = bytes(segment.data[found.body_offset : found.body_offset + found.body_length])
    with suppress(Unopened):
        return named(stored)[1] if body_fits(found, stored) else 0
    return 0
