"""The token of whoever keeps the server: made at the first start, in a file for its owner alone.

The one rule: it is told once, to who starts the server for the first time. After that the file has it.
"""

from __future__ import annotations

import re
import secrets
from pathlib import Path
from typing import ClassVar, Final

from dataspace.errors import KeeveError
from keeve.private_files import make_private, read_private

SHAPE: Final = re.compile(r"[A-Za-z0-9._~+/=-]{16,4096}", re.ASCII)
"""What a token looks like: what a header can carry, and too long to be found by trying."""


class BadTokenFile(KeeveError, ValueError):
    """A file of a token that cannot be used; what stands in it is not shown."""

    usage: ClassVar[bool] = True

    def __init__(self, path: Path, what: str) -> None:
        self.path = path
        super().__init__(f"{path}: {what}")


def token_in(path: Path, *, make: bool = False) -> tuple[str, bool]:
    """The token in a file, and whether it was made now (with `make`, where there is no file). Raises `BadTokenFile`."""

    def bad(what: str) -> BadTokenFile:
        return BadTokenFile(path, what)

    made = False
    if make:
        try:
            make_private(path, f"{secrets.token_urlsafe(32)}\n".encode(), bad)
            made = True
        except FileExistsError:
            pass
    token = read_private(path, "it is to have a token on one line", bad).decode("latin-1").strip()
    if not SHAPE.fullmatch(token):
        raise bad("it does not have one token of 16 characters or more: remove it, and the next start makes one")
    return token, made
