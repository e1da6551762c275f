"""Archives: folders to which the content of old segments went, and what lies there, read back.

    archive          text: that this is an archive, its format, and of which log
    00000001.seg     a segment with all that was archived of it, as it lay in the store

A store says in its file `archived` where its archives are. It is looked for there, and in folders that are given.

The one rule: **what comes from an archive is held against the store.** A body is given out only if the frame in the
archive is the one that the store's frame was, and its CRC is right; anything else is as if it were not there.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import ClassVar, Final

from dataspace.errors import KeeveError
from dataspace.log.files import Files, ReadFailed, small_file
from dataspace.log.frames import FORMAT, PREFIX, Frame, body_fits, parse
from dataspace.log.layout import Layout
from dataspace.log.packed import SegmentFile

_MARKER: Final = re.compile(rb"keeve archive\nformat (\d{1,20})\nlog ([0-9a-f]{32})\n")
_MOST: Final = 1 << 16
_OPEN: Final = 8
"""Segment files of archives that are open at a time."""
ASIDE: Final = "archiving.new"
"""What a segment is called while it is written in an archive."""


class Archived(KeeveError, quotes=False):
    """Content is in an archive, and that is not here. `position` is the record's, `places` where it should be."""

    def __init__(self, segment: int, places: Sequence[str | Path], position: int = 0) -> None:
        self.segment = segment
        self.places = tuple(map(str, places))
        self.position = position
        where = " or ".join(self.places) or "a folder that `keeve log '(archived . _)'` names"
        of = f"content of the record at position {position}" if position else f"content of segment {segment}"
        super().__init__(
            f"{of} was archived, and is not in {where}: bring that folder back to its place, name the one where it is "
            "now (KEEVE_ARCHIVES, or open_host(archives=...)), or have it back (`keeve archive --back --from FOLDER`)"
        )


class NotAnArchive(KeeveError, quotes=False):
    """A folder is no archive of this log, and nothing was changed in it."""

    usage: ClassVar[bool] = True

    def __init__(self, path: Path, what: str) -> None:
        self.path = str(path)
        super().__init__(f"{path} is no archive of this store: {what}; name another folder")


class Archives:
    """The archives of the store at `layout`. Safe for threads."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._given: list[Path] = []
        self._open: dict[Path, SegmentFile] = {}
        self._lock = threading.Lock()

    def also(self, folder: Path) -> None:
        """Look in this folder first."""
        with self._lock:
            self._given.insert(0, folder.absolute())

    @property
    def places(self) -> list[Path]:
        """Where archives should be."""
        return list(dict.fromkeys([*self._given, *self._noted()]))

    def _noted(self) -> list[Path]:
        said = small_file(self._layout.archived, _MOST) or b""
        return [Path(line) for line in said.decode("utf-8", "surrogateescape").splitlines() if line]

    def body(self, segment: int, found: Frame, position: int = 0) -> bytes:
        """The body of an archived frame, as it is stored. Raises `Archived`."""
        with self._lock:
            for place in self.places:
                data = self._body(place / f"{segment:08}.seg", segment, found)
                if data is not None:
                    return data
        raise Archived(segment, self.places, position)

    def found(self, segment: int, found: Frame) -> bytes | None:
        """The same; None where it is in no archive that is here."""
        try:
            return self.body(segment, found)
        except Archived:
            return None

    def _body(self, path: Path, segment: int, found: Frame) -> bytes | None:
        try:
            file = self._open.get(path)
            if file is None:
                file = SegmentFile(path, segment)
                self._open[path] = file
                while len(self._open) > _OPEN:
                    self._open.pop(next(iter(self._open))).close()
            return body_in(file, segment, found)
        except OSError:
            return None

    def renew(self) -> None:
        """Read on from what lies there now."""
        with self._lock:
            while self._open:
                self._open.popitem()[1].close()

    def note(self, files: Files, folder: Path) -> None:
        """Put down, durably, that content goes to this folder, or has come from there."""
        noted = self._noted()
        if folder.absolute() not in noted:
            said = "".join(f"{place}\n" for place in [folder.absolute(), *noted])
            files.replace(self._layout.archived, said.encode("utf-8", "surrogateescape"))

    def clear(self, files: Files, log_id: bytes) -> None:
        """Remove, durably, what a crash has left of segments that were being written in the archives that are here."""
        for place in self.places:
            if is_there(place / ASIDE) and archive_of(place) == log_id:
                files.remove(place / ASIDE)
                files.sync_folder(place)


def body_in(file: SegmentFile, segment: int, found: Frame) -> bytes | None:
    """The body of a frame, as it lies in this file; None when another frame, or a wrong body, is there."""
    head = file.read(found.offset, PREFIX + len(found.head))
    there = parse(head, 0, segment, found.offset)
    if there is None or (there.type, there.head, there.header_crc) != (found.was, found.head, found.header_crc):
        return None
    body = file.read(found.body_offset, min(found.body_length, max(0, file.length - found.body_offset)))
    return body if body_fits(found, body) else None


def is_there(path: Path) -> bool:
    """Whether a file is there. Raises `ReadFailed` when the disk does not say."""
    try:
        return path.exists()
    except OSError as error:
        raise ReadFailed.of(str(path), error) from error


def begin_archive(files: Files, folder: Path, log_id: bytes) -> None:
    """Make sure, durably, that a folder is an archive of this log. Raises `NotAnArchive`, and what the disk refuses."""
    marker = folder / "archive"
    if folder.exists() and not folder.is_dir():
        raise NotAnArchive(folder, "it is a file")
    if not folder.exists():
        files.make_folder(folder)
    of = archive_of(folder)
    if of is None:
        files.sync_folder(folder.parent)  # whoever made it may not have done so
        others = sorted(path.name for path in folder.iterdir() if path.name not in ("archive", "archive.new"))
        if others:
            raise NotAnArchive(folder, f"it holds {others[0]!r}")
        files.replace(marker, f"keeve archive\nformat {FORMAT}\nlog {log_id.hex()}\n".encode())
    elif of != log_id:
        raise NotAnArchive(folder, f"it is that of log {of.hex()}")


def archive_of(folder: Path) -> bytes | None:
    """The id of the log whose archive lies in a folder; None when none does."""
    try:
        match = _MARKER.match(small_file(folder / "archive", _MOST) or b"")
    except ReadFailed:
        return None
    return None if match is None or int(match[1]) > FORMAT else bytes.fromhex(match[2].decode())


def archived_segments(folder: Path) -> Iterator[int]:
    """The ids of the segments of which something lies in an archive."""
    for path in sorted(folder.glob("*.seg")):
        if path.stem.isdigit():
            yield int(path.stem)
