"""Files that hold secrets: read and made for their owner alone.

The one rule: a file that others than its owner can read holds no secret, and is refused.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
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
    """Make the file, durably. Raises `FileExistsError`, or `refusal` of what is wrong."""
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        raise
    except OSError as error:
        raise refusal(f"it cannot be made ({error.strerror})") from error
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
