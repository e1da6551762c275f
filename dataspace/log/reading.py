"""Reading records from segment files, while another thread writes to the last of them.

Everything is read with `pread` on descriptors of this file's own. A record is read with one call when it and
its cells lie within `AHEAD`; what is not in the window is read when it is asked for, and its CRC is checked
before it is given out.

The one rule: nothing at or after the durable end is looked at. The end only ever moves on.
"""

from __future__ import annotations

import os
import struct
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from dataspace.encryption.cipher import ENCRYPTED, Unopened
from dataspace.log.archives import Archived, Archives
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
    body_fits,
    parse,
    place,
    record_head,
    segment_head,
)
from dataspace.log.keyring import Keyring
from dataspace.log.layout import Layout
from dataspace.log.marks import Mark
from dataspace.log.near import AHEAD, Near
from dataspace.log.packed import SegmentFile
from dataspace.log.scan import begins_at, is_commit_at
from dataspace.log.store import BodyErased, NoSuchPart, NoSuchRecord, StoreClosed
from dataspace.log.verdicts import LogCorrupt, NewerFormat, SessionDamaged
from dataspace.log.withheld import Withheld
from dataspace.records import Body, Header, split_body, split_cell
from dataspace.values import ERASED, Erased

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
        found = self.frame(segment, offset, window, start)
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


class StoredRecord:
    """A record of a segment. It keeps the bytes that were read with it."""

    __slots__ = ("_at", "_frame", "_reader", "_segment", "_starts", "_window", "header")

    def __init__(self, reader: SegmentReader, segment: int, found: Frame, window: bytes, at: int) -> None:
        self._reader = reader
        self._segment = segment
        self._frame = found
        self._window = window
        self._at = at
        self.header: Header
        try:
            self.header, self._starts = record_head(found.head)
        except struct.error:
            raise LogCorrupt(segment, found.offset, "a record's head of another length") from None

    @property
    def address(self) -> int:
        return address(self._segment, self._frame.offset)

    @property
    def attachments(self) -> int:
        return len(self._starts)

    @property
    def last_frame(self) -> int:
        """The offset of the last frame that belongs to this record."""
        return self._frame.offset + (self._starts[-1] if self._starts else 0)

    @property
    def next(self) -> int | None:
        if not self._starts:
            return self._reader.after(self._segment, self._frame.offset + self._frame.size)
        return self._reader.after(self._segment, self.last_frame)

    def body(self) -> Body:
        data = self._content(self._frame, "its body")
        if data is None:
            raise BodyErased(self.header.position)
        body = split_body(data)
        if body is None:
            raise self._damaged("its body has lengths that do not fit")
        return body

    def part(self, number: int) -> bytes | Erased:
        data = self._part(number, None, "part")
        return ERASED if data is None else data

    def cell(self, number: int) -> str | bytes | Erased:
        data = self._part(number, Type.CELL, "cell")
        if data is None:
            return ERASED
        try:
            return split_cell(data).content
        except ValueError:
            raise self._damaged(f"cell {number} holds neither text nor bytes") from None

    def page(self, number: int) -> bytes:
        data = self._part(number, Type.PAGE, "page")
        if data is None:
            raise BodyErased(self.header.position)
        return data

    def frames(self, parts: Iterable[int] | None, body: bool) -> Iterator[Frame]:
        """The frames of these cells and pages (None: all), and the record's own with `body`, as far as they are whole.

        Raises `NoSuchPart` and `SessionDamaged`.
        """
        found = [self._found(number, "part") for number in (range(len(self._starts)) if parts is None else parts)]
        for each in (self._frame, *found) if body else found:
            if each.type != Type.ERASED:
                yield each

    def _part(self, number: int, kind: Type | None, name: str) -> bytes | None:
        found = self._found(number, name)
        if kind is not None and found.was != kind:
            raise NoSuchPart(self.header.position, number, name)
        withheld = self._reader.withheld
        if withheld.has(self.header.position, number):
            return None
        if found.type == Type.ERASED and found.was == Type.CELL and self._frame.type != Type.ERASED:
            if withheld.forged(self.header.position, number):
                raise self._damaged(f"{name} {number} is gone, and no record says that it was erased")
            return None
        return self._content(found, f"{name} {number}")

    def _found(self, number: int, name: str) -> Frame:
        """The frame of a cell or page. Raises `NoSuchPart`, and `SessionDamaged`."""
        if not 0 <= number < len(self._starts):
            raise NoSuchPart(self.header.position, number, name)
        start = self._starts[number]
        at, offset = self._at + start, self._frame.offset + start
        inside = at + PREFIX <= len(self._window)
        found = self._reader.frame(self._segment, offset, *((self._window, at) if inside else ()))
        if found is None or found.was not in (Type.CELL, Type.PAGE):
            raise self._damaged(f"{name} {number} has no sound frame")
        return found

    def _content(self, found: Frame, what: str) -> bytes | None:
        """The body of a frame, checked; None when it was erased."""
        if found.type == Type.ERASED:
            return None
        if found.flags & ~ENCRYPTED:
            raise NewerFormat(self._segment, found.offset, f"a frame with flags {found.flags:#x}")
        if found.type == Type.ARCHIVED:
            return self._archived(found, what)
        length = found.body_length
        at = self._at + found.body_offset - self._frame.offset
        if at + length <= len(self._window):
            data = self._window[at : at + length]
        else:
            data = self._reader.pread(self._segment, found.body_offset, length)
        if not body_fits(found, data):
            raise self._damaged(f"{what} is not what was written")
        return self._opened(found, data, what) if found.flags else data

    def _archived(self, found: Frame, what: str) -> bytes | None:
        """The same of an archived one; or of what its owner's process has made of it since."""
        try:
            data = self._reader.archives.body(self._segment, found, self.header.position)
        except Archived:
            self._reader.exchanged(self._segment)
            now, self._window = self._reader.frame(self._segment, found.offset), b""
            if now is None or now.type == Type.ARCHIVED:
                raise
            return self._content(now, what)
        return self._opened(found, data, what) if found.flags else data

    def _opened(self, found: Frame, stored: bytes, what: str) -> bytes | None:
        """A sealed body, opened; None when its key was destroyed."""
        keys = self._reader.keys
        try:
            if keys is None:
                raise LookupError
            return keys.open(self.header, found, stored)
        except Unopened:
            raise self._damaged(f"{what} does not open with its key") from None
        except LookupError:
            raise self._damaged(f"{what} is sealed with a key that is not in the key file") from None

    def sealed(self) -> bytes:
        """The body as it is stored, if it is sealed; else nothing."""
        if not self._frame.flags or self._frame.type == Type.ERASED:
            return b""
        return self._reader.pread(self._segment, self._frame.body_offset, self._frame.body_length)

    def _damaged(self, what: str) -> SessionDamaged:
        header = self.header
        return SessionDamaged(header.uid.hex(), header.seq, header.position, what)
