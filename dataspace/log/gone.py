"""Bodies that are not in a log any more, as a check of it has met them: erased ones, and archived ones.

The one rule: it says what is gone, and nothing of whether it was to be: `vat.host.allowing` does, by the records.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from dataspace.log.contents import Bodies, whole
from dataspace.log.frames import ELSEWHERE, Frame, Type


class Missing(NamedTuple):
    """A body that is not there: the position of its record; the type that its frame had; its number, of a cell or page.
    `archived` (a record's, all but its facts), and then maybe `away`: found in no archive."""

    position: int
    was: int
    number: int
    archived: bool
    away: bool


class Gone:
    """The bodies that are not there, in the order of the log. 16 bytes of memory for each."""

    def __init__(self) -> None:
        self._positions = array("Q")
        self._what = array("Q")

    def take(self, position: int, frames: Sequence[Frame], bodies: Bodies) -> None:
        """Take down which are not there of a record and its parts; `bodies` has what archives gave."""
        for each in frames:
            if not whole(each):
                number = 0 if each.was == Type.RECORD else int.from_bytes(each.head[8:12], "little")
                archived, away = each.type in ELSEWHERE, bodies.get(each.offset) is None
                self._positions.append(position)
                self._what.append(number << 10 | each.was << 2 | archived << 1 | away)

    def __iter__(self) -> Iterator[Missing]:
        for position, what in zip(self._positions, self._what, strict=True):
            archived = bool(what & 2)
            yield Missing(position, what >> 2 & 255, what >> 10, archived, archived and bool(what & 1))

    def __len__(self) -> int:
        return len(self._positions)
