"""What a catalog file says before its log is open: where recovery may begin, and the heads of chains then.

The one rule: it is evidence and nothing more. What does not fit the log is not believed.
"""

from __future__ import annotations

from pathlib import Path

import apsw

from dataspace.catalog.connections import FAILED, connect, rows
from dataspace.catalog.packing import item
from dataspace.catalog.schema import FORMAT, about, ours
from dataspace.catalog.tables import READING
from dataspace.log.marks import ChainHead, Mark


class Peek:
    """What a catalog file says before its log is open: evidence that saves recovery a long way.

    `log_id` is the log's, `mark` where to begin. Close it before the catalog is opened.
    """

    def __init__(self, db: apsw.Connection, log_id: bytes, mark: Mark) -> None:
        self._db = db
        self.log_id = log_id
        self.mark = mark

    def heads(self, uid: bytes) -> ChainHead | None:
        """The head of a chain at the mark; None for one that had not begun, or if the file fails."""
        try:
            found = rows(self._db, "SELECT seq, hash FROM sessions WHERE uid = ?", (uid,))
        except apsw.Error:
            return None
        match found:
            case [(int(seq), bytes(digest))]:
                return seq, digest
        return None

    def newest(self) -> int | None:
        """The address of the record at the mark; None when the file does not say, or fails."""
        try:
            sql = "SELECT start, addresses FROM spans WHERE start <= ? ORDER BY start DESC LIMIT 1"
            found = rows(self._db, sql, (self.mark.position,))
            return item(found[0][1], self.mark.position - found[0][0]) if found else None
        except FAILED:
            return None

    def close(self) -> None:
        """Close the file."""
        self._db.close()


def is_catalog(path: Path) -> bool:
    """Whether a file is a catalog that can be read, maybe one that tells no place in the log: nothing was written to it
    yet, or something in the log is damaged."""
    try:
        db = connect(path, READING, apsw.SQLITE_OPEN_READWRITE)
        try:
            return ours(db) and str(about(db)[0]).startswith(FORMAT)
        finally:
            db.close()
    except (apsw.Error, OSError):
        return False


def peek(path: Path) -> Peek | None:
    """Open the catalog file at `path` for recovery; None when it is missing, damaged or has no mark."""
    db = None
    try:
        if not path.exists():
            return None
        db = connect(path, READING, apsw.SQLITE_OPEN_READWRITE)
        match about(db) if ours(db) else ():
            case [form, bytes(log_id), int(position), bytes(digest), int(segment), int(offset), bytes(commit)] if (
                isinstance(form, str) and (form == FORMAT or form.startswith(f"{FORMAT} veiled "))
            ):
                return Peek(db, log_id, Mark(segment, offset, position, digest, commit))
    except (apsw.Error, OSError):
        pass
    if db is not None:
        db.close()
    return None
