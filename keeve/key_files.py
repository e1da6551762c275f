"""Signing keys in files: Ed25519 keys in PEM (PKCS 8), as `openssl genpkey -algorithm ed25519` makes them too.

The one rule: a file that others than its owner can read holds no secret, and is refused.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import ClassVar, TypeAlias

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

Signer: TypeAlias = "SigningKey | str | os.PathLike[str]"
"""A key, or the path of its file."""

_LARGEST = 1 << 14


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
    if make:
        with suppress(FileExistsError):
            _make(where)
    try:
        fd = os.open(where, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        raise BadKeyFile(str(where), f"{error.strerror}; signing_key(path, make=True) makes one") from error
    try:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode):
            raise BadKeyFile(str(where), "it is not a plain file")
        if found.st_mode & 0o077:
            raise BadKeyFile(str(where), f"others than its owner may use it: chmod 600 {where}")
        data = os.read(fd, _LARGEST)
    finally:
        os.close(fd)
    try:
        key = load_pem_private_key(data, None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise BadKeyFile(str(where), "it is no private key in PEM without a password") from None
    if not isinstance(key, Ed25519PrivateKey):
        raise BadKeyFile(str(where), "its key is not an Ed25519 one: openssl genpkey -algorithm ed25519 makes those")
    return SigningKey.of_private(key)


def _make(path: Path) -> None:
    data = Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        raise
    except OSError as error:
        raise BadKeyFile(str(path), f"it cannot be made ({error.strerror})") from error
    try:
        os.write(fd, data)
        os.fsync(fd)
    finally:
        os.close(fd)
    folder = os.open(path.absolute().parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def as_key(signer: Signer | None) -> SigningKey | None:
    """What a host is given as its signer, as a key. Raises `BadKeyFile`."""
    if signer is None or isinstance(signer, SigningKey):
        return signer
    if not isinstance(signer, str | os.PathLike):
        raise TypeError(f"a signer is the path of a file or a SigningKey, not a {type(signer).__name__}")
    return signing_key(signer)
