"""Reading a log forward: frames to batches, and what each batch must be after the ones before it.

`read_batch` takes the next batch apart; `wrong_bodies` checks its contents; `Trail.follow` holds it against
the positions and chains so far; `commits_after` looks for a later commit where frames no longer parse;
`is_commit_at` and `begins_at` tell whether a mark is a place of this log.

The one rule: this file says what does not fit and where, never what that means. `recovery` judges.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from typing import Final, NamedTuple
from zlib import crc32

from dataspace.encryption.cipher import ENCRYPTED
from dataspace.log.frames import (
    AWAY,
    COMMIT_SIZE,
    FORMAT,
    MAX_HEAD,
    NOT_WHOLE,
    PREFIX,
    RESTS,
    CommitHead,
    Frame,
    SegmentHead,
    Type,
    address,
    checkpoint_head,
    commit_head,
    commit_pattern,
    headers_crc,
    parse,
    part_head,
    record_head,
    rest_in,
)
from dataspace.log.marks import ChainHead, Mark
from dataspace.log.verdicts import Bytes, Found, SegmentBytes
from dataspace.records import MOST, ZERO_HASH, Header, Kind

_HEAD: Final = 512
"""Bytes that hold most frames' heads."""
_CHUNK: Final = 1 << 20
_FIRST_CHUNK: Final = 1 << 12
_ZEROS: Final = bytes(_CHUNK)
_KINDS: Final = frozenset(Kind)
# Plain integers and sets: an enum's members are slow to look up, and these are looked at for each frame.
_CONTENTS: Final = frozenset(map(int, (Type.RECORD, Type.CELL, Type.PAGE, Type.CHECKPOINT)))
_BODIES: Final = frozenset(map(int, (Type.RECORD, Type.CELL, Type.PAGE)))
"""Those whose bodies may be sealed, and erased."""
_RECORD: Final = int(Type.RECORD)
_CHECKPOINT: Final = int(Type.CHECKPOINT)
_LAST: Final = (1 << 32) - 1


class Batch(NamedTuple):
    """The frames of one batch, whose headers its commit frame covers. `end` is just after the commit."""

    start: int
    end: int
    frames: list[Frame]
    commit: CommitHead
    hash: bytes
    """The hash of the commit frame, which the next one names."""


class Missing(NamedTuple):
    """Records that a chain does not have where it goes on: whose they are, and the seqs, from `first` to `last`.

    A chain of which nothing was met may be a fork, which begins at any seq: then only the last one is known, and
    `least` is the seq from which on there may be others.
    """

    uid: bytes
    first: int
    last: int
    least: int

    @property
    def many(self) -> int:
        """How many there are at least."""
        return self.last - self.first + 1

    def among(self, many: int) -> Missing:
        """The same, when so many are missing in all, of whatever chains."""
        return self._replace(least=min(self.first, max(self.least, self.last + 1 - many)))

    def since(self, begins: int) -> int:
        """The first one's seq, for who is told where the chain begins (0: nobody knows)."""
        return max(self.least, min(begins, self.first)) if begins else self.first


def missing_before(uid: bytes, seq: int, known: int) -> Missing | None:
    """What a chain lacks before its record at `seq`, when the newest one that was met is at `known` (0: none was)."""
    if seq <= known + 1:
        return None
    return Missing(uid, known + 1 if known else seq - 1, seq - 1, known + 1)


class Misfit(NamedTuple):
    """Where a log stops making sense, and how. `newer` when a later version may have written it; `missing` when it is
    only that records are not there."""

    offset: int
    what: str
    newer: bool = False
    missing: Missing | None = None


def read_batch(segment: SegmentBytes, start: int) -> Batch | Misfit:
    """The batch that begins at `start`, by its headers alone; or the first thing there that is not sound."""
    number, data = segment
    at = start
    frames: list[Frame] = []
    while True:
        found = frame_at(data, at, number)
        if found is None:
            return Misfit(at, "no frame begins here")
        kind = found.type
        if found.flags and not (found.flags == ENCRYPTED and found.was in _BODIES):
            what = f"a frame with flags {found.flags:#x}; this version reads format {FORMAT}, and no such flags in it"
            return Misfit(at, what, newer=True)
        at += found.size
        if kind in _CONTENTS:
            frames.append(found)
        elif kind == Type.COMMIT:
            return _close(start, at, frames, found, data)
        elif kind in NOT_WHOLE and found.was in _BODIES:
            frames.append(found)
        elif kind == Type.SEGMENT or kind in AWAY:
            return Misfit(found.offset, "a frame that does not belong here")
        else:
            return Misfit(found.offset, f"a frame of unknown type {kind}", newer=True)


def frame_at(data: Bytes, at: int, segment: int) -> Frame | None:
    """The frame that begins at `at`, by its header alone; None when none does."""
    window = data[at : at + _HEAD]
    found = parse(window, 0, segment, at)
    if found is None and len(window) == _HEAD:
        length = int.from_bytes(window[8:12], "little")
        if _HEAD - PREFIX < length <= MAX_HEAD:
            return parse(data[at : at + PREFIX + length], 0, segment, at)
    return found


def _close(start: int, end: int, frames: list[Frame], found: Frame, data: Bytes) -> Batch | Misfit:
    if found.size != COMMIT_SIZE:
        return Misfit(found.offset, "a commit frame of another length")
    try:
        commit = commit_head(found.head)
    except struct.error:
        return Misfit(found.offset, "a commit frame of another length")
    crcs = [each.header_crc for each in frames]
    if commit.frames != len(crcs) or commit.headers_crc != headers_crc(crcs):
        return Misfit(found.offset, "a commit that does not cover the frames before it")
    return Batch(start, end, frames, commit, commit_hash(data, found.offset))


def commit_hash(data: Bytes, offset: int) -> bytes:
    """The hash of the commit frame at `offset`."""
    return sha256(data[offset : offset + COMMIT_SIZE]).digest()


def is_commit_at(mark: Mark, frame: bytes | memoryview) -> bool:
    """Whether `frame`, the last `COMMIT_SIZE` bytes before `mark`, is the commit that it names."""
    found = parse(frame, 0, mark.segment, mark.offset - COMMIT_SIZE)
    return (
        found is not None
        and found.type == Type.COMMIT
        and found.size == COMMIT_SIZE
        and not found.body_length
        and commit_head(found.head).last == mark.position
        and commit_hash(frame, 0) == mark.commit
    )


def begins_at(mark: Mark, head: SegmentHead) -> bool:
    """Whether a segment with this head begins where `mark`, which is just after its first frame, says."""
    return head.previous_commit == mark.commit and head.first_position == mark.position + 1


def wrong_bodies(data: Bytes, batch: Batch) -> list[Frame]:
    """The frames of a batch whose body, or what is left of it, is not what was written."""
    wrong = []
    for each in batch.frames:
        body = each.body_offset
        if each.type in NOT_WHOLE:
            if each.type in RESTS and rest_in(data[body : body + each.body_length]) is None:
                wrong.append(each)
        elif crc32(data[body : body + each.body_length]) != each.body_crc:
            wrong.append(each)
    return wrong


def commits_after(segment: SegmentBytes, start: int) -> Iterator[tuple[int, CommitHead]]:
    """The offset and head of each valid commit frame at or after `start`, wherever it lies."""
    number, data = segment
    pattern = commit_pattern(number)
    base, size = start, _FIRST_CHUNK  # most often it is near
    while base < len(data):
        chunk = bytes(data[base : base + size])
        step = size - len(pattern)
        hit = chunk.find(pattern)
        while 0 <= hit < step:
            at = base + hit - 4
            if at >= start and at % 8 == 0 and at + COMMIT_SIZE <= len(data):
                found = parse(data[at : at + COMMIT_SIZE], 0, number, at)
                if found is not None:
                    yield at, commit_head(found.head)
            hit = chunk.find(pattern, hit + 1)
        base += step
        size = min(2 * size, _CHUNK)


def written_end(data: Bytes, start: int = 0) -> int:
    """The offset after the last byte from `start` on that is not zero; `start` when there is none."""
    end, size = len(data), _FIRST_CHUNK
    while end > start:
        begin = max(start, end - size)
        size = min(2 * size, _CHUNK)
        chunk = bytes(data[begin:end])
        if chunk != _ZEROS[: end - begin]:
            return begin + len(chunk.rstrip(b"\0"))
        end = begin
    return start


class Trail:
    """What one walk along a log knows: the position and hashes so far, and the head of each chain.

    A chain that the walk has not met is looked up with `before`, once.
    """

    def __init__(
        self,
        before: Callable[[bytes], ChainHead | None],
        position: int = 0,
        hash: bytes = ZERO_HASH,
        commit: bytes = ZERO_HASH,
        epoch: int = 0,
    ) -> None:
        self.position = position
        self.hash = hash
        self.commit = commit
        self.epoch = epoch
        self.heads: dict[bytes, ChainHead] = {}
        self._before = before

    def follow(self, segment: int, batch: Batch) -> tuple[list[Found], list[Misfit]]:
        """Go on along a batch: its records, and what in it does not fit.

        After a misfit the walk goes on from what is there, so that one fault is told once.
        """
        records: list[Found] = []
        misfits: list[Misfit] = []
        starts: Sequence[int] = ()
        number = 0
        begin = batch.start
        if batch.commit.first != self.position + 1:
            what = f"position {batch.commit.first} follows position {self.position}"
            misfits.append(Misfit(batch.start, what))
            self.position = batch.commit.first - 1
        for each in batch.frames:
            try:
                if each.was == _RECORD:
                    header, following = record_head(each.head)
                    if number != len(starts):
                        misfits.append(Misfit(each.offset, "a record follows an incomplete one"))
                    begin, number, starts = each.offset, 0, following
                    found = Found(header, header.hash, address(segment, begin), each)
                    missing = self._missing(header)
                    what = self._admit(header, found.hash)
                    if what:
                        misfits.append(Misfit(begin, what, header.kind not in _KINDS, missing))
                    records.append(found)
                elif each.was == _CHECKPOINT:
                    if checkpoint_head(each.head)[0] > self.position:
                        misfits.append(Misfit(each.offset, "a checkpoint is ahead of the log"))
                else:
                    expected = begin + starts[number] if number < len(starts) else -1
                    if part_head(each.head) != (self.position, number) or each.offset != expected:
                        misfits.append(Misfit(each.offset, "a cell or page that is not its record's"))
                    number += 1
            except struct.error:
                misfits.append(Misfit(each.offset, "a frame with a head of another length"))
        if number != len(starts):
            misfits.append(Misfit(batch.end - COMMIT_SIZE, "a commit follows an incomplete record"))
        if batch.commit.last != self.position:
            what = f"a commit up to position {batch.commit.last} follows position {self.position}"
            misfits.append(Misfit(batch.end - COMMIT_SIZE, what))
        self.commit = batch.hash
        return records, misfits

    def resume(self, position: int, commit: bytes) -> None:
        """Go on after a commit whose batch could not be read."""
        self.position = position
        self.commit = commit

    def _missing(self, header: Header) -> Missing | None:
        """What a chain lacks before a record that comes in its place in the log."""
        if header.position != self.position + 1 or header.kind == Kind.FORKED:
            return None
        known = self.heads.get(header.uid) or self._before(header.uid)
        return missing_before(header.uid, header.seq, 0 if known is None else known[0])

    def _admit(self, header: Header, hash: bytes) -> str:
        """Put a record on its chain; what does not fit, or nothing."""
        uid = header.uid
        seq = header.seq
        what = ""
        if header.position != self.position + 1:
            what = f"position {header.position} follows position {self.position}"
        elif header.epoch < self.epoch:
            what = f"epoch {header.epoch} follows epoch {self.epoch}: a stale owner wrote"
        elif header.epoch >= _LAST or seq > MOST:
            what = f"epoch {header.epoch} and seq {seq}: nothing could come after them"
        elif header.kind not in _KINDS:
            what = f"a record of unknown kind {header.kind}"
        else:
            known = self.heads.get(uid) or self._before(uid)
            if known is None:
                if not (seq == 1 and header.previous == ZERO_HASH) and not (header.kind == Kind.FORKED and seq > 1):
                    what = f"session {uid.hex()} begins with seq {seq}"
            elif seq != known[0] + 1:
                what = f"session {uid.hex()} goes on from seq {known[0]} with seq {seq}"
            elif header.previous != known[1]:
                what = f"session {uid.hex()}: the previous hash of seq {seq} is not that of seq {known[0]}"
        self.position = header.position
        self.epoch = header.epoch
        self.hash = hash
        self.heads[uid] = (seq, hash)
        return what
