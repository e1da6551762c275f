"""Cells that are erased, wherever their bytes may lie yet: whoever reads the store is given `ERASED` for them.

An erasure is so from the moment its record is durable, and for ever. That its bytes go comes after, takes the space of
a segment, and may have to wait for that; and an older file of a segment, put back, brings them again. So all that was
ever erased is here, for as long as the store is open.

The one rule: what is named here, a durable record says is erased. So it does not matter in which order, or how often,
this is told.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator, Mapping
from typing import Final

_NONE: Final[frozenset[int]] = frozenset()


class Withheld:
    """The cells of one store that are erased, by the positions of their records; and which of them may lie in the files
    yet, which is what `of` and `len` tell.

    Told from any thread, asked from any thread. Costs about 100 bytes of memory for each record of which anything was
    ever erased, and 300 more until that is gone from the files.
    """

    __slots__ = ("_by", "_cells", "_ever", "_telling", "_unsaid", "told")

    def __init__(self) -> None:
        self._by: dict[int, Mapping[int, Collection[int]]] = {}
        self._cells: dict[int, frozenset[int]] = {}
        self._ever: dict[int, int] = {}
        self._telling = threading.Lock()
        self._unsaid = False
        self.told = False
        """Whether all that is erased has been named here, and is before it goes from a file."""

    def add(self, by: int, cells: Mapping[int, Collection[int]]) -> None:
        """The record at position `by` says that these are erased: their numbers, by the positions of their records."""
        with self._telling:
            self._by[by] = cells
            ever = self._ever
            for position, numbers in cells.items():
                ever[position] = ever.get(position, 0) | _bits(numbers)
            self._gather()

    def gone(self, upto: int) -> None:
        """What the records up to and with position `upto` say is erased has gone from the files."""
        with self._telling:
            left = {by: cells for by, cells in self._by.items() if by > upto}
            if len(left) < len(self._by):
                self._by = left
                self._gather()

    def begin(self, cells: Mapping[int, Collection[int]] | None) -> None:
        """The log was made anew: what was told so far was of another one, and in this these are erased, and gone; with
        None, nobody says which."""
        with self._telling:
            self._by = {}
            self._unsaid = cells is None
            self._ever = {position: _bits(numbers) for position, numbers in (cells or {}).items()}
            self._gather()

    def _gather(self) -> None:
        found: dict[int, frozenset[int]] = {}
        for cells in self._by.values():
            for position, numbers in cells.items():
                found[position] = found.get(position, _NONE).union(numbers)
        self._cells = found  # whole at once: others read it without the lock

    def has(self, position: int, number: int) -> bool:
        """Whether a cell of the record at that position is erased."""
        ever = self._ever
        return bool(ever) and bool(ever.get(position, 0) >> number & 1)

    def forged(self, position: int, number: int) -> bool:
        """Whether a cell of a living session whose body is gone has gone without a record that says so."""
        return self.told and not self._unsaid and not self.has(position, number)

    def of(self, position: int) -> frozenset[int]:
        """The cells of a record that may lie in the files yet."""
        return self._cells.get(position, _NONE)

    def every(self) -> Iterator[tuple[int, list[int]]]:
        """All that is erased: the positions of records, in order, each with the numbers of its cells."""
        for position, bits in sorted(self._ever.copy().items()):
            yield position, [number for number in range(bits.bit_length()) if bits >> number & 1]

    def __len__(self) -> int:
        return sum(map(len, self._cells.values()))


def _bits(numbers: Collection[int]) -> int:
    bits = 0
    for number in numbers:
        if number >= 0:  # anything else is no cell
            bits |= 1 << number
    return bits
