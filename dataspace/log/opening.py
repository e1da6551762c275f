"""Opening a log to write to it: made if there is none, judged, and put right before anyone sees it.

1. The bytes are judged (`recovery`). What may not be written to is left exactly as it is.
2. A torn tail is saved in `cut/`, durably, and only then cut off.
3. The last batch is written again and synced: what is accepted is durable.
4. The store's chain says what was cut (`owed` tells), once, however often this is interrupted.

The one rule: each step may be the last one before a crash, and the next opening goes on from there.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

import attrs

from dataspace.log.files import Files, ReadFailed
from dataspace.log.frames import (
    COMMIT_SIZE,
    FORMAT,
    SEGMENT_SIZE,
    SegmentHead,
    Type,
    commit_frame,
    commit_head,
    record_frames,
    segment_frame,
)
from dataspace.log.keyring import LOG_ID, Keyring
from dataspace.log.layout import Layout
from dataspace.log.marks import BEGINNING, ChainHead, Mark
from dataspace.log.notices import created
from dataspace.log.ownership import owner_of
from dataspace.log.packed import SegmentFile
from dataspace.log.publishing import read as read_head
from dataspace.log.reading import SegmentReader
from dataspace.log.recovery import judge
from dataspace.log.store import Stored
from dataspace.log.tail import Tail
from dataspace.log.verdicts import (
    NOTHING_KNOWN,
    Bytes,
    Evidence,
    Found,
    Outcome,
    SegmentBytes,
    Span,
    Verdict,
    Visit,
)
from dataspace.log.windows import Window
from dataspace.records import STORE_UID, Salts

_LEFT_OVER = 4096
"""A log that was being made, and never was one, has fewer bytes than this."""
_PENDING = re.compile(r"(\d{1,10})-(\d{1,12})\.pending", re.ASCII)


class Newest:
    """Tells `visit` of the records that recovery reads, and keeps the `address` of the last (0: there was none)."""

    def __init__(self, visit: Visit | None) -> None:
        self._visit = visit
        self.address = 0

    def __call__(self, found: Found) -> None:
        self.address = found.address
        if self._visit is not None:
            self._visit(found)


class Owed(NamedTuple):
    """What was cut off and is not in the store's chain yet: where the log ended then, and the saved bytes."""

    segment: int
    offset: int
    saved: Path

    @property
    def length(self) -> int:
        """How many bytes were cut off."""
        return self.saved.stat().st_size

    @property
    def name(self) -> str:
        """The name that the saved bytes have for good."""
        return self.saved.with_suffix(".bin").name


@contextmanager
def looked_at(layout: Layout, end: Mark | None = None, *, alive: bool = False) -> Iterator[list[SegmentBytes]]:
    """All segments of a log, or those up to `end`, read while they are judged.

    When an owner may be `alive` the last one is read at once, since that owner may cut zeros off its end; what comes
    before an `end` nobody cuts.
    """
    try:
        there = layout.segments()
    except OSError as error:
        raise ReadFailed.of(str(layout.log), error) from error
    reader = SegmentReader(layout, lambda: BEGINNING)
    try:
        numbers = [number for number in there if end is None or number <= end.segment]
        segments = []
        for number in numbers:
            length = end.offset if end is not None and number == end.segment else reader.written(number)
            data: Bytes = Window(partial(reader.pread, number), length, str(layout.segment(number)))
            if alive and end is None and number == numbers[-1]:
                data = reader.pread(number, 0, length)
            segments.append(SegmentBytes(number, data))
        yield segments
    finally:
        reader.close()


def judged(layout: Layout, evidence: Evidence, visit: Visit | None = None) -> Verdict:
    """Recovery's verdict on a log that we own."""
    evidence = known_here(layout, evidence)
    with looked_at(layout) as segments:
        verdict = judge(segments, evidence, visit)
    left = 0 if verdict.cut is None else verdict.cut.length
    made = evidence.log_id is not None or left > _LEFT_OVER
    if verdict.outcome.writable and verdict.end.position == 0 and made:
        what = "there is no sound batch in it, and once there was"
        return attrs.evolve(verdict, outcome=Outcome.TRUNCATED, what=what, segment=1)
    return verdict


def durable_part(layout: Layout, evidence: Evidence, visit: Visit | None) -> Verdict:
    """The verdict on what is surely durable of a log that somebody else may be writing to.

    The last batch may not be, unless it is empty or begins a segment.
    """
    evidence = known_here(layout, evidence)
    with looked_at(layout, alive=True) as segments:
        verdict = judge(segments, evidence)
        last = verdict.last
        if verdict.outcome.writable and last is not None and last.offset > 0 and last.length > COMMIT_SIZE:
            evidence = attrs.evolve(evidence, seen=(), start=None)
            segments = [
                SegmentBytes(number, data[0 : last.offset] if number == last.segment else data)
                for number, data in segments
                if number <= last.segment
            ]
        return judge(segments, evidence, visit)


@contextmanager
def still(
    layout: Layout, mark: Mark | None = None, known: Evidence = NOTHING_KNOWN
) -> Iterator[tuple[list[SegmentBytes], Evidence]]:
    """All bytes of a log that nobody writes to, and what is known of them.

    That is what comes before its owner's `mark`; for anyone else, what comes before the one that its owner has
    published, or, of a log that nobody owns, all of it.
    """
    if mark is None:
        known = known_here(layout, known)
        published = None if owner_of(layout.lock) is None else read_head(layout.head)
        mark = None if published is None else published.mark
    with looked_at(layout, mark, alive=True) as segments:
        yield segments, known


def known_here(layout: Layout, evidence: Evidence) -> Evidence:
    """The evidence, and with it what the folder itself knows: the log id, the published head, whether the newest
    segment is sealed."""
    log_id = layout.log_id()
    if log_id is not None:
        evidence = attrs.evolve(evidence, log_id=log_id)
    evidence = attrs.evolve(evidence, sealed=_newest_packed(layout))
    published = read_head(layout.head, tries=1)
    if published is None or log_id not in (None, published.log_id):
        return evidence
    seen = (*evidence.seen, published.mark.head)
    return attrs.evolve(evidence, seen=seen, epoch=max(evidence.epoch, published.epoch))


def _newest_packed(layout: Layout) -> int:
    """The newest segment, if it lies packed in its file: then another one has followed it. Otherwise 0."""
    newest = max(layout.segments(), default=0)
    if not newest:
        return 0
    path = layout.segment(newest)
    try:
        file = SegmentFile(path, newest)
    except OSError as error:
        raise ReadFailed.of(str(path), error) from error
    file.close()
    return 0 if file.packed is None else newest


def make(
    layout: Layout, files: Files, verdict: Verdict, epoch: int, now: int, salts: Salts, keys: Keyring | None = None
) -> Verdict:
    """Make a log whose first record says that it was created; in place of what an interrupted one left.

    With `keys`, which are durable, it is an encrypted one.
    """
    layout.make_folders(files)
    for number in layout.segments():
        files.remove(layout.segment(number))
    log_id = salts(LOG_ID) if keys is None else keys.log_id
    head = segment_frame(SegmentHead(FORMAT, 1, log_id, 1, 0, BEGINNING.commit))
    record = created(log_id, now, salts)
    record.position = 1
    seal = None if keys is None else keys.seal(record, epoch)
    frames, crcs, size = record_frames(record, epoch, 1, len(head), seal)
    commit, hash = commit_frame(1, 1, crcs, BEGINNING.commit, 1, len(head) + size)
    data = b"".join((head, *frames, commit))
    Tail.begin(files, layout.segment(1), data).close()
    layout.write_format(files, log_id)
    end = Mark(1, len(data), 1, record.hash, hash)
    return attrs.evolve(verdict, end=end, log_id=log_id, cut=None, last=None, heads={record.uid: (1, record.hash)})


def put_right(layout: Layout, files: Files, verdict: Verdict) -> None:
    """Do what a verdict asks for, so that what it accepts is durable and nothing else is there."""
    end = verdict.end
    if verdict.cut is not None:
        _save(layout, files, verdict.cut, end)
    removed = [number for number in layout.segments() if number > end.segment]
    for number in reversed(removed):
        files.remove(layout.segment(number))
    if removed:
        files.sync_folder(layout.log)
    fd = files.open(layout.segment(end.segment))
    try:
        if verdict.cut is not None and verdict.cut.segment == end.segment:
            files.truncate(fd, end.offset)
        if verdict.last is not None:
            files.write(fd, verdict.last.offset, os.pread(fd, verdict.last.length, verdict.last.offset))
        if verdict.last is not None or verdict.cut is not None:
            files.sync(fd)
    finally:
        files.close(fd)
    if layout.log_id() is None and verdict.log_id is not None:
        layout.write_format(files, verdict.log_id)


def _save(layout: Layout, files: Files, cut: Span, end: Mark) -> None:
    """Keep what is about to be cut. When something is owed, an earlier recovery was interrupted, and all that
    can be torn is its own record of that."""
    if owed(layout):
        return
    files.make_folder(layout.cut)
    path = layout.cut / f"{end.segment:08}-{end.offset}.pending"
    with open(layout.segment(cut.segment), "rb") as file:
        files.replace(path, os.pread(file.fileno(), cut.length, cut.offset))


def owed(layout: Layout) -> list[Owed]:
    """What was cut and still has to be said in the store's chain, in the order of the log."""
    if not layout.cut.is_dir():
        return []
    found = ((path, _PENDING.fullmatch(path.name)) for path in layout.cut.iterdir() if path.is_file())
    return sorted(Owed(int(match[1]), int(match[2]), path) for path, match in found if match)


def newest_own(stored: Iterable[Stored]) -> ChainHead | None:
    """The store's newest record among these: for evidence that has a start and no heads."""
    headers = (each.header for each in stored)
    own = [(header.seq, header.hash) for header in headers if header.uid == STORE_UID]
    return own[-1] if own else None


def said(layout: Layout, files: Files, debt: Owed) -> None:
    """The store's chain says it now: the saved bytes get their name for good."""
    files.rename(debt.saved, debt.saved.with_name(debt.name))
    files.sync_folder(layout.cut)


def is_settled(reader: SegmentReader, end: Mark) -> bool:
    """Whether the last batch before `end` is proved durable: by an empty commit, or by a new segment."""
    if end.offset == SEGMENT_SIZE:
        return True
    found = reader.frame(end.segment, end.offset - COMMIT_SIZE)
    if found is None or found.type != Type.COMMIT:
        return False
    commit = commit_head(found.head)
    return commit.last < commit.first
