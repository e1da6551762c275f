"""The catalog's SQLite file, or its like in memory: opened or made, and written in transactions.

The one rule: only `Recent`s are written, whole, each in one transaction; nothing here is the truth.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import apsw

from dataspace.catalog.connections import connect, rows
from dataspace.catalog.naming import SESSION, Names
from dataspace.catalog.packing import pack
from dataspace.catalog.questions import Questions, remember
from dataspace.catalog.recent import Recent, Taken, Thread
from dataspace.catalog.schema import SCHEMA, about
from dataspace.catalog.tree import grow

READING: Final = 2_000
"""Milliseconds that a question waits for the end of a transaction, which takes a few. Whoever asks holds up all."""
WRITING: Final = 100
"""Milliseconds that a transaction waits for those who read; then it is tried again later."""


class Tables(Questions):
    """One catalog file, or one in memory. Reading is for one thread, writing for one, at the same time.

    In memory there is one connection for both, so that writing is for the reading thread. `make` gives new ones; for
    those that a file has, a connection to write is opened at the first writing. Any method may raise `apsw.Error`: the
    file is damaged, gone, or full.
    """

    def __init__(self, path: Path | None, log_id: bytes, names: Names, writer: apsw.Connection | None = None) -> None:
        self.path = path
        self._writer = writer
        reader = writer if path is None and writer is not None else connect(path, READING, apsw.SQLITE_OPEN_READWRITE)
        super().__init__(reader, log_id, names)
        # Not what questions remember: what was written may yet be rolled back.
        self._label_numbers: dict[str, int] = {}
        self._shape_numbers: dict[tuple[str, ...], int] = {}

    @classmethod
    def make(cls, path: Path | None, log_id: bytes, names: Names) -> Tables:
        """New tables, in a file that is not there yet or in memory."""
        db = connect(path, WRITING)
        try:
            with db:
                db.execute(SCHEMA)
                head = (names.format, log_id, 0, bytes(32), None, None, None)
                db.execute("INSERT INTO about VALUES(?, ?, ?, ?, ?, ?, ?)", head)
            return cls(path, log_id, names, db)
        except BaseException:
            db.close()
            raise

    @classmethod
    def copy(cls, path: Path, log_id: bytes, names: Names) -> Tables:
        """A copy in memory of the file at `path`, which its owner may be writing."""
        db = connect(None, WRITING)
        try:
            source = connect(path, READING, apsw.SQLITE_OPEN_READONLY)
            try:
                with db.backup("main", source, "main") as backup:
                    backup.step()
            finally:
                source.close()
            return cls(None, log_id, names, db)
        except BaseException:
            db.close()
            raise

    def close(self) -> None:
        """Close the connections."""
        self._reader.close()
        if self._writer is not None:
            self._writer.close()

    # Writing: for the thread that flushes.

    def write(self, recent: Recent) -> None:
        """Write all that `recent` holds, in one transaction. About 2 µs for each row."""
        db = self._writer or self._begin_writing(recent.start)
        db.execute("BEGIN IMMEDIATE")
        try:
            renamed = self._write(db, recent)
            db.execute("COMMIT")
            if renamed:
                self._names.renamed()
        except BaseException:
            if db.in_transaction:
                db.execute("ROLLBACK")
            self._label_numbers.clear()
            self._shape_numbers.clear()
            raise

    def unmark(self) -> None:
        """Write that nothing is known of what lies where in the log: whoever opens it next looks at all of it."""
        db = self._writer or self._begin_writing(self.head().position)
        db.execute("UPDATE about SET segment = NULL, offset = NULL, committed = NULL")

    def bury(self, tombstones: Mapping[bytes, int]) -> None:
        """Write of these sessions that they are deleted, where it is not known yet. For tables in memory."""
        assert self._writer is not None
        sql = "UPDATE sessions SET deleted = ?, pending = 0 WHERE uid = ? AND deleted = 0"
        self._writer.executemany(sql, [(position, uid) for uid, position in tombstones.items()])

    def _begin_writing(self, position: int) -> apsw.Connection:
        """Open the file to write to it, which has to be the one that is read: it has come to `position`."""
        db = connect(self.path, WRITING, apsw.SQLITE_OPEN_READWRITE)
        try:
            if about(db)[:3] != (self._names.format, self._log_id, position):
                raise apsw.CorruptError(f"{self.path} is another file than the one that was opened")
        except BaseException:
            db.close()
            raise
        self._writer = db
        return db

    def _write(self, db: apsw.Connection, recent: Recent) -> bool:
        """Write it; says whether a session has another id than it had."""
        renamed = False
        db.execute("INSERT INTO spans VALUES(?, ?)", (recent.start + 1, pack(recent.addresses)))
        grow(db, recent.start, recent.hashes, recent.nodes)
        threads, snapshots = [], []
        for thread in recent.threads.values():
            number, other = self._put_session(db, thread)
            renamed = renamed or other
            shapes = [self._shape_number(db, shape) for shape in thread.shapes]
            threads.append((number, thread.first, pack(thread.positions), pack(shapes)))
            snapshots += [(number, seq, base) for seq, base in thread.snapshots]
        db.executemany("INSERT INTO threads VALUES(?, ?, ?, ?)", threads)
        db.executemany("INSERT INTO snapshots VALUES(?, ?, ?)", snapshots)
        postings = []
        for label, listed in recent.postings.items():
            stated = sum(1 for posting in listed if not posting & 1)
            postings.append((self._label_number(db, label), listed[0] >> 1, stated, pack(listed)))
        db.executemany("INSERT INTO postings VALUES(?, ?, ?, ?)", postings)
        for taken in recent.taken:
            self._put_taken(db, taken)
        mark = recent.mark
        db.execute(
            "UPDATE about SET position = ?, hash = ?, segment = ?, offset = ?, committed = ?",
            (*recent.head, *((mark.segment, mark.offset, mark.commit) if mark else (None, None, None))),
        )
        return renamed

    def _put_session(self, db: apsw.Connection, thread: Thread) -> tuple[int, bool]:
        """A session's number, and whether its id is another one now."""
        found = rows(db, f"SELECT n, {SESSION} WHERE uid = ?", (thread.uid,))
        if not found:
            row = thread.over(None)
            owner = self._names.owner(thread.birth.by if thread.birth else "")
            values = (row.uid, *self._names.cells(row), *row[3:], owner)
            db.execute("INSERT INTO sessions VALUES(NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", values)
            return db.last_insert_rowid(), False
        number = int(found[0][0])
        before = self._names.session(found[0][1:])
        now = thread.over(before)
        db.execute(
            "UPDATE sessions SET seq = ?, position = ?, hash = ?, pending = ?, deleted = ?, updated = ? WHERE n = ?",
            (now.seq, now.position, now.hash, now.pending, now.deleted, now.updated, number),
        )
        if thread.birth is not None:  # a tombstone has told what the first record did not
            db.execute(
                "UPDATE sessions SET id = ?, type = ?, parent = ?, parent_seq = ?, created = ? WHERE n = ?",
                (*self._names.cells(now), now.parent, now.parent_seq, now.created, number),
            )
        return number, now.id != before.id

    def _put_taken(self, db: apsw.Connection, taken: Taken) -> None:
        label = self._names.hidden(taken.label)
        row = (taken.position, taken.operation, taken.by, label, taken.seq, taken.gone, taken.own)
        db.execute("INSERT OR IGNORE INTO taken VALUES(?, ?, ?, ?, ?, ?, ?)", row)
        if taken.own and db.changes():
            number = self._label_number(db, taken.label)
            db.execute(
                "UPDATE postings SET held = held - 1 WHERE label = ?1 AND first = "
                "(SELECT max(first) FROM postings WHERE label = ?1 AND first <= ?2)",
                (number, taken.position),
            )

    def _label_number(self, db: apsw.Connection, name: str) -> int:
        number = self._label_numbers.get(name)
        if number is None:
            number = _interned(db, "labels", "name", self._names.hashed(name))
            remember(self._label_numbers, name, number)
        return number

    def _shape_number(self, db: apsw.Connection, shape: tuple[str, ...]) -> int:
        number = self._shape_numbers.get(shape)
        if number is None:
            numbers = sorted(self._label_number(db, label) for label in shape)
            number = _interned(db, "shapes", "labels", str(numbers))
            remember(self._shape_numbers, shape, number)
        return number


def _interned(db: apsw.Connection, table: str, column: str, text: str | bytes) -> int:
    found = rows(db, f"SELECT n FROM {table} WHERE {column} = ?", (text,))
    if found:
        return int(found[0][0])
    db.execute(f"INSERT INTO {table} VALUES(NULL, ?)", (text,))
    return db.last_insert_rowid()
