"""Leaving: what goes to an archive, named in few bytes, so that a record says it before it goes.

For each record of which anything goes, in the order of the log: how far its position is from that of the one before
(of the first, from 0), and how many bytes of bits follow, as varints; then the bits, the lowest first: whether its
deeds go, then each of its cells. That is some 3 bytes for each record.

The one rule: nothing is gone that was not named; so what cannot be read names nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import merge
from itertools import groupby
from operator import itemgetter
from typing import Final, NamedTuple

from dataspace.values.encoding import BadEncoding, read_varint, varint

DEEDS: Final = -1
"""In the place of a cell's number: the message and operations of a record."""
MOST: Final = 1 << 18
"""Bytes after which the next names are apart, so that no record that says them is large."""


class Names(NamedTuple):
    """So many pieces, named."""

    data: bytes
    pieces: int


def named(pieces: Iterable[tuple[int, int]], most: int = MOST) -> Iterator[Names]:
    """The names of what goes: positions of records, in order, with numbers of their cells, or `DEEDS`."""
    data, count, last = bytearray(), 0, 0
    for position, group in groupby(pieces, itemgetter(0)):
        if len(data) >= most:
            yield Names(bytes(data), count)
            data, count, last = bytearray(), 0, 0
        numbers = [number for _, number in group]
        bits = bytearray((max(numbers) - DEEDS >> 3) + 1)
        for number in numbers:
            at = number - DEEDS
            bits[at >> 3] |= 1 << (at & 7)
        data += varint(position - last) + varint(len(bits)) + bits
        count, last = count + len(numbers), position
    if data:
        yield Names(bytes(data), count)


def _read(data: bytes, after: int) -> Iterator[tuple[int, bytes]]:
    """The positions after one, in order, and the bits of each."""
    at = position = 0
    try:
        while at < len(data):
            step, at = read_varint(data, at)
            size, at = read_varint(data, at)
            position += step
            if position > after:
                yield position, data[at : at + size]
            at += size
    except (BadEncoding, IndexError):
        return


class Named:
    """All that is named by several names, each of which counts after a position. Asked for positions in order."""

    def __init__(self, names: Iterable[tuple[bytes, int]]) -> None:
        self._left = merge(*(_read(data, after) for data, after in names))
        self._next = next(self._left, None)
        self._position = 0
        self._bits: list[bytes] = []

    def has(self, position: int, number: int) -> bool:
        """Whether a cell, or the deeds, of the record at that position are named."""
        if position != self._position:
            self._position, self._bits = position, []
            while self._next is not None and self._next[0] <= position:
                if self._next[0] == position:
                    self._bits.append(self._next[1])
                self._next = next(self._left, None)
        at = number - DEEDS
        return any(at >> 3 < len(bits) and bits[at >> 3] >> (at & 7) & 1 for bits in self._bits)
