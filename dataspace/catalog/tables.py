"""The catalog's SQLite file: its schema, the one way to write it, and what can be asked of it.

Rows hold runs of records, not records: each transaction writes, for every session and every label that it
touches, one row with the positions of all records of that run, packed. So a record costs a few bytes, and
rows of one session or label never overlap.

    about      where this catalog stands: the log, the head, the mark
    sessions   a row for each session that ever was
    spans      addresses by position
    threads    positions and shapes (sets of labels) by session and seq
    postings   positions by label; `held` counts the assertions in the row that nobody has taken back
    taken      the assertions that were taken back
    snapshots  by session and seq
    tree       nodes of the Merkle tree over the records

Whoever finds one page damaged gets an error (see `connections`), and the catalog makes the file anew.

The one rule: only `Recent`s are written, whole, each in one transaction; nothing here is the truth.
"""

from __future__ import annotations

import sys
from bisect import bisect_right
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any, Final

import apsw

from dataspace.catalog.connections import connect, rows
from dataspace.catalog.packing import item, least, pack, unpack
from dataspace.catalog.recall import UNREADABLE
from dataspace.catalog.recent import Recent, SessionRow, Taken, Thread, between
from dataspace.catalog.tree import SCHEMA, grow, nodes
from dataspace.log.marks import Head

FORMAT: Final = f"keeve catalog 1 {sys.byteorder}"
READING: Final = 2_000
"""Milliseconds that a question waits for the end of a transaction, which takes a few. Whoever asks holds up all."""
WRITING: Final = 100
"""Milliseconds that a transaction waits for those who read; then it is tried again later."""
ROWS: Final = 8
"""Rows that are read at a time."""
_REMEMBERED: Final = 10_000

_SCHEMA: Final = f"""
CREATE TABLE about(format TEXT, log_id BLOB, position INT, hash BLOB, segment INT, offset INT, committed BLOB);
CREATE TABLE sessions(n INTEGER PRIMARY KEY, uid BLOB NOT NULL UNIQUE, id TEXT NOT NULL, type TEXT NOT NULL,
    seq INT, position INT, hash BLOB, parent BLOB, parent_seq INT, pending INT, deleted INT, created INT,
    updated INT);
CREATE INDEX session_ids ON sessions(id);
CREATE INDEX waking ON sessions(n) WHERE pending > 0;
CREATE TABLE spans(start INTEGER PRIMARY KEY, addresses BLOB);
CREATE TABLE threads(session INT, first INT, positions BLOB, shapes BLOB, PRIMARY KEY(session, first))
    WITHOUT ROWID;
CREATE TABLE labels(n INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE shapes(n INTEGER PRIMARY KEY, labels TEXT NOT NULL UNIQUE);
CREATE TABLE postings(label INT, first INT, held INT, postings BLOB, PRIMARY KEY(label, first)) WITHOUT ROWID;
CREATE TABLE taken(position INT, operation INT, taker BLOB, label TEXT, seq INT, gone INT, own INT,
    PRIMARY KEY(position, operation, taker)) WITHOUT ROWID;
CREATE TABLE snapshots(session INT, seq INT, covers INT, PRIMARY KEY(session, seq)) WITHOUT ROWID;
{SCHEMA}"""
_OBJECTS: Final = "SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY name"
_SESSION: Final = (
    "uid, id, type, seq, position, hash, parent, parent_seq, pending, deleted, created, updated FROM sessions"
)

_NONE: Final = (1 << 63, b"")
"""A row that begins after every seq."""


class Tables:
    """One catalog file, or one in memory. Reading is for one thread, writing for one, at the same time.

    In memory there is one connection for both, so that writing is for the reading thread. Any method may
    raise `apsw.Error`: the file is damaged, gone, or full.
    """

    def __init__(self, path: Path | None, log_id: bytes) -> None:
        self.path = path
        self._log_id = log_id
        self._writer = connect(path, WRITING)
        self._reader = self._writer
        try:
            with self._writer:
                if not self._writer.table_exists("main", "about"):
                    self._writer.execute(_SCHEMA)
                    head = (FORMAT, log_id, 0, bytes(32), None, None, None)
                    self._writer.execute("INSERT INTO about VALUES(?, ?, ?, ?, ?, ?, ?)", head)
            if path is not None:
                self._reader = connect(path, READING)
        except BaseException:
            self.close()
            raise
        # What each thread remembers is its own: what was written may yet be rolled back.
        self._label_numbers: dict[str, int] = {}
        self._shape_numbers: dict[tuple[str, ...], int] = {}
        self._numbers: dict[bytes, int] = {}
        self._labels: dict[str, int] = {}
        self._shapes: dict[int, frozenset[str]] = {}
        # A row that was read stays true: later records are only added to it, or to another one.
        self._span: tuple[int, bytes] = (0, pack([0]))
        self._runs: dict[int, tuple[int, bytes]] = {}

    def close(self) -> None:
        """Close the connections."""
        self._reader.close()
        self._writer.close()

    def copy_from(self, path: Path) -> None:
        """Become a copy of the file at `path`, which its owner may be writing."""
        source = connect(path, READING, apsw.SQLITE_OPEN_READONLY)
        try:
            with self._writer.backup("main", source, "main") as backup:
                backup.step()
        finally:
            source.close()

    # Writing: for the thread that flushes.

    def write(self, recent: Recent) -> None:
        """Write all that `recent` holds, in one transaction. About 2 µs for each row."""
        db = self._writer
        db.execute("BEGIN IMMEDIATE")
        try:
            self._write(db, recent)
            db.execute("COMMIT")
        except BaseException:
            if db.in_transaction:
                db.execute("ROLLBACK")
            self._label_numbers.clear()
            self._shape_numbers.clear()
            raise

    def _write(self, db: apsw.Connection, recent: Recent) -> None:
        db.execute("INSERT INTO spans VALUES(?, ?)", (recent.start + 1, pack(recent.addresses)))
        grow(db, recent.start, recent.hashes)
        threads, snapshots = [], []
        for thread in recent.threads.values():
            number = self._put_session(db, thread)
            shapes = [self._shape_number(db, shape) for shape in thread.shapes]
            threads.append((number, thread.first, pack(thread.positions), pack(shapes)))
            snapshots += [(number, seq, covers) for seq, covers in thread.snapshots]
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

    def _put_session(self, db: apsw.Connection, thread: Thread) -> int:
        found = rows(db, f"SELECT n, {_SESSION} WHERE uid = ?", (thread.uid,))
        if not found:
            db.execute("INSERT INTO sessions VALUES(NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", thread.over(None))
            return db.last_insert_rowid()
        number, *before = found[0]
        now = thread.over(SessionRow(*before))
        db.execute(
            "UPDATE sessions SET seq = ?, position = ?, hash = ?, pending = ?, deleted = ?, updated = ? WHERE n = ?",
            (now.seq, now.position, now.hash, now.pending, now.deleted, now.updated, number),
        )
        return int(number)

    def _put_taken(self, db: apsw.Connection, taken: Taken) -> None:
        row = (taken.position, taken.operation, taken.by, taken.label, taken.seq, taken.gone, taken.own)
        db.execute("INSERT OR IGNORE INTO taken VALUES(?, ?, ?, ?, ?, ?, ?)", row)
        if taken.own and db.changes():
            label = self._label_number(db, taken.label)
            db.execute(
                "UPDATE postings SET held = held - 1 WHERE label = ?1 AND first = "
                "(SELECT max(first) FROM postings WHERE label = ?1 AND first <= ?2)",
                (label, taken.position),
            )

    def _label_number(self, db: apsw.Connection, name: str) -> int:
        number = self._label_numbers.get(name)
        if number is None:
            number = _interned(db, "labels", "name", name)
            _remember(self._label_numbers, name, number)
        return number

    def _shape_number(self, db: apsw.Connection, shape: tuple[str, ...]) -> int:
        number = self._shape_numbers.get(shape)
        if number is None:
            numbers = sorted(self._label_number(db, label) for label in shape)
            number = _interned(db, "shapes", "labels", str(numbers))
            _remember(self._shape_numbers, shape, number)
        return number

    # Reading: for the thread that asks.

    def fits(self) -> bool:
        """Whether the tables are of this log, and of the version that is written here."""
        return ours(self._reader) and about(self._reader)[:2] == (FORMAT, self._log_id)

    def head(self) -> Head:
        """The head that the tables have reached."""
        return Head(*about(self._reader)[2:4])

    def session(self, uid: bytes) -> SessionRow | None:
        """The session `uid`."""
        return self._one(f"SELECT {_SESSION} WHERE uid = ?", (uid,))

    def named(self, id: str) -> SessionRow | None:
        """The session `id`."""
        return self._one(f"SELECT {_SESSION} WHERE id = ? ORDER BY n LIMIT 1", (id,))

    def listed(self, prefix: str, after: str, limit: int) -> list[SessionRow]:
        """The sessions in the order of their ids, from `prefix` on, those behind `after`."""
        sql = f"SELECT {_SESSION} WHERE id > ? AND id >= ? ORDER BY id LIMIT ?"
        return [SessionRow(*row) for row in rows(self._reader, sql, (after, prefix, limit))]

    def pending(self) -> list[bytes]:
        """The uids of sessions with something pending."""
        return [row[0] for row in rows(self._reader, "SELECT uid FROM sessions WHERE pending > 0")]

    def address(self, position: int) -> int | None:
        """The address of the record at `position`."""
        start, addresses = self._span
        found = item(addresses, position - start) if start <= position else None
        if found is None:
            sql = "SELECT start, addresses FROM spans WHERE start <= ? ORDER BY start DESC LIMIT 1"
            for start, addresses in rows(self._reader, sql, (position,)):
                self._span = (start, addresses)
                found = item(addresses, position - start)
        return found

    def position(self, uid: bytes, seq: int) -> int | None:
        """The position of a session's own record at `seq`."""
        number = self._number(uid)
        first, positions = self._runs.get(number, _NONE)
        found = item(positions, seq - first) if first <= seq else None
        if found is None:
            sql = "SELECT first, positions FROM threads WHERE session = ? AND first <= ? ORDER BY first DESC LIMIT 1"
            for first, positions in rows(self._reader, sql, (number, seq)):
                _remember(self._runs, number, (first, positions))
                found = item(positions, seq - first)
        return found

    def thread(self, uid: bytes, label: str | None, after: int, upto: int) -> list[int]:
        """The first of a session's positions after `after`, up to and with `upto`, that mention `label`."""
        number = self._number(uid)
        first = self._row_before(number, after)
        while True:
            runs = rows(
                self._reader,
                "SELECT first, positions, shapes FROM threads WHERE session = ?1 AND first >= "
                "coalesce((SELECT max(first) FROM threads WHERE session = ?1 AND first <= ?2), 0) "
                "ORDER BY first LIMIT ?3",
                (number, first, ROWS),
            )
            found: list[int] = []
            for row in runs:
                places, shapes = unpack(row[1]), unpack(row[2])
                low, high = bisect_right(places, after), bisect_right(places, upto)
                for place, shape in zip(places[low:high], shapes[low:high], strict=True):
                    labels = self._labels_of(shape)
                    if labels if label is None else label in labels or UNREADABLE in labels:
                        found.append(place)
                if places[-1] >= upto:
                    return found
            if found or len(runs) < ROWS:
                return found
            first, after = runs[-1][0] + 1, places[-1]

    def mentions(self, label: str, after: int, upto: int, held: bool = False) -> list[int]:
        """The first postings of `label` after position `after`, up to and with `upto`.

        With `held`, runs in which everything was taken back are left out.
        """
        found = self._postings(label, after, upto, int(held))
        return [posting for row in found for posting in between(unpack(row[1]), after, upto)]

    def taken(self, first: int, last: int, upto: int) -> list[Taken]:
        """The assertions at the positions `first` to `last` that were taken back up to and with `upto`."""
        found = rows(
            self._reader,
            "SELECT position, operation, label, taker, seq, gone, own FROM taken "
            "WHERE position BETWEEN ? AND ? AND gone <= ?",
            (first, last, upto),
        )
        return [Taken(*row) for row in found]

    def snapshots(self, uid: bytes, upto: int, limit: int) -> list[tuple[int, int]]:
        """The newest snapshots up to seq `upto`: (seq, covered seq), newest first."""
        sql = "SELECT seq, covers FROM snapshots WHERE session = ? AND seq <= ? ORDER BY seq DESC LIMIT ?"
        found: list[tuple[int, int]] = rows(self._reader, sql, (self._number(uid), upto, limit))
        return found

    def nodes(self, level: int, n: int) -> bytes:
        """A row of the tree; empty when there is none."""
        return nodes(self._reader, level, n)

    def _one(self, sql: str, bindings: Iterable[Any]) -> SessionRow | None:
        found = rows(self._reader, sql, tuple(bindings))
        return SessionRow(*found[0]) if found else None

    def _postings(self, label: str, after: int, upto: int, held: int) -> list[Any]:
        number = self._labels.get(label)
        if number is None:
            found = rows(self._reader, "SELECT n FROM labels WHERE name = ?", (label,))
            if not found:
                return []
            number = found[0][0]
            _remember(self._labels, label, number)
        return rows(
            self._reader,
            "SELECT first, postings FROM postings WHERE label = ?1 AND held >= ?4 AND first <= ?3 AND first >= "
            "coalesce((SELECT max(first) FROM postings WHERE label = ?1 AND first <= ?2), 0) "
            "ORDER BY first LIMIT ?5",
            (number, after, upto, held, ROWS),
        )

    def _row_before(self, session: int, after: int) -> int:
        """A seq such that the thread's row there, and none before it, may have positions after `after`.

        Rows are in the order of seqs and of positions at once, so that halving finds it.
        """
        sql = "SELECT coalesce(max(first), 0) FROM threads WHERE session = ?"
        low, high = 0, rows(self._reader, sql, (session,))[0][0] if after else 0
        while low < high:
            middle = (low + high + 1) // 2
            found = rows(
                self._reader,
                "SELECT first, positions FROM threads WHERE session = ? AND first <= ? ORDER BY first DESC LIMIT 1",
                (session, middle),
            )
            if not found or least(found[0][1]) <= after:
                low = middle
            else:
                high = found[0][0] - 1
        return low

    def _number(self, uid: bytes) -> int:
        number = self._numbers.get(uid)
        if number is None:
            found = rows(self._reader, "SELECT n FROM sessions WHERE uid = ?", (uid,))
            if not found:
                return 0
            number = found[0][0]
            _remember(self._numbers, uid, number)
        return number

    def _labels_of(self, shape: int) -> frozenset[str]:
        labels = self._shapes.get(shape)
        if labels is None:
            sql = (
                "SELECT name FROM shapes, json_each(shapes.labels) AS each "
                "JOIN labels ON labels.n = each.value WHERE shapes.n = ?"
            )
            labels = frozenset(row[0] for row in rows(self._reader, sql, (shape,)))
            _remember(self._shapes, shape, labels)
        return labels


def ours(db: apsw.Connection) -> bool:
    """Whether a file has these tables and nothing else: a view or a trigger would be run by whoever asks."""
    return rows(db, _OBJECTS) == _objects()


@cache
def _objects() -> list[Any]:
    db = apsw.Connection(":memory:")
    try:
        db.execute(_SCHEMA)
        return rows(db, _OBJECTS)
    finally:
        db.close()


def about(db: apsw.Connection) -> tuple[Any, ...]:
    """Where a catalog stands: format, log id, position, hash; and the mark's segment, offset and commit."""
    found: list[tuple[Any, ...]] = rows(db, "SELECT * FROM about")
    return found[0] if found else (None,) * 7


def _interned(db: apsw.Connection, table: str, column: str, text: str) -> int:
    found = rows(db, f"SELECT n FROM {table} WHERE {column} = ?", (text,))
    if found:
        return int(found[0][0])
    db.execute(f"INSERT INTO {table} VALUES(NULL, ?)", (text,))
    return db.last_insert_rowid()


def _remember(memory: dict[Any, Any], key: Any, value: Any) -> None:
    if len(memory) >= _REMEMBERED:
        memory.clear()
    memory[key] = value
