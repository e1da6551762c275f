"""What `keeve doctor` makes of the machine: Python, its libraries, the model that is named, the disk under the store.

The one rule: these checks always run, whatever is wrong with the store.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import apsw
import apsw.sqlite_extra

from actors.models import model_from_environment
from dataspace.errors import KeeveError
from keeve.cli.machine import MEMORY, Mount, mount_of, nearest, space_of, sync_time
from keeve.cli.signs import BAD, OK, WARN, Sign
from keeve.cli.text import size

MIB: Final = 1 << 20


def versions() -> Iterator[Sign]:
    """Python, apsw and its SQLite."""
    python = ".".join(map(str, sys.version_info[:3]))
    yield Sign("Python", OK, python)
    said = f"apsw {apsw.apsw_version()}, SQLite {apsw.sqlite_lib_version()}"
    if apsw.sqlite_extra.has("cksumvfs") is None:
        yield Sign("SQLite", WARN, f"{said}, without page checksums", "install apsw from PyPI: its wheels have them")
    else:
        yield Sign("SQLite", OK, said)


def model(environ: Mapping[str, str]) -> Iterator[Sign]:
    """The model that the environment names. It is not asked."""
    try:
        yield Sign("model", OK, model_from_environment(environ).description)
    except KeeveError as error:
        yield Sign("model", BAD, str(error), "correct the variable, or unset KEEVE_MODEL to talk to the echo")


def disk(folder: Path) -> Iterator[Sign]:
    """The file system that the store is on, its space, how fast it syncs."""
    place = nearest(folder)
    mount = mount_of(place)
    if mount is not None:
        yield _file_system(mount)
    try:
        space = space_of(place)
    except OSError as error:
        yield Sign("disk space", BAD, f"{place}: {error.strerror}", "look at the disk")
        return
    remedy = "make space: without it nothing more is accepted; what is acknowledged stays"
    state = BAD if space.free < 16 * MIB else WARN if space.free < 512 * MIB else OK
    if space.total:
        yield Sign(
            "disk space", state, f"{size(space.free)} free of {size(space.total)}", remedy if state != OK else ""
        )
    if space.files is not None:
        state = BAD if space.files < 16 else WARN if space.files < 1000 else OK
        remedy = "remove files: no new segment of the log can be begun without a free inode"
        yield Sign("free inodes", state, str(space.files), remedy if state != OK else "")
    yield from _syncs(place, mount)


def _file_system(mount: Mount) -> Sign:
    seen = f"{mount.type} at {mount.point}"
    if mount.network:
        remedy = "move the store to a local disk: locks and syncs are not reliable over a network"
        return Sign("file system", BAD, f"{seen}, a network file system ({mount.source})", remedy)
    if mount.readonly:
        return Sign("file system", BAD, f"{seen}, mounted read-only", "mount it to be written to")
    if mount.type in MEMORY:
        return Sign("file system", WARN, f"{seen}, which is lost when the machine stops", "move the store to a disk")
    return Sign("file system", OK, seen)


def _syncs(place: Path, mount: Mount | None) -> Iterator[Sign]:
    seconds = sync_time(place) if place.is_dir() else None
    if seconds is None:
        return
    seen = f"{seconds * 1000:.2f} ms for 4 KiB"
    if seconds > 0.05:
        yield Sign("sync", WARN, seen, "this disk is slow: a lone turn takes at least that long, twice")
    elif seconds < 0.00002 and (mount is None or mount.type not in MEMORY):
        remedy = "find out whether this disk keeps what it has synced when the power fails; many virtual ones do not"
        yield Sign("sync", WARN, f"{seen}, which is faster than disks are", remedy)
    else:
        yield Sign("sync", OK, seen)
