"""Revocations: the ids of tokens that were taken back, in a file beside the store.

The file has an id a line; lines are only added. Whoever serves reads it again when it has changed, so that a running
server heeds what another process has written.

The one rule: what cannot be read revokes everything. A file that is damaged lets nobody in.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import ClassVar, Final

from dataspace.errors import KeeveError

FILE: Final = "revoked"
"""The file's name, in the folder of a store."""

_ID: Final = re.compile(r"[0-9a-f]{32}", re.ASCII)


class BadRevocations(KeeveError):
    """The file of revoked tokens is not what was written, so no token is taken."""

    def __init__(self, path: Path, what: str) -> None:
        self.path = path
        super().__init__(f"{path}: {what}; no token is taken now: give it one id of 32 hex digits a line")


class NoTokenId(KeeveError, ValueError):
    """What was to be revoked is no id of a token."""

    usage: ClassVar[bool] = True

    def __init__(self, id: object) -> None:
        super().__init__(f"{id!r:.60} is no id of a token: give the 32 hex digits that `keeve token show` says")


class Revocations:
    """The revoked tokens of the store in a folder."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE
        self._seen: tuple[int, int, int] | None = None
        self._ids: frozenset[str] = frozenset()

    @property
    def ids(self) -> frozenset[str]:
        """Those that are revoked now. Raises `BadRevocations`. Costs one look at the file, a few microseconds."""
        try:
            found = os.stat(self.path)
        except FileNotFoundError:
            self._seen, self._ids = None, frozenset()
            return self._ids
        except OSError as error:
            raise BadRevocations(self.path, str(error.strerror)) from error
        seen = (found.st_ino, found.st_size, found.st_mtime_ns)
        if seen != self._seen:
            self._ids = self._read()
            self._seen = seen
        return self._ids

    def revoke(self, id: str) -> bool:
        """Revoke a token and all that were narrowed from it, durably. False if it was revoked before.

        Raises `NoTokenId`, or `BadRevocations`.
        """
        if not (isinstance(id, str) and _ID.fullmatch(id)):
            raise NoTokenId(id)
        if id in self.ids:
            return False
        try:
            fd = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                os.write(fd, f"{id}\n".encode())
                os.fsync(fd)
            finally:
                os.close(fd)
            folder = os.open(self.path.absolute().parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
        except OSError as error:
            raise BadRevocations(self.path, f"it cannot be written ({error.strerror})") from error
        return True

    def _read(self) -> frozenset[str]:
        try:
            lines = self.path.read_text("ascii").splitlines()
        except (OSError, ValueError) as error:
            raise BadRevocations(self.path, f"it cannot be read ({error})") from error
        for number, line in enumerate(lines, 1):
            if not _ID.fullmatch(line):
                raise BadRevocations(self.path, f"line {number} is no id of a token")
        return frozenset(lines)
