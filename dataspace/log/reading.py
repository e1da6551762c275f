"""Reading records from segment files, while another thread writes to the last of them.

Everything is read with `pread` on descriptors of this file's own. A record is read with one call when it and
its cells lie within `AHEAD`; what is not in the window is read when it is asked for (`stored`).

The one rule: nothing at or after the durable end is looked at. The end only ever moves on.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Final

from dataspace.log.archives import Archives
from dataspace.log.files import ReadFailed
from dataspace.log.frames import (
    COMMIT_SIZE,
    MAX_HEAD,
    PREFIX,
    SEGMENT_SIZE,
    Frame,
    SegmentHead,
    Type,
    address,
    parse,
    place,
    segment_head,
)
from dataspace.log.keyring import Keyring
from dataspace.log.layout import Layout
from dataspace.log.marks import Mark
from dataspace.log.near import AHEAD, Near
from dataspace.log.packed import SegmentFile
from dataspace.log.scan import begins_at, is_commit_at
from dataspace.log.store import NoSuchRecord, StoreClosed
from dataspace.log.stored import StoredRecord
from dataspace.log.verdicts import LogCorrupt
from dataspace.log.withheld import Withheld
from dataspace.records import Header

_CHUNK = 1 << 18
"""Bytes that are read at once, at the most, while records are read one after another."""
_OPEN = 128
"""How many segment files are open at a time."""


_forks: Final = [0]
"""Grows in a forked child, which so is told apart without a system call for each read."""
os.register_at_fork(after_in_child=lambda: _forks.append(0))


class SegmentReader:
    """The records of a log up to where `end` says that it is durable."""

    def __init__(self, layout: Layout, end: Callable[[], Mark]) -> None:
        self._layout = layout
        self.end = end
        self._files: OrderedDict[int, SegmentFile] = OrderedDict()
        self._lengths: dict[int, int] = {}
        self._lock = threading.Lock()
        self._forks = len(_forks)
        self._closed = False
        self.archives = Archives(layout)
        self.keys: Keyring | None = None
        """What opens sealed bodies."""
        self.withheld = Withheld()
        self.met: Callable[[Header, int, str], None] = lambda header, address, what: None
        """Is told of each record of a session that is not what was written."""

    def pread(self, segment: int, offset: int, length: int) -> bytes:
        """Bytes of a segment, fewer where it ends. Raises `LogCorrupt` when the file is not there, `ReadFailed`,
        and `StoreClosed`."""
        with self._held():
            file = self._file(segment)
            try:
                if length > _CHUNK:  # a length that was read may be any: no memory for what the file has not
                    length = min(length, max(0, file.length - offset))
                return file.read(offset, length)
            except OSError as error:
                raise ReadFailed.of(str(self._layout.segment(segment)), error) from error

    def form(self, segment: int) -> int:
        """The packed format of a segment's file, as far as it is packed. Raises what `pread` raises."""
        with self._held():
            return self._file(segment).form

    def written(self, segment: int) -> int:
        """How many bytes a segment has now. Raises what `pread` raises."""
        with self._held():
            return self._file(segment).length

    def _held(self) -> threading.Lock:
        """The lock of this process. A forked child has the one that a thread of its parent may have held then."""
        if len(_forks) != self._forks:
            self._lock, self._forks = threading.Lock(), len(_forks)
        return self._lock

    def _file(self, segment: int) -> SegmentFile:
        file = self._files.get(segment)
        if file is None:
            return self._open(segment)
        self._files.move_to_end(segment)
        return file

    def _open(self, segment: int) -> SegmentFile:
        if self._closed:
            raise StoreClosed(str(self._layout.folder))
        path = self._layout.segment(segment)
        try:
            file = self._files[segment] = SegmentFile(path, segment)
        except FileNotFoundError:
            raise LogCorrupt(segment, 0, f"{path} is missing") from None
        except OSError as error:
            raise ReadFailed.of(str(path), error) from error
        if len(self._files) > _OPEN:
            self._files.popitem(last=False)[1].close()
        return file

    def close(self) -> None:
        """Close the files, for good."""
        self.archives.renew()
        with self._held():
            self._closed = True
            self._close_all()

    def renew(self) -> None:
        """Read on from the files that the names lead to now."""
        with self._held():
            self._lengths.clear()
            self._close_all()

    def exchanged(self, segment: int) -> None:
        """Another file has a segment's name now: read on from that."""
        with self._held():
            file = self._files.pop(segment, None)
            if file is not None:
                file.close()

    def _close_all(self) -> None:
        while self._files:
            self._files.popitem()[1].close()

    def read(self, at: int, near: Near | None = None) -> StoredRecord:
        """The record at an address, of the bytes that are `near` if it lies there. Raises `NoSuchRecord`."""
        segment, offset = place(at)
        end = self.end()
        if offset % 8 or not 0 < at < address(end.segment, end.offset):
            raise NoSuchRecord(at)
        window, start = (
            (self.pread(segment, offset, AHEAD), 0) if near is None else near.at(self.pread, segment, offset)
        )
        found = parse(window, start, segment, offset - start) or self.frame(segment, offset, window, start)
        if found is None or found.was != Type.RECORD:
            raise NoSuchRecord(at)
        return StoredRecord(self, segment, found, window, start)

    def scan(self, start: int | Mark | None = None) -> Iterator[StoredRecord]:
        """The records from an address on, in order, to the end as it is when it is reached."""
        if isinstance(start, Mark):
            segment, offset = start.segment, start.offset
        elif start is None:
            segment, offset = 1, 0
        else:
            segment, offset = place(self.read(start).address)
        size = AHEAD // 2
        window, base, limit = b"", offset, offset
        while True:
            while offset >= limit:
                end = self.end()
                if segment < end.segment:
                    limit = self.length(segment)
                    if offset >= limit:
                        segment, offset, limit, window, base = segment + 1, 0, 0, b"", 0
                        continue
                elif offset >= end.offset:
                    return
                else:
                    limit = end.offset
            at = offset - base
            found = parse(window, at, segment, base) if at + PREFIX <= len(window) else None
            if found is None:
                size = min(2 * size, _CHUNK)
                window, base = self.pread(segment, offset, min(size, limit - offset)), offset
                found = self.frame(segment, offset, window, 0)
                if found is None:
                    raise LogCorrupt(segment, offset, "no frame begins here")
                at = 0
            if found.was == Type.RECORD:
                record = StoredRecord(self, segment, found, window, at)
                yield record
                offset = record.last_frame
                if offset != found.offset:
                    continue
            offset += found.size

    def after(self, segment: int, offset: int) -> int | None:
        """The address of the first record at or after a frame's place; None when there is none yet."""
        while True:
            end = self.end()
            if segment < end.segment:
                if offset >= self.length(segment):
                    segment, offset = segment + 1, 0
            elif offset >= end.offset:
                return None
            found = self.frame(segment, offset)
            if found is None:
                raise LogCorrupt(segment, offset, "no frame begins here")
            if found.was == Type.RECORD:
                return address(segment, offset)
            offset += found.size

    def frame(self, segment: int, offset: int, window: bytes | None = None, at: int = 0) -> Frame | None:
        """The frame at an offset; None when none begins there. `window[at:]` is what is read already."""
        if window is None:
            window = self.pread(segment, offset, 256)
        found = parse(window, at, segment, offset - at)
        if found is None and len(window) - at >= PREFIX:
            head = int.from_bytes(window[at + 8 : at + 12], "little")
            if head <= MAX_HEAD and at + PREFIX + head > len(window):
                return parse(self.pread(segment, offset, PREFIX + head), 0, segment, offset)
        return found

    def holds(self, mark: Mark) -> bool:
        """Whether a batch that ends at `mark`, with that commit and position, is durable here."""
        end = self.end()
        segment, offset = mark.segment, mark.offset
        if address(segment, offset) > address(end.segment, end.offset) or segment < 1:
            return False
        if offset <= SEGMENT_SIZE:
            head = self.head(segment) if offset == SEGMENT_SIZE else None
            return head is not None and begins_at(mark, head)
        return is_commit_at(mark, self.pread(segment, offset - COMMIT_SIZE, COMMIT_SIZE))

    def head(self, segment: int) -> SegmentHead | None:
        """What a segment's first frame says; None when it is not sound."""
        found = self.frame(segment, 0)
        return segment_head(found.head) if found is not None and found.type == Type.SEGMENT else None

    def length(self, segment: int) -> int:
        """How long a sealed segment is: the one after it says so."""
        length = self._lengths.get(segment)
        if length is None:
            head = self.head(segment + 1)
            if head is None:
                raise LogCorrupt(segment + 1, 0, "the first frame of a segment is not sound")
            length = self._lengths[segment] = head.previous_length
        return length
