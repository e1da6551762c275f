"""A record of a segment: its header at hand, the rest read when it is asked for, and checked then.

What archives have is given from there. Of a record whose deeds are in one, what is left is here (`rest`): the facts,
and what proves them.

The one rule: nothing is given out that is not what was written.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

from dataspace.encryption.cipher import ENCRYPTED, Unopened
from dataspace.log.archives import Archived, Archives
from dataspace.log.frames import ELSEWHERE, PREFIX, RESTS, Frame, Type, address, body_fits, record_head
from dataspace.log.keyring import Keyring
from dataspace.log.rests import read_rest
from dataspace.log.store import BodyErased, NoSuchPart
from dataspace.log.verdicts import LogCorrupt, NewerFormat, SessionDamaged
from dataspace.log.withheld import Withheld
from dataspace.records import Body, Header, Rest, split_body, split_cell
from dataspace.values import ERASED, Erased


class Source(Protocol):
    """Where a record is read from."""

    archives: Archives
    keys: Keyring | None
    withheld: Withheld
    met: Callable[[Header, int, str], None]
    """Is told of each record of a session that is not what was written: where it lies, and what is wrong."""

    def pread(self, segment: int, offset: int, length: int) -> bytes:
        """Bytes of a segment."""

    def frame(self, segment: int, offset: int, window: bytes | None = None, at: int = 0) -> Frame | None:
        """The frame at an offset; `window[at:]` is what is read already."""

    def after(self, segment: int, offset: int) -> int | None:
        """The address of the first record at or after a frame's place."""

    def exchanged(self, segment: int) -> None:
        """Read on from the file that a segment's name leads to now."""


class StoredRecord:
    """A record of a segment. It keeps the bytes that were read with it."""

    __slots__ = ("_at", "_frame", "_reader", "_segment", "_starts", "_window", "header")

    def __init__(self, reader: Source, segment: int, found: Frame, window: bytes, at: int) -> None:
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

    def rest(self) -> Rest | None:
        found = self._frame
        if found.type not in RESTS:
            return None
        keys = self._reader.keys
        try:
            rest = read_rest(self.header, found, self._bytes(found), None if keys is None else keys.open)
        except ValueError as bad:
            if self._now(found) is not None:
                return self.rest()
            raise self._damaged(f"what is left of its body {bad}") from None
        except Unopened:
            raise self._damaged("what is left of its body does not open with its key") from None
        except LookupError:
            raise self._damaged("what is left of its body is sealed with a key that is not in the key file") from None
        if rest is None:
            raise BodyErased(self.header.position)
        return rest

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
            raise self._damaged(f"{name} {number} has no sound frame", needed=name == "cell")
        return found

    def _content(self, found: Frame, what: str) -> bytes | None:
        """The body of a frame, checked; None when it was erased."""
        if found.type in (Type.ERASED, Type.FACTS):
            return None
        if found.flags & ~ENCRYPTED:
            raise NewerFormat(self._segment, found.offset, f"a frame with flags {found.flags:#x}")
        if found.type in ELSEWHERE:
            return self._archived(found, what)
        data = self._bytes(found)
        if not body_fits(found, data):
            now = self._now(found)
            if now is None:
                raise self._damaged(f"{what} is not what was written", needed=found.was != Type.PAGE)
            return self._content(now, what)
        return self._opened(found, data, what) if found.flags else data

    def _archived(self, found: Frame, what: str) -> bytes | None:
        """The same of an archived one; or of what its owner has made of it since."""
        try:
            data = self._reader.archives.body(self._segment, found, self.header.position)
        except Archived:
            now = self._now(found)
            if now is None:
                raise
            return self._content(now, what)
        return self._opened(found, data, what) if found.flags else data

    def _now(self, found: Frame) -> Frame | None:
        """The frame that lies there by now, if its owner has made another of it since: archived it, or brought it back.
        None if that is not so."""
        self._reader.exchanged(self._segment)
        now, self._window = self._reader.frame(self._segment, found.offset), b""
        if now is None or now.type == found.type:
            return None
        if found is self._frame:
            self._frame = now
        return now

    def _bytes(self, found: Frame) -> bytes:
        """What lies in the place of a frame's body."""
        length = found.body_length
        at = self._at + found.body_offset - self._frame.offset
        if at + length <= len(self._window):
            return self._window[at : at + length]
        return self._reader.pread(self._segment, found.body_offset, length)

    def _opened(self, found: Frame, stored: bytes, what: str) -> bytes | None:
        """A sealed body, opened; None when its key was destroyed."""
        keys = self._reader.keys
        try:
            if keys is None:
                raise LookupError
            return keys.open(self.header, found, stored)
        except Unopened:
            raise self._damaged(f"{what} does not open with its key", needed=found.was != Type.PAGE) from None
        except LookupError:
            missing = f"{what} is sealed with a key that is not in the key file"
            raise self._damaged(missing, needed=found.was != Type.PAGE) from None

    def sealed(self) -> bytes:
        """The body as it is stored, if it is sealed; else nothing."""
        if not self._frame.flags or self._frame.type == Type.ERASED:
            return b""
        return self._reader.pread(self._segment, self._frame.body_offset, self._frame.body_length)

    def _damaged(self, what: str, *, needed: bool = True) -> SessionDamaged:
        """What to raise. From then on the session is known to be damaged, but by a page, which can be done without."""
        header = self.header
        if needed:
            self._reader.met(header, self.address, what)
        return SessionDamaged(header.uid.hex(), header.seq, header.position, what)
