"""Recovery: from the bytes of a log, and what else is known of it, to a verdict.

How it goes, for a log of segments 1 to n:

1. Files of zeros at the end (made ahead, never begun) are as good as absent.
2. The first frame of every segment is read: ids without a gap, one log id, each naming the length of the
   segment before it. A sound first frame seals the segment before, which must end just there.
3. Batches are followed one after another. A commit proves that the batch *before* it was durable; so a
   wrong body with any sound commit after it is damage, and in the last batch it is a torn write.
4. Where no sound batch follows, zeros to the end are preallocation. Anything else is a torn tail if it
   holds no commit, or only the one of the batch that was in flight (which names the last good commit).
   Any other commit there says that something durable was lost: corrupt.
5. What was seen by others is held against what was found.

The one rule: it never guesses. What a crash can have left is cut, everything else is named, and nothing that
is derived (a mark, the heads at it) can make a verdict worse: then the log is judged again from its beginning.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dataspace.log.frames import (
    COMMIT_SIZE,
    PREFIX,
    SEGMENT_SIZE,
    Frame,
    SegmentHead,
    Type,
    part_head,
)
from dataspace.log.marks import BEGINNING, Damage, Mark
from dataspace.log.scan import (
    Batch,
    Misfit,
    Trail,
    begins_at,
    commits_after,
    is_commit_at,
    read_batch,
    written_end,
    wrong_bodies,
)
from dataspace.log.seals import Unsound, first_frame, first_frames
from dataspace.log.verdicts import (
    NOTHING_KNOWN,
    Evidence,
    Found,
    Outcome,
    SegmentBytes,
    Span,
    Verdict,
    Visit,
)
from dataspace.records import STORE_UID

FIRST_WRITE: Final = 1 << 16
"""A first segment without one sound frame is a beginning that a crash interrupted only up to this size."""


def judge(segments: Sequence[SegmentBytes], evidence: Evidence = NOTHING_KNOWN, visit: Visit | None = None) -> Verdict:
    """Judge a log: all its segment files, by id, and what else is known.

    `visit` is called once for each record after `Verdict.began` that is accepted, in order; when the log
    is not writable, for those before the trouble. Costs one pass over the bytes after `evidence.start`, and
    a few microseconds for each frame.
    """
    if evidence.start is not None:
        visited: list[Found] = []
        walk = _Judgement(segments, evidence, visited.append)
        if walk.trusts(evidence.start):
            verdict = walk.verdict()
            if verdict.outcome.writable:
                if visit is not None:
                    for found in visited:
                        visit(found)
                return verdict
    return _Judgement(segments, evidence, visit).verdict()


class _Judgement:
    """One walk along a log, from its beginning or from a mark."""

    def __init__(self, segments: Sequence[SegmentBytes], evidence: Evidence, visit: Visit | None) -> None:
        views = sorted(segments, key=_id_of)
        while views and written_end(views[-1].data) == 0:
            views.pop()
        self.segments = views
        self.evidence = evidence
        self.visit = visit
        self.seen = {head.position: head.hash for head in evidence.seen}
        self.began: Mark | None = None
        self.trail = Trail(NOTHING_KNOWN.heads)
        self.end = BEGINNING
        self.log_id: bytes | None = None
        self.cut: Span | None = None
        self.last: Span | None = None
        self.damaged: dict[bytes, Damage] = {}
        self.lost: list[tuple[bytes, Damage]] = []
        self.records = 0

    def trusts(self, start: Mark) -> bool:
        """Begin at `start` if it is a place of this log."""
        at = start.segment - 1
        if not 0 <= at < len(self.segments) or self.segments[at].id != start.segment:
            return False
        data = self.segments[at].data
        first = first_frame(self.segments[at])
        if first is None or start.offset > len(data):
            return False
        if start.offset == SEGMENT_SIZE:
            fits = begins_at(start, first)
        else:
            offset = start.offset - COMMIT_SIZE
            fits = offset >= SEGMENT_SIZE and is_commit_at(start, data[offset : start.offset])
        if fits:
            self.trail = Trail(self.evidence.heads, start.position, start.hash, start.commit)
            self.began = self.end = start
        return fits

    def verdict(self) -> Verdict:
        """Walk, and say what was found."""
        try:
            self._check_seen(self.trail.position, self.trail.hash)
            self._walk()
            last = self.segments[-1].id if self.segments else 0
            if 0 < last <= self.evidence.sealed:
                what = f"segment {last + 1} is missing: the one before it lies packed, as sealed ones do alone"
                raise Unsound(Outcome.TRUNCATED, last + 1, 0, what)
            beyond = max(self.seen, default=0)
            if beyond > self.end.position:
                what = f"it ends at position {self.end.position}; position {beyond} was seen"
                raise Unsound(Outcome.TRUNCATED, self.end.segment, self.end.offset, what)
        except Unsound as found:
            self.cut = None
            return self._verdict(found.outcome, found.what, found.segment, found.offset)
        if self.damaged:
            return self._verdict(Outcome.DAMAGED, self._say())
        return self._verdict(Outcome.CLEAN if self.cut is None else Outcome.TORN, self._say())

    def _verdict(self, outcome: Outcome, what: str, segment: int = 0, offset: int = 0) -> Verdict:
        return Verdict(
            outcome=outcome,
            end=self.end,
            what=what,
            log_id=self.log_id,
            began=self.began,
            epoch=max(self.evidence.epoch, self.trail.epoch),
            cut=self.cut,
            last=self.last,
            damaged=self.damaged,
            lost=tuple(self.lost),
            heads=self.trail.heads,
            records=self.records,
            segment=segment,
            offset=offset,
        )

    def _say(self) -> str:
        said = [f"the log ends at position {self.end.position}, segment {self.end.segment}"]
        if self.cut is not None:
            segment, offset, length = self.cut
            said.append(
                f"a write that was never acknowledged is to be cut: segment {segment}, offset {offset}, {length} bytes"
            )
        for uid, damage in self.damaged.items():
            said.append(f"session {uid.hex()} is damaged at seq {damage.seq}: {damage.what}")
        for uid, damage in self.lost:
            said.append(f"lost, and not needed: {damage.what} of session {uid.hex()} at seq {damage.seq}")
        return "; ".join(said)

    def _walk(self) -> None:
        heads = first_frames(self.segments)
        first = heads[0] if heads else None
        self.log_id = None if first is None else first.log_id
        expected = self.evidence.log_id
        if first is not None and expected is not None and first.log_id != expected:
            what = f"it is log {first.log_id.hex()}, not {expected.hex()}"
            raise Unsound(Outcome.TAMPERED, 1, 0, what)
        for at in range(self.end.segment - 1, len(self.segments)):
            segment = self.segments[at]
            if heads[at] is None:
                self._tail(at, 0, Misfit(0, "its first frame is not sound"))
                return
            sealed_by = heads[at + 1] if at + 1 < len(self.segments) else None
            start = self.end.offset if segment.id == self.end.segment else 0
            if start == 0:
                start = SEGMENT_SIZE
                self._accept(segment.id, 0, start)
            if sealed_by is not None:
                self._sealed(at, start, sealed_by)
            elif self._open(at, start):
                return

    def _sealed(self, at: int, start: int, sealed_by: SegmentHead) -> None:
        """Follow a segment that the next one seals: it must be sound up to where that one says."""
        segment = self.segments[at]
        number = segment.id
        while start < sealed_by.previous_length:
            batch = read_batch(segment, start)
            if isinstance(batch, Misfit):
                outcome = Outcome.NEWER if batch.newer else Outcome.CORRUPT
                raise Unsound(outcome, number, batch.offset, f"{batch.what}, in a sealed segment")
            if batch.commit.previous != self.trail.commit:
                raise Unsound(Outcome.CORRUPT, number, start, "a commit that does not follow the one before it")
            self._take(segment, batch, wrong_bodies(segment.data, batch))
            start = batch.end
        if sealed_by.previous_commit != self.trail.commit:
            raise Unsound(Outcome.CORRUPT, number + 1, 0, "it does not follow the last commit of the one before")
        if sealed_by.first_position != self.trail.position + 1:
            what = f"it begins with position {sealed_by.first_position} after {self.trail.position}"
            raise Unsound(Outcome.CORRUPT, number + 1, 0, what)

    def _open(self, at: int, start: int) -> bool:
        """Follow the segment that was written last. True when a tail was cut from it."""
        segment = self.segments[at]
        while True:
            batch = read_batch(segment, start)
            if isinstance(batch, Misfit):
                return self._tail(at, start, batch)
            if batch.commit.previous != self.trail.commit:
                return self._tail(at, start, Misfit(start, "a commit that does not follow the one before it"))
            wrong = wrong_bodies(segment.data, batch)
            if wrong and next(commits_after(segment, batch.end), None) is None:
                return self._tail(at, start, Misfit(wrong[0].offset, "a body that is not what was written"))
            self._take(segment, batch, wrong)
            start = batch.end

    def _take(self, segment: SegmentBytes, batch: Batch, wrong: Sequence[Frame]) -> None:
        """Accept a batch that is sound, though some of its bodies may be wrong."""
        records, misfits = self.trail.follow(segment.id, batch)
        if misfits:
            outcome = Outcome.NEWER if misfits[0].newer else Outcome.CORRUPT
            raise Unsound(outcome, segment.id, misfits[0].offset, misfits[0].what)
        for found in records:
            self._check_seen(found.header.position, found.hash)
            if self.visit is not None:
                self.visit(found)
        self.records += len(records)
        for each in wrong:
            self._damage(records, batch.commit.first, each)
        self._accept(segment.id, batch.start, batch.end)

    def _damage(self, records: Sequence[Found], first: int, wrong: Frame) -> None:
        """Put down a wrong body to the session that it belongs to, unless that can do without it."""
        if wrong.was == Type.CHECKPOINT:
            at = Damage(0, self.trail.position, 0, "a checkpoint")
            self.lost.append((STORE_UID, at))
            return
        if wrong.was == Type.RECORD:
            found = next(each for each in records if each.frame is wrong)
        else:
            position, number = part_head(wrong.head)
            found = records[position - first]
            if wrong.was == Type.PAGE:
                damage = Damage(found.header.seq, position, found.address, f"heap page {number}")
                self.lost.append((found.header.uid, damage))
                return
        damage = Damage(found.header.seq, found.header.position, found.address, what_is_wrong(wrong))
        self.damaged.setdefault(found.header.uid, damage)

    def _accept(self, segment: int, start: int, end: int) -> None:
        trail = self.trail
        self.end = Mark(segment, end, trail.position, trail.hash, trail.commit)
        start = 0 if start == SEGMENT_SIZE else start
        self.last = Span(segment, start, end - start)

    def _check_seen(self, position: int, hash: bytes) -> None:
        if self.seen and self.seen.get(position, hash) != hash:
            what = f"the record at position {position} is not the one that was seen there"
            raise Unsound(Outcome.TAMPERED, self.end.segment, self.end.offset, what)

    def _tail(self, at: int, start: int, misfit: Misfit) -> bool:
        """Where sound batches end: preallocation, a torn write, or worse. True when there is one to cut."""
        segment = self.segments[at]
        number = segment.id
        end = written_end(segment.data, start)
        if end == start:
            return False
        if misfit.newer:
            raise Unsound(Outcome.NEWER, number, misfit.offset, misfit.what)
        if at + 1 < len(self.segments):
            raise Unsound(Outcome.CORRUPT, number, misfit.offset, f"{misfit.what}, and another segment follows")
        owner = int.from_bytes(segment.data[PREFIX - 4 : PREFIX], "little")
        if start == 0 and owner != number and first_frame(SegmentBytes(owner, segment.data)) is not None:
            raise Unsound(Outcome.CORRUPT, number, 0, f"it is segment {owner} under another name")
        if start == 0 and at == 0 and end > FIRST_WRITE:
            raise Unsound(Outcome.CORRUPT, number, 0, "it is not a segment of a log")
        for offset, commit in commits_after(segment, start):
            if commit.previous != self.trail.commit:
                what = f"{misfit.what}, and a commit follows at offset {offset}"
                raise Unsound(Outcome.CORRUPT, number, misfit.offset, what)
        self.cut = Span(number, start, end - start)
        return True


def _id_of(segment: SegmentBytes) -> int:
    return segment.id


def what_is_wrong(frame: Frame) -> str:
    """What is said of a frame whose body is not what was written, by whoever finds it."""
    if frame.was == Type.CHECKPOINT:
        return "a checkpoint is not what was written"
    if frame.was == Type.RECORD:
        return "its record's body is not what was written"
    return f"{'heap page' if frame.was == Type.PAGE else 'cell'} {part_head(frame.head)[1]} is not what was written"
