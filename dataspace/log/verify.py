"""The whole check of a log: every frame, body, chain, cell, fork and checkpoint, with findings as data.

Recovery looks at what a disk can do; this also looks at what a hand can do, and does not stop at the first
fault. A body is held against the digest in its header, a cell against the digest that its record names,
a fork against its parent. Where frames no longer parse, it goes on after the next commit.

A log is swept (`dataspace.log.sweep`) for as long as all is right; what the sweep does not pass is looked at here,
frame by frame. Recovery is asked from the last place on up to which all was right.

The one rule: it reads, and changes nothing. What is erased or archived it takes down (`gone`), for who can say whether
it was to be.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from typing import Final

import attrs

from dataspace.log.contents import Bodies, Opener, born_of, grouped, nowhere, unfitting, unfitting_rest, unsealed, whole
from dataspace.log.findings import OTHERS, Counts, Finding, Note
from dataspace.log.frames import ELSEWHERE, RESTS, SEGMENT_SIZE, Frame, Type, checkpoint_head, part_head
from dataspace.log.gaps import Gaps, after_gap
from dataspace.log.gone import Gone
from dataspace.log.marks import BEGINNING, ChainHead, Mark
from dataspace.log.recovery import judge, what_is_wrong
from dataspace.log.scan import Batch, Trail, begins_at, frame_at, read_batch, written_end, wrong_bodies
from dataspace.log.seals import NO_INDEX, first_frame, is_packed
from dataspace.log.sweep import Born, Sweep
from dataspace.log.verdicts import NOTHING_KNOWN, Evidence, Found, Outcome, SegmentBytes, Verdict
from dataspace.proofs.merkle import Tree, leaf_hash
from dataspace.records import Kind

PLACES: Final = 1000
"""Places in a segment where frames do not parse, and reading goes on after the next commit. Each costs the longest head
that a frame may have; a file with more of them was not damaged but made."""
APART: Final = 127
"""Batches that are looked at one by one, at the most, before the sweep is asked again."""
_LEAF: Final = 32


def _nothing(size: int, root: bytes, note: bytes) -> str:
    return ""


class Verification:
    """One check of a log. `findings()` makes it, once; `counts` tells how far it is, `verdict` what
    recovery makes of the log.

    `opener` opens sealed bodies, `archives` gives archived ones; without them they are counted, and not looked at.
    `tree` gets a leaf for each record; `note` is called with each checkpoint, after the records that it covers.
    `progress` is called after some megabytes. Costs some ten microseconds and 80 bytes for each record.
    """

    def __init__(
        self,
        segments: Sequence[SegmentBytes],
        evidence: Evidence,
        *,
        opener: Opener | None = None,
        tree: Tree | None = None,
        note: Note = _nothing,
        progress: Callable[[Counts], None] | None = None,
        archives: Callable[[int, Frame], bytes | None] = nowhere,
    ) -> None:
        self.counts = Counts()
        self.gone = Gone()
        """What is not there of records and their parts, for who knows what may be gone."""
        self.passed = Gaps()
        """Where frames do not parse, and what was passed over for that."""
        self._segments = sorted(segments, key=lambda segment: segment.id)
        while self._segments and written_end(self._segments[-1].data) == 0:
            self._segments.pop()
        self._evidence = evidence
        self._opener = opener
        self._tree = Tree() if tree is None else tree
        self._note = note
        self._progress = progress
        self._archives = archives
        self._trail = Trail(NOTHING_KNOWN.heads)
        self._sweep = Sweep(self._trail, self._passed, opener)
        self._seqs = array("Q")
        self._forks: list[Born] = []
        self._right = BEGINNING
        """Up to here recovery would find nothing wrong."""
        self._verdict: Verdict | None = None
        self._told: tuple[int, int] | None = None
        self._said = self._gaps = self._strays = False
        self._apart = self._unasked = 0
        """How many batches are between two at which the sweep is asked, and left until then."""
        self._followed = 0

    @property
    def verdict(self) -> Verdict:
        """What recovery makes of the log, and of what else is known."""
        if self._verdict is None:
            start = self._right if self._right.offset else None
            leaf = self._tree.node
            for position, hash in self._evidence.seen:
                if 0 < position <= self._right.position and leaf(0, position - 1) != leaf_hash(hash):
                    start = None  # it says so itself when it comes there
            evidence = attrs.evolve(self._evidence, start=start, heads=self._trail.heads.get)
            self._verdict = judge(self._segments, evidence)
        return self._verdict

    @property
    def heads(self) -> Mapping[bytes, ChainHead]:
        """The newest record of each chain that was met, by uid."""
        return self._trail.heads

    @property
    def followed(self) -> int:
        """The position up to which every record is there, and follows the one before it."""
        return self._followed

    @property
    def end(self) -> int:
        """The position of the last record that was met, or named by a commit."""
        return self._trail.position

    def findings(self) -> Iterator[Finding]:
        """Everything that is wrong, in order; what recovery says of the log as a whole comes first."""
        for each in self._segments:
            if self._over(each.id, 0):
                break
            self.counts.segments += 1
            yield from self._segment(each)
        yield from self._judged()
        yield from self._parents()

    def _judged(self, altered: bool = False, place: tuple[int, int] | None = None, gap: str = "") -> Iterator[Finding]:
        """What recovery says, once: when something is met that it may have to say something of, or at the end. If that
        is at `place`, with what was passed over there."""
        if self._said:
            return
        self._said, verdict = True, self.verdict
        if not verdict.outcome.writable:
            self._told = (verdict.segment, verdict.offset)
            altered = (altered and verdict.outcome is Outcome.CORRUPT) or verdict.outcome is Outcome.TAMPERED
            what = f"{verdict.what}; {gap}" if gap and self._told == place else verdict.what
            yield Finding(verdict.outcome, *self._told, what, altered=altered)
        elif verdict.cut is not None:
            segment, offset, length = verdict.cut
            what = f"{length} bytes of a write that was never acknowledged; they are cut when the store is opened"
            yield Finding(Outcome.TORN, segment, offset, what)

    def _over(self, segment: int, offset: int) -> bool:
        """Whether the log ends here, and what follows is to be cut."""
        verdict = self._verdict
        return verdict is not None and verdict.outcome.writable and (segment, offset) >= verdict.end.place

    def _segment(self, segment: SegmentBytes) -> Iterator[Finding]:
        number, data = segment
        at = 0
        begin = Mark(number, SEGMENT_SIZE, self._trail.position, self._trail.hash, self._trail.commit)
        head = first_frame(segment)
        if is_packed(segment):
            yield from self._gap(segment, 0, 0, Outcome.CORRUPT, NO_INDEX)
            return
        if head is not None:
            at = SEGMENT_SIZE
        if head is None or not begins_at(begin, head):
            self._gaps = True
            if head is None and frame_at(data, SEGMENT_SIZE, number) is not None:
                at = SEGMENT_SIZE  # its first frame says nothing of what comes then
            if at:  # else it is said with what is passed over
                yield from self._judged()
        elif self._verdict is None:
            self._right = begin
        written = written_end(data)
        misfits = 0
        while at < written and not self._over(number, at):
            at = self._swept(segment, at, written)
            if at >= written:
                break
            batch = read_batch(segment, at)
            if isinstance(batch, Batch):
                yield from self._batch(segment, batch)
                at = batch.end
                continue
            # Not before where frames ceased to parse: what lies in those that did is their content.
            if self.verdict.outcome.writable and (number, at) >= self.verdict.end.place:
                yield from self._judged()
                return
            outcome = Outcome.NEWER if batch.newer else Outcome.CORRUPT
            after = yield from self._gap(segment, at, batch.offset, outcome, batch.what)
            misfits += 1
            if misfits == PLACES:
                what = f"frames do not parse in {PLACES} places; what comes after the last of them was not read"
                yield Finding(Outcome.CORRUPT, number, batch.offset, what)
                return
            at = after

    def _gap(
        self, segment: SegmentBytes, start: int, offset: int, outcome: Outcome, what: str
    ) -> Generator[Finding, None, int]:
        """Frames of the batch that begins at `start` do not parse at an offset. Gives where reading goes on."""
        place, after = (segment.id, offset), after_gap(self._segments, segment, offset)
        gap = self.passed.passed(segment.id, start, self._trail.position, after.offset, after.position)
        yield from self._judged(False, place, gap)
        if place != self._told:
            yield Finding(outcome, *place, f"{what}; {gap}")
        self._gaps = True
        if after.position is not None:
            self._trail.resume(after.position, after.commit)
        return after.offset

    def _swept(self, segment: SegmentBytes, at: int, end: int) -> int:
        """Where the sweep comes to. It reads far ahead, so that it is not asked at each batch where it passes none."""
        if self._unasked:
            self._unasked -= 1
            return at
        reached = self._sweep.follow(segment, at, end)
        if reached > at:
            self._apart = 0
            self._reached(segment.id, reached)
        else:
            self._apart = self._unasked = min(2 * self._apart + 1, APART)
        return reached

    def _reached(self, segment: int, offset: int) -> None:
        if not self._gaps and not self._strays:
            self._followed = self._trail.position
        if self._verdict is None:
            trail = self._trail
            self._right = Mark(segment, offset, trail.position, trail.hash, trail.commit)

    def _passed(self) -> None:
        """Take what the sweep has gathered."""
        sweep, counts = self._sweep, self.counts
        self._tree.extend(sweep.leaves)
        self._seqs.extend(sweep.seqs)
        self._forks += sweep.forks
        counts.bytes += sweep.bytes
        counts.batches += sweep.batches
        counts.records += sweep.records
        counts.cells += sweep.cells
        counts.pages += sweep.pages
        counts.sealed += sweep.sealed
        sweep.begin(counts.records)
        if self._progress is not None:
            self._progress(counts)

    def _batch(self, segment: SegmentBytes, batch: Batch) -> Iterator[Finding]:
        """What is wrong with a batch that the sweep did not pass; nothing may be."""
        number, data = segment
        before = self._trail
        trail = Trail(before.heads.get, before.position, before.hash, before.commit, before.epoch)
        records, misfits = trail.follow(number, batch)
        wrong = {each.offset for each in wrong_bodies(data, batch)}
        follows = batch.commit.previous == before.commit
        altered = not self._gaps
        self._strays = self._strays or bool(misfits) or not follows
        if misfits or wrong or not follows:
            yield from self._judged(altered and not wrong)
            if self._over(number, batch.start):
                return
        if not follows and (number, batch.start) != self._told:
            what = "a commit that does not follow the one before it"
            yield Finding(Outcome.CORRUPT, number, batch.start, what, altered=altered)
        for misfit in misfits:
            explained = self.passed.explain(misfit)
            outcome = Outcome.NEWER if misfit.newer else Outcome.CORRUPT
            if (number, misfit.offset) != self._told:
                somebody = altered and not misfit.newer
                yield Finding(outcome, number, misfit.offset, misfit.what, altered=somebody, follows=explained)
        self._trail.heads.update(trail.heads)
        before.position, before.hash, before.commit, before.epoch = (
            trail.position,
            trail.hash,
            trail.commit,
            trail.epoch,
        )
        for found, frames in grouped(batch, records):
            bodies = {each.offset: self._body(segment, each) for each in frames if each.offset not in wrong}
            uid, seq = (None, 0) if found is None else (found.header.uid, found.header.seq)
            for each in sorted((each for each in frames if each.offset in wrong), key=lambda each: each.offset):
                page = part_head(each.head)[1] if each.was == Type.PAGE else None
                yield Finding(Outcome.DAMAGED, number, each.offset, what_is_wrong(each), uid, seq, page=page)
            if found is None:
                yield from self._checkpoints(number, frames, bodies)
            else:
                self._meet(number, found)
                self.gone.take(found.header.position, frames, bodies)
                if found.frame.flags:
                    pages = {each.offset: part_head(each.head)[1] for each in frames if each.was == Type.PAGE}
                    for at, what, somebody in self._unsealed(found, frames, bodies):
                        yield Finding(Outcome.DAMAGED, number, at, what, uid, seq, somebody, pages.get(at))
                for offset, what in self._contents(found, frames, bodies):
                    yield Finding(Outcome.DAMAGED, number, offset, what, uid, seq, altered=True)
                for offset, what, somebody in self._left(segment, found, frames, bodies):
                    yield Finding(Outcome.DAMAGED, number, offset, what, uid, seq, altered=somebody)
            for each in frames:
                if any(data[each.body_offset + each.body_length : each.offset + each.size]) and whole(each):
                    what = "the zeros after a frame are not zeros; nothing is lost"
                    yield Finding(Outcome.DAMAGED, number, each.offset, what, uid, seq, spared=True)
        self.counts.batches += 1
        self.counts.bytes += batch.end - batch.start
        self._sweep.begin(self.counts.records)
        self._reached(number, batch.end)
        if self._progress is not None:
            self._progress(self.counts)

    def _body(self, segment: SegmentBytes, frame: Frame) -> bytes | None:
        if whole(frame):
            return bytes(segment.data[frame.body_offset : frame.body_offset + frame.body_length])
        if frame.type not in ELSEWHERE:
            self.counts.erased += 1
            return None
        body = self._archives(segment.id, frame)
        self.counts.archived += 1
        self.counts.away += body is None
        return body

    def _checkpoints(self, number: int, frames: Sequence[Frame], bodies: Bodies) -> Iterator[Finding]:
        for each in frames:
            self.counts.checkpoints += 1
            note = bodies.get(each.offset)
            try:
                size, root = checkpoint_head(each.head)
            except struct.error:
                continue  # told before, as what does not fit
            what = "" if note is None else self._note(size, root, note)
            if what:
                short = what.endswith(OTHERS) and self.passed.cover(size)
                yield Finding(Outcome.TAMPERED, number, each.offset, what, altered=not self._gaps, follows=short)

    def _meet(self, segment: int, found: Found) -> None:
        header = found.header
        if header.kind == Kind.FORKED and header.seq > 1:
            place = Born(self.counts.records, segment, found.frame.offset, header.seq, header.previous)
            self._forks.append(place)
        self.counts.records += 1
        self._tree.append(leaf_hash(found.hash))
        self._seqs.append(header.seq)

    def _unsealed(self, found: Found, frames: Sequence[Frame], bodies: Bodies) -> Iterator[tuple[int, str, bool]]:
        """Open a record's bodies, and count those that nobody can."""
        stored = {offset for offset, body in bodies.items() if body is not None}
        if self._opener is None:
            self.counts.sealed += len(stored)
            bodies.clear()
            return
        wrong = set()
        for offset, what, somebody in unsealed(found.header, frames, bodies, self._opener):
            wrong.add(offset)
            yield offset, what, somebody
        self.counts.erased += sum(bodies[offset] is None for offset in stored - wrong)

    def _contents(self, found: Found, frames: Sequence[Frame], bodies: Bodies) -> Iterator[tuple[int, str]]:
        """Hold a record's body against its header, and its cells against its body."""
        cells = [each.offset for each in frames if each.was == Type.CELL]
        self.counts.cells += len(cells)
        self.counts.pages += len(frames) - len(cells) - 1
        return unfitting(found.header, found.frame.offset, cells, bodies)

    def _left(
        self, segment: SegmentBytes, found: Found, frames: Sequence[Frame], bodies: Bodies
    ) -> Iterator[tuple[int, str, bool]]:
        """Hold what is left of a record, if it is not whole, against its header, and its body in an archive."""
        record = found.frame
        if record.type not in RESTS:
            return iter(())
        place = bytes(segment.data[record.body_offset : record.body_offset + record.body_length])
        cells = [each.offset for each in frames if each.was == Type.CELL]
        return unfitting_rest(found.header, record, place, cells, bodies, self._opener)

    def _parents(self) -> Iterator[Finding]:
        """Hold each fork against its parent, which comes before it in a log that has it."""
        if not self._forks:
            return
        wanted = {leaf_hash(fork.previous) for fork in self._forks}
        leaves = self._tree.levels[0]
        met: dict[tuple[bytes, int], int] = {}
        for index, seq in enumerate(self._seqs):
            leaf = bytes(leaves[_LEAF * index : _LEAF * index + _LEAF])
            if leaf in wanted:
                met.setdefault((leaf, seq), index)
        for fork in self._forks:
            if met.get((leaf_hash(fork.previous), fork.seq - 1), fork.nth) < fork.nth:
                continue
            data = next(each.data for each in self._segments if each.id == fork.segment)
            uid, parent = born_of(frame_at(data, fork.offset, fork.segment), data, self._opener)
            if parent in self._trail.heads and self.verdict.outcome.writable:
                what = f"its parent {parent.hex()} has no such record at seq {fork.seq - 1}"
                yield Finding(Outcome.DAMAGED, fork.segment, fork.offset, what, uid, fork.seq, altered=True)
            else:
                self.counts.orphans += 1
