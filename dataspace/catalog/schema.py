"""The schema of the catalog's file, and whether a file has it.

Rows hold runs of records, not records: each transaction writes, for every session and every label that it
touches, one row with the positions of all records of that run, packed. So a record costs a few bytes, and
rows of one session or label never overlap.

    about      where this catalog stands: the log, the head, the mark
    sessions   a row for each session that ever was
    spans      addresses by position
    threads    positions and shapes (sets of labels) by session and seq
    postings   positions by label; `held` counts the assertions in the row that nobody has taken back
    taken      the assertions that were taken back
    snapshots  by session and seq, and which are bases
    tree       nodes of the Merkle tree over the records

Ids, types and labels stand there as the `Veil` of a store makes them: of an encrypted store as keyed hashes and
ciphertext. A session's row then has the hash of its id in `id`, and id and type together in `type`. By `owner`, who had
it made, sessions are found; whose one is, its first record says.

The one rule: what changes here counts the format up, and the file is made anew.
"""

from __future__ import annotations

import sys
from functools import cache
from typing import Any, Final

import apsw

from dataspace.catalog.connections import rows
from dataspace.catalog.tree import SCHEMA as TREE

CATALOG: Final = "catalog.sqlite"
"""The file in a store's folder; derived, and may be deleted."""
FORMAT: Final = f"keeve catalog 4 {sys.byteorder}"
"""What a file says that it is; after it comes the veil's own mark."""

SCHEMA: Final = f"""
CREATE TABLE about(format TEXT, log_id BLOB, position INT, hash BLOB, segment INT, offset INT, committed BLOB);
CREATE TABLE sessions(n INTEGER PRIMARY KEY, uid BLOB NOT NULL UNIQUE, id TEXT NOT NULL, type TEXT NOT NULL,
    seq INT, position INT, hash BLOB, parent BLOB, parent_seq INT, pending INT, deleted INT, created INT,
    updated INT, owner TEXT);
CREATE INDEX session_ids ON sessions(id);
CREATE INDEX owned ON sessions(owner, id) WHERE owner IS NOT NULL;
CREATE INDEX forks ON sessions(parent) WHERE parent IS NOT NULL;
CREATE INDEX waking ON sessions(n) WHERE pending > 0;
CREATE TABLE spans(start INTEGER PRIMARY KEY, addresses BLOB);
CREATE TABLE threads(session INT, first INT, positions BLOB, shapes BLOB, PRIMARY KEY(session, first))
    WITHOUT ROWID;
CREATE TABLE labels(n INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE shapes(n INTEGER PRIMARY KEY, labels TEXT NOT NULL UNIQUE);
CREATE TABLE postings(label INT, first INT, held INT, postings BLOB, PRIMARY KEY(label, first)) WITHOUT ROWID;
CREATE INDEX holding ON postings(label, first) WHERE held > 0;
CREATE TABLE taken(position INT, operation INT, taker BLOB, label TEXT, seq INT, gone INT, own INT,
    PRIMARY KEY(position, operation, taker)) WITHOUT ROWID;
CREATE TABLE snapshots(session INT, seq INT, base INT, PRIMARY KEY(session, seq)) WITHOUT ROWID;
{TREE}"""
_OBJECTS: Final = "SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY name"


def ours(db: apsw.Connection) -> bool:
    """Whether a file has these tables and nothing else: a view or a trigger would be run by whoever asks."""
    return rows(db, _OBJECTS) == _objects()


@cache
def _objects() -> list[Any]:
    db = apsw.Connection(":memory:")
    try:
        db.execute(SCHEMA)
        return rows(db, _OBJECTS)
    finally:
        db.close()


def about(db: apsw.Connection) -> tuple[Any, ...]:
    """Where a catalog stands: format, log id, position, hash; and the mark's segment, offset and commit."""
    found: list[tuple[Any, ...]] = rows(db, "SELECT * FROM about")
    return found[0] if found else (None,) * 7
