"""Connections to the catalog's SQLite file, every page of it checked.

The checksum VFS that comes with apsw adds a checksum to each page and compares it whenever the page is
read, so that damage is an error and never another answer. The journal is a rollback journal and not a
write-ahead log: that one maps a file into memory, and whoever truncates a mapped file ends the process.

The one rule: a connection is used by one thread at a time.
"""

from __future__ import annotations

import os
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, Final

import apsw
import apsw.sqlite_extra

FAILED: Final = (apsw.Error, ArithmeticError, LookupError, TypeError, ValueError)
"""What reading a file may raise that is damaged, or that somebody else has written: SQLite's errors, and Python's
where something else stands in a row than we put there."""


def connect(
    path: Path | None, patience: int, flags: int = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
) -> apsw.Connection:
    """A connection to the file at `path`, or to a new database in memory. Raises `apsw.Error`.

    `patience` is how long it waits for others who use the file, in milliseconds.
    """
    if path is None:
        return apsw.Connection(":memory:")
    for one in (path, _journal(path)):
        if one.exists() and not one.is_file():
            raise apsw.CantOpenError(f"{one} is not a plain file")  # SQLite would wait for a pipe
    if flags & apsw.SQLITE_OPEN_CREATE:
        # As private as the log. Only where there is none: to open a file that SQLite has open, and to close it
        # again, would give up its locks.
        with suppress(FileExistsError):
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))
    db = apsw.Connection(str(path), flags, _checked_vfs())
    try:
        if _checked_vfs() is not None:
            db.reserve_bytes("main", 8)
        db.set_busy_timeout(patience)
        db.execute("PRAGMA journal_mode = TRUNCATE; PRAGMA synchronous = NORMAL")
    except BaseException:
        db.close()
        raise
    return db


def rows(db: apsw.Connection, sql: str, bindings: tuple[Any, ...] = ()) -> list[Any]:
    """All rows of a query, with nothing left open. Raises `apsw.Error`."""
    return db.execute(sql, bindings).fetchall()


@cache
def _checked_vfs() -> str | None:
    """The VFS that checks every page; None in the rare builds of apsw that come without it."""
    if apsw.sqlite_extra.has("cksumvfs") is None:
        return None
    db = apsw.Connection(":memory:")
    try:
        apsw.sqlite_extra.load(db, "cksumvfs")
    finally:
        db.close()
    return "cksmvfs"


def remove(path: Path) -> None:
    """Remove a catalog file and what SQLite keeps beside it. What is not there is no matter."""
    for one in (path, path.with_name(path.name + "-wal"), path.with_name(path.name + "-shm"), _journal(path)):
        one.unlink(missing_ok=True)


def _journal(path: Path) -> Path:
    return path.with_name(path.name + "-journal")
