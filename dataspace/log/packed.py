"""Packed segments: the bytes of a segment without the zeros that erasing has left in it.

Offsets of frames are in their CRCs, those in the commits, and the commits name each other; so nothing that lies in a
segment can be moved. What can be left out is zeros: who reads a packed segment finds all bytes where they were.

    0      the segment's first frame once more, with format 2 (3 if there are rests in it, which older versions do not
           know), and after its fields: u64 the segment's length, u64 that of this file, u32 the number of runs, u32 the
           CRC-32 of the index
    128    the runs of bytes that are not left out, end to end
           the index: for each run, where it begins in the segment and how long it is, in units of 8 bytes (u32 each)
           the index, and the first frame, once more: for salvage

Integers are little endian; runs begin and end at multiples of 8.

The one rule: **packing changes where bytes lie in a file, and not one of them.** Whoever judges a log is given the
segment, and need not know.
"""

from __future__ import annotations

import os
import re
import struct
import sys
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias
from zlib import crc32

from dataspace.log.files import Files, open_plain
from dataspace.log.frames import MAGIC, PACKED, PREFIX, RESTED, SEGMENT_SIZE, Type, frame, parse, segment_head

Read: TypeAlias = Callable[[int, int], bytes]
"""Gives bytes from an offset on, fewer where they end."""

_MORE: Final = struct.Struct("<QQII")
_HEAD: Final = SEGMENT_SIZE + _MORE.size
_RUN: Final = struct.Struct("<II")
_UNIT: Final = 8
_WORTH: Final = 64
"""Zeros that are left out, at the least."""
_ZEROS: Final = re.compile(rb"\0{%d,}" % _WORTH)


class Packed:
    """A packed segment. `read` gives bytes of its file; `length` is how long the segment is, `form` which format its
    first frame names."""

    __slots__ = ("_ends", "_places", "_read", "_starts", "form", "length")

    def __init__(self, read: Read, length: int, index: bytes, form: int) -> None:
        self._read = read
        self.length = length
        self.form = form
        numbers = array("I", index)
        if sys.byteorder == "big":
            numbers.byteswap()
        self._starts = numbers[::2]
        sizes = numbers[1::2]
        self._ends = array("I", map(int.__add__, self._starts, sizes))
        self._places = array("I", accumulate(sizes, initial=0))

    def read(self, offset: int, length: int) -> bytes:
        """Bytes of the segment, fewer where it ends. Costs one call of the file's `read`."""
        stop = min(offset + length, self.length)
        if stop <= offset:
            return b""
        starts, ends, places = self._starts, self._ends, self._places
        first = at = bisect_right(ends, offset // _UNIT)
        pieces: list[tuple[int, int, int]] = []  # where in the segment, and in the file, and how long
        while at < len(starts) and starts[at] * _UNIT < stop:
            begin = max(offset, starts[at] * _UNIT)
            end = min(stop, ends[at] * _UNIT)
            pieces.append((begin, _HEAD + places[at] * _UNIT + begin - starts[at] * _UNIT, end - begin))
            at += 1
        if not pieces:
            return bytes(stop - offset)
        base = pieces[0][1]
        data = self._read(base, pieces[-1][1] + pieces[-1][2] - base)
        if at == first + 1 and pieces[0][0] == offset and pieces[0][2] == stop - offset:
            return data
        found = bytearray(stop - offset)
        for begin, place, size in pieces:
            piece = data[place - base : place - base + size]
            if len(piece) < size:  # the file ends before: what is there is told, and no more
                return bytes(found[: begin - offset]) + piece
            found[begin - offset : begin - offset + size] = piece
        return bytes(found)


def packed_in(read: Read, number: int) -> Packed | None:
    """The packed segment in a file; None when the file is no packed one, or does not say so soundly."""
    found = _said(read(0, _HEAD), number)
    return None if found is None else _opened(read, found, (2,))


def mended_in(read: Read, size: int) -> Packed | None:
    """The same for any file of `size` bytes, also where one of the two heads, or of the two indexes, is damaged."""
    for at in (0, max(size - _HEAD, 0)):
        head = read(at, _HEAD)
        found = _said(head, int.from_bytes(head[PREFIX - 4 : PREFIX], "little"))
        if found is not None:
            return _opened(read, found, (2, 1))
    return None


class _Said(NamedTuple):
    """What the head of a packed segment says after its fields."""

    length: int
    size: int
    runs: int
    crc: int
    form: int


def _said(head: bytes, number: int) -> _Said | None:
    found = parse(head, 0, number, 0)
    if found is None or found.type != Type.SEGMENT or found.size != _HEAD:
        return None
    said = segment_head(found.head)
    if said is None or said.format not in (PACKED, RESTED):
        return None
    length, size, runs, crc = _MORE.unpack_from(found.head, len(found.head) - _MORE.size)
    return _Said(length, size, runs, crc, said.format)


def _opened(read: Read, said: _Said, copies: Iterable[int]) -> Packed | None:
    """The segment, by one of the copies of its index: the second last, or the last."""
    wanted = said.runs * _RUN.size
    for copy in copies:
        index = read(max(said.size - _HEAD - copy * wanted, 0), wanted)
        if len(index) == wanted and crc32(index) == said.crc:
            return Packed(read, said.length, index, said.form)
    return None


class SegmentFile:
    """A segment file, open for reading, packed or not. `read` gives bytes of the segment. Raises `OSError`."""

    __slots__ = ("_fd", "packed", "read")

    def __init__(self, path: Path, number: int) -> None:
        self._fd = open_plain(path)
        self.read: Read = self._read
        try:
            self.packed = packed_in(self._read, number)
        except OSError:
            self.close()
            raise
        if self.packed is not None:
            self.read = self.packed.read

    def _read(self, offset: int, length: int) -> bytes:
        return os.pread(self._fd, length, offset)

    @property
    def length(self) -> int:
        """Bytes of the segment, as it is now."""
        return os.fstat(self._fd).st_size if self.packed is None else self.packed.length

    @property
    def form(self) -> int:
        """The format of it once it is packed: `RESTED` only if it is so already."""
        return PACKED if self.packed is None else self.packed.form

    @property
    def inode(self) -> int:
        """Which file it is."""
        return os.fstat(self._fd).st_ino

    def close(self) -> None:
        """Close the file."""
        os.close(self._fd)


def write_packed(
    files: Files, fd: int, number: int, length: int, chunks: Iterable[tuple[int, bytes]], form: int = PACKED
) -> None:
    """Write a segment packed into an empty file. `chunks` are all of its bytes in order, each with its offset; these
    and `length` are multiples of 8. `form` is `RESTED` if there are rests among them. Raises `WriteFailed`; nothing is
    durable before the file is synced."""
    index = array("I")
    place, first = _HEAD, b""
    for offset, data in chunks:
        first = first or data[:SEGMENT_SIZE]
        runs = list(_runs(data))
        kept = b"".join([data[begin:end] for begin, end in runs])
        files.write(fd, place, kept)
        place += len(kept)
        for begin, end in runs:
            start, size = (offset + begin) // _UNIT, (end - begin) // _UNIT
            if index and index[-2] + index[-1] == start:
                index[-1] += size
            else:
                index.extend((start, size))
    if sys.byteorder == "big":
        index.byteswap()
    table = index.tobytes()
    found = parse(first, 0, number, 0)
    assert found is not None, "it was read as a segment"
    said = length, place + 2 * len(table) + _HEAD, len(table) // _RUN.size, crc32(table)
    fields = found.head[: len(MAGIC)] + form.to_bytes(2, "little") + found.head[len(MAGIC) + 2 :]
    head = frame(Type.SEGMENT, fields + _MORE.pack(*said), b"", number, 0)[0]
    files.write(fd, place, table + table + head)
    files.write(fd, 0, head)


def _runs(data: bytes) -> Iterator[tuple[int, int]]:
    """The runs of bytes that are not left out, between multiples of 8."""
    start = 0
    for zeros in _ZEROS.finditer(data):
        begin, end = zeros.start() + -zeros.start() % _UNIT, zeros.end() - zeros.end() % _UNIT
        if begin > start:
            yield start, begin
        start = end
    if start < len(data):
        yield start, len(data)
