"""Cells that are erased and may lie in the files yet: whoever reads the store is given `ERASED` for them.

An erasure is so from the moment its record is durable. That its bytes go comes after, takes the space of a segment, and
may have to wait for that; until then their places are here, for as long as the store is open.

The one rule: what is named here, a durable record says is erased. So one that is kept too long withholds nothing that
anybody may read, and it does not matter in which order, or how often, this is told.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping
from typing import Final

_NONE: Final[frozenset[int]] = frozenset()


class Withheld:
    """The cells of one store that are withheld, by the positions of their records.

    Told from any thread, asked from any thread. Costs memory for each record that has such cells: about 300 bytes.
    """

    __slots__ = ("_by", "_cells", "_telling")

    def __init__(self) -> None:
        self._by: dict[int, Mapping[int, Collection[int]]] = {}
        self._cells: dict[int, frozenset[int]] = {}
        self._telling = threading.Lock()

    def add(self, by: int, cells: Mapping[int, Collection[int]]) -> None:
        """The record at position `by` says that these are erased: their numbers, by the positions of their records."""
        with self._telling:
            self._by[by] = cells
            self._gather()

    def gone(self, upto: int) -> None:
        """What the records up to and with position `upto` say is erased is in no file any more."""
        with self._telling:
            left = {by: cells for by, cells in self._by.items() if by > upto}
            if len(left) < len(self._by):
                self._by = left
                self._gather()

    def _gather(self) -> None:
        found: dict[int, frozenset[int]] = {}
        for cells in self._by.values():
            for position, numbers in cells.items():
                found[position] = found.get(position, _NONE).union(numbers)
        self._cells = found  # whole at once: others read it without the lock

    def has(self, position: int, number: int) -> bool:
        """Whether a cell of the record at that position is withheld."""
        cells = self._cells
        return bool(cells) and number in cells.get(position, _NONE)

    def of(self, position: int) -> frozenset[int]:
        """The cells of a record that are withheld."""
        return self._cells.get(position, _NONE)

    def __len__(self) -> int:
        return sum(map(len, self._cells.values()))
