"""Erasures: what a log that may be damaged says is erased; and what of it reads as erased though nothing says so.

Of the second kind are holes, where the disk has other bytes than were written; and what is gone as erased content goes:
a record that is lost has erased it, as far as its bytes had gone, or somebody took it out. Which of these two, nobody
can say. What a lost record has erased and was in the files yet is not told by anything.

The one rule: positions are those of this log; what was said of another one, before a salvage, counts no more.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from typing import Final, Generic, NamedTuple, TypeVar

from dataspace.drafts import read_deeds
from dataspace.records import Header, Kind

MOST: Final = 1000
"""Cells, or places, that are named; the others are counted."""


class Taken(NamedTuple):
    """A cell that reads as erased, and no record says that it is: whose, at which seq and position, its number."""

    uid: bytes
    seq: int
    position: int
    number: int


class Hole(NamedTuple):
    """A cell that is not what was written: which of which record, and what is wrong with it."""

    uid: bytes
    seq: int
    position: int
    number: int
    why: str


_T = TypeVar("_T")


class Capped(Generic[_T]):
    """What may be very many, met one after another: the `first` `MOST`, and the `count` of all."""

    __slots__ = ("count", "first")

    def __init__(self) -> None:
        self.first: list[_T] = []
        self.count = 0

    def add(self, met: Sequence[_T]) -> None:
        """Some more of them."""
        self.count += len(met)
        self.first += met[: MOST - len(self.first)]


class Erasures:
    """What the records of a store's own chain say is erased, told one after another; and what is met that they do not
    say."""

    def __init__(self) -> None:
        self.taken = Capped[Taken]()
        """The cells that nothing says are erased."""
        self.unread: list[int] = []
        """The positions of records that cannot be read, and may say of something that is there that it is erased."""
        self._cells: dict[int, set[int]] = {}
        self._left_out: dict[int, set[int]] = {}
        self._unsaid = 0
        """Up to which position a salvage has left out what it does not name."""

    def told(self, header: Header, deeds: bytes | None) -> None:
        """A record says something; with None it cannot be read."""
        if header.kind == Kind.SALVAGED:
            self._cells.clear()
            self.unread.clear()
            self._left_out.clear()
            self._unsaid = header.position
        elif header.kind == Kind.ERASE and deeds is None:
            self.unread.append(header.position)
        with suppress(ValueError, TypeError):  # a message that nobody can have written says nothing
            match None if deeds is None else read_deeds(deeds).message:
                case {"cells": list(cells)} if header.kind == Kind.ERASE:
                    _put(self._cells, cells)
                case {"erased": list(cells)} if header.kind == Kind.SALVAGED:
                    _put(self._left_out, cells)
                    self._unsaid = 0
                case {"erased": int(upto)} if header.kind == Kind.RECLAIMED:
                    self.unread = [position for position in self.unread if position > upto]

    def of(self, position: int) -> Collection[int]:
        """The cells of the record at that position that are erased."""
        return self._cells.get(position, ())

    def met(self, header: Header, numbers: Collection[int]) -> None:
        """These cells of a record read as erased."""
        position = header.position
        if not numbers or position <= self._unsaid:
            return
        said = self._cells.get(position, set()) | self._left_out.get(position, set())
        found = [Taken(header.uid, header.seq, position, number) for number in numbers if number not in said]
        self.taken.add(found)

    def __bool__(self) -> bool:
        return bool(self._cells)


def _put(into: dict[int, set[int]], cells: Iterable[tuple[int, Iterable[int]]]) -> None:
    for position, numbers in cells:
        into.setdefault(position, set()).update(numbers)
