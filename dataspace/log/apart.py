"""Keys apart: a key file that is kept outside of the backups which it serves, and put there anew with each of them.

A newer key file of a log serves its earlier backups too; an older one does not serve a later backup.

The one rule: nothing is taken away by what is put there but an older key file of the same log.
"""

from __future__ import annotations

import os
from pathlib import Path

from dataspace.encryption.key_file import intact, named_in
from dataspace.log.files import ReadFailed, open_plain
from dataspace.log.layout import NoPlaceForKeys, within

_HEAD = 64
"""Bytes of a key file that say of which log it is."""


def place_for_keys(keys: Path, store: Path, new: Path, log_id: bytes) -> Path:
    """Where the key file of a backup at `new` goes, without links. Raises `NoPlaceForKeys`, `ReadFailed`."""
    if within(keys, store):
        raise NoPlaceForKeys(str(keys), "it is inside of the store")
    if within(keys, new):
        raise NoPlaceForKeys(str(keys), "it is inside of the backup, where the key file goes if no place is named")
    place = Path(os.path.realpath(keys))
    if not place.parent.is_dir():
        raise NoPlaceForKeys(str(keys), f"there is no folder {place.parent}")
    _named(place, log_id)
    return place


def check_older(place: Path, log_id: bytes, key_file: bytes) -> None:
    """See that nothing is lost when a key file comes to that place. Raises `NoPlaceForKeys`, `ReadFailed`."""
    there = _named(place, log_id)
    if there is None:
        return
    coming = named_in(key_file)
    if coming is None or not intact(key_file):
        raise NoPlaceForKeys(str(place), "the key file of the store is damaged, and would take the place of this one")
    if there > coming[1]:
        raise NoPlaceForKeys(str(place), "the key file there is newer than that of the store")


def _named(place: Path, log_id: bytes) -> int | None:
    """The serial of the key file there; None if nothing is there. Raises if it is something else."""
    try:
        fd = open_plain(place)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ReadFailed.of(str(place), error) from error
    try:
        there = named_in(os.pread(fd, _HEAD, 0))
    finally:
        os.close(fd)
    if there is None or there[0] != log_id:
        raise NoPlaceForKeys(str(place), "what is there is no key file of this store")
    return there[1]
