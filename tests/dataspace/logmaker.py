"""Small logs made by hand, for the tests of frames and recovery: no store, no files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import sha256

from dataspace.log.frames import (
    Frame,
    SegmentHead,
    Type,
    commit_frame,
    frame,
    headers_crc,
    parse,
    place,
    record_frames,
    segment_frame,
)
from dataspace.log.marks import Head, Mark
from dataspace.log.recovery import judge
from dataspace.log.verdicts import Evidence, SegmentBytes, Verdict
from dataspace.records import SALT, STORE_UID, ZERO_HASH, Kind, Record, content_digest
from dataspace.values.encoding import encode

LOG_ID = b"the-log's-own-id"
A = b"session-a-------"
B = b"session-b-------"
NOW = 1_700_000_000_000_000


class LogMaker:
    """Builds a log batch by batch and remembers where everything lies.

    `ends[n]` is where batch n ends in its segment; `records` all records in order.
    """

    def __init__(self, log_id: bytes = LOG_ID) -> None:
        self.log_id = log_id
        self.done: list[bytes] = []
        self.data = b""
        self.position = 0
        self.commit = ZERO_HASH
        self.epoch = 1
        self.heads: dict[bytes, tuple[int, bytes]] = {}
        self.records: list[Record] = []
        self.ends: list[int] = []
        self._salt = 0
        self.roll()

    @property
    def segment(self) -> int:
        return len(self.done) + 1

    def roll(self) -> None:
        """Begin a segment; the one before is sealed."""
        first = not self.data
        if not first:
            self.done.append(self.data)
        head = SegmentHead(1, self.segment, self.log_id, self.position + 1, 0 if first else len(self.data), self.commit)
        self.data = segment_frame(head)

    def salt(self) -> bytes:
        self._salt += 1
        return sha256(self._salt.to_bytes(8)).digest()[:SALT]

    def record(
        self,
        uid: bytes,
        said: str = "hello",
        cells: Sequence[str] = (),
        pages: Sequence[bytes] = (),
        kind: int | None = None,
        after: tuple[int, bytes] | None = None,
        message: object = None,
    ) -> Record:
        """The next record of a session, not yet in the log."""
        seq, previous = after or self.heads.get(uid, (0, ZERO_HASH))
        encoded = [self.salt() + b"\x00" + cell.encode() for cell in cells]
        digests = b"".join(map(content_digest, encoded))
        deeds = encode([message if message is not None else said, [], digests, 0])
        if kind is None:
            kind = Kind.SPAWN if seq == 0 else Kind.CRANK
        salts = self.salt() + self.salt()
        record = Record(uid, seq + 1, kind, NOW, previous, salts, deeds, b"", encoded, pages)
        self.heads[uid] = (record.seq, record.hash)
        return record

    def batch(self, *records: Record, extra: Sequence[tuple[int, bytes, bytes]] = (), flags: int = 0) -> bytes:
        """Append one batch, and give its bytes. `extra` frames (type, head, body) come after the records."""
        start = len(self.data)
        first = self.position + 1
        out: list[bytes] = []
        crcs: list[int] = []
        at = start
        for record in records:
            self.position += 1
            record.position = self.position
            record.address = self.segment << 40 | at
            chunks, found, size = record_frames(record, self.epoch, self.segment, at)
            out += chunks
            crcs += found
            at += size
            self.records.append(record)
        for kind, head, body in extra:
            chunk, crc = frame(kind, head, body, self.segment, at, flags)
            out.append(chunk)
            crcs.append(crc)
            at += len(chunk)
        chunk, self.commit = commit_frame(first, self.position, crcs, self.commit, self.segment, at)
        data = b"".join([*out, chunk])
        self.data += data
        self.ends.append(len(self.data))
        return data

    def forge(
        self,
        frames: Sequence[tuple[int, bytes, bytes]],
        first: int,
        last: int,
        previous: bytes | None = None,
        count: int | None = None,
        crcs: Sequence[int] | None = None,
    ) -> None:
        """Append a batch whose frames are sound one by one, and say what you like."""
        at = len(self.data)
        out: list[bytes] = []
        found: list[int] = []
        for kind, head, body in frames:
            chunk, crc = frame(kind, head, body, self.segment, at)
            out.append(chunk)
            found.append(crc)
            at += len(chunk)
        covered = headers_crc(found if crcs is None else crcs)
        head = (
            first.to_bytes(8, "little")
            + last.to_bytes(8, "little")
            + covered.to_bytes(4, "little")
            + (len(found) if count is None else count).to_bytes(4, "little")
            + (self.commit if previous is None else previous)
        )
        chunk, _ = frame(Type.COMMIT, head, b"", self.segment, at)
        self.commit = sha256(chunk).digest()
        self.data += b"".join([*out, chunk])
        self.position = last

    def whole(self, record: Record) -> list[tuple[int, bytes, bytes]]:
        """The frames (type, head, body) of a record that would come next, to forge with."""
        record.position = record.position or self.position + 1
        chunks, _, _ = record_frames(record, self.epoch, self.segment, len(self.data))
        data = b"".join(chunks)
        frames = []
        at = 0
        while (found := parse(data, at, self.segment, len(self.data))) is not None:
            start = found.body_offset - len(self.data)
            frames.append((found.type, found.head, data[start : start + found.body_length]))
            at += found.size
        return frames

    def segments(self) -> list[SegmentBytes]:
        return [SegmentBytes(n, data) for n, data in enumerate([*self.done, self.data], 1)]


def small_log() -> LogMaker:
    """The store's first record, two sessions, three batches that tell of them; the window is open."""
    log = LogMaker()
    log.batch(log.record(STORE_UID, kind=Kind.CREATED))
    log.batch(log.record(A, cells=["x" * 20]), log.record(B))
    log.batch(log.record(A, "again", cells=["one", "two"], pages=[b"page" * 5]))
    log.batch(log.record(B, "last", cells=["the last cell"]), log.record(A, "last of all"))
    return log


SMALL = small_log()


def judged(data: bytes, evidence: Evidence | None = None) -> Verdict:
    """The verdict on a log of one segment."""
    return judge([SegmentBytes(1, data)], evidence or Evidence())


def closed_log() -> LogMaker:
    """A small log whose window is closed: all of it is known to be durable."""
    log = small_log()
    log.batch()
    return log


def two_segments() -> LogMaker:
    log = small_log()
    log.roll()
    log.batch(log.record(A, "in the second", cells=["more"]))
    log.batch()
    return log


def frames_of(data: bytes, segment: int = 1) -> Iterator[Frame]:
    at = 0
    while at < len(data):
        found = parse(data, at, segment)
        assert found is not None
        yield found
        at += found.size


def with_byte(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1 :]


def body_of(log: LogMaker, record: Record, part: int | None = None) -> int:
    """The offset of a byte in the body of a record of the first segment, or of one of its parts."""
    found = list(frames_of(log.segments()[0].data))
    first = next(n for n, each in enumerate(found) if each.offset == place(record.address)[1])
    return found[first if part is None else first + 1 + part].body_offset


def newest(log: LogMaker) -> Head:
    return Head(log.position, log.records[-1].hash)


def mark_at(log: LogMaker, nth: int) -> tuple[Mark, dict[bytes, tuple[int, bytes]]]:
    """The mark after batch `nth` of a one-segment log, with the heads at it."""
    verdict = judged(log.data[: log.ends[nth]])
    return verdict.end, dict(verdict.heads)
