"""Signing keys: what signs a log's notes, wherever the secret itself is kept.

The one rule: no secret is kept here, shown or written. A key is its public half and something that signs.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import attrs
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from dataspace.errors import KeeveError
from dataspace.proofs.notes import BadSignature, Signature
from dataspace.proofs.verifiers import Algorithm, Verifier


class SignerFailed(KeeveError, quotes=False):  # what the signer says, its author decides; it has seen no content
    """What signs with a key raised: an agent that is away, a module that is not there. The log itself goes on."""

    def __init__(self, name: str, what: str) -> None:
        self.name = name
        self.what = what
        super().__init__(f"nothing was signed as {name}: the signer failed ({what}); bring it back, and ask again")


@attrs.frozen
class SigningKey:
    """An Ed25519 key: the `public` half (32 bytes), and `sign`, which gives 64 bytes for any.

    Raises `BadKey` when the public half is none. The name that it signs with is given at each use: it is the log's.
    What `sign` gives is checked each time, unless it is known to be `sure`.
    """

    public: bytes
    sign: Callable[[bytes], bytes] = attrs.field(repr=False, eq=False)
    sure: bool = attrs.field(default=False, repr=False, eq=False)

    def __attrs_post_init__(self) -> None:
        _verifier("x", self.public)

    @classmethod
    def of_private(cls, key: Ed25519PrivateKey) -> SigningKey:
        """The key that a private one of `cryptography` is."""
        return cls(key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw), key.sign, sure=True)

    @classmethod
    def of_seed(cls, seed: bytes) -> SigningKey:
        """The key made of 32 secret bytes."""
        return cls.of_private(Ed25519PrivateKey.from_private_bytes(seed))

    def verifier(self, name: str) -> Verifier:
        """What others check its signatures with, under a name. Raises `BadKey` for a name that none can be."""
        return _verifier(name, self.public)

    def signature(self, name: str, text: str) -> Signature:
        """Its signature of a note with this text.

        Raises `SignerFailed` when what signs raises, and `BadSignature` when it gives something else than a signature.

        Costs some 50 µs with a key in this process.
        """
        verifier = self.verifier(name)
        try:
            data = self.sign(text.encode())
        except Exception as error:
            raise SignerFailed(name, f"{type(error).__name__}: {error}") from error
        if not self.sure and not (isinstance(data, bytes) and verifier.verifies(text, data)):
            raise BadSignature(name, verifier.id)
        return Signature(name, verifier.id, data)


@lru_cache(maxsize=64)
def _verifier(name: str, public: bytes) -> Verifier:
    """A key that is checked once and not for each signature."""
    return Verifier(name, Algorithm.NOTE, public)
