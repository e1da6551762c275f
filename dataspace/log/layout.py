"""The folder of a store: which file is what, and whether a folder is a store at all.

    format            text: that this is a store, its format, its log id
    log/00000001.seg  the segments: these are the truth
    lock              held by the owner; says its epoch and process
    head              the durable head, for other processes to read; may be deleted
    checkpoint        the newest signed note, for whoever wants it; may be deleted
    keys              the key file of an encrypted store: this is the truth, too
    cut/              what recovery cut off torn tails
    archived          the folders of archives, to which content went

The one rule: looking changes nothing. A folder that is not a store is refused before anything is made in it.
"""

from __future__ import annotations

import os
import re
from enum import Enum
from pathlib import Path

from dataspace.errors import KeeveError
from dataspace.log.files import Files, refused, small_file
from dataspace.log.frames import FORMAT
from dataspace.log.store import NotAStore
from dataspace.log.verdicts import NewerFormat

_FORMAT = re.compile(rb"keeve store\nformat (\d{1,20})\nlog ([0-9a-f]{32})\n")
_FORMAT_MOST = 4096
"""Bytes of a format file, at the most; a newer one may say more."""
_SEGMENT = re.compile(r"(\d{8}|[1-9]\d{8,})\.seg", re.ASCII)
_OURS = frozenset(
    (
        *("format", "format.new", "log", "lock", "head", "checkpoint", "checkpoint.new", "keys", "keys.new", "cut"),
        *("archived", "archived.new"),
    )
)


class PlaceTaken(KeeveError, quotes=False):
    """A copy of a store, or what was salvaged of one, cannot be made there."""

    usage = True

    def __init__(self, path: str, what: str, first: str = "") -> None:
        self.path = path
        remedy = f"{first}, or name" if first else "name"
        super().__init__(f"{path}: {what}; {remedy} a place where nothing is yet, outside of the old store")


class State(Enum):
    """What is in a folder."""

    NEW = "new"
    """Nothing yet, or what is left of a store that was being made."""
    STORE = "store"


class Layout:
    """The files of the store at `folder`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.absolute()
        self.format = self.folder / "format"
        self.log = self.folder / "log"
        self.lock = self.folder / "lock"
        self.head = self.folder / "head"
        self.checkpoint = self.folder / "checkpoint"
        self.keys = self.folder / "keys"
        self.cut = self.folder / "cut"
        self.archived = self.folder / "archived"

    def segment(self, number: int) -> Path:
        """The file of a segment."""
        return self.log / f"{number:08}.seg"

    def segments(self) -> list[int]:
        """The ids of the segments that there are, in order."""
        if not self.log.is_dir():
            return []
        found = ((path, _SEGMENT.fullmatch(path.name)) for path in self.log.iterdir())
        return sorted(int(match[1]) for path, match in found if match and path.is_file())

    def log_id(self) -> bytes | None:
        """The log id that the format file names; None when it is missing or damaged.

        Raises `NewerFormat`, and `ReadFailed`.
        """
        match = _FORMAT.match(small_file(self.format, _FORMAT_MOST) or b"")
        if match is None:
            return None
        if int(match[1]) > FORMAT:
            raise NewerFormat(0, 0, f"{self.format} says format {int(match[1])}, this version knows {FORMAT}")
        return bytes.fromhex(match[2].decode())

    def write_format(self, files: Files, log_id: bytes) -> None:
        """Say for good that a store is here: written when its first batch is durable."""
        files.replace(self.format, f"keeve store\nformat {FORMAT}\nlog {log_id.hex()}\n".encode())

    def state(self) -> State:
        """What is here. Raises `NotAStore` for anything else, so that nothing is made in a wrong place."""
        folder = self.folder
        if "\0" in str(folder):
            raise NotAStore(str(folder), "no name of a folder has a NUL in it")
        if not folder.exists():
            return State.NEW
        if not folder.is_dir():
            raise NotAStore(str(folder), "it is a file")
        if self.format.exists() or self.segments():
            return State.STORE
        foreign = sorted(
            path.name for path in folder.iterdir() if path.name not in _OURS and not path.name.startswith(".")
        )
        if foreign:
            raise NotAStore(str(folder), f"it holds {foreign[0]!r} and no log")
        return State.NEW

    def make_folders(self, files: Files) -> None:
        """Make the folders that are missing, those above included."""
        missing = [path for path in (self.folder, *self.folder.parents) if not path.exists()]
        for path in (*reversed(missing), self.log):
            files.make_folder(path)


def within(path: Path, folder: Path) -> bool:
    """Whether a path is that of a folder, or leads into it, whatever links are on the way."""
    real, into = Path(os.path.realpath(path)), Path(os.path.realpath(folder))
    return real == into or into in real.parents


def check_new(source: Layout, new: Path) -> None:
    """See that another store can be made of this one at `new`. Raises `PlaceTaken`, or `WriteFailed` where one may not
    look."""
    place = new.absolute()
    if within(place, source.folder):
        raise PlaceTaken(str(new), "it is inside of the old store")
    try:
        if os.path.ismount(place):
            raise PlaceTaken(str(new), "a file system is mounted there")
        if place.is_symlink() or (place.exists() and not (place.is_dir() and not any(place.iterdir()))):
            raise PlaceTaken(str(new), "something is there")
    except OSError as error:
        raise refused(str(place), error) from error
