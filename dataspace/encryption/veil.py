"""The veil over a derived file: what its rows say of content is there for a key's holder alone.

What is looked up by equality (an id, a label) is a keyed hash, what must be shown is ciphertext. A store that is not
encrypted has `PLAIN`, which leaves everything as it is.

The one rule: under a veil nothing that users have said stands in a row as it was said.
"""

from __future__ import annotations

from collections.abc import Callable
from hmac import digest
from typing import Final, Protocol

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from dataspace.encryption.cipher import NONCE, expand

_HASHED: Final = 16
"""Bytes of a keyed hash: two texts of a store have the same one about never."""


class Veil(Protocol):
    """What stands in a row for a text."""

    @property
    def mark(self) -> str:
        """What tells apart files that were written under another veil; empty for none."""
        ...

    def hashed(self, text: str) -> str | bytes:
        """What the text is looked up by: the same for the same text."""
        ...

    def hidden(self, text: str) -> str | bytes:
        """What the text can be had back from."""
        ...

    def shown(self, hidden: str | bytes) -> str:
        """The text. Raises `ValueError` for what was not hidden under this veil."""
        ...


class _Plain:
    mark = ""

    def hashed(self, text: str) -> str:
        return text

    def hidden(self, text: str) -> str:
        return text

    def shown(self, hidden: str | bytes) -> str:
        if not isinstance(hidden, str):
            raise TypeError("a text that is none")
        return hidden


PLAIN: Final[Veil] = _Plain()
"""No veil: texts stand as they are."""


class Hiding:
    """The veil of a store with this `secret`. A hash costs 5 µs, hiding and showing 2 µs each."""

    def __init__(self, secret: bytes, random: Callable[[int], bytes]) -> None:
        self._hashing = expand(secret, b"keeve veil hash 1\n")
        self._gcm = AESGCM(expand(secret, b"keeve veil text 1\n"))
        self._random = random
        self.mark = " veiled " + expand(secret, b"keeve veil mark 1\n")[:8].hex()

    def hashed(self, text: str) -> bytes:
        return digest(self._hashing, text.encode(errors="surrogatepass"), "sha256")[:_HASHED]

    def hidden(self, text: str) -> bytes:
        nonce = self._random(NONCE)
        return nonce + self._gcm.encrypt(nonce, text.encode(errors="surrogatepass"), None)

    def shown(self, hidden: str | bytes) -> str:
        if not isinstance(hidden, bytes):
            raise TypeError("a text that was never hidden")
        try:
            return self._gcm.decrypt(hidden[:NONCE], hidden[NONCE:], None).decode(errors="surrogatepass")
        except InvalidTag:
            raise ValueError("a text that was hidden under another veil") from None
