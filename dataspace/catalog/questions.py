"""What can be asked of the catalog's SQLite file, or of its like in memory: for one thread.

Whoever finds one page damaged gets an error (see `connections`), whoever comes to a row that cannot be `Mistaken`, and
the catalog makes the file anew.

The one rule: nothing is remembered here but what stays true, since rows are added and most are never changed.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from typing import Any, Final

import apsw

from dataspace.catalog.connections import rows
from dataspace.catalog.naming import SESSION, Names
from dataspace.catalog.packing import item, least, pack, unpack
from dataspace.catalog.recall import UNREADABLE, Mistaken
from dataspace.catalog.recent import SessionRow, Taken, between
from dataspace.catalog.schema import about, ours
from dataspace.catalog.tree import nodes
from dataspace.log.marks import Head

ROWS: Final = 8
"""Rows that are read at a time."""
_REMEMBERED: Final = 10_000

_NONE: Final = (1 << 63, b"")
"""A row that begins after every seq."""


class Questions:
    """The tables that `reader` reads, which are of log `log_id`. Any method may raise `apsw.Error`.

    `names` says what stands in them for ids and labels.
    """

    def __init__(self, reader: apsw.Connection, log_id: bytes, names: Names) -> None:
        self._reader = reader
        self._log_id = log_id
        self._names = names
        self._numbers: dict[bytes, int] = {}
        self._labels: dict[str, int] = {}
        self._shapes: dict[int, frozenset[Any]] = {}
        self._unreadable = names.hashed(UNREADABLE)
        # A row that was read stays true: later records are only added to it, or to another one.
        self._span: tuple[int, bytes] = (0, pack([0]))
        self._runs: dict[int, tuple[int, bytes]] = {}

    def fits(self) -> bool:
        """Whether the tables are of this log, and of the version that is written here."""
        return ours(self._reader) and about(self._reader)[:2] == (self._names.format, self._log_id)

    def head(self) -> Head:
        """The head that the tables have reached."""
        return Head(*about(self._reader)[2:4])

    def session(self, uid: bytes) -> SessionRow | None:
        """The session `uid`."""
        return self._one(f"SELECT {SESSION} WHERE uid = ?", (uid,))

    def deleted(self) -> dict[bytes, SessionRow]:
        """All sessions that were deleted, by their uids."""
        listed = rows(self._reader, f"SELECT {SESSION} WHERE deleted > 0")
        found = {row.uid: row for row in map(self._names.session, listed)}
        if not all(map(_sound, found.values())):
            raise TypeError("a row of a session is not what was written")
        return found

    def named(self, id: str) -> SessionRow | None:
        """The session `id`."""
        return self._one(f"SELECT {SESSION} WHERE id = ? ORDER BY n LIMIT 1", (self._names.hashed(id),))

    def listed(self, prefix: str, after: str, limit: int, by: str | None = None) -> list[SessionRow]:
        """The sessions in the order of their ids, from `prefix` on, those behind `after`; or those of one owner."""
        return self._names.listed(self._reader, prefix, after, limit, by)

    def owned(self, uid: bytes, by: str) -> bool:
        """Whether the session `uid` is among those of an owner."""
        found = rows(self._reader, "SELECT owner IS ? FROM sessions WHERE uid = ?", (self._names.owner(by), uid))
        return bool(found and found[0][0])

    def forks(self, uid: bytes) -> list[bytes]:
        """The uids of the sessions that were forked from `uid`."""
        return [row[0] for row in rows(self._reader, "SELECT uid FROM sessions WHERE parent = ?", (uid,))]

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
                remember(self._runs, number, (first, positions))
                found = item(positions, seq - first)
        return found

    def thread(self, uid: bytes, label: str | None, after: int, upto: int) -> list[int]:
        """The first of a session's positions after `after`, up to and with `upto`, that mention `label`."""
        number = self._number(uid)
        wanted = None if label is None else self._names.hashed(label)
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
                places, shapes = _in_order(unpack(row[1])), unpack(row[2])
                low, high = bisect_right(places, after), bisect_right(places, upto)
                for place, shape in zip(places[low:high], shapes[low:high], strict=True):
                    labels = self._labels_of(shape)
                    if labels if wanted is None else wanted in labels or self._unreadable in labels:
                        found.append(place)
                if places[-1] >= upto:
                    return _in_order(found)
            if found or len(runs) < ROWS:
                return _in_order(found)
            first, after = runs[-1][0] + 1, places[-1]

    def mentions(self, label: str, after: int, upto: int, held: bool = False) -> list[int]:
        """The first postings of `label` after position `after`, up to and with `upto`.

        With `held`, runs in which everything was taken back are left out.
        """
        found = self._postings(label, after, upto, held)
        listed: list[int] = []
        for first, packed in found:
            postings = _in_order(unpack(packed))
            if postings[0] >> 1 != first:
                raise Mistaken
            listed += between(postings, after, upto)
        return _in_order(listed)

    def taken(self, first: int, last: int, upto: int) -> list[Taken]:
        """The assertions at the positions `first` to `last` that were taken back up to and with `upto`."""
        found = rows(
            self._reader,
            "SELECT position, operation, label, taker, seq, gone, own FROM taken "
            "WHERE position BETWEEN ? AND ? AND gone <= ?",
            (first, last, upto),
        )
        return [Taken(row[0], row[1], self._names.shown(row[2]), *row[3:]) for row in found]

    def snapshots(self, uid: bytes, upto: int, limit: int) -> list[tuple[int, bool]]:
        """The newest snapshots up to seq `upto`: seq and whether it is a base, newest first."""
        sql = "SELECT seq, base FROM snapshots WHERE session = ? AND seq <= ? ORDER BY seq DESC LIMIT ?"
        return [(seq, bool(base)) for seq, base in rows(self._reader, sql, (self._number(uid), upto, limit))]

    def nodes(self, level: int, n: int) -> bytes:
        """A row of the tree; empty when there is none."""
        return nodes(self._reader, level, n)

    def _one(self, sql: str, bindings: Iterable[Any]) -> SessionRow | None:
        found = rows(self._reader, sql, tuple(bindings))
        return self._names.session(found[0]) if found else None

    def _postings(self, label: str, after: int, upto: int, held: bool) -> list[Any]:
        number = self._labels.get(label)
        if number is None:
            found = rows(self._reader, "SELECT n FROM labels WHERE name = ?", (self._names.hashed(label),))
            if not found:
                return []
            number = found[0][0]
            remember(self._labels, label, number)
        # By an index of those that hold: what was taken back is not passed through, however much there is.
        which = "postings INDEXED BY holding WHERE held > 0 AND" if held else "postings WHERE"
        return rows(
            self._reader,
            f"SELECT first, postings FROM {which} label = ?1 AND first <= ?3 AND first >= "
            "coalesce((SELECT max(first) FROM postings WHERE label = ?1 AND first <= ?2), 0) "
            "ORDER BY first LIMIT ?4",
            (number, after, upto, ROWS),
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
            remember(self._numbers, uid, number)
        return number

    def _labels_of(self, shape: int) -> frozenset[Any]:
        """The labels of a shape, hashed."""
        labels = self._shapes.get(shape)
        if labels is None:
            sql = (
                "SELECT name FROM shapes, json_each(shapes.labels) AS each "
                "JOIN labels ON labels.n = each.value WHERE shapes.n = ?"
            )
            labels = frozenset(row[0] for row in rows(self._reader, sql, (shape,)))
            remember(self._shapes, shape, labels)
        return labels


def _in_order(numbers: list[int]) -> list[int]:
    """Numbers that rise, as all must that is looked through by halving. Raises `Mistaken` where they fall."""
    if numbers != sorted(numbers):
        raise Mistaken
    return numbers


def remember(memory: dict[Any, Any], key: Any, value: Any) -> None:
    """Keep a value in a memory that is emptied when it has grown large."""
    if len(memory) >= _REMEMBERED:
        memory.clear()
    memory[key] = value


def _sound(row: SessionRow) -> bool:
    """Whether there stands in a row what was written there, of what tells of a session that it was deleted."""
    parent = row.parent is None or isinstance(row.parent, bytes)
    texts = isinstance(row.uid, bytes) and isinstance(row.id, str) and isinstance(row.type, str)
    return texts and parent and all(isinstance(each, int) for each in (row.deleted, row.parent_seq, row.created))
