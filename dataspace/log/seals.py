"""The first frames of a log's segments, held against each other.

A segment's first frame says which log it belongs to, at which position it begins, and how long the segment
before it is: so it seals that one. It is written only when all before it is durable.

The one rule: what is read here is enough to know that no segment is missing, without reading any of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dataspace.log.frames import FORMAT, PACKED, RESTED, SEGMENT_SIZE, SegmentHead, Type, segment_head
from dataspace.log.scan import frame_at, written_end
from dataspace.log.verdicts import Outcome, SegmentBytes
from dataspace.records import ZERO_HASH

NO_INDEX: Final = "the index of this packed segment is not what was written"


class Unsound(Exception):
    """Why a judgement ends early. It does not leave this package: `judge` makes a verdict of it."""

    def __init__(self, outcome: Outcome, segment: int, offset: int, what: str) -> None:
        super().__init__(what)
        self.outcome = outcome
        self.segment = segment
        self.offset = offset
        self.what = what


def first_frame(segment: SegmentBytes) -> SegmentHead | None:
    """The head of a segment's first frame; None when that is not sound."""
    found = frame_at(segment.data, 0, segment.id)
    return None if found is None or found.type != Type.SEGMENT else segment_head(found.head)


def is_packed(segment: SegmentBytes) -> bool:
    """Whether this is the file of a packed segment and not the segment: that is given to whoever reads the file, unless
    its index is damaged. Its first frame says more than that of a segment."""
    found, head = frame_at(segment.data, 0, segment.id), first_frame(segment)
    return found is not None and head is not None and head.format in (PACKED, RESTED) and found.size > SEGMENT_SIZE


def first_frames(segments: Sequence[SegmentBytes]) -> list[SegmentHead | None]:
    """The heads of all segments, in the order of their ids; None for a last one whose frame is not sound.

    Raises `Unsound` where one is missing, does not fit, or is of a newer format.
    """
    heads: list[SegmentHead | None] = []
    before: SegmentBytes | None = None
    for segment in segments:
        number = segment.id
        expected = 1 if before is None else before.id + 1
        if number != expected:
            raise Unsound(Outcome.CORRUPT, expected, 0, f"segment {expected} is missing")
        head = first_frame(segment)
        if head is None and segment is not segments[-1]:
            raise Unsound(Outcome.CORRUPT, number, 0, "the first frame of a sealed segment is not sound")
        if head is not None:
            if is_packed(segment):
                raise Unsound(Outcome.CORRUPT, number, 0, NO_INDEX)
            if head.format > FORMAT:
                what = f"its format is {head.format}, this version reads up to {FORMAT}"
                raise Unsound(Outcome.NEWER, number, 0, what)
            first = heads[0] if heads else head
            if head.id != number or first is None or head.log_id != first.log_id:
                what = f"it says that it is segment {head.id} of log {head.log_id.hex()}"
                raise Unsound(Outcome.CORRUPT, number, 0, what)
            _check_place(head, before)
        heads.append(head)
        before = segment
    return heads


def _check_place(head: SegmentHead, before: SegmentBytes | None) -> None:
    length = head.previous_length
    if before is None:
        if (head.first_position, length, head.previous_commit) != (1, 0, ZERO_HASH):
            raise Unsound(Outcome.CORRUPT, head.id, 0, "the first segment goes on from another one")
    elif length > len(before.data):
        what = f"it has {len(before.data)} bytes where the next segment says {length}"
        raise Unsound(Outcome.CORRUPT, before.id, len(before.data), what)
    elif written_end(before.data, length) > length:
        raise Unsound(Outcome.CORRUPT, before.id, length, "something follows its last commit")
