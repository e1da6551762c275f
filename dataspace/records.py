"""Records and their chains: what a session appends, and the hash that ties each record to the one before.

    hash   = SHA-256(DOMAIN ‖ uid ‖ seq u64 ‖ kind u8 ‖ time i64 ‖ previous hash ‖ body digest)
    body   = SHA-256(SHA-256(salt ‖ deeds) ‖ SHA-256(salt ‖ facts))
    cell   = SHA-256(salt ‖ type u8 ‖ content)

All integers are big endian. A body has two parts, each with a salt of its own: the *deeds* (the message
and the operations) and the *facts*. Whoever may see only one of them can verify it with the digest of the
other, and a part that was withheld or shredded leaves nothing to guess. Each part names the digests of the
cells that it refers to and that this record introduces.

The one rule: nothing of storage is in a hash. A chain is the same in another store, under another key,
compressed or not. Everything here is a function of its arguments; salts and times are passed in.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from enum import IntEnum
from hashlib import sha256
from typing import Any, Final, NamedTuple

DOMAIN: Final = b"keeve record 1\n"
ZERO_HASH: Final = bytes(32)
STORE_UID: Final = bytes(16)
"""The uid of the store's own chain, for what belongs to no session."""
DIGEST: Final = 32
"""Bytes of a digest."""
MOST: Final = (1 << 63) - 1
"""No seq and no count is above."""
SALT: Final = 16
"""Bytes of salt before each part of a body and before each cell."""

_LINKED = struct.Struct(">16sQBq32s32s")
_LENGTH = struct.Struct(">I")
_REST = struct.Struct(f">32s{SALT}sQ")


class Kind(IntEnum):
    """What a record is. Numbers are for ever; new kinds are added at the end."""

    CREATED = 1
    """The store's first record."""
    RECOVERED = 2
    """The store's: a torn tail was cut."""
    SPAWN = 3
    """A session's first record."""
    FORKED = 4
    """A session's first record, as the fork of another at a seq."""
    CRANK = 5
    FORK = 6
    """In the parent's chain: a child was made."""
    SNAPSHOT = 7
    RESTORE = 8
    """Somebody asked for the session to be restored."""
    STARTED = 9
    """An effect is about to be carried out."""
    DELETE = 10
    BASE = 11
    """A snapshot of the whole heap, which leads to no other: what the records before it did can leave for an
    archive."""
    ACKED = 12
    """The runtime forgets what the receivers have acknowledged."""
    KEY = 13
    """The store's: with which key its checkpoints are signed from here on."""
    ERASE = 14
    """The store's: content is erased; which, in records of sessions."""
    RECLAIMED = 15
    """The store's: what was deleted, and erased, up to some positions is gone from its files."""
    SALVAGED = 16
    """What could be read of a damaged store was written into this one: in the store's chain, and in that of each
    session that may have lost its end."""
    ARCHIVED = 17
    """The store's: content of old segments went to an archive, or came back."""


class Cell(NamedTuple):
    """A piece of content as a record brings it: `digest` is over the salt, the type and the content."""

    salt: bytes
    content: str | bytes

    def encoded(self) -> bytes:
        """The bytes that are stored and hashed: salt, type (0 text, 1 bytes), content."""
        content = self.content
        if isinstance(content, str):
            return self.salt + b"\x00" + content.encode()
        return self.salt + b"\x01" + content


class Record:
    """One record of a chain, whole: what `seal` makes and a store keeps.

    `deeds` and `facts` are the encoded parts, `cells` and `pages` the encoded bodies of what is kept beside
    it (a cell as `Cell.encoded` gives it), numbered from 0, the cells first. `position` and `address` are
    0 until a store has appended it. `message`, `statements` and `pending` are what a draft put into the
    parts, for those who look at a record on its way, so that nobody decodes what was just encoded.
    """

    __slots__ = (
        "address",
        "body_digest",
        "cells",
        "deeds",
        "facts",
        "hash",
        "kind",
        "message",
        "pages",
        "pending",
        "position",
        "previous",
        "salts",
        "seq",
        "statements",
        "time",
        "uid",
    )

    def __init__(
        self,
        uid: bytes,
        seq: int,
        kind: int,
        time: int,
        previous: bytes,
        salts: bytes,
        deeds: bytes,
        facts: bytes,
        cells: Sequence[bytes] = (),
        pages: Sequence[bytes] = (),
    ) -> None:
        self.uid = uid
        self.seq = seq
        self.kind = kind
        self.time = time
        self.previous = previous
        self.salts = salts
        self.deeds = deeds
        self.facts = facts
        self.cells = cells
        self.pages = pages
        self.body_digest = body_digest(part_digest(salts[:SALT], deeds), part_digest(salts[SALT:], facts))
        self.hash = record_hash(uid, seq, kind, time, previous, self.body_digest)
        self.position = 0
        self.address = 0
        self.message: Any = None
        self.statements: Sequence[Any] = ()
        self.pending = 0

    def body(self) -> bytes:
        """The body as it is stored: two salts, the length of the deeds, the deeds, the facts."""
        return b"".join((self.salts, _LENGTH.pack(len(self.deeds)), self.deeds, self.facts))

    @property
    def header(self) -> Header:
        """What there is of it without its body, once it has its position; the epoch is left open."""
        return Header(self.position, 0, self.uid, self.seq, self.kind, self.time, self.previous, self.body_digest)

    def __repr__(self) -> str:
        return f"Record({self.uid.hex()[:8]} seq {self.seq} {Kind(self.kind).name} at {self.position})"


class Header(NamedTuple):
    """A record without its body: enough to verify its place in the chain.

    `time` is in microseconds since 1970 (UTC). `hash` follows from the rest.
    """

    position: int
    epoch: int
    uid: bytes
    seq: int
    kind: int
    time: int
    previous: bytes
    body_digest: bytes

    @property
    def hash(self) -> bytes:
        """The record's own hash."""
        return record_hash(self.uid, self.seq, self.kind, self.time, self.previous, self.body_digest)

    @property
    def hashed(self) -> bytes:
        """The bytes that the hash is the SHA-256 of."""
        return DOMAIN + _LINKED.pack(self.uid, self.seq, self.kind, self.time, self.previous, self.body_digest)

    @classmethod
    def of_hashed(cls, data: bytes, position: int) -> Header:
        """The header of the record at `position` whose hash is over `data`, but its epoch. Raises `ValueError`."""
        if len(data) != len(DOMAIN) + _LINKED.size or not data.startswith(DOMAIN):
            raise ValueError("these are not the bytes that a record's hash is over")
        return cls(position, 0, *_LINKED.unpack_from(data, len(DOMAIN)))


class Body(NamedTuple):
    """A stored body taken apart."""

    salts: bytes
    deeds: bytes
    facts: bytes

    @property
    def digest(self) -> bytes:
        """The body digest, to compare with the header's."""
        return body_digest(part_digest(self.salts[:SALT], self.deeds), part_digest(self.salts[SALT:], self.facts))


def split_body(body: bytes) -> Body | None:
    """Take a stored body apart; None when its lengths do not fit."""
    start = 2 * SALT + 4
    if len(body) < start:
        return None
    end = start + _LENGTH.unpack_from(body, 2 * SALT)[0]
    if end > len(body):
        return None
    return Body(body[: 2 * SALT], body[start:end], body[end:])


class Rest(NamedTuple):
    """What is left of a body whose deeds are elsewhere: their digest, the facts with their salt, and how much was
    `pending`, which the deeds say and no hash covers alone."""

    deeds: bytes
    salt: bytes
    pending: int
    facts: bytes

    @classmethod
    def of(cls, body: Body, pending: int) -> Rest:
        """That of a body; `pending` as its deeds say it."""
        return cls(part_digest(body.salts[:SALT], body.deeds), body.salts[SALT:], pending, body.facts)

    @property
    def digest(self) -> bytes:
        """The body digest, to compare with the header's."""
        return body_digest(self.deeds, part_digest(self.salt, self.facts))

    def encoded(self) -> bytes:
        """The bytes that are stored: the digest of the deeds, the salt of the facts, what is pending, the facts."""
        return _REST.pack(self.deeds, self.salt, self.pending) + self.facts


def split_rest(data: bytes) -> Rest | None:
    """Read what `Rest.encoded` wrote; None when it is too short."""
    if len(data) < _REST.size:
        return None
    deeds, salt, pending = _REST.unpack_from(data)
    return Rest(deeds, salt, pending, data[_REST.size :])


def split_cell(data: bytes) -> Cell:
    """Read a cell as `Cell.encoded` wrote it. Raises `ValueError` when it is not one."""
    kind = data[SALT : SALT + 1]
    if kind == b"\x00":
        return Cell(data[:SALT], data[SALT + 1 :].decode())
    if kind == b"\x01":
        return Cell(data[:SALT], data[SALT + 1 :])
    raise ValueError("not a cell: unknown content type")


def content_digest(data: bytes) -> bytes:
    """The digest of an encoded cell or of a heap page."""
    return sha256(data).digest()


def split_digests(data: bytes) -> list[bytes]:
    """Digests that stand end to end."""
    return [data[at : at + DIGEST] for at in range(0, len(data), DIGEST)]


def part_digest(salt: bytes, part: bytes) -> bytes:
    """SHA-256 of a salted part of a body."""
    return sha256(salt + part).digest()


def body_digest(deeds: bytes, facts: bytes) -> bytes:
    """SHA-256 of the digests of the two parts."""
    return sha256(deeds + facts).digest()


def record_hash(uid: bytes, seq: int, kind: int, time: int, previous: bytes, body: bytes) -> bytes:
    """The hash that the next record of the chain names as its previous one."""
    return sha256(DOMAIN + _LINKED.pack(uid, seq, kind, time, previous, body)).digest()


Salts = Callable[[int], bytes]
"""Where salts come from: `os.urandom`, or a seeded source in tests."""
