"""What a catalog file knows of deletions, for whoever has to do with a log in which tombstones may be lost.

The file is copied, with its journal, and the copy is read: a transaction that a crash has cut short is undone there.

The one rule: the file itself, and its folder, are left as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from shutil import copyfile
from typing import NamedTuple

from dataspace.catalog.connections import FAILED, remove
from dataspace.catalog.naming import names_for
from dataspace.catalog.recent import SessionRow
from dataspace.catalog.tables import Tables

_JOURNAL = "-journal"


class Deletions(NamedTuple):
    """The sessions that were deleted, by their uids: all that have a tombstone up to the position `upto`. `wrong`
    says why a file that is there tells nothing."""

    upto: int = 0
    sessions: Mapping[bytes, SessionRow] = {}
    wrong: str = ""


def deletions_in(path: Path, aside: Path, log_id: bytes, secret: bytes | None) -> Deletions:
    """What the catalog at `path` says, if it is one of this log, by way of a copy at `aside`, which goes again.

    Never raises for what is wrong with it: whoever asks has a damaged disk.
    """
    try:
        copyfile(path, aside)
        with suppress(FileNotFoundError):
            copyfile(path.with_name(path.name + _JOURNAL), aside.with_name(aside.name + _JOURNAL))
        return _read(aside, log_id, secret)
    except FileNotFoundError:
        return Deletions()
    except OSError as error:
        return Deletions(wrong=f"it cannot be read ({error.strerror or error})")
    finally:
        remove(aside)


def _read(path: Path, log_id: bytes, secret: bytes | None) -> Deletions:
    try:
        tables = Tables(path, log_id, names_for(secret))
        try:
            if not tables.fits():
                return Deletions(wrong="it is no catalog of this log and version")
            return Deletions(tables.head().position, tables.deleted())
        finally:
            tables.close()
    except FAILED as error:
        return Deletions(wrong=f"it is damaged ({error})")
