"""Writing a log anew: records as they lie in one log, framed for another.

Hashes stay, since nothing of storage is in them; positions, offsets and commits are new. What has no body any more
becomes an erased frame, and a record of which only the facts are left, a frame of these.

The one rule: what is written is a log like any other, and each batch of it is whole when the next one begins.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, Protocol, TypeAlias

from dataspace.encryption.cipher import ENCRYPTED, OVERHEAD
from dataspace.log.frames import (
    FORMAT,
    PREFIX,
    REST_SIZE,
    SEGMENT_SIZE,
    Frame,
    Seal,
    SegmentHead,
    Type,
    checkpoint_frame,
    commit_frame,
    erased,
    frame,
    parse,
    record_head,
    record_head_length,
    rest_frame,
    segment_frame,
)
from dataspace.log.marks import Certificate
from dataspace.proofs.merkle import Tree, leaf_hash
from dataspace.records import ZERO_HASH, Header, Record

_PLACED: Final = struct.Struct("<QI")
_PART: Final = struct.Struct("<QI")
_COUNTED: Final = 112
"""Where in a record's head its parts are counted."""
_BATCH: Final = 1 << 20
"""Bytes of a batch, about."""


class Part(NamedTuple):
    """What a frame holds: its type, and its plain body; None for one that is erased. `FACTS`: a record of which no more
    than that is left."""

    type: int
    body: bytes | None

    @property
    def length(self) -> int:
        """Bytes in the place of its body, unless they are sealed."""
        return len(self.body or b"") + (REST_SIZE if self.type == Type.FACTS else 0)

    @property
    def size(self) -> int:
        """Bytes that its frame takes, about."""
        return PREFIX + self.length


class Kept(NamedTuple):
    """A record to be written: its head as it lies elsewhere, its hash, and what it and its parts hold."""

    head: bytes
    hash: bytes
    parts: Sequence[Part]


class Sink(Protocol):
    """Where segments go."""

    def begin(self, segment: int) -> None:
        """A new segment; the one before is whole."""

    def write(self, data: bytes) -> None:
        """More of the segment that was begun last."""


Sealing: TypeAlias = Callable[[Header, int], Seal]
"""What seals the bodies of a record, as the owner with this epoch writes it."""


class Rewriter:
    """Writes a log with this id into `sink`. `tree` is that of the records so far; `sealing` seals all bodies."""

    def __init__(self, log_id: bytes, sink: Sink, segment_bytes: int, sealing: Sealing | None = None) -> None:
        self.tree = Tree()
        self.position = 0
        self.epoch = 1
        self._log_id = log_id
        self._sink = sink
        self._most = segment_bytes
        self._sealing = sealing
        self._segment = 0
        self._offset = 0
        self._commit = ZERO_HASH
        self._pending: list[Kept] = []
        self._size = 0
        self._written = 0

    def add(self, kept: Kept) -> int:
        """Write a record after all others; gives its position. Its epoch is never below that of the one before."""
        self.position += 1
        self.epoch = max(self.epoch, _PLACED.unpack_from(kept.head)[1])
        self.tree.append(leaf_hash(kept.hash))
        self._pending.append(kept._replace(head=_PLACED.pack(self.position, self.epoch) + kept.head[_PLACED.size :]))
        self._size += len(kept.head) + sum(part.size for part in kept.parts)
        if self._size > _BATCH:
            self._flush()
        return self.position

    def made(self, record: Record) -> int:
        """Write a record that was made just now."""
        parts = [
            Part(Type.RECORD, record.body()),
            *(Part(Type.CELL, cell) for cell in record.cells),
            *(Part(Type.PAGE, page) for page in record.pages),
        ]
        head = _HEAD.pack(
            0, self.epoch, record.kind, record.uid, record.seq, record.time, record.previous, record.body_digest, 0
        )
        return self.add(Kept(head, record.hash, parts))

    def certificate(self, kept: Certificate) -> bool:
        """Keep a checkpoint, if it is one of the records so far."""
        if kept.size > self.position or self.tree.root(kept.size) != kept.root:
            return False
        self._flush()
        self._batch([], kept)
        return True

    def end(self) -> None:
        """Write what is left, and an empty commit: all of it is known to be there."""
        self._flush()
        self._batch([])

    def _flush(self) -> None:
        pending, self._pending, self._size = self._pending, [], 0
        if pending:
            self._batch(pending)

    def _batch(self, records: Sequence[Kept], certificate: Certificate | None = None) -> None:
        size = sum(len(kept.head) + sum(part.size for part in kept.parts) for kept in records)
        if not self._segment or (self._offset > SEGMENT_SIZE and self._offset + size > self._most):
            self._roll()
        first, offset = self._written + 1, self._offset
        chunks: list[bytes] = []
        crcs: list[int] = []
        for kept in records:
            self._written += 1
            for chunk, crc in _frames(kept, self._segment, offset, self._sealing):
                chunks.append(chunk)
                crcs.append(crc)
                offset += len(chunk)
        if certificate is not None:
            chunk, crc = checkpoint_frame(*certificate, self._segment, offset)
            chunks.append(chunk)
            crcs.append(crc)
            offset += len(chunk)
        chunk, self._commit = commit_frame(first, self._written, crcs, self._commit, self._segment, offset)
        self._sink.write(b"".join([*chunks, chunk]))
        self._offset = offset + len(chunk)

    def _roll(self) -> None:
        self._segment += 1
        self._sink.begin(self._segment)
        head = SegmentHead(FORMAT, self._segment, self._log_id, self._written + 1, self._offset, self._commit)
        data = segment_frame(head)
        self._sink.write(data)
        self._offset = len(data)


_HEAD: Final = struct.Struct("<QIB3x16sQq32s32sI")


def _frames(kept: Kept, segment: int, offset: int, sealing: Sealing | None) -> list[tuple[bytes, int]]:
    """The frames of a record and of its parts, for `offset`; each with its header's CRC."""
    own, *parts = kept.parts
    position, epoch = _PLACED.unpack_from(kept.head)
    seal = None
    if sealing is not None and any(part.body is not None for part in kept.parts):  # else nobody may have its key
        seal = sealing(record_head(kept.head[:_COUNTED] + bytes(4))[0], epoch)
    more = 0 if seal is None or own.body is None else OVERHEAD
    at = _aligned(PREFIX + record_head_length(len(parts)) + own.length + more)
    starts, frames = [], []
    for number, part in enumerate(parts):
        made = _frame(part, _PART.pack(position, number), segment, offset + at, seal)
        starts.append(at)
        frames.append(made)
        at += len(made[0])
    head = kept.head[:_COUNTED] + struct.pack(f"<{1 + len(starts)}I", len(starts), *starts)
    return [_frame(own, head, segment, offset, seal), *frames]


def _aligned(size: int) -> int:
    return size + -size % 8


def _frame(part: Part, head: bytes, segment: int, offset: int, seal: Seal | None) -> tuple[bytes, int]:
    begin = offset + PREFIX + len(head)
    if part.body is None:
        size = _aligned(PREFIX + len(head))
        data = erased(Frame(offset, Type.ERASED, part.type, 0, head, begin, 0, 0, 0, size), segment).ljust(size, b"\0")
    else:
        body, flags = (part.body, 0) if seal is None else (seal(part.type, head, part.body), ENCRYPTED)
        if part.type != Type.FACTS:
            return frame(part.type, head, body, segment, offset, flags)
        length = REST_SIZE + len(body)
        size = _aligned(PREFIX + len(head) + length)
        whole = Frame(offset, Type.FACTS, Type.RECORD, flags, head, begin, length, 0, 0, size)
        data = rest_frame(whole, segment, body, Type.FACTS).ljust(size, b"\0")
    found = parse(data, 0, segment, offset)
    assert found is not None
    return data, found.header_crc
