"""The quick look at a log: batch after batch, for as long as everything in it is right.

One pass over the bytes looks at every header and its CRC, every body, its CRC and its digest, every cell's digest and
place, every chain, every position, every commit; and gathers the leaves of the Merkle tree. It makes no objects on its
way, and says of nothing what is wrong with it.

The one rule: **what it passes is right, and what it does not pass is looked at again** by who can say what is wrong
(`dataspace.log.verify`). So it may refuse a batch that is sound; it refuses those with erased bodies and checkpoints,
which are rare.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from hashlib import sha256
from typing import Annotated, Final, NamedTuple, TypeAlias
from zlib import crc32

from msgspec import DecodeError, Meta, Raw
from msgspec.msgpack import Decoder

from dataspace.encryption.cipher import ENCRYPTED, Unopened
from dataspace.log.contents import Opener
from dataspace.log.frames import (
    COMMIT_SIZE,
    MAX_HEAD,
    PREFIX,
    Frame,
    Type,
    commit_pattern,
    headers_crc,
    record_head_length,
)
from dataspace.log.marks import ChainHead
from dataspace.log.scan import Trail
from dataspace.log.verdicts import SegmentBytes
from dataspace.records import DOMAIN, MOST, SALT, ZERO_HASH, Header, Kind

# Frames up to their bodies: what all begin with, of which type, flags and former type are one number (`shape`); a head.
_RECORD: Final = struct.Struct("<IIIIII QIB3x16sqq32s32sI I")
"""With where its first part begins; when it has none, that is 4 bytes of what comes after. The seq is signed, so that
one above `MOST` goes on from none."""
_PART: Final = struct.Struct("<IIIIII QI")
_COMMIT: Final = struct.Struct("<IIIIII QQII32s")
_SEALED: Final = ENCRYPTED << 8
"""What the shape of a frame with a sealed body has more."""
_OFFSET: Final = struct.Struct("<Q")
_START: Final = struct.Struct("<I")
_LINKED: Final = struct.Struct(f">{len(DOMAIN)}s16sQBq32s32s")
_BODY: Final = struct.Struct(f">{SALT}s{SALT}sI")
_RECORD_TYPE, _CELL, _PAGE, _COMMIT_TYPE = map(int, (Type.RECORD, Type.CELL, Type.PAGE, Type.COMMIT))
_RECORD_HEAD: Final = record_head_length(0)
_PART_HEAD: Final = _PART.size - PREFIX
_COMMIT_HEAD: Final = _COMMIT.size - PREFIX
_KINDS: Final = frozenset(map(int, Kind)) - {Kind.FORKED}
"""Kinds of records that go on from one of their own chain; a fork's first goes on from its parent's."""
_FORKED: Final = int(Kind.FORKED)
_BEFORE: Final[ChainHead] = (0, ZERO_HASH)
"""What the first record of a chain goes on from."""
_PADS: Final = tuple(bytes(n) for n in range(8))
_LAST_EPOCH: Final = (1 << 32) - 1
_CHUNK: Final = 1 << 20
_LARGEST: Final = 1 << 26
"""Bytes of a batch that is looked at here."""
_Count: TypeAlias = Annotated[int, Meta(ge=0, le=MOST)]
_deeds: Final = Decoder(tuple[Raw, Raw, bytes, _Count]).decode
_facts: Final = Decoder(tuple[Raw, list[_Count], bytes]).decode


class Born(NamedTuple):
    """The first record of a fork: how many records were read before it, where it lies, its seq, and the hash of its
    parent's record before that."""

    nth: int
    segment: int
    offset: int
    seq: int
    previous: bytes


class Sweep:
    """One quick look along a log. `trail` is how far it has come, the rest is what was gathered since `begin`;
    `passed` is called now and then to take it.

    Costs about 9 µs for a record with a cell of 1 KB, half of it in SHA-256 and CRC-32.
    """

    def __init__(self, trail: Trail, passed: Callable[[], None], opener: Opener | None = None) -> None:
        self.trail = trail
        self._opener = opener
        self.leaves: list[bytes] = []
        self.seqs: list[int] = []
        self.forks: list[Born] = []
        self.bytes = self.batches = self.records = self.cells = self.pages = self.sealed = 0
        self._passed = passed
        self._before = 0

    def begin(self, before: int) -> None:
        """Gather anew, after so many records that were read before."""
        self.leaves, self.seqs, self.forks = [], [], []
        self.bytes = self.batches = self.records = self.cells = self.pages = self.sealed = 0
        self._before = before

    def follow(self, segment: SegmentBytes, at: int, end: int) -> int:
        """Go on along a segment from offset `at`, where a batch begins: up to `end`, or to where one is not passed."""
        number, bytes_ = segment
        size = _CHUNK
        base, chunk, whole = at, b"", -1
        ending = commit_pattern(number)
        while at < end:
            found = self._batch(chunk, at - base, base, number) if at - base < whole else 0
            if found > 0:
                self.bytes += base + found - at
                at = base + found
            elif found < 0 or (base == at and base + len(chunk) >= end) or size > _LARGEST:
                break
            else:  # it goes on after what was read
                self._passed()
                size = 2 * size if base == at and chunk else _CHUNK
                base, chunk = at, bytes(bytes_[at : min(at + size, end)])
                whole = chunk.rfind(ending)
        self._passed()
        return at

    def _batch(self, data: bytes, at: int, base: int, number: int) -> int:
        """Where the batch at `data[at]` ends; 0 when not all of it is there, less when it is not passed."""
        trail = self.trail
        heads = trail.heads
        position, epoch, hash = trail.position, trail.epoch, trail.hash
        length = len(data)
        fresh: dict[bytes, ChainHead] = {}
        hashes: list[bytes] = []
        seqs: list[int] = []
        forks: list[Born] = []
        crcs: list[int] = []
        all_cells = pages = sealed = 0
        opened: _Opened | None = None
        if epoch >= _LAST_EPOCH:
            return -1
        last_begin = length - _RECORD.size
        while at <= last_begin and data[at + 4] == _RECORD_TYPE:
            begin = at
            (
                crc, shape, head_length, body_length, body_crc, owner,
                place, owned, record, uid, seq, time, previous, digest, count, start,
            ) = _RECORD.unpack_from(data, begin)  # fmt: skip
            position += 1
            if place != position or owner != number or head_length != _RECORD_HEAD + 4 * count:
                return -1
            if head_length > MAX_HEAD or (shape != _RECORD_TYPE and shape != _RECORD_TYPE + _SEALED):
                return -1
            if owned != epoch:
                if not epoch < owned < _LAST_EPOCH:
                    return -1
                epoch = owned
            content = begin + PREFIX + head_length
            end = content + body_length
            at = (end + 7) & -8
            if at > length:
                return 0 if at - begin <= _LARGEST else -1
            if crc32(data[begin + 4 : content], crc32(_OFFSET.pack(base + begin))) != crc:
                return -1
            stored = data[content:end]
            if crc32(stored) != body_crc or (end != at and data[end:at] != _PADS[at - end]):
                return -1
            before, parent = fresh.get(uid) or heads.get(uid) or _BEFORE
            if seq != before + 1 or previous != parent or record not in _KINDS:
                if record != _FORKED or seq < 2 or uid in fresh or uid in heads:
                    return -1
                forks.append(Born(self._before + self.records + len(hashes), number, base + begin, seq, previous))
            hash = sha256(_LINKED.pack(DOMAIN, uid, seq, record, time, previous, digest)).digest()
            fresh[uid] = (seq, hash)
            hashes.append(hash)
            seqs.append(seq)
            crcs.append(crc)
            body: bytes | None = stored
            sealing = shape & _SEALED
            if sealing:
                sealed += 1 + count
                body = opened = None
                if self._opener is not None:
                    opened = _opening(self._opener, Header(place, owned, uid, seq, record, time, previous, digest))
                    body = opened(_RECORD_TYPE, data[begin + PREFIX : content], stored)
                    if body is None:
                        return -1
            cells: list[bytes] = []
            nth = 0
            while nth != count:
                # Its place is the one that its record names, and no cell comes after a page.
                if nth:
                    (start,) = _START.unpack_from(data, begin + PREFIX + _RECORD_HEAD + 4 * nth)
                if start != at - begin:
                    return -1
                if at + _PART.size > length:
                    return 0
                (
                    crc, shape, head_length, body_length, body_crc, owner,
                    place, part,
                ) = _PART.unpack_from(data, at)  # fmt: skip
                if place != position or part != nth or owner != number or head_length != _PART_HEAD:
                    return -1
                content = at + _PART.size
                end = content + body_length
                after = (end + 7) & -8
                if after > length:
                    return 0 if after - at <= _LARGEST else -1
                if crc32(data[at + 4 : content], crc32(_OFFSET.pack(base + at))) != crc:
                    return -1
                stored = data[content:end]
                if crc32(stored) != body_crc or (end != after and data[end:after] != _PADS[after - end]):
                    return -1
                if sealing and opened is not None:
                    plain = opened(shape - sealing, data[at + PREFIX : content], stored)
                    if plain is None:
                        return -1
                    stored = plain
                if shape == _CELL + sealing and len(cells) == nth:
                    cells.append(sha256(stored).digest())
                elif shape == _PAGE + sealing:
                    pages += 1
                else:
                    return -1
                crcs.append(crc)
                at = after
                nth += 1
            if body is not None and not _fits(body, digest, cells):
                return -1
            all_cells += len(cells)
        if at + COMMIT_SIZE > length:
            return 0
        (
            crc, shape, head_length, body_length, body_crc, owner,
            first, last, covered, frames, commit,
        ) = _COMMIT.unpack_from(data, at)  # fmt: skip
        if shape != _COMMIT_TYPE or owner != number or body_length or body_crc:
            return 0 if data[at + 4] == _RECORD_TYPE else -1
        if head_length != _COMMIT_HEAD or crc32(data[at + 4 : at + COMMIT_SIZE], crc32(_OFFSET.pack(base + at))) != crc:
            return -1
        if (first, last, commit, frames) != (trail.position + 1, position, trail.commit, len(crcs)):
            return -1
        if covered != headers_crc(crcs):
            return -1
        heads.update(fresh)
        trail.position, trail.epoch, trail.hash = position, epoch, hash
        trail.commit = sha256(data[at : at + COMMIT_SIZE]).digest()
        self.leaves += [sha256(b"\x00" + hash).digest() for hash in hashes]
        self.seqs += seqs
        self.forks += forks
        self.batches += 1
        self.records += len(hashes)
        self.cells += all_cells
        self.pages += pages
        self.sealed += 0 if self._opener is not None else sealed
        return at + COMMIT_SIZE


_Opened: TypeAlias = Callable[[int, bytes, bytes], "bytes | None"]


def _opening(opener: Opener, header: Header) -> _Opened:
    """Opens the bodies of a record: of a frame of that type and head. None for one that does not open."""

    def opened(kind: int, head: bytes, stored: bytes) -> bytes | None:
        try:
            return opener(header, Frame(0, kind, kind, ENCRYPTED, head, 0, len(stored), 0, 0, 0), stored)
        except (Unopened, LookupError):
            return None

    return opened


def _fits(body: bytes, digest: bytes, cells: list[bytes]) -> bool:
    """Whether a body is the one of that digest, and names the cells of these digests, which are with it.

    Of what is said only the outline is read: it is all there, and nothing after it.
    """
    try:
        salt, other, length = _BODY.unpack_from(body)
        middle = _BODY.size + length
        deeds, facts = body[_BODY.size : middle], body[middle:]
        if sha256(sha256(salt + deeds).digest() + sha256(other + facts).digest()).digest() != digest:
            return False
        _, _, named, _ = _deeds(deeds)
        if named != b"".join(cells) or len(deeds) != length:
            return False
        if facts:
            _, numbers, used = _facts(facts)
            if numbers or used:
                return bool(used == b"".join([cells[number] for number in numbers]))
    except (struct.error, DecodeError, RecursionError, LookupError):  # who looks again says what it is
        return False
    return True
