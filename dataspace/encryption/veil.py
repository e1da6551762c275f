"""The veil over a derived file: what its rows say of content is there for a key's holder alone.

What is looked up by equality (an id, a label) is a keyed hash, what must be shown is ciphertext. Both follow from the
text and the key alone, so that a file which is made anew is the same; the nonce is a keyed hash of the text.

The one rule: under a veil nothing that users have said stands in a row as it was said.
"""

from __future__ import annotations

from hmac import digest
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from dataspace.encryption.cipher import NONCE, expand

_HASHED: Final = 16
"""Bytes of a keyed hash: that two texts of a store have the same one does not happen."""


class Veil:
    """The veil of a store with this `secret`. A hash costs 5 µs, hiding 8 and showing 3.

    `mark` tells apart what was written under another one.
    """

    def __init__(self, secret: bytes) -> None:
        self._hashing = expand(secret, b"keeve veil hash 1\n")
        self._nonces = expand(secret, b"keeve veil nonce 1\n")
        self._gcm = AESGCM(expand(secret, b"keeve veil text 1\n"))
        self.mark = expand(secret, b"keeve veil mark 1\n")[:8].hex()

    def hashed(self, text: str) -> bytes:
        """What the text is looked up by."""
        return digest(self._hashing, text.encode(errors="surrogatepass"), "sha256")[:_HASHED]

    def hidden(self, text: str) -> bytes:
        """What the text can be had back from."""
        data = text.encode(errors="surrogatepass")
        nonce = digest(self._nonces, data, "sha256")[:NONCE]
        return nonce + self._gcm.encrypt(nonce, data, None)

    def shown(self, hidden: bytes) -> str:
        """The text. Raises `ValueError` or `TypeError` for what was not hidden under this veil."""
        try:
            return self._gcm.decrypt(hidden[:NONCE], hidden[NONCE:], None).decode(errors="surrogatepass")
        except InvalidTag:
            raise ValueError("a text that was hidden under another veil") from None
