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
from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import Final, NamedTuple, TypeAlias
from zlib import crc32

import msgpack

from dataspace.encryption.cipher import ENCRYPTED, Unopened
from dataspace.log.contents import Opener
from dataspace.log.frames import COMMIT_SIZE, MAX_HEAD, PREFIX, Frame, Type, headers_crc
from dataspace.log.marks import ChainHead
from dataspace.log.scan import Trail
from dataspace.log.verdicts import SegmentBytes
from dataspace.proofs.merkle import leaf_hash
from dataspace.records import DOMAIN, MOST, SALT, ZERO_HASH, Header, Kind

_PREFIX: Final = struct.Struct("<IBBHIIII")
_RECORD: Final = struct.Struct("<QIB3x16sQq32s32sI")
_PART: Final = struct.Struct("<QI")
_COMMIT: Final = struct.Struct("<QQII32s")
_LINKED: Final = struct.Struct(">16sQBq32s32s")
_RECORD_TYPE, _CELL, _PAGE, _COMMIT_TYPE = map(int, (Type.RECORD, Type.CELL, Type.PAGE, Type.COMMIT))
_KINDS: Final = frozenset(map(int, Kind)) - {Kind.FORKED}
"""Kinds of records that go on from one of their own chain; a fork's first goes on from its parent's."""
_FORKED: Final = int(Kind.FORKED)
_PARTS: Final = (_CELL, _PAGE)
_PADS: Final = tuple(bytes(n) for n in range(8))
_LAST_EPOCH: Final = (1 << 32) - 1
_CHUNK: Final = 1 << 22
_LARGEST: Final = 1 << 26
"""Bytes of a batch that is looked at here."""
_DEEDS: Final = 2 * SALT + 4
"""Where in a body the deeds begin."""
_DEEDS_BEGIN, _FACTS_BEGIN = 0x94, 0x93
_COUNTS: Final = ((0xCC, 2), (0xCD, 3), (0xCE, 5), (0xCF, 9))
"""How a count of 128 and more begins, and how long it is."""
_NONE_USED: Final = b"\x90\xc4\x00"
"""The end of facts that use no cells."""


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

    Costs about 10 µs for a record with a cell of 1 KB, half of it in SHA-256 and CRC-32.
    """

    def __init__(self, trail: Trail, passed: Callable[[], None], opener: Opener | None = None) -> None:
        self.trail = trail
        self._opener = opener
        self.leaves: list[bytes] = []
        self.seqs: list[int] = []
        self.forks: list[Born] = []
        self.bytes = self.batches = self.records = self.cells = self.pages = self.sealed = 0
        self._passed = passed
        self._reader = _Contents()
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
        base, chunk = at, b""
        while at < end:
            found = self._batch(chunk, at - base, base, number)
            if found > 0:
                self.bytes += base + found - at
                at = base + found
            elif found < 0 or (base == at and base + len(chunk) >= end) or size > _LARGEST:
                break
            else:  # it goes on after what was read
                self._passed()
                size = 2 * size if base == at and chunk else _CHUNK
                base, chunk = at, bytes(bytes_[at : min(at + size, end)])
        self._passed()
        return at

    def _batch(self, data: bytes, at: int, base: int, number: int) -> int:
        """Where the batch at `data[at]` ends; 0 when not all of it is there, less when it is not passed."""
        trail = self.trail
        heads = trail.heads
        position, epoch, hash = trail.position, trail.epoch, trail.hash
        length = len(data)
        fresh: dict[bytes, ChainHead] = {}
        leaves: list[bytes] = []
        seqs: list[int] = []
        forks: list[Born] = []
        crcs: list[int] = []
        cells: list[bytes] = []
        starts: Sequence[int] = ()
        begin = part = pages = all_cells = sealing = sealed = 0
        body: bytes | None = b""
        digest = b""
        opened: _Opened | None = None
        while True:
            content = at + PREFIX
            if content > length:
                return 0
            crc, kind, flags, was, head_length, body_length, body_crc, owner = _PREFIX.unpack_from(data, at)
            if owner != number or was or head_length > MAX_HEAD or (flags and flags != ENCRYPTED):
                return -1
            content += head_length
            end = content + body_length
            after = (end + 7) & -8
            if after > length:
                return 0 if after - at <= _LARGEST else -1
            if crc32(data[at + 4 : content], crc32((base + at).to_bytes(8, "little"))) != crc:
                return -1
            stored = data[content:end]
            if crc32(stored) != body_crc or (end != after and data[end:after] != _PADS[after - end]):
                return -1
            if kind in _PARTS:
                # Its place is the one that its record names, and no cell comes after a page.
                if (
                    part >= len(starts)
                    or head_length != _PART.size
                    or data[at + PREFIX : content] != _PART.pack(position, part)
                    or at - begin != starts[part]
                    or flags != sealing
                ):
                    return -1
                part += 1
                if flags:
                    sealed += 1
                    if opened is not None:
                        plain = opened(kind, data[at + PREFIX : content], stored)
                        if plain is None:
                            return -1
                        stored = plain
                if kind == _CELL:
                    if len(cells) + 1 != part:
                        return -1
                    cells.append(sha256(stored).digest())
                else:
                    pages += 1
            else:
                if begin or part:
                    if part != len(starts) or not (body is None or self._reader.fits(body, digest, cells)):
                        return -1
                    all_cells += len(cells)
                if kind == _COMMIT_TYPE:
                    break
                if kind != _RECORD_TYPE or head_length < _RECORD.size:
                    return -1
                place, owned, record, uid, seq, time, previous, digest, count = _RECORD.unpack_from(data, at + PREFIX)
                if head_length != _RECORD.size + 4 * count or place != position + 1 or owned < epoch:
                    return -1
                if owned >= _LAST_EPOCH or seq > MOST:
                    return -1
                known = fresh.get(uid) or heads.get(uid)
                if record == _FORKED and known is None and seq > 1:
                    forks.append(Born(self._before + self.records + len(leaves), number, base + at, seq, previous))
                elif record not in _KINDS or (seq - 1, previous) != (known or (0, ZERO_HASH)):
                    return -1
                hash = sha256(DOMAIN + _LINKED.pack(uid, seq, record, time, previous, digest)).digest()
                fresh[uid] = (seq, hash)
                leaves.append(leaf_hash(hash))
                seqs.append(seq)
                sealing, opened, body = flags, None, stored
                if flags:
                    sealed += 1
                    body = None
                    if self._opener is not None:
                        opened = _opening(self._opener, Header(place, owned, uid, seq, record, time, previous, digest))
                        body = opened(kind, data[at + PREFIX : content], stored)
                        if body is None:
                            return -1
                position, epoch, begin, part, cells = place, owned, at, 0, []
                starts = struct.unpack_from(f"<{count}I", data, at + PREFIX + _RECORD.size) if count else ()
            crcs.append(crc)
            at = after
        if head_length != _COMMIT.size or body_length or flags:
            return -1
        first, last, covered, frames, before = _COMMIT.unpack_from(data, at + PREFIX)
        if (first, last, before, frames) != (trail.position + 1, position, trail.commit, len(crcs)):
            return -1
        if covered != headers_crc(crcs):
            return -1
        heads.update(fresh)
        trail.position, trail.epoch, trail.hash = position, epoch, hash
        trail.commit = sha256(data[at : at + COMMIT_SIZE]).digest()
        self.leaves += leaves
        self.seqs += seqs
        self.forks += forks
        self.batches += 1
        self.records += len(leaves)
        self.cells += all_cells
        self.pages += pages
        self.sealed += 0 if self._opener is not None else sealed
        return int(after)


_Opened: TypeAlias = Callable[[int, bytes, bytes], "bytes | None"]


def _opening(opener: Opener, header: Header) -> _Opened:
    """Opens the bodies of a record: of a frame of that type and head. None for one that does not open."""

    def opened(kind: int, head: bytes, stored: bytes) -> bytes | None:
        try:
            return opener(header, Frame(0, kind, kind, ENCRYPTED, head, 0, len(stored), 0, 0, 0), stored)
        except (Unopened, LookupError):
            return None

    return opened


class _Contents:
    """Whether a body is the one that its header names, and names the cells that are with it.

    Of what is said only the outline is looked at, by the msgpack library, without making anything of it; what is
    said of cells stands at the end of either part, where it is looked for.
    """

    def __init__(self) -> None:
        self._unpacker = msgpack.Unpacker()

    def fits(self, body: bytes, digest: bytes, cells: list[bytes]) -> bool:
        """Whether this is the body of that digest, and `cells` are the digests of its cells."""
        middle = _DEEDS + int.from_bytes(body[2 * SALT : _DEEDS], "big")
        end = len(body)
        if not _DEEDS < middle <= end:
            return False
        one = sha256(body[:SALT] + body[_DEEDS:middle]).digest()
        other = sha256(body[SALT : 2 * SALT] + body[middle:]).digest()
        if sha256(one + other).digest() != digest or body[_DEEDS] != _DEEDS_BEGIN:
            return False
        named = _bin(len(cells)) + b"".join(cells)
        if not (body[middle - 1] < 128 and body.endswith(named, 0, middle - 1)) and not any(
            body[middle - n] == first and body.endswith(named, 0, middle - n) for first, n in _COUNTS
        ):
            return False
        unpacker = self._unpacker
        start = unpacker.tell() - _DEEDS
        try:
            unpacker.feed(body[_DEEDS:])
            unpacker.skip()
            if unpacker.tell() - start != middle:
                raise ValueError
            if middle == end:
                return True
            unpacker.skip()
            if unpacker.tell() - start != end:
                raise ValueError
            return body[middle] == _FACTS_BEGIN and (body.endswith(_NONE_USED) or _uses(body[middle:], cells))
        except Exception:  # noqa: BLE001  # whatever msgpack makes of it, who looks again says what it is
            self._unpacker = msgpack.Unpacker()
            return False


def _bin(digests: int) -> bytes:
    """What stands before so many digests."""
    size = 32 * digests
    if size < 1 << 8:
        return b"\xc4" + size.to_bytes(1, "big")
    return b"\xc5" + size.to_bytes(2, "big") if size < 1 << 16 else b"\xc6" + size.to_bytes(4, "big")


def _uses(facts: bytes, cells: list[bytes]) -> bool:
    """Whether facts that use cells name those of their record."""
    _, numbers, digests = msgpack.unpackb(facts)
    return bool(digests == b"".join([cells[number] for number in numbers if number >= 0]))
