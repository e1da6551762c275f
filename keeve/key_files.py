"""Signing keys in files: Ed25519 keys in PEM (PKCS 8), as `openssl genpkey -algorithm ed25519` makes them too.

The one rule: a file that others than its owner can read holds no secret, and is refused.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import ClassVar, Final, TypeAlias

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from dataspace.errors import KeeveError
from dataspace.proofs.signers import SigningKey
from dataspace.remedies import Remedy
from keeve.private_files import make_private, read_private

Signer: TypeAlias = "SigningKey | str | os.PathLike[str]"
"""A key, or the path of its file."""


MAKE_KEY: Final = Remedy("make-key", "signing_key(path, make=True) makes one")


class BadKeyFile(KeeveError):
    """A file that holds no key to sign with, or that others can read."""

    usage: ClassVar[bool] = True

    def __init__(self, path: str, what: str) -> None:
        self.path = path
        self.what = what
        super().__init__(f"{path} holds no key to sign with: {what}")


def signing_key(path: str | os.PathLike[str], *, make: bool = False) -> SigningKey:
    """The key in the file at `path`. With `make` one is made, for its owner alone (0600), where there is no file.

    The key can be read from memory by whoever may look into this process; one that is kept elsewhere (in a hardware
    module, by an agent) is a `SigningKey` of its public half and a function that signs. Raises `BadKeyFile`.
    """
    where = Path(path)

    def bad(what: str) -> BadKeyFile:
        return BadKeyFile(str(where), what)

    if make:
        with suppress(FileExistsError):
            made = Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
            make_private(where, made, bad)
    data = read_private(where, MAKE_KEY(), bad)
    try:
        key = load_pem_private_key(data, None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise bad("it is no private key in PEM without a password") from None
    if not isinstance(key, Ed25519PrivateKey):
        raise bad("its key is not an Ed25519 one: openssl genpkey -algorithm ed25519 makes those")
    return SigningKey.of_private(key)


def as_key(signer: Signer | None) -> SigningKey | None:
    """What a host is given as its signer, as a key. Raises `BadKeyFile`."""
    if signer is None or isinstance(signer, SigningKey):
        return signer
    if not isinstance(signer, str | os.PathLike):
        raise TypeError(f"a signer is the path of a file or a SigningKey, not a {type(signer).__name__}")
    return signing_key(signer)
