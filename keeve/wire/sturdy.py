"""Sturdy refs: a ref in a form that outlives its connection and the server's process.

    keeve-ref1.<base64url of: uid 16, actor u64, HMAC-SHA256 32>

The HMAC is over the principal whom the ref was given to, the session's uid and the actor, under a key that follows from
the server's secret. So nobody makes one of a uid and a number, and one that is found is of no use under another name.

The one rule: a sturdy ref gives back what its connection had, and never more: what a token does not allow, it does not
allow through a sturdy ref either.
"""

from __future__ import annotations

import hmac
import struct
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as BadBase64
from typing import ClassVar, Final

from dataspace.errors import KeeveError
from keeve.wire.tokens import derived_key

PREFIX: Final = "keeve-ref1."
_BODY: Final = struct.Struct(">16sQ32s")
_LENGTH: Final = len(PREFIX) + 75
"""Characters of one: 56 bytes in base64url, without padding."""


class BadRef(KeeveError, PermissionError):
    """A ref that this server has not given to who asks."""

    usage: ClassVar[bool] = True

    def __init__(self, what: str) -> None:
        super().__init__(f"this ref is refused: {what}; get it from who gave it, or get the session by its id")


class SturdyRefs:
    """Makes and opens the sturdy refs of a server."""

    def __init__(self, secret: str) -> None:
        self._key = derived_key(secret, "sturdy ref")

    def sturdy(self, by: str, uid: bytes, actor: int) -> str:
        """The text of a ref that was given to the principal `by`."""
        body = _BODY.pack(uid, actor, self._seal(by, uid, actor))
        return PREFIX + urlsafe_b64encode(body).rstrip(b"=").decode()

    def opened(self, by: str, text: object) -> tuple[bytes, int]:
        """The session's uid and the actor. Raises `BadRef` for all that was not given to that principal here."""
        if not isinstance(text, str) or len(text) != _LENGTH or not text.startswith(PREFIX):
            raise BadRef(f"a sturdy ref is the text {PREFIX}… that ref.sturdy gave")
        try:
            uid, actor, seal = _BODY.unpack(urlsafe_b64decode(text[len(PREFIX) :] + "="))
        except (BadBase64, ValueError, struct.error):
            raise BadRef("it is cut off, or altered") from None
        if not hmac.compare_digest(self._seal(by, uid, actor), seal) or self.sturdy(by, uid, actor) != text:
            raise BadRef(f"it was not given to {by!r} by this server")
        return uid, actor

    def _seal(self, by: str, uid: bytes, actor: int) -> bytes:
        return hmac.digest(self._key, uid + struct.pack(">Q", actor) + by.encode(), "sha256")
