"""Copying: the files of a store as they were at one moment, while its owner goes on.

Segments that are full are copied whole, the last one up to the durable end, the key file after all of them. Then it is
looked whether anything that was copied has another file by now, and done again if so: between those two looks nothing
of it has changed, and the durable end was read in between. So what a record in the copy says is gone has gone from it,
and nothing has gone from it that no record in it says.

The one rule: the store is read, and no lock is taken there.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from dataspace.encryption.errors import KeyFileMissing
from dataspace.encryption.key_file import Outline, outline
from dataspace.errors import KeeveError
from dataspace.log.files import Files, ReadFailed, open_plain
from dataspace.log.following import StoreFolder
from dataspace.log.keyring import is_sealed, read_keys
from dataspace.log.layout import Layout
from dataspace.log.making import Making
from dataspace.log.marks import BEGINNING, Mark
from dataspace.log.opening import judged
from dataspace.log.ownership import owner_of
from dataspace.log.packed import SegmentFile
from dataspace.log.verdicts import NOTHING_KNOWN, Evidence, NewerFormat, Visit
from dataspace.records import Kind

TRIES: Final = 100
"""How often it is begun again because something was changed meanwhile."""
_CHUNK: Final = 1 << 20
_TAKING: Final = frozenset((Kind.DELETE, Kind.ERASE, Kind.RECLAIMED))
"""Kinds of records that say that something goes, or has gone."""


class StillChanging(KeeveError, quotes=False):
    """What is full was written anew, or something deleted or erased, again and again while it was copied. Nothing was
    made."""

    def __init__(self, path: str) -> None:
        self.path = path
        super().__init__(
            f"{path}: something was deleted, erased or written anew there all the time; make the backup when that is "
            "over"
        )


class Source(StoreFolder):
    """The folder of a store, to be copied. `end` gives the durable end, where its owner is asked; else what that has
    published is, and of a store that nobody owns all that its next owner would find."""

    def __init__(self, folder: Path, end: Callable[[], Mark] | None = None) -> None:
        super().__init__(folder, Files(), bytes, None, None)
        self._end = end
        try:
            self._follow(NOTHING_KNOWN, None)
        except OSError as error:
            raise ReadFailed.of(self._path, error) from error
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
            self._mark = self._end()
        else:
            self._read_on()
        return self._mark

    def takes_after(self, mark: Mark) -> bool:
        """Whether a record after `mark` says that something is deleted or erased. About 5 µs for each of them."""
        self.now()
        self._reader.renew()
        return any(record.header.kind in _TAKING for record in self._reader.scan(mark))

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


class KeyFile(NamedTuple):
    """The key file of an encrypted store, and what it says to who has not got the host's key."""

    data: bytes
    outline: Outline

    @property
    def reach(self) -> tuple[bytes, frozenset[bytes]]:
        """What of it matters for all that was copied: which key opens it, and what nobody opens any more."""
        return self.outline.check, self.outline.destroyed


def _reach(keys: KeyFile | None) -> tuple[bytes, frozenset[bytes]] | None:
    return None if keys is None else keys.reach


class Copy:
    """A copy in the making: up to `end`, with the key file `keys` if the store is encrypted."""

    def __init__(self, source: Source, making: Making, files: Files, progress: Callable[[int, int], None]) -> None:
        self._source = source
        self._from = source.layout
        self._making = making
        self._files = files
        self._progress = progress
        self._encrypted = is_sealed(self._from)
        self._sealed: dict[int, _Stamp] = {}
        self._tail = 0
        self._tries = 0
        self.end = BEGINNING
        self.keys: KeyFile | None = None
        self.bytes = 0

    def bring_up(self) -> set[int]:
        """Copy what is not copied yet as it is; gives which segments were. Raises `StillChanging`, `ReadFailed`, what
        is wrong with the key file, and what the disk refuses."""
        changed: set[int] = set()
        while self._tries < TRIES:
            self._tries += 1
            before = self._key_file()
            changed |= self._copy_sealed(self._source.now())
            end = self._source.now()
            if len(self._sealed) < end.segment - 1:
                continue  # another one is full by now
            self._tail = self._copy_tail(end)
            self.end, self.keys = end, self._key_file()  # that is newer than the log, which may go on meanwhile
            if _reach(before) == _reach(self.keys) and self._is_steady():
                self._files.sync_folder(self._making.layout.log)
                return changed | {end.segment}
        raise StillChanging(str(self._from.folder))

    def is_current(self) -> bool:
        """Whether nothing was deleted or erased in the store, or written anew there, since it was copied."""
        # The log last: before anything goes there is a record that says so.
        return self._is_steady() and not self._source.takes_after(self.end)

    def _is_steady(self) -> bool:
        """Whether each name still leads to the file that was copied, and the key file reaches as far."""
        if _reach(self._key_file()) != _reach(self.keys):
            return False
        end = self.end
        try:
            found = [_Stamp.of(self._from.segment(number).stat()) for number in range(1, end.segment + 1)]
        except OSError as error:
            raise ReadFailed.of(str(self._from.log), error) from error
        return (
            found[:-1] == [self._sealed[number] for number in range(1, end.segment)] and found[-1].inode == self._tail
        )

    def _key_file(self) -> KeyFile | None:
        """The key file as it is now. Raises `ReadFailed`, and what is wrong with it."""
        path = self._from.keys
        data = None if self._encrypted is False else read_keys(path)
        if data is None:
            if self._encrypted:
                raise KeyFileMissing(str(path))
            return None
        return KeyFile(data, outline(data, str(path), self._source.log_id))

    def _copy_sealed(self, end: Mark) -> set[int]:
        copied: set[int] = set()
        for number in range(1, end.segment):
            path = self._from.segment(number)
            try:
                fd = open_plain(path)
                try:
                    stamp = _Stamp.of(os.fstat(fd))
                    if self._sealed.get(number) != stamp:
                        self._write(number, partial(_pread, fd), stamp.size)
                        self._sealed[number] = stamp
                        copied.add(number)
                finally:
                    os.close(fd)
            except OSError as error:
                raise ReadFailed.of(str(path), error) from error
        return copied

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
        self._making.check()
        files, path = self._files, self._making.layout.segment(number)
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

    def spoilt(self) -> Path | None:
        """The first segment of the copy that reads otherwise than the store's, where that has not changed since."""
        for number in range(1, self.end.segment + 1):
            path, there = self._making.layout.segment(number), self._from.segment(number)
            if not _same(path, there, None if number < self.end.segment else self.end.offset) and self._is_steady():
                return path
        return None


def _same(path: Path, there: Path, length: int | None) -> bool:
    """Whether two files have the same bytes, up to a length."""
    try:
        fds = [open_plain(path), open_plain(there)]
    except OSError as error:
        raise ReadFailed.of(str(path), error) from error
    try:
        end = max(os.fstat(fd).st_size for fd in fds) if length is None else length
        for at in range(0, end, _CHUNK):
            here, other = (os.pread(fd, min(_CHUNK, end - at), at) for fd in fds)
            if here != other:
                return False
        return True
    except OSError as error:
        raise ReadFailed.of(str(path), error) from error
    finally:
        for fd in fds:
            os.close(fd)


def _pread(fd: int, at: int, size: int) -> bytes:
    return os.pread(fd, size, at)
