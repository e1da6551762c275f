"""Where a log has no sound frame, met while it is at work: which records lay there, as far as the log itself says it.

Whoever is led to a place where no record begins was led wrongly, or what is there is damaged: a frame's header, without
which nothing says where its body ends. Only the log tells which. So all of its frames are followed, past what is none,
and the records that a chain lacks are those that lay in between.

The one rule: nothing is believed here but sound frames. No session is called damaged that lacks no record.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Final, NamedTuple

from dataspace.log.frames import Frame, Type, address, place, record_head
from dataspace.log.marks import Damage
from dataspace.log.reading import SegmentReader
from dataspace.log.scan import Missing, missing_before
from dataspace.log.survey import Survey
from dataspace.log.verdicts import LogCorrupt, SessionDamaged
from dataspace.log.windows import Window
from dataspace.records import Header, Kind

_WHAT: Final = "its record has no sound frame"

Know = Callable[[bytes, Damage], None]


class Gap(NamedTuple):
    """A stretch without a sound frame, from an address to another; `before` is the position of the record before it,
    `after` of the one after it, 0 if there is none."""

    start: int
    end: int
    before: int
    after: int = 0


class Lack(NamedTuple):
    """Records that a chain lacks, in some of the gaps from number `since` to before `until`."""

    missing: Missing
    since: int
    until: int


class Look:
    """The gaps of a log, and the records that its chains lack. Costs a walk over all frames: about 10 µs for each."""

    def __init__(self, reader: SegmentReader) -> None:
        self.gaps: list[Gap] = []
        self.lacks: list[Lack] = []
        self._heads: dict[bytes, tuple[int, int]] = {}
        position = 0
        for segment in range(1, reader.end().segment + 1):
            for found in _followed(reader, segment):
                if not isinstance(found, Frame):
                    self.gaps.append(Gap(*found, position))
                elif found.was == Type.RECORD:
                    try:
                        header, _ = record_head(found.head)
                    except struct.error:
                        continue
                    position = header.position
                    self._meet(header)

    def _meet(self, header: Header) -> None:
        uid, seq, many = header.uid, header.seq, len(self.gaps)
        for number in range(many - 1, -1, -1):
            if self.gaps[number].after:
                break
            self.gaps[number] = self.gaps[number]._replace(after=header.position)
        known, since = self._heads.get(uid, (0, 0))
        missing = missing_before(uid, seq, known)
        if missing is not None and since < many and (known or header.kind != Kind.FORKED):
            room = sum(gap.after - gap.before - 1 for gap in self.gaps[since:many])
            self.lacks.append(Lack(missing.among(room), since, many))
        self._heads[uid] = (max(known, seq), many)

    def gap(self, at: int) -> int | None:
        """The number of the gap that an address is in."""
        return next((number for number, gap in enumerate(self.gaps) if gap.start <= at < gap.end), None)

    def sure(self, number: int) -> Lack | None:
        """Whose record lay in a gap, if only one did and the log says which."""
        gap = self.gaps[number]
        those = [lack for lack in self.lacks if lack.since <= number < lack.until]
        one = len(those) == 1 and those[0].until - those[0].since == 1 and those[0].missing.many == 1
        return those[0] if one and gap.after - gap.before == 2 else None

    def lacks_record(self, uid: bytes, seq: int) -> bool:
        """Whether no sound frame is that record's, which there was."""
        known, _ = self._heads.get(uid, (0, 0))
        those = [lack.missing for lack in self.lacks if lack.missing.uid == uid]
        return seq > known or any(each.least <= seq <= each.last for each in those)


class NoFrame(LogCorrupt, quotes=False):
    """No frame begins where one should."""

    def __init__(self, at: int, look: Look, number: int, know: Know) -> None:
        super().__init__(*place(at), "no frame begins here")
        self._at = at
        self._look = look
        self._number = number
        self._know = know

    def damage(self, uid: bytes, seq: int) -> SessionDamaged | None:
        """What to tell who was led there for a session's record: damage, which is known from now on. None if the log
        has that record elsewhere."""
        return _damage(self._look, self._number, self._at, uid, seq, self._know)


def no_frame(at: int, look: Look, know: Know) -> SessionDamaged | NoFrame | None:
    """What to tell who was led to a place where no record begins; None if no record was damaged there.

    What the log says of the sessions that lack a record there is known from now on.
    """
    number = look.gap(at)
    if number is None:
        return None
    for lack in look.lacks:
        if lack.since <= number < lack.until:
            _damage(look, number, at, lack.missing.uid, lack.missing.first, know)
    sure = look.sure(number)
    found = None if sure is None else _damage(look, number, at, sure.missing.uid, sure.missing.first, know)
    return found or NoFrame(at, look, number, know)


def lacking(look: Look, know: Know) -> None:
    """Have known which sessions lack records, as far as the log says it."""
    for lack in look.lacks:
        for number in range(lack.since, lack.until):
            if _damage(look, number, look.gaps[number].start, lack.missing.uid, lack.missing.first, know) is not None:
                break


def _damage(look: Look, number: int, at: int, uid: bytes, seq: int, know: Know) -> SessionDamaged | None:
    gap = look.gaps[number]
    if gap.after == gap.before + 1 or not look.lacks_record(uid, seq):
        return None
    damage = Damage(seq, gap.before + 1, at, _WHAT)
    know(uid, damage)
    return SessionDamaged.of(uid, damage)


def _followed(reader: SegmentReader, segment: int) -> Iterator[Frame | tuple[int, int]]:
    """The sound frames of a segment, in order, and the addresses between which there are none."""
    length = there = _there(reader, segment)
    end = reader.end()
    with suppress(LogCorrupt):
        length = end.offset if segment == end.segment else reader.length(segment)
        there = min(there, length)
    survey = Survey(Window(partial(reader.pread, segment), there, f"segment {segment}"), segment)
    at = 0
    while at < there:
        found = survey.frame(at)
        if found is not None:
            yield found
            at += found.size
            continue
        following = next((piece.offset for piece in survey.pieces(at) if piece.frame is not None), there)
        yield address(segment, at), address(segment, following)
        at = following
    if at < length or not there:
        yield address(segment, at), address(segment, max(length, 8))


def _there(reader: SegmentReader, segment: int) -> int:
    """How many bytes a segment has; none where it is missing."""
    try:
        return reader.written(segment)
    except LogCorrupt:
        return 0
