"""Ciphers: AES-256-GCM over the bodies of frames, with keys of their own for each session, key epoch and owner.

A body as it is stored, integers little endian:

    0    u32  key epoch
    4    u32  number of the key file that it was written with
    8    12s  nonce, random
    20   …    ciphertext, and 16 bytes of tag

Associated data: bytes 0 to 8, the frame's type, its flags, its head. The cipher's key is derived from the data key,
the session's uid, the key epoch and the owner's epoch; so nothing that one owner wrote and lost can share a key, let
alone a nonce, with what the next one writes; but for what is left of a record whose deeds go to an archive: that is
sealed with the key of the record, under another frame type, each time they go. Nobody counts these: one for each
record that is archived, and one more where that was cut short, or the deeds were brought back and go again.

The one rule: a key seals `MOST` records' bodies, cells and pages and then no more, far below the 2**32 that random
nonces bear, so that what is left of records, however often, is no matter.
"""

from __future__ import annotations

import struct
from hmac import digest
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

KEY: Final = 32
"""Bytes of every key."""
NONCE: Final = 12
TAG: Final = 16
ENCRYPTED: Final = 2
"""The flag of a frame whose body is sealed."""
MOST: Final = 1 << 28
"""Bodies that are sealed with one key, but for what is left of records."""

_NAMED = struct.Struct("<II")
_BOUND = struct.Struct("<16sII")
OVERHEAD: Final = _NAMED.size + NONCE + TAG
"""Bytes that a sealed body has more than a plain one."""


class Unopened(Exception):
    """A sealed body does not open with its key: it is not what was sealed. Whoever asked for it names the place."""


def expand(key: bytes, purpose: bytes) -> bytes:
    """A key for one purpose: HKDF-Expand (RFC 5869) with SHA-256 for 32 bytes, of a key that is random itself."""
    return digest(key, purpose + b"\x01", "sha256")


def named(sealed: bytes | memoryview) -> tuple[int, int]:
    """The key epoch of a sealed body, and the number of the key file that it was written with. Raises `Unopened`."""
    if len(sealed) < OVERHEAD:
        raise Unopened
    epoch, serial = _NAMED.unpack_from(sealed)
    return epoch, serial


class Cipher:
    """Seals and opens the bodies of one session under one data key, as one owner writes them: 2 µs each, at 1 KB."""

    __slots__ = ("_gcm", "epoch", "sealed")

    def __init__(self, key: bytes, uid: bytes, epoch: int, owner: int) -> None:
        self._gcm = AESGCM(expand(key, b"keeve frames 1\n" + _BOUND.pack(uid, epoch, owner)))
        self.epoch = epoch
        self.sealed = 0
        """How many bodies it has sealed."""

    def seal(self, kind: int, head: bytes, plain: bytes, serial: int, nonce: bytes) -> bytes:
        """A body as it is stored in a frame of this type and head."""
        self.sealed += 1
        start = _NAMED.pack(self.epoch, serial)
        return start + nonce + self._gcm.encrypt(nonce, plain, start + bytes((kind, ENCRYPTED)) + head)

    def open(self, kind: int, head: bytes, sealed: bytes) -> bytes:
        """What was sealed. Raises `Unopened` for anything else, and for what was sealed in another frame."""
        start = sealed[: _NAMED.size]
        at = _NAMED.size + NONCE
        try:
            return self._gcm.decrypt(
                sealed[_NAMED.size : at], sealed[at:], b"".join((start, bytes((kind, ENCRYPTED)), head))
            )
        except (InvalidTag, ValueError):
            raise Unopened from None
