"""The key file: a table of data keys as bytes. `docs/encryption.md` is its page.

    0    8s   KEEVEKEY
    8    u16  format
    10   u16  zeros
    12   u32  serial, one more with each writing
    16   16s  log id
    32   16s  check of the host key
    48   u32  wraps
    52   u32  links
    56   u32  destroyed
    60   u32  zeros
    64        wraps: uid 16s, key epoch u32, wrapped key 60s
              links: uid 16s, key epoch u32, first seq u64, uid 16s and key epoch u32 of the one before, its key 60s
              destroyed: uid 16s
    end -64   32s  SHA-256 of all that stands before
    end -32   32s  HMAC-SHA256 of that hash, with a key that follows from the host's

Integers are little endian. The two at the end are there in every format.

The one rule: it is read whole or not at all. The plain hash tells damage from a wrong key, the keyed one tells
whether somebody without the key has written it.
"""

from __future__ import annotations

import struct
from hashlib import sha256
from hmac import compare_digest, digest
from typing import Any, Final, NamedTuple

from dataspace.encryption.errors import KeyFileDamaged, KeyFileNewer, KeyFileOfAnotherLog, WrongHostKey
from dataspace.encryption.keys import LINK, WRAP, HostKey, Keys, Link, Made, Name, fits

FORMAT: Final = 1
_MAGIC: Final = b"KEEVEKEY"
_HEAD = struct.Struct("<8sHxxI16s16sIIIxxxx")
_UID: Final = 16
_END: Final = 64


class KeyFrom(bytes):
    """A host's key that knows where it came from (`place`), for who is told that it is the wrong one."""

    place: str

    def __new__(cls, key: bytes, place: str) -> KeyFrom:
        made = super().__new__(cls, key)
        made.place = place
        return made


def packed(keys: Keys, host: HostKey) -> bytes:
    """The content of a key file. About 1 µs for each entry, and a tenth of that where only a few are new."""
    head = _HEAD.pack(
        _MAGIC,
        FORMAT,
        keys.serial,
        keys.log_id,
        host.check,
        len(keys.wraps),
        len(keys.links),
        len(keys.destroyed),
    )
    data = b"".join((head, keys.wrap_bytes, keys.link_bytes, *sorted(keys.destroyed)))
    hash = sha256(data).digest()
    return b"".join((data, hash, digest(host.vouching, hash, "sha256")))


class Outline(NamedTuple):
    """What a key file says to who has not got the host's key: its serial, by what it tells that key, of which sessions
    it has keys, and of which it says that they are destroyed."""

    serial: int
    check: bytes
    holders: frozenset[bytes]
    destroyed: frozenset[bytes]


def outline(data: bytes, path: str, log_id: bytes) -> Outline:
    """What the key file of a log says without the host's key. `path` is its name in errors.

    Raises `KeyFileDamaged`, `KeyFileNewer` or `KeyFileOfAnotherLog`.
    """
    _, _, serial, found, check, wraps, links, destroyed = _checked(data, path)
    if found != log_id:
        raise KeyFileOfAnotherLog(path, log_id, found)
    at_destroyed, end = _HEAD.size + wraps * WRAP.size + links * LINK.size, len(data) - _END
    _check_counts(path, end - at_destroyed, destroyed)
    holders = frozenset(data[at : at + _UID] for at in range(_HEAD.size, _HEAD.size + wraps * WRAP.size, WRAP.size))
    return Outline(serial, check, holders, frozenset(data[at : at + _UID] for at in range(at_destroyed, end, _UID)))


def unpacked(data: bytes, host_key: bytes, path: str, expected: bytes | None = None) -> tuple[Keys, HostKey]:
    """The table in a key file, and the host key as it is used for that log; which is the `expected` one, if given.

    `path` is its name in errors. Raises `KeyFileDamaged`, `KeyFileNewer`, `KeyFileOfAnotherLog` or `WrongHostKey`.
    """
    body = data[:-_END]
    _, _, serial, log_id, check, wraps, links, destroyed = _checked(data, path)
    if expected is not None and log_id != expected:
        raise KeyFileOfAnotherLog(path, expected, log_id)
    host = HostKey(host_key, log_id)
    if not compare_digest(check, host.check):
        raise WrongHostKey(path, host_key.place if isinstance(host_key, KeyFrom) else "")
    if not compare_digest(digest(host.vouching, data[-_END:-32], "sha256"), data[-32:]):
        raise KeyFileDamaged(path, "it was not written with this key")
    at_links = _HEAD.size + wraps * WRAP.size
    at_destroyed = at_links + links * LINK.size
    _check_counts(path, len(body) - at_destroyed, destroyed)
    made = Made(None, body[_HEAD.size : at_links], body[at_links:at_destroyed])
    keys = Keys(
        log_id,
        serial,
        {(uid, epoch): wrap for uid, epoch, wrap in WRAP.iter_unpack(made.wraps)},
        dict(map(_link, LINK.iter_unpack(made.links))),
        frozenset(body[at : at + _UID] for at in range(at_destroyed, len(body), _UID)),
        made,
    )
    if (len(keys.wraps), len(keys.links)) != (wraps, links):
        raise KeyFileDamaged(path, "a key is in it twice")
    if not fits(keys, host):
        raise KeyFileDamaged(path, "the key of the store's own chain is not in it")
    return keys, host


def _checked(data: bytes, path: str) -> tuple[Any, ...]:
    """The head of a key file that is as somebody has written it, with whatever key."""
    body = data[:-_END]
    if len(body) < _HEAD.size or not data.startswith(_MAGIC) or sha256(body).digest() != data[-_END:-32]:
        raise KeyFileDamaged(path, "its hash is another" if data else "it is empty")
    head = _HEAD.unpack_from(body)
    if head[1] > FORMAT:
        raise KeyFileNewer(path, head[1])
    return head


def _check_counts(path: str, left: int, destroyed: int) -> None:
    if left != destroyed * _UID:
        raise KeyFileDamaged(path, "its counts do not fit its length")


def _link(entry: tuple[bytes, int, int, bytes, int, bytes]) -> tuple[Name, Link]:
    uid, epoch, first, before, before_epoch, sealed = entry
    return (uid, epoch), Link(first, (before, before_epoch), sealed)
