"""The records of a surveyed segment, each with the frames that belong to it by their places.

The one rule: what is neither a record nor a part of one goes to whoever asked, where it stands.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple

from dataspace.log.frames import Frame, Type, record_head
from dataspace.log.survey import Piece, Survey

_PARTS: Final = frozenset({int(Type.CELL), int(Type.PAGE)})


class Found(NamedTuple):
    """A record with a sound header, and the sound frames that belong to it by their places."""

    survey: Survey
    piece: Piece
    parts: Mapping[int, Piece]


def grouped(survey: Survey, other: Callable[[Survey, Piece], None]) -> Iterator[Found]:
    """The records of a segment, each with the frames after it that are parts; what is neither goes to `other`."""
    record: Piece | None = None
    parts: dict[int, Piece] = {}
    for piece in survey.pieces():
        found = piece.frame
        if found is not None and found.was == Type.RECORD and _readable(found):
            if record is not None:
                yield Found(survey, record, parts)
            record, parts = piece, {}
            continue
        if found is not None and found.was in _PARTS and len(found.head) == 12:
            parts[piece.offset] = piece
            if not piece.wrong:
                continue
        elif found is not None and record is not None:
            yield Found(survey, record, parts)
            record, parts = None, {}
        other(survey, piece)
    if record is not None:
        yield Found(survey, record, parts)


def _readable(found: Frame) -> bool:
    try:
        record_head(found.head)
    except struct.error:
        return False
    return True
