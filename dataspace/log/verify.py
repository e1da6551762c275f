"""The whole check of a log: every frame, body, chain, cell, fork and checkpoint, with findings as data.

Recovery looks at what a disk can do; this also looks at what a hand can do, and does not stop at the first
fault. A body is held against the digest in its header, a cell against the digest that its record names,
a fork against its parent. Where frames no longer parse, it goes on after the next commit.

The one rule: it reads, and changes nothing. What was erased it counts and does not call wrong.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import attrs

from dataspace.drafts import read_deeds, read_used
from dataspace.log.frames import COMMIT_SIZE, SEGMENT_SIZE, Frame, Type, checkpoint_head
from dataspace.log.recovery import judge
from dataspace.log.scan import Batch, Trail, commit_hash, commits_after, read_batch, written_end, wrong_bodies
from dataspace.log.seals import first_frame
from dataspace.log.verdicts import NOTHING_KNOWN, Bytes, Evidence, Found, Outcome, SegmentBytes, Verdict
from dataspace.records import Header, Kind, content_digest, split_body, split_digests

Bodies: TypeAlias = dict[int, bytes | None]
"""The bodies of some frames, by offset; None for one that was erased."""
Note: TypeAlias = Callable[[int, bytes, bytes], str]
"""Checks a checkpoint: the size of its tree, the root, the signed note. Says what is wrong, or nothing."""

PLACES: Final = 1000
"""Places in a segment where frames do not parse, and reading goes on after the next commit. Each costs the longest head
that a frame may have; a file with more of them was not damaged but made."""


class Finding(NamedTuple):
    """Something that is not as it must be. `uid` and `seq` where one record is concerned."""

    outcome: Outcome
    segment: int
    offset: int
    what: str
    uid: bytes | None = None
    seq: int = 0


@attrs.define
class Counts:
    """How much was looked at so far."""

    bytes: int = 0
    segments: int = 0
    batches: int = 0
    records: int = 0
    cells: int = 0
    pages: int = 0
    checkpoints: int = 0
    erased: int = 0
    orphans: int = 0
    """Forks whose parent is not in this log."""


def _nothing(size: int, root: bytes, note: bytes) -> str:
    return ""


class Verification:
    """One check of a log. `findings()` makes it, once; `counts` tells how far it is, `verdict` what
    recovery makes of the log.

    `record` is called with each record before the
    checkpoints that cover it, and `note` with each checkpoint, so that a tree can be held against them;
    `progress` is called after each batch. Costs some ten microseconds for each record, and two passes.
    """

    def __init__(
        self,
        segments: Sequence[SegmentBytes],
        evidence: Evidence,
        *,
        record: Callable[[Found], None] | None = None,
        note: Note = _nothing,
        progress: Callable[[Counts], None] | None = None,
    ) -> None:
        self.counts = Counts()
        self._forks: set[bytes] = set()
        self.verdict: Verdict = judge(segments, attrs.evolve(evidence, start=None), self._first_look)
        self._segments = sorted(segments, key=lambda segment: segment.id)
        self._record = record
        self._note = note
        self._progress = progress
        self._trail = Trail(NOTHING_KNOWN.heads)
        self._met: set[tuple[bytes, int]] = set()

    def _first_look(self, found: Found) -> None:
        if found.header.kind == Kind.FORKED and found.header.seq > 1:
            self._forks.add(found.header.previous)

    def findings(self) -> Iterator[Finding]:
        """Everything that is wrong: first what recovery says of the log as a whole, then in order."""
        verdict = self.verdict
        told: tuple[int, int] | None = None
        if not verdict.outcome.writable:
            told = (verdict.segment, verdict.offset)
            yield Finding(verdict.outcome, *told, verdict.what)
        elif verdict.cut is not None:
            segment, offset, length = verdict.cut
            what = f"{length} bytes of a write that was never acknowledged; they are cut when the store is opened"
            yield Finding(Outcome.TORN, segment, offset, what)
        for each in self._segments:
            if verdict.outcome.writable and each.id > verdict.end.segment:
                return
            self.counts.segments += 1
            for finding in self._segment(each):
                if (finding.segment, finding.offset) != told:
                    yield finding

    def _segment(self, segment: SegmentBytes) -> Iterator[Finding]:
        number, data = segment
        end = self.verdict.end
        at = SEGMENT_SIZE if first_frame(segment) is not None else 0
        written = written_end(data)
        misfits = 0
        while at < written:
            if self.verdict.outcome.writable and (number, at) == (end.segment, end.offset):
                return
            batch = read_batch(segment, at)
            if isinstance(batch, Batch):
                yield from self._batch(segment, batch)
                at = batch.end
                continue
            outcome = Outcome.NEWER if batch.newer else Outcome.CORRUPT
            yield Finding(outcome, number, batch.offset, batch.what)
            misfits += 1
            if misfits == PLACES:
                what = f"frames do not parse in {PLACES} places; what comes after the last of them was not read"
                yield Finding(Outcome.CORRUPT, number, batch.offset, what)
                return
            # Not before where frames ceased to parse: what lies in those that did is their content.
            following = next(commits_after(segment, batch.offset), None)
            if following is None:
                return
            offset, commit = following
            self._trail.resume(commit.last, commit_hash(data, offset))
            at = offset + COMMIT_SIZE

    def _batch(self, segment: SegmentBytes, batch: Batch) -> Iterator[Finding]:
        number, data = segment
        if batch.commit.previous != self._trail.commit:
            what = "a commit that does not follow the one before it"
            yield Finding(Outcome.CORRUPT, number, batch.start, what)
        records, misfits = self._trail.follow(number, batch)
        for misfit in misfits:
            outcome = Outcome.NEWER if misfit.newer else Outcome.CORRUPT
            yield Finding(outcome, number, misfit.offset, misfit.what)
        wrong = {each.offset for each in wrong_bodies(data, batch)}
        for found, frames in _grouped(batch, records):
            bodies = {each.offset: self._body(data, each) for each in frames if each.offset not in wrong}
            uid, seq = (None, 0) if found is None else (found.header.uid, found.header.seq)
            for offset in sorted(wrong.intersection(each.offset for each in frames)):
                yield Finding(Outcome.DAMAGED, number, offset, "a body that is not what was written", uid, seq)
            if found is None:
                yield from self._checkpoints(number, frames, bodies)
            else:
                self._meet(found)
                for offset, what in self._contents(found, frames, bodies):
                    yield Finding(Outcome.DAMAGED, number, offset, what, uid, seq)
            for each in frames:
                if any(data[each.body_offset + each.body_length : each.offset + each.size]) and _whole(each):
                    what = "the zeros after a frame are not zeros; nothing is lost"
                    yield Finding(Outcome.DAMAGED, number, each.offset, what, uid, seq)
        self.counts.batches += 1
        self.counts.bytes += batch.end - batch.start
        if self._progress is not None:
            self._progress(self.counts)

    def _body(self, data: Bytes, frame: Frame) -> bytes | None:
        if not _whole(frame):
            self.counts.erased += 1
            return None
        return bytes(data[frame.body_offset : frame.body_offset + frame.body_length])

    def _checkpoints(self, number: int, frames: Sequence[Frame], bodies: Bodies) -> Iterator[Finding]:
        for each in frames:
            self.counts.checkpoints += 1
            note = bodies.get(each.offset)
            try:
                what = "" if note is None else self._note(*checkpoint_head(each.head), note)
            except struct.error:
                continue  # told before, as what does not fit
            if what:
                yield Finding(Outcome.TAMPERED, number, each.offset, what)

    def _contents(self, found: Found, frames: Sequence[Frame], bodies: Bodies) -> Iterator[tuple[int, str]]:
        """Hold a record's body against its header, and its cells against its body."""
        cells = [each.offset for each in frames if each.was == Type.CELL]
        self.counts.cells += len(cells)
        self.counts.pages += len(frames) - len(cells) - 1
        offset = found.frame.offset
        body = bodies.get(offset)
        if body is None:
            return
        try:
            named, what = self._named(found.header, body)
        except (TypeError, ValueError) as bad:
            yield offset, f"its body cannot be read: {bad}"
            return
        if what:
            yield offset, what
        if len(named) != len(cells):
            yield offset, f"it names {len(named)} cells and has {len(cells)}"
        for number, (cell, digest) in enumerate(zip(cells, named, strict=False)):
            content = bodies.get(cell)
            if content is not None and content_digest(content) != digest:
                yield cell, f"cell {number} is not the one that its record names"

    def _meet(self, found: Found) -> None:
        self.counts.records += 1
        if found.hash in self._forks:
            self._met.add((found.hash, found.header.seq))
        if self._record is not None:
            self._record(found)

    def _named(self, header: Header, plain: bytes) -> tuple[list[bytes], str]:
        """The digests of the cells that a body names, and what in it does not fit. Raises `ValueError`."""
        body = split_body(plain)
        if body is None or body.digest != header.body_digest:
            raise ValueError("it is not the one that the record's hash covers")
        deeds = read_deeds(body.deeds, tree=bytes)
        numbers, digests = read_used(body.facts)
        named = split_digests(deeds.digests)
        if [named[number] for number in numbers if number < len(named)] != digests:
            return named, "its facts name other cells than its deeds"
        if header.kind == Kind.FORKED and header.seq > 1:
            return named, self._parent(header, deeds.message)
        return named, ""

    def _parent(self, header: Header, message: Any) -> str:
        """Hold a fork against its parent, which comes before it in a log that has it."""
        if (header.previous, header.seq - 1) in self._met:
            return ""
        parent = message.get("parent") if isinstance(message, dict) else None
        if isinstance(parent, bytes) and parent in self._trail.heads and self.verdict.outcome.writable:
            return f"its parent {parent.hex()} has no such record at seq {header.seq - 1}"
        self.counts.orphans += 1
        return ""


def _whole(frame: Frame) -> bool:
    return frame.type != Type.ERASED


def _grouped(batch: Batch, records: Sequence[Found]) -> Iterator[tuple[Found | None, list[Frame]]]:
    """Each record with its frame and those of its parts; last, without a record, the checkpoints."""
    by_offset = {found.frame.offset: found for found in records}
    found: Found | None = None
    frames: list[Frame] = []
    notes: list[Frame] = []
    for each in batch.frames:
        if each.was == Type.CHECKPOINT:
            notes.append(each)
        elif each.was == Type.RECORD:
            if frames:
                yield found, frames
            found, frames = by_offset.get(each.offset), [each]
        else:
            frames.append(each)
    if frames:
        yield found, frames
    if notes:
        yield None, notes
