"""The key of a host: where it comes from, and a new one for a store that has one.

A key is 32 random bytes. It is given as they are, as a file that its owner alone may read, or as a function. The file:

    keeve host key 1
    000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f

The one rule: a key stands in no message, no log and no error.
"""

from __future__ import annotations

import os
from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final, TypeAlias

from dataspace.encryption.cipher import KEY
from dataspace.encryption.errors import BadHostKey
from dataspace.encryption.key_file import KeyFrom
from dataspace.log.files import Files
from dataspace.log.rekeying import rekeyed
from dataspace.remedies import Remedy
from keeve.guard import guard
from keeve.private_files import make_private, read_private

HostKey: TypeAlias = "bytes | str | os.PathLike[str] | Callable[[], bytes]"
"""A host's key: 32 bytes, the path of its file, or a function that gives it."""

KEY_VARIABLE: Final = "KEEVE_KEY"
"""Environment variable of the commands: the key itself, in hex or base64."""
FILE_VARIABLE: Final = "KEEVE_KEY_FILE"
"""Environment variable of the commands: the path of the key's file."""
MAKE_HOST_KEY: Final = Remedy("make-host-key", "keeve.host_key(path, make=True) makes one")
_TITLE: Final = "keeve host key 1"


def host_key(path: str | os.PathLike[str], *, make: bool = False) -> bytes:
    """The key in the file at `path`. With `make` one is made, for its owner alone (0600), where there is no file.

    Raises `BadHostKey`.
    """
    where = Path(path)

    def bad(what: str) -> BadHostKey:
        return BadHostKey(f"{where}: {what}")

    if make:
        with suppress(FileExistsError):
            make_private(where, f"{_TITLE}\n{os.urandom(KEY).hex()}\n".encode(), bad)
    data = read_private(where, MAKE_HOST_KEY(), bad)
    try:
        title, text = data.decode().strip().split("\n")
    except (UnicodeDecodeError, ValueError):
        title = text = ""
    if title.strip() != _TITLE:
        raise bad(f"it does not have two lines, '{_TITLE}' and the key in hex")
    return KeyFrom(_decoded(text.strip(), str(where)), str(where))


def as_host_key(given: HostKey | None) -> bytes | None:
    """What a host is given as its key, as bytes. Raises `BadHostKey`, and what a function raises that gives it."""
    if callable(given):
        given = given()
        if not isinstance(given, bytes | bytearray):
            raise BadHostKey(f"the function that was to give it gave a {type(given).__name__}, not bytes")
    if given is None:
        return None
    if isinstance(given, bytes | bytearray | memoryview):
        if len(given) != KEY:
            raise BadHostKey(f"it has {len(given)} bytes, and {KEY} are wanted")
        return given if isinstance(given, KeyFrom) else bytes(given)
    if not isinstance(given, str | os.PathLike):
        raise TypeError(f"a host's key is bytes, the path of a file or a function, not a {type(given).__name__}")
    return host_key(given)


def host_key_from(environ: Mapping[str, str]) -> bytes | None:
    """The key that the environment names, if it does. Raises `BadHostKey`."""
    text, file = environ.get(KEY_VARIABLE, ""), environ.get(FILE_VARIABLE, "")
    if text and file:
        raise BadHostKey(f"both {KEY_VARIABLE} and {FILE_VARIABLE} are set, and one is enough")
    if file:
        return host_key(file)
    return KeyFrom(_decoded(text.strip(), KEY_VARIABLE), KEY_VARIABLE) if text else None


def rekey(path: str | os.PathLike[str], key: HostKey | None, new: HostKey) -> None:
    """Have the store at `path`, which nobody owns now, open with the key `new` from here on, and no more with `key`.

    The key file is written anew, and nothing else: some 10 µs for each session and fork. Durable when this returns; a
    crash leaves the old file or the new one. A function that gives the new key is called when all else is well. Raises
    `HostKeyNeeded`, `WrongHostKey`, `BadHostKey`, `StoreOwned`, `NotAStore`, `NotEncrypted`, or what says that the key
    file is not to be used.
    """
    guard(Path(path))

    def other() -> bytes:
        found = as_host_key(new)
        if found is None:
            raise BadHostKey("None was given")
        return found

    rekeyed(Path(path), as_host_key(key), other, Files(), os.urandom)


def _decoded(text: str, where: str) -> bytes:
    """A key as text: in hex, or in base64."""
    with suppress(ValueError):
        found = bytes.fromhex(text)
        if len(found) == KEY:
            return found
    with suppress(NotBase64, ValueError):
        found = b64decode(text, validate=True)
        if len(found) == KEY:
            return found
    raise BadHostKey(f"what {where} has is not {KEY} bytes in hex or base64")
