"""Frames: one message as the bytes of one value, and streams of bytes cut into frames.

Over a stream of bytes (a Unix socket) a frame is its length, four bytes, the highest first, and then its body; over a
WebSocket it is the body of one binary message. The body is a value in its only encoding (`dataspace.values`).

The one rule: a length is not believed before it is looked at, and nothing is made of a body before its outline was
looked over. What one frame can cost in memory is bounded by the two limits given here.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar, Final

from dataspace.errors import KeeveError
from dataspace.values import Value
from dataspace.values.encoding import BadEncoding, decode_strict, encode

HEAD: Final = 4
"""Bytes of a length."""

ITEMS: Final = 100_000
"""Items in all lists and dicts of a frame from a client: one is a byte on the wire, and may be a hundred in memory."""

_NARROW: Final = 16


class BadFrame(KeeveError, ValueError):
    """Bytes that are no frame, or no message: whoever sent them is not spoken to any more."""

    usage: ClassVar[bool] = True

    def __init__(self, what: str) -> None:
        self.what = what
        super().__init__(f"this is no message of the protocol: {what}; see docs/wire.md")


def decoded(body: bytes, items: int | None = ITEMS) -> list[Value]:
    """The list that a body is. Raises `BadFrame`. Takes time and memory in proportion to its length and its items."""
    try:
        value = decode_strict(body, max_items=items)
    except BadEncoding as error:
        raise BadFrame(error.reason) from None
    if not isinstance(value, list) or not value or type(value[0]) is not str:
        raise BadFrame("it is not a list that begins with the kind of message")
    return value


def listed(items: Iterable[bytes]) -> bytes:
    """The encoding of a list whose items are encoded already."""
    encoded = list(items)
    count = len(encoded)
    if count < _NARROW:
        head = bytes([0x90 | count])
    elif count < 1 << 16:
        head = b"\xdc" + count.to_bytes(2, "big")
    else:
        head = b"\xdd" + count.to_bytes(4, "big")
    return head + b"".join(encoded)


def message(kind: str, *fields: Any) -> bytes:
    """The body of a message."""
    return encode([kind, *fields])


def framed(body: bytes) -> bytes:
    """A body with its length before it."""
    return len(body).to_bytes(HEAD, "big") + body


class Frames:
    """Cuts a stream of bytes into bodies. `limit` bytes may be in one, and may be changed between two."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._bytes = bytearray()

    def feed(self, data: bytes | bytearray) -> None:
        """Take in what has come."""
        self._bytes += data

    def next(self) -> bytes | None:
        """The next body; None: more has to come first. Raises `BadFrame` for one that is too long."""
        held = self._bytes
        if len(held) < HEAD:
            return None
        end = HEAD + int.from_bytes(held[:HEAD], "big")
        if end - HEAD > self.limit:
            raise BadFrame(f"it has {end - HEAD} bytes, and {self.limit} may be in one")
        if len(held) < end:
            return None
        body = bytes(held[HEAD:end])
        del held[:end]
        return body
