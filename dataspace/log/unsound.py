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
from dataspace.log.marks import Damage, Mark
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
    """The gaps of a log, and the records that its chains lack, up to where it ends now.

    Costs a walk over all frames, about 10 µs for each; or with an earlier look over those that came since. It does not
    change any more, so that any thread may have it.
    """

    def __init__(self, reader: SegmentReader, earlier: Look | None = None) -> None:
        self.end = reader.end()
        self.gaps: list[Gap] = [] if earlier is None else earlier.gaps.copy()
        self.lacks: list[Lack] = [] if earlier is None else earlier.lacks.copy()
        self._heads: dict[bytes, tuple[int, int]] = {} if earlier is None else earlier._heads.copy()
        first, start, position = (1, 0, 0) if earlier is None else (*earlier.end.place, earlier.end.position)
        for segment in range(first, self.end.segment + 1):
            for found in _followed(reader, segment, start if segment == first else 0, self.end):
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


class Placed(NamedTuple):
    """Whose record lay at a place where none begins: `sure` by the log itself, else as somebody was led there for it,
    and the log does not have it elsewhere."""

    uid: bytes
    damage: Damage
    sure: bool


class NoFrame(LogCorrupt, quotes=False):
    """No frame begins where one should."""

    def __init__(self, at: int, look: Callable[[], Look], know: Know, known: Placed | None = None) -> None:
        super().__init__(*place(at), "no frame begins here")
        self._at = at
        self._look = look
        self._know = know
        self._known = known

    def damage(self, uid: bytes, seq: int) -> SessionDamaged | None:
        """What to tell who was led there for a session's record: damage, which is known from now on. None if the log
        has that record elsewhere. Costs nothing for the record that is known to have lain there."""
        if self._known is not None and (self._known.uid, self._known.damage.seq) == (uid, seq):
            return SessionDamaged.of(uid, self._known.damage)
        look = self._look()
        number = look.gap(self._at)
        return None if number is None else _damage(look, number, self._at, uid, seq, self._know)


def no_frame(at: int, look: Look, know: Know, place: Callable[[Placed], None]) -> SessionDamaged | NoFrame | None:
    """What to tell who was led to a place where no record begins; None if no record was damaged there.

    What the log says of the sessions that lack a record there is known from now on; and `place` is told whose record
    lay at this very place, as soon as somebody knows.
    """

    def placed(sure: bool, uid: bytes, damage: Damage) -> None:
        place(Placed(uid, damage, sure))

    number = look.gap(at)
    if number is None:
        return None
    for lack in look.lacks:
        if lack.since <= number < lack.until:
            _damage(look, number, at, lack.missing.uid, lack.missing.first, know)
    sure = look.sure(number)
    if sure is not None:
        found = _damage(look, number, at, sure.missing.uid, sure.missing.first, partial(placed, True))
        if found is not None:
            return found
    return NoFrame(at, lambda: look, partial(placed, False))


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


def _followed(reader: SegmentReader, segment: int, at: int, end: Mark) -> Iterator[Frame | tuple[int, int]]:
    """The sound frames of a segment from an offset on, in order, and the addresses between which there are none."""
    start = at
    length = there = _there(reader, segment)
    with suppress(LogCorrupt):
        length = end.offset if segment == end.segment else reader.length(segment)
        there = min(there, length)
    survey = Survey(Window(partial(reader.pread, segment), there, f"segment {segment}"), segment)
    while at < there:
        found = survey.frame(at)
        if found is not None:
            yield found
            at += found.size
            continue
        following = next((piece.offset for piece in survey.pieces(at) if piece.frame is not None), there)
        yield address(segment, at), address(segment, following)
        at = following
    if at < length or not (there or start):
        yield address(segment, at), address(segment, max(length, 8))


def _there(reader: SegmentReader, segment: int) -> int:
    """How many bytes a segment has; none where it is missing."""
    try:
        return reader.written(segment)
    except LogCorrupt:
        return 0
