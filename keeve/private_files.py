"""Files that hold secrets: read and made for their owner alone.

The one rule: a file that others than its owner can read holds no secret, and is refused.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from dataspace.errors import KeeveError

_LARGEST: Final = 1 << 14


def read_private(path: Path, remedy: str, refusal: Callable[[str], KeeveError]) -> bytes:
    """What is in the file. Raises `refusal` of what is wrong; `remedy` says what to do where there is none."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        raise refusal(f"{error.strerror}; {remedy}") from error
    try:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode):
            raise refusal("it is not a plain file")
        if found.st_mode & 0o077:
            raise refusal(f"others than its owner may use it: chmod 600 {path}")
        return os.read(fd, _LARGEST)
    finally:
        os.close(fd)


def make_private(path: Path, data: bytes, refusal: Callable[[str], KeeveError]) -> None:
    """Make the file, durably, whole or not at all. Raises `FileExistsError`, or `refusal` of what is wrong."""
    folder = path.absolute().parent
    aside = folder / f".{path.name}.{secrets.token_hex(8)}"
    try:
        with open(aside, "xb", opener=_for_its_owner) as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.link(aside, path)  # which never takes the place of what is there, as renaming would
        _sync_folder(folder)
    except FileExistsError:
        raise
    except OSError as error:
        raise refusal(f"it cannot be made ({error.strerror})") from error
    finally:
        with suppress(OSError):  # where it could not be made, there is none
            os.unlink(aside)


def _for_its_owner(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_CLOEXEC, 0o600)


def _sync_folder(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
