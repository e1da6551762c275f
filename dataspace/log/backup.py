"""Backup: a copy of a store's folder as it was at one moment, while its owner goes on.

Segments that are full are copied whole, the last one up to the durable end, the key file after all of them, `head` as
the last thing. Then it is looked whether anything that was copied has another file by now, and done again if so:
between those two looks nothing of it has changed, and the durable end was read in between. So what a record in the copy
says is gone has gone from it, and nothing has gone from it that no record in it says.

It is made beside its place, checked frame by frame there, and then given its name. No key is needed, and no lock is
taken. What is not copied: `token`, the lock, what recoveries have cut, the catalog (it is made again), and `archived`:
who opens the copy would have content go from archives of which the store has need.

The one rule: under the name of a backup there is a whole one, or nothing.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

import attrs

from dataspace.encryption.key_file import destroyed_in
from dataspace.errors import KeeveError
from dataspace.log.archives import Archives
from dataspace.log.files import Files, ReadFailed, WriteFailed, open_plain
from dataspace.log.findings import Finding
from dataspace.log.following import StoreFolder
from dataspace.log.layout import Layout, PlaceTaken, check_new
from dataspace.log.marks import Mark
from dataspace.log.opening import judged, still
from dataspace.log.ownership import owner_of
from dataspace.log.packed import SegmentFile
from dataspace.log.publishing import pack
from dataspace.log.verdicts import NOTHING_KNOWN, Evidence, NewerFormat, Visit
from dataspace.log.verify import Verification

TRIES: Final = 100
"""How often it is begun again because something was changed meanwhile."""
NAMED: Final = 1000
"""Troubles that are named; the others are counted."""
_CHUNK: Final = 1 << 20


class StillChanging(KeeveError):
    """What is full was written anew again and again while it was copied. Nothing was made."""

    def __init__(self, path: str) -> None:
        self.path = path
        super().__init__(f"{path}: its segments were written anew all the time; make the backup when that is over")


@attrs.frozen
class Backup:
    """A backup that was made: the store of log `log` up to `position`, whose record has that `hash`.

    `keys` is where the key file is (empty: the store is not encrypted); `archives` the folders in which more of its
    content is, which are not copied; `sealed` how many bodies nobody could look at, since that was done without a key.
    `troubles`: what in it is not as it was written, as in the store, the first of `troubles_in_all`.
    """

    folder: str
    log: str
    position: int
    hash: str
    segments: int
    bytes: int
    keys: str
    archives: tuple[str, ...]
    sealed: int
    troubles: tuple[str, ...]
    troubles_in_all: int


class Source(StoreFolder):
    """The folder of a store, to be copied. `end` gives the durable end, where its owner is asked; else what that has
    published is, and of a store that nobody owns all that its next owner would find."""

    def __init__(self, folder: Path, end: Callable[[], Mark] | None = None) -> None:
        super().__init__(folder, Files(), bytes, None, None)
        self._end = end
        self._follow(NOTHING_KNOWN, None)
        if self.fault is not None:
            raise self.fault

    def _take_keys(self) -> None:
        """Bodies are copied as they lie."""

    def _judge(self, evidence: Evidence, visit: Visit | None) -> None:
        if owner_of(self._layout.lock) is not None:
            super()._judge(evidence, visit)
            return
        self._reader.renew()
        verdict = judged(self._layout, evidence, visit)
        self.fault = verdict.error()
        if isinstance(self.fault, NewerFormat):
            raise self.fault
        self._adopt(verdict, verdict.epoch)

    @property
    def layout(self) -> Layout:
        """Where its files are."""
        return self._layout

    def now(self) -> Mark:
        """The durable end by now."""
        if self._end is not None:
            return self._end()
        self._read_on()
        return self.mark

    def close(self) -> None:
        """Close its files."""
        self._reader.close()


class _Stamp(NamedTuple):
    """Which file had a name, and how it was."""

    inode: int
    size: int
    time: int

    @classmethod
    def of(cls, found: os.stat_result) -> _Stamp:
        return cls(found.st_ino, found.st_size, found.st_mtime_ns)


class _Copy:
    """A copy in the making."""

    def __init__(self, source: Source, target: Layout, files: Files, progress: Callable[[int, int], None]) -> None:
        self._source = source
        self._from = source.layout
        self._target = target
        self._files = files
        self._progress = progress
        self._sealed: dict[int, _Stamp] = {}
        self.bytes = 0

    def make(self) -> tuple[Mark, bytes | None]:
        """Copy all segments; gives the durable end of the copy, and the key file to go with it. Raises `StillChanging`,
        `ReadFailed`, and what the disk refuses."""
        for _ in range(TRIES):
            destroyed = destroyed_in(self._keys())
            self._copy_sealed(self._source.now())
            end = self._source.now()
            if len(self._sealed) < end.segment - 1:
                continue  # another one is full by now
            tail = self._copy_tail(end)
            keys = self._keys()
            if self._steady(end, tail) and destroyed_in(keys) == destroyed:
                self._files.sync_folder(self._target.log)
                return end, keys
        raise StillChanging(str(self._from.folder))

    def _keys(self) -> bytes | None:
        try:
            return self._from.keys.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise ReadFailed.of(str(self._from.keys), error) from error

    def _steady(self, end: Mark, tail: int) -> bool:
        """Whether each name still leads to the file that was copied."""
        try:
            found = [_Stamp.of(self._from.segment(number).stat()) for number in range(1, end.segment + 1)]
        except OSError as error:
            raise ReadFailed.of(str(self._from.log), error) from error
        return found[:-1] == [self._sealed[number] for number in range(1, end.segment)] and found[-1].inode == tail

    def _copy_sealed(self, end: Mark) -> None:
        for number in range(1, end.segment):
            path = self._from.segment(number)
            try:
                fd = open_plain(path)
                try:
                    stamp = _Stamp.of(os.fstat(fd))
                    if self._sealed.get(number) != stamp:
                        self._write(number, partial(_pread, fd), stamp.size)
                        self._sealed[number] = stamp
                finally:
                    os.close(fd)
            except OSError as error:
                raise ReadFailed.of(str(path), error) from error

    def _copy_tail(self, end: Mark) -> int:
        """Copy what is durable of the segment that is written to; gives the inode of its file."""
        path = self._from.segment(end.segment)
        try:
            file = SegmentFile(path, end.segment)
            try:
                self._write(end.segment, file.read, end.offset)
                return file.inode
            finally:
                file.close()
        except OSError as error:
            raise ReadFailed.of(str(path), error) from error

    def _write(self, number: int, read: Callable[[int, int], bytes], length: int) -> None:
        files, path = self._files, self._target.segment(number)
        fd = files.open(path, create=True)
        try:
            files.truncate(fd, 0)
            for at in range(0, length, _CHUNK):
                data = read(at, min(_CHUNK, length - at))
                if len(data) < min(_CHUNK, length - at):
                    raise ReadFailed(str(self._from.segment(number)), f"it ends before offset {length}")
                files.write(fd, at, data, at)
                self.bytes += len(data)
                self._progress(self.bytes, 0)
            files.sync(fd)
        finally:
            files.close(fd)


def backup(
    store: Path,
    new: Path,
    *,
    end: Callable[[], Mark] | None = None,
    files: Files | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Backup:
    """Make a backup of the store at `store` at `new`, where nothing may be yet; a process may own it, and go on.

    All is in it that was durable when this was called. `end` is the owner's durable end, where this is called in its
    process. `progress` is told of bytes. Raises `NotAStore`, `PlaceTaken`, `StillChanging`, what is wrong with a log of
    which nobody can say where it ends, and what a disk refuses; then nothing was made. Costs a reading of all bytes,
    and another one to check them.
    """
    files = files or Files()
    source = Source(store, end)
    try:
        check_new(source.layout, new)
        aside = Layout(new.absolute().with_name(f"{new.name}.copying"))
        if aside.folder.exists():
            raise PlaceTaken(str(aside.folder), "a backup is being made, or was interrupted: remove it then")
        try:
            return _made(source, _Copy(source, aside, files, progress), aside, new.absolute(), files)
        except BaseException:
            _remove(aside, files)
            raise
    finally:
        source.close()


def _made(source: Source, copy: _Copy, aside: Layout, new: Path, files: Files) -> Backup:
    aside.make_folders(files)
    end, key_file = copy.make()
    if key_file is not None:
        files.replace(aside.keys, key_file)
    files.replace(aside.head, pack(source.log_id, source.epoch, end))
    with still(aside) as (segments, evidence):
        check = Verification(segments, evidence)
        troubles = list(map(_said, check.findings()))
    if check.counts.sealed and key_file is None:
        troubles.append("the store is encrypted, and its key file is not there: nothing in it can be read")
    aside.write_format(files, source.log_id)
    files.rename(aside.folder, new)
    files.sync_folder(new.parent)
    archives = tuple(map(str, Archives(source.layout).places))
    place = "" if key_file is None else str(new / aside.keys.name)
    first, count = tuple(troubles[:NAMED]), len(troubles)
    log_id, hash, sealed = source.log_id.hex(), end.hash.hex(), check.counts.sealed
    return Backup(
        str(new),
        log_id,
        end.position,
        hash,
        end.segment,
        copy.bytes,
        place,
        archives,
        sealed,
        first,
        count,
    )


def _pread(fd: int, at: int, size: int) -> bytes:
    return os.pread(fd, size, at)


def _said(found: Finding) -> str:
    session = "" if found.uid is None else f" (session {found.uid.hex()}, seq {found.seq})"
    return f"segment {found.segment}, offset {found.offset}: {found.what}{session}"


def _remove(layout: Layout, files: Files) -> None:
    """Take away what was being made."""
    for path in sorted(layout.folder.rglob("*")):
        if path.is_file():
            with suppress(WriteFailed):
                files.remove(path)
    for folder in (layout.log, layout.folder):
        with suppress(OSError):
            folder.rmdir()
