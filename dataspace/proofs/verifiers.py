"""Verifier keys: the public keys of those who sign notes, as the text `name+id+key`.

    id    the first 4 bytes of SHA-256(name ‖ newline ‖ algorithm ‖ public key), in hex
    key   base64 of the algorithm (1 byte) and the public key (32 bytes)

Algorithm 1 is Ed25519 over a note's text; 4 is that of a witness, who says as well when it looked: 8 bytes with the
seconds since 1970 (big endian) before a signature over two more lines and the text. The formats are C2SP's
`signed-note` and `tlog-cosignature`; Ed25519 is RFC 8032's.

The one rule: a key that is loaded is a good one. What is no point of the curve, is written in another than the one
form, or has low order (then one signature fits many texts) is refused before anything is checked with it.
"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from enum import IntEnum
from functools import cached_property
from hashlib import sha256
from typing import ClassVar, Final

import attrs
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from dataspace.errors import KeeveError

PUBLIC: Final = 32
"""Bytes of a public key."""
SIGNATURE: Final = 64
"""Bytes of an Ed25519 signature."""
TIMESTAMP: Final = 8
"""Bytes before the signature of a witness."""
LONGEST_NAME: Final = 1000
"""Characters of a name, at the most."""

_ID = re.compile(r"[0-9a-f]{8}", re.ASCII)
_PRIME: Final = 2**255 - 19
_D: Final = -121665 * pow(121666, -1, _PRIME) % _PRIME
_ROOT_OF_MINUS_ONE: Final = pow(2, (_PRIME - 1) // 4, _PRIME)


class BadKey(KeeveError, ValueError):
    """What was given as a key is none that can be trusted with anything."""

    usage: ClassVar[bool] = True

    def __init__(self, key: object, what: str) -> None:
        self.key = key
        self.what = what
        super().__init__(f"{key!r:.120} is no good key: {what}; ask whoever gave it for the right one")


class Algorithm(IntEnum):
    """How a key signs. The numbers are C2SP's."""

    NOTE = 1
    """Ed25519 over the text of a note."""
    WITNESS = 4
    """Ed25519 over a time and the text of a checkpoint."""


@attrs.frozen(slots=False)
class Verifier:
    """A public key and the name that its owner signs with. Raises `BadKey` when it is made of what is none."""

    name: str
    algorithm: Algorithm
    public: bytes

    def __attrs_post_init__(self) -> None:
        if not is_name(self.name):
            raise BadKey(self.name, "a name is not empty, and has neither spaces nor a plus")
        what = _fault(self.public)
        if what:
            raise BadKey(self.name, what)

    @classmethod
    def parse(cls, text: str | Verifier) -> Verifier:
        """The key that a text is; or what is one already. Raises `BadKey`."""
        if isinstance(text, Verifier):
            return text
        if not isinstance(text, str):
            raise BadKey(text, f"it is a {type(text).__name__}, and neither a Verifier nor the text of one")
        parts = text.split("+", 2)  # base64 may have a plus, names and ids have none
        if len(parts) != 3 or not _ID.fullmatch(parts[1]):
            raise BadKey(
                text, "a verifier key is a name, an id of 8 hex digits and a key in base64, with a plus between"
            )
        name, id, encoded = parts
        if not is_name(name):
            raise BadKey(text, "a name is not empty, and has neither spaces nor a plus")
        key = strict_base64(encoded)
        if key is None or len(key) < 2:
            raise BadKey(text, "what stands after the second plus is not base64 as it is written")
        if key[0] not in tuple(Algorithm):
            raise BadKey(text, f"it is for algorithm {key[0]}, and this version knows Ed25519 (1) and witnesses' (4)")
        if id != key_id(name, key).hex():
            raise BadKey(text, "its id is not that of this name and key")
        return cls(name, Algorithm(key[0]), key[1:])

    @cached_property
    def id(self) -> bytes:
        """4 bytes that stand for it in signatures, together with the name."""
        return key_id(self.name, bytes([self.algorithm]) + self.public)

    @cached_property
    def _key(self) -> Ed25519PublicKey:
        return Ed25519PublicKey.from_public_bytes(self.public)

    def verifies(self, text: str, signature: bytes) -> bool:
        """Whether `signature` (without the id) is this key's of a note with this text."""
        message = text.encode()
        if self.algorithm is Algorithm.WITNESS:
            if len(signature) != TIMESTAMP + SIGNATURE:
                return False
            message = witnessed(text, witness_time(signature))
            signature = signature[TIMESTAMP:]
        try:
            self._key.verify(signature, message)
        except InvalidSignature:
            return False
        return True

    def __str__(self) -> str:
        key = b64encode(bytes([self.algorithm]) + self.public).decode()
        return f"{self.name}+{self.id.hex()}+{key}"


def is_name(name: str) -> bool:
    """Whether a name may stand in a signature's line."""
    return (
        0 < len(name) <= LONGEST_NAME
        and name.isprintable()
        and "+" not in name
        and not any(map(str.isspace, name))
        and name.encode(errors="replace").decode() == name
    )


def key_id(name: str, key: bytes) -> bytes:
    """The id of a key (algorithm and public key) under a name."""
    return sha256(name.encode() + b"\n" + key).digest()[:4]


def witnessed(text: str, time: int) -> bytes:
    """What a witness signs who looked at `time`, in seconds since 1970."""
    return f"cosignature/v1\ntime {time}\n{text}".encode()


def witness_time(signature: bytes) -> int:
    """When a witness signed, in seconds since 1970; known to be true once the signature is verified."""
    return int.from_bytes(signature[:TIMESTAMP], "big")


def strict_base64(text: str) -> bytes | None:
    """The bytes that a text is in base64, in the one form that it has; None when it is something else."""
    try:
        data = b64decode(text, validate=True)
    except (NotBase64, ValueError):
        return None
    return data if b64encode(data).decode() == text else None


def _fault(public: bytes) -> str:
    """Why bytes are no public key to rely on; nothing when they are."""
    if len(public) != PUBLIC:
        return f"a public key has {PUBLIC} bytes, not {len(public)}"
    encoded = int.from_bytes(public, "little")
    sign, y = encoded >> 255, encoded & (1 << 255) - 1
    if y >= _PRIME:
        return "its public key is not written in the one form that it has"
    x = _x(y)
    if x is None:
        return "its public key is no point of the curve"
    if x == 0 and sign:
        return "its public key is not written in the one form that it has"
    for _ in range(3):
        x, y = _doubled(x, y)
    if (x, y) == (0, 1):
        return "its public key has low order: a signature of it proves nothing"
    return ""


def _x(y: int) -> int | None:
    """One of the two x of the points with this y, which differ in sign; None when there is none."""
    square = (y * y - 1) * pow(_D * y * y + 1, -1, _PRIME) % _PRIME
    x = pow(square, (_PRIME + 3) // 8, _PRIME)
    if x * x % _PRIME != square:
        x = x * _ROOT_OF_MINUS_ONE % _PRIME
    return x if x * x % _PRIME == square else None


def _doubled(x: int, y: int) -> tuple[int, int]:
    """A point of the curve added to itself."""
    product = _D * x * x * y * y % _PRIME
    return (
        2 * x * y * pow(1 + product, -1, _PRIME) % _PRIME,
        (y * y + x * x) * pow(1 - product, -1, _PRIME) % _PRIME,
    )
