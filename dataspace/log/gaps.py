"""Gaps: the places in a log where frames do not parse, and what follows from them and is no damage of its own.

Reading goes on after the next commit, which says up to which position the log goes there: so it is known how many
records were passed over, though not whose they are. That shows where a chain goes on with a later seq.

The one rule: a gap accounts for as many records as were passed over, and for none more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import attrs

from dataspace.log.frames import COMMIT_SIZE
from dataspace.log.frames import place as place_of
from dataspace.log.scan import Misfit, Missing, commit_hash, commits_after
from dataspace.log.seals import first_frame
from dataspace.log.verdicts import SegmentBytes


class After(NamedTuple):
    """Where reading goes on after a gap: the offset, and the position and hash of the commit there, if known."""

    offset: int
    position: int | None
    commit: bytes


def after_gap(segments: Sequence[SegmentBytes], segment: SegmentBytes, offset: int) -> After:
    """Where reading goes on when frames do not parse at an offset of a segment: after the next commit. The segment
    that follows tells of the last one."""
    following = next(commits_after(segment, offset), None)
    if following is not None:
        at, commit = following
        return After(at + COMMIT_SIZE, commit.last, commit_hash(segment.data, at))
    later = next((first_frame(each) for each in segments if each.id == segment.id + 1), None)
    if later is None:
        return After(len(segment.data), None, b"")
    return After(len(segment.data), later.first_position - 1, later.previous_commit)


@attrs.define
class Gaps:
    """What was passed over so far. `whole` is the position up to which no record was (None: none was at all);
    `missing` gives what was of each chain that shows it; `places` are segments, with two offsets each."""

    whole: int | None = None
    missing: dict[bytes, Missing] = attrs.field(factory=dict)
    places: list[tuple[int, int, int]] = attrs.field(factory=list)
    _left: int = 0

    def passed(self, segment: int, start: int, position: int, end: int, last: int | None) -> str:
        """Take in a gap of a segment, from the batch that begins at `start` up to offset `end`: the records after a
        position and up to the `last` one (None: nobody knows which that is). Gives it in words."""
        self.places.append((segment, start, end))
        if last is None:
            self.whole = position if self.whole is None else self.whole
            return "what lies after it in this segment was passed over"
        many = max(0, last - position)
        if not many:
            return "no record was passed over"
        self.whole = position if self.whole is None else self.whole
        self._left += many
        return (
            f"positions {position + 1} to {last} were passed over" if many > 1 else f"position {last} was passed over"
        )

    def explain(self, misfit: Misfit) -> bool:
        """Whether what does not fit is that records are missing which were passed over."""
        missing = misfit.missing
        if missing is None or missing.many > self._left:
            return False
        self.missing.setdefault(missing.uid, missing.among(self._left))
        self._left -= missing.many
        return True

    def cover(self, size: int) -> bool:
        """Whether any of the first so many records was passed over."""
        return self.whole is not None and size > self.whole

    def hold(self, address: int | None) -> bool:
        """Whether what lies at an address was passed over."""
        if address is None or not self.places:
            return False
        at, offset = place_of(address)
        return any(at == segment and start <= offset < end for segment, start, end in self.places)
