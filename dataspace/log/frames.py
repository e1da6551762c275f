"""Frames: how records, cells, pages and commits lie in a segment file. `docs/log-format.md` is its page.

    0   u32  CRC-32 of the frame's offset (u64), of bytes 4 to 24 and of the head
    4   u8   type
    5   u8   flags: bit 1 for a sealed body (bit 0 is kept for compressed ones), else zero
    6   u16  of an erased or archived frame the type that it had, else zero (what is left of one was a record)
    8   u32  length of the head
    12  u32  length of the body as stored
    16  u32  CRC-32 of the body as stored
    20  u32  segment id
    24       head, body, zeros up to a multiple of 8

Integers are little endian. The header's CRC covers the frame's own offset and the segment's id, so bytes
quoted inside a body never pass for a frame; type 0 is no type, so zeros never parse. An erased frame, an archived one,
or what is left of a record (a rest), lies where the whole one lay, as long as it was, with the same head; so the CRC
that the whole one had can be told from it, and the commit after it still fits. Where the body of a rest was, its own
lies: length and CRC-32 of it (u32 each), and then that.

The one rule: this file knows bytes and offsets. It opens nothing and decides nothing.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from enum import IntEnum
from functools import partial
from hashlib import sha256
from typing import Any, Final, NamedTuple, TypeAlias
from zlib import crc32

from dataspace.encryption.cipher import ENCRYPTED, OVERHEAD
from dataspace.records import Header, Record

FORMAT: Final = 1
"""The version that this code writes, and the newest that it reads."""
PACKED: Final = 2
"""The format that the first frame of a packed segment names. The segment in it is of format 1."""
RESTED: Final = 3
"""That of one with rests in it: a version that does not know these refuses a log with such a file."""
MAGIC: Final = b"KEEVELOG"
PREFIX: Final = 24
"""Bytes before a frame's head."""
MAX_HEAD: Final = 1 << 24


class Type(IntEnum):
    """What a frame is. Numbers are for ever; 0 is none."""

    SEGMENT = 1
    RECORD = 2
    CELL = 3
    PAGE = 4
    COMMIT = 5
    CHECKPOINT = 6
    ERASED = 7
    ARCHIVED = 8
    REST = 9
    """What is left of a record whose body is in an archive: all but its message and operations."""
    FACTS = 10
    """The same of one whose body is nowhere any more: as a salvage leaves it that does not find the archive."""


AWAY: Final = frozenset({int(Type.ERASED), int(Type.ARCHIVED)})
"""The types of what stands for a frame whose body is not there."""
RESTS: Final = frozenset({int(Type.REST), int(Type.FACTS)})
"""The types of what is left of records."""
ELSEWHERE: Final = frozenset({int(Type.ARCHIVED), int(Type.REST)})
"""The types of what stands for a frame whose body is in an archive."""
NOT_WHOLE: Final = AWAY | RESTS
"""The types of what stands for a frame of which the body, or a part of it, is not there."""
_RECORD_TYPE = int(Type.RECORD)
_PREFIX = struct.Struct("<IBBHIIII")
_CHECKED = struct.Struct("<BBHIIII")
_OFFSET = struct.Struct("<Q")
_RECORD = struct.Struct("<QIB3x16sQq32s32sI")
_PART = struct.Struct("<QI")
_COMMIT = struct.Struct("<QQII32s")
_SEGMENT = struct.Struct("<8sHxxI16sQQ32s")
_CHECKPOINT = struct.Struct("<Q32s")
_LEFT = struct.Struct("<II")
COMMIT_SIZE: Final = PREFIX + _COMMIT.size
"""Bytes of a commit frame. A multiple of 8, so that its hash covers no padding."""
SEGMENT_SIZE: Final = PREFIX + _SEGMENT.size
"""Bytes of a segment's first frame."""
REST_SIZE: Final = _LEFT.size
"""Bytes of a rest's body beside what is left."""
_PADS = tuple(bytes(n) for n in range(8))


Seal: TypeAlias = Callable[[int, bytes, bytes], bytes]
"""Seals the body of a frame of this type and head: `OVERHEAD` bytes more."""


class Frame(NamedTuple):
    """A frame that parsed: where it lies, and what its header says. `size` is with its padding.

    For an erased or archived frame, or a rest, `was` is the type and `header_crc` the header's CRC that it had when it
    was whole, and the body is not there. For any other, `was` is its type.
    """

    offset: int
    type: int
    was: int
    flags: int
    head: bytes
    body_offset: int
    body_length: int
    body_crc: int
    header_crc: int
    size: int


# Both are made for each record that is read: without the function that NamedTuple writes for it.
_frame: Final[Callable[[tuple[Any, ...]], Frame]] = partial(tuple.__new__, Frame)
_header: Final[Callable[[tuple[Any, ...]], Header]] = partial(tuple.__new__, Header)


class SegmentHead(NamedTuple):
    """The head of a segment's first frame."""

    format: int
    id: int
    log_id: bytes
    first_position: int
    """The position of the first record that is written here."""
    previous_length: int
    """Bytes of the segment before, which end with its last commit; 0 for the first segment."""
    previous_commit: bytes
    """The hash of the last commit of the segment before; zeros for the first segment."""


class CommitHead(NamedTuple):
    """The head of a commit frame, which ends a batch. An empty batch has `last == first - 1`."""

    first: int
    last: int
    headers_crc: int
    """CRC-32 over the header CRCs (u32 each) of the batch's frames, in order."""
    frames: int
    previous: bytes


def frame(kind: int, head: bytes, body: bytes, segment: int, offset: int, flags: int = 0) -> tuple[bytes, int]:
    """One frame, padded, for `offset` of segment `segment`; and its header's CRC."""
    checked = _CHECKED.pack(kind, flags, 0, len(head), len(body), crc32(body), segment)
    crc = crc32(head, crc32(checked, crc32(_OFFSET.pack(offset))))
    pad = -(PREFIX + len(head) + len(body)) % 8
    return b"".join((crc.to_bytes(4, "little"), checked, head, body, _PADS[pad])), crc


def parse(data: bytes | memoryview, at: int, segment: int, base: int = 0) -> Frame | None:
    """The frame at `data[at]`, which lies at offset `base + at` of its segment; None when none begins there.

    Looks at the header only: the body may be cut off or wrong (`body_fits` tells).
    """
    if at + PREFIX > len(data):
        return None
    crc, kind, flags, was, head_length, body_length, body_crc, owner = _PREFIX.unpack_from(data, at)
    if kind == 0 or owner != segment or head_length > MAX_HEAD:
        return None
    body = at + PREFIX + head_length
    if body > len(data):
        return None
    offset = base + at
    seed = crc32(_OFFSET.pack(offset))
    if crc32(data[at + 4 : body], seed) != crc:
        return None
    head = bytes(data[at + PREFIX : body])
    if kind in AWAY:
        checked = _CHECKED.pack(was, flags, 0, head_length, body_length, body_crc, owner)
        crc = crc32(head, crc32(checked, seed))
    elif was:
        return None
    elif kind in RESTS:
        was = _RECORD_TYPE
        checked = _CHECKED.pack(was, flags, 0, head_length, body_length, body_crc, owner)
        crc = crc32(head, crc32(checked, seed))
    else:
        was = kind
    size = (PREFIX + head_length + body_length + 7) & -8
    return _frame((offset, kind, was, flags, head, base + body, body_length, body_crc, crc, size))


def body_fits(found: Frame, body: bytes | memoryview) -> bool:
    """Whether `body` is the one that the frame's header describes."""
    return len(body) == found.body_length and crc32(body) == found.body_crc


def erased(found: Frame, segment: int, instead: Type = Type.ERASED) -> bytes:
    """The bytes that stand for a frame once its body is not there: what goes to its offset, before zeros.

    They are as long as the frame's own prefix and head; the rest of its `size` is not looked at any more.
    """
    checked = _CHECKED.pack(
        instead, found.flags, found.was, len(found.head), found.body_length, found.body_crc, segment
    )
    crc = crc32(found.head, crc32(checked, crc32(_OFFSET.pack(found.offset))))
    return b"".join((crc.to_bytes(4, "little"), checked, found.head))


def rest_frame(found: Frame, segment: int, rest: bytes, instead: Type = Type.REST) -> bytes:
    """The bytes that stand for a record's frame of which this is left; what is left is at least `REST_SIZE` shorter
    than the body. Like those of an erased one, they go to its offset, before zeros."""
    checked = _CHECKED.pack(instead, found.flags, 0, len(found.head), found.body_length, found.body_crc, segment)
    crc = crc32(found.head, crc32(checked, crc32(_OFFSET.pack(found.offset))))
    return b"".join((crc.to_bytes(4, "little"), checked, found.head, _LEFT.pack(len(rest), crc32(rest)), rest))


def rest_in(body: bytes | memoryview) -> bytes | None:
    """What is left, of the bytes in the place of a rest's body; None when that is not what was written.

    Something is always left: zeros, whose CRC-32 fits no bytes at all, are what a lost sector reads as.
    """
    if len(body) < REST_SIZE:
        return None
    length, crc = _LEFT.unpack_from(body)
    rest = bytes(body[REST_SIZE : REST_SIZE + length])
    return rest if 0 < length == len(rest) and crc32(rest) == crc else None


def made_whole(found: Frame, segment: int, body: bytes) -> bytes:
    """A frame as it was before its body went away; `body` is that."""
    checked = _CHECKED.pack(found.was, found.flags, 0, len(found.head), found.body_length, found.body_crc, segment)
    data = b"".join((found.header_crc.to_bytes(4, "little"), checked, found.head, body))
    return data.ljust(found.size, b"\0")


def record_frames(
    record: Record, epoch: int, segment: int, offset: int, seal: Seal | None = None
) -> tuple[list[bytes], list[int], int]:
    """A record's frame and those of its cells and pages, for `offset`: chunks, header CRCs, bytes in all.

    The record's head ends with the offset of each attachment from the record's frame (u32 each, cells
    first), so that cell or page `n` is found without a search. With `seal` all bodies are sealed.
    """
    position = record.position
    attached = [*record.cells, *record.pages]
    body = record.body()
    flags = 0 if seal is None else ENCRYPTED
    head_length = record_head_length(len(attached))
    start = PREFIX + head_length + len(body) + (0 if seal is None else OVERHEAD)
    start += -start % 8
    chunks: list[bytes] = [b""]
    crcs = [0]
    starts = []
    for number, content in enumerate(attached):
        kind = Type.CELL if number < len(record.cells) else Type.PAGE
        head = _PART.pack(position, number)
        if seal is not None:
            content = seal(kind, head, content)
        chunk, crc = frame(kind, head, content, segment, offset + start, flags)
        starts.append(start)
        chunks.append(chunk)
        crcs.append(crc)
        start += len(chunk)
    head = _RECORD.pack(
        position,
        epoch,
        record.kind,
        record.uid,
        record.seq,
        record.time,
        record.previous,
        record.body_digest,
        len(attached),
    ) + struct.pack(f"<{len(starts)}I", *starts)
    if seal is not None:
        body = seal(Type.RECORD, head, body)
    chunks[0], crcs[0] = frame(Type.RECORD, head, body, segment, offset, flags)
    return chunks, crcs, start


def record_head_length(parts: int) -> int:
    """Bytes of the head of a record with so many cells and pages."""
    return _RECORD.size + 4 * parts


def commit_frame(
    first: int, last: int, crcs: Sequence[int], previous: bytes, segment: int, offset: int
) -> tuple[bytes, bytes]:
    """The frame that ends a batch, and its hash, which the next commit names."""
    head = _COMMIT.pack(first, last, headers_crc(crcs), len(crcs), previous)
    data, _ = frame(Type.COMMIT, head, b"", segment, offset)
    return data, sha256(data).digest()


def checkpoint_frame(size: int, root: bytes, note: bytes, segment: int, offset: int) -> tuple[bytes, int]:
    """The frame of a signed note over the first `size` records, whose tree has this root; and its CRC."""
    return frame(Type.CHECKPOINT, _CHECKPOINT.pack(size, root), note, segment, offset)


def segment_frame(head: SegmentHead) -> bytes:
    """The first frame of a segment file."""
    packed = _SEGMENT.pack(
        MAGIC,
        head.format,
        head.id,
        head.log_id,
        head.first_position,
        head.previous_length,
        head.previous_commit,
    )
    return frame(Type.SEGMENT, packed, b"", head.id, 0)[0]


def headers_crc(crcs: Sequence[int]) -> int:
    """CRC-32 over the header CRCs of a batch."""
    return crc32(struct.pack(f"<{len(crcs)}I", *crcs))


def record_head(head: bytes) -> tuple[Header, tuple[int, ...]]:
    """A record frame's head: the record's header, and the offsets of its attachments from the frame.

    Raises `struct.error` when the length does not fit.
    """
    position, epoch, kind, uid, seq, time, previous, digest, count = _RECORD.unpack_from(head)
    rest = head[_RECORD.size :]
    starts = struct.unpack(f"<{count}I", rest) if count or rest else ()
    return _header((position, epoch, uid, seq, kind, time, previous, digest)), starts


def part_head(head: bytes) -> tuple[int, int]:
    """A cell's or page's head: the position of its record, and its number there."""
    position, number = _PART.unpack(head)
    return position, number


def commit_head(head: bytes) -> CommitHead:
    """A commit frame's head. Raises `struct.error` when the length does not fit."""
    return CommitHead(*_COMMIT.unpack(head))


def checkpoint_head(head: bytes) -> tuple[int, bytes]:
    """A checkpoint frame's head: the size of the tree and its root. Raises `struct.error` like the others."""
    size, root = _CHECKPOINT.unpack(head)
    return size, root


def segment_head(head: bytes) -> SegmentHead | None:
    """A segment frame's head; None when it is not one of ours.

    A newer format may have more after these fields: look at `format` first.
    """
    if len(head) < _SEGMENT.size or not head.startswith(MAGIC):
        return None
    _, number, identity, log_id, first, length, commit = _SEGMENT.unpack_from(head)
    return SegmentHead(number, identity, log_id, first, length, commit)


def commit_pattern(segment: int) -> bytes:
    """Bytes 4 to 24 of every commit frame of a segment, to search for."""
    return _CHECKED.pack(Type.COMMIT, 0, 0, _COMMIT.size, 0, 0, segment)


def address(segment: int, offset: int) -> int:
    """A frame's place in the log as one number."""
    return segment << 40 | offset


def place(address: int) -> tuple[int, int]:
    """The segment and the offset of an address."""
    return address >> 40, address & (1 << 40) - 1
