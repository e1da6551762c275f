"""What can be asked of a catalog: sessions and lineages, places in the log, what mentions a label, what holds.

A question goes to the layers in turn: the tables for what they hold, then the runs of records that are still
in memory. Long answers are given a page at a time, each page a question of its own.

The one rule: a question keeps nothing open and no state of its own between pages, so that a flush, or a
catalog made anew because SQLite failed, between two pages changes no answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final, NamedTuple

from dataspace.catalog.recall import UNREADABLE
from dataspace.catalog.recent import Recent, SessionRow, Taken, unique
from dataspace.catalog.steady import Steady, steady
from dataspace.catalog.tables import Tables
from dataspace.errors import KeeveError
from dataspace.log.marks import START, Head

LATEST: Final = (1 << 63) - 1
"""A seq that no record reaches."""

PAGE: Final = 500
"""Sessions that are read at once where all are gone through."""


class Leg(NamedTuple):
    """A part of a lineage: a session's own records up to and with seq `upto`."""

    uid: bytes
    upto: int


class SnapshotRow(NamedTuple):
    """A `snapshot` record, or a `base`: of which session, its seq, and whether it is a base."""

    uid: bytes
    seq: int
    base: bool


MOST: Final = 1 << 31
"""Rows, the most that are asked for at once: SQLite's numbers have an end."""


def _written(text: str) -> str:
    """A text as SQLite can take it: with U+FFFD for lone surrogates, which are in no id."""
    return text.encode(errors="surrogatepass").decode(errors="replace")


class Lookups(Steady):
    """The questions of a `Catalog`, over its tables and what is not in them yet."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._stored = 0
        self._flushing: Recent | None = None
        self._recent = Recent(START)

    @property
    def reached(self) -> Head:
        """The newest record that has been noted."""
        return self._recent.head

    @property
    def head(self) -> Head:
        """The same, when all has been noted that was to be. Raises what keeps it from that."""
        if self._owed:
            self.settle()
        return self._recent.head

    def learn(self) -> None:
        """Find what was taken back where nobody could tell. Raises what keeps it from that."""
        raise NotImplementedError

    def _layers(self) -> list[Recent]:
        return [self._recent] if self._flushing is None else [self._flushing, self._recent]

    # Sessions.

    @steady
    def by_uid(self, uid: bytes) -> SessionRow | None:
        """The session with that uid, deleted ones included."""
        thread = self._recent.threads.get(uid)
        if thread is not None and thread.birth is not None:
            return thread.over(None)
        found = self._tables.session(uid)
        for recent in self._layers():
            thread = recent.threads.get(uid)
            if thread is not None:
                found = thread.over(found)
        return found

    def name(self, uid: bytes) -> str:
        """What a session is called: its id, or where nobody knows that now, its uid in hex."""
        try:
            row = self.by_uid(uid)
        except KeeveError:  # whoever names it has more to tell than that
            row = None
        return uid.hex() if row is None else row.id

    @steady
    def session(self, id: str) -> SessionRow | None:
        """The session with that id, deleted ones included: an id that was ever used is never free again."""
        for recent in self._layers():
            uid = recent.ids.get(id)
            if uid is not None:
                return self.by_uid(uid)
        found = self._tables.named(id) if id and isinstance(id, str) and _written(id) == id else None
        return self.by_uid(found.uid) if found else None

    def sessions(
        self, prefix: str = "", *, after: str = "", limit: int = 100, deleted: bool = False, by: str | None = None
    ) -> list[SessionRow]:
        """At most `limit` sessions in the order of their ids: those that begin with `prefix` and follow `after`; with
        `by`, those alone that it had made.

        Deleted ones only when asked for. About 20 µs for each, however many there are.
        """
        prefix, after, limit = _written(prefix), _written(after), min(limit, MOST)
        if by == "":  # nobody is called that
            return []
        by = None if by is None else _written(by)
        found: list[SessionRow] = []
        while len(found) < limit:
            page, last = self._page(prefix, after, limit, by)
            found += [row for row in page if row.id.startswith(prefix) and (deleted or not row.deleted)]
            if last is None or not last.startswith(prefix):
                break
            after = last
        return found[:limit]

    def all_sessions(self, prefix: str = "", *, after: str = "", deleted: bool = False) -> Iterator[SessionRow]:
        """The same, without a limit; read a page at a time, so what comes meanwhile is among them if it is behind."""
        while page := self.sessions(prefix, after=after, limit=PAGE, deleted=deleted):
            yield from page
            after = page[-1].id

    @steady
    def owned(self, uid: bytes, by: str) -> bool:
        """Whether a session is found among those that somebody had made."""
        births = [recent.threads[uid].birth for recent in self._layers() if uid in recent.threads]
        return any(birth is not None and birth.by == by for birth in births) or self._tables.owned(uid, by)

    @steady
    def _page(self, prefix: str, after: str, limit: int, by: str | None = None) -> tuple[list[SessionRow], str | None]:
        """The first sessions from there on, and the id up to which these are all; None when there are no more."""
        rows = self._tables.listed(prefix, after, limit, by)
        uids = {row.id: row.uid for row in rows}
        last = rows[-1].id if len(rows) == limit else None
        for recent in self._layers():
            for id, uid in recent.ids.items():
                if id > after and id >= prefix and (last is None or id <= last):
                    birth = recent.threads[uid].birth
                    if by is None or (birth is not None and birth.by == by):
                        uids[id] = uid
        known = {row.id: row for row in rows}
        changed = {uid for recent in self._layers() for uid in recent.threads}
        page = [known[id] if uids[id] not in changed else self.by_uid(uids[id]) for id in sorted(uids)]
        # One whose first record says nothing any more has had another id in here, until its tombstone was noted.
        named = zip(sorted(uids), page, strict=True)
        return [row for id, row in named if row is not None and row.id == id], last

    @steady
    def with_pending(self) -> list[bytes]:
        """The uids of the sessions that must be woken at a start. O(their number)."""
        uids = dict.fromkeys(self._tables.pending())
        for recent in self._layers():
            uids.update(dict.fromkeys(recent.threads))
        rows = [self.by_uid(uid) for uid in uids]
        return [row.uid for row in rows if row is not None and row.pending]

    @steady
    def forks(self, uid: bytes) -> list[SessionRow]:
        """The sessions that were forked from this one, deleted ones included. O(their number)."""
        uids = dict.fromkeys(self._tables.forks(uid))
        for recent in self._layers():
            for thread in recent.threads.values():
                if thread.birth is not None and thread.birth.parent == uid:
                    uids[thread.uid] = None
        rows = [self.by_uid(found) for found in uids]
        return [row for row in rows if row is not None]

    def leaning(self, uid: bytes, seq: int) -> list[SessionRow]:
        """The living sessions that have the record of this one at `seq` in their past: forks, and forks of those."""
        found: list[SessionRow] = []
        todo, met = [uid], {uid}
        for each in todo:
            for fork in self.forks(each):
                if fork.parent_seq >= seq and fork.uid not in met:
                    met.add(fork.uid)
                    todo.append(fork.uid)
                    found += [] if fork.deleted else [fork]
        return found

    def lineage(self, uid: bytes) -> list[Leg]:
        """The chains that make up a session's past, the oldest ancestor's first, its own last. O(depth of forks)."""
        # By uid, since damaged records could name each other as parents.
        legs: dict[bytes, Leg] = {}
        upto = LATEST
        at: bytes | None = uid
        while at is not None and at not in legs:
            legs[at] = Leg(at, upto)
            row = self.by_uid(at)
            at = None if row is None else row.parent
            upto = min(upto, row.parent_seq if row else 0)
        return list(legs.values())[::-1]

    # Places.

    @steady
    def at(self, position: int) -> int | None:
        """The address of the record at `position`; None when it has not been noted."""
        return self._at(position)

    def _at(self, position: int) -> int | None:
        for recent in self._layers():
            if recent.start < position <= recent.start + len(recent):
                return recent.address(position)
        return self._tables.address(position) if 0 < position <= self._stored else None

    def position(self, uid: bytes, seq: int) -> int | None:
        """The position of the record at `seq` in a session's lineage: at or below a fork it is an ancestor's."""
        place = self.place(uid, seq)
        return None if place is None else place[1]

    @steady
    def place(self, uid: bytes, seq: int) -> tuple[bytes, int] | None:
        """Whose record is at `seq` in a session's lineage, and its position."""
        return self._place(uid, seq)

    def _place(self, uid: bytes, seq: int) -> tuple[bytes, int] | None:
        passed: set[bytes] = set()
        at: bytes | None = uid if seq < LATEST else None
        while at is not None and at not in passed:
            passed.add(at)
            for recent in self._layers():
                found = recent.position(at, seq)
                if found is not None:
                    return at, found
            found = self._tables.position(at, seq)
            if found is not None:
                return at, found
            row = self.by_uid(at)
            at = row.parent if row is not None and seq <= row.parent_seq else None
        return None

    @steady
    def locate(self, uid: bytes, seq: int) -> int | None:
        """The address of the record at `seq` in a session's lineage."""
        place = self._place(uid, seq)
        return None if place is None else self._at(place[1])

    def snapshots(self, uid: bytes, upto: int = LATEST, limit: int = 8) -> list[SnapshotRow]:
        """The newest snapshots at or before seq `upto` of a session's lineage, newest first."""
        found: list[SnapshotRow] = []
        for leg in reversed(self.lineage(uid)):
            those = self._snapshots(leg.uid, min(upto, leg.upto), limit - len(found))
            found += [SnapshotRow(leg.uid, seq, base) for seq, base in those]
            if len(found) >= limit:
                break
        return found

    @steady
    def _snapshots(self, uid: bytes, upto: int, limit: int) -> list[tuple[int, bool]]:
        found = dict(self._tables.snapshots(uid, upto, limit))
        for recent in self._layers():
            thread = recent.threads.get(uid)
            if thread is not None:
                found.update([(seq, base) for seq, base in thread.snapshots if seq <= upto])
        return sorted(found.items(), reverse=True)[:limit]

    # What is said.

    def positions(
        self, uid: bytes | None = None, label: str | None = None, after: int = 0, upto: int | None = None
    ) -> Iterator[int]:
        """The positions after `after`, up to and with `upto` (or the head), in order: of the session's own
        records if a `uid` is given, of those that assert or retract a fact with `label` if there is one.

        With a uid or a label, records that say nothing are left out. O(what is found), or with both O(the
        session's records) at well below a microsecond each.
        """
        last = self.head.position
        last = last if upto is None else min(upto, last)
        while page := self.some_positions(uid, label, after, last):
            yield from page
            after = page[-1]

    @steady
    def some_positions(self, uid: bytes | None, label: str | None, after: int, upto: int) -> list[int]:
        """The first of those positions; none when there are no more. `upto` is not beyond the head."""
        stored = min(upto, self._stored)
        if uid is None and label is not None:
            last, postings = self._mentions(label, after, upto)
            return unique(postings) if postings or last == upto else self.some_positions(uid, label, last, upto)
        found: list[int] = []
        if after < stored:
            if uid is not None:
                found = self._tables.thread(uid, label, after, stored)
            else:
                found = list(range(after + 1, min(stored, after + 1024) + 1))
        for recent in self._layers():
            if not found:
                found = recent.positions(uid, label, after, upto)
        return found

    def standing(self, label: str, at: int, after: int = 0) -> Iterator[int]:
        """The positions behind `after` of records that assert a fact with `label` which holds at position `at`.

        O(what holds), and far below a microsecond for what was asserted and taken back.
        """
        while after < at:
            after, page = self._some_standing(label, after, at)
            yield from page

    @steady
    def _some_standing(self, label: str, after: int, at: int) -> tuple[int, list[int]]:
        last, postings = self._mentions(label, after, at, held=at >= self.head.position)
        asserted = Counter([posting >> 1 for posting in postings if not posting & 1])
        if asserted:
            for taken in self.taken(min(asserted), max(asserted), at):
                if taken.own and taken.label == label:
                    asserted[taken.position] -= 1
        return last, [position for position, left in asserted.items() if left > 0]

    def _mentions(self, label: str, after: int, upto: int, held: bool = False) -> tuple[int, list[int]]:
        """The first postings of a label after `after`, and the position up to which these are all.

        Records that cannot be read are among them, since they may mention it.
        """
        last, found = self._postings(label, after, upto, held)
        last_unread, unread = self._postings(UNREADABLE, after, last, held=False)
        if not unread:
            return last, found
        last = min(last, last_unread)
        return last, sorted(posting for posting in {*found, *unread} if posting >> 1 <= last)

    def _postings(self, label: str, after: int, upto: int, held: bool) -> tuple[int, list[int]]:
        stored = min(upto, self._stored)
        if after < stored:
            found = self._tables.mentions(label, after, stored, held)
            if found:
                return found[-1] >> 1, found
        for recent in self._layers():
            found = list(recent.mentions(label, after, upto))
            if found:
                return found[-1] >> 1, found
        return upto, []

    @steady
    def taken(self, first: int, last: int, at: int) -> set[Taken]:
        """The assertions of the positions `first` to `last` that had been taken back at position `at`."""
        if self._recent.unplaced:
            self.learn()
        found = set(self._tables.taken(first, last, at))
        for recent in self._layers():
            if recent.taken:
                found.update(taken for taken in recent.taken if first <= taken.position <= last and taken.gone <= at)
        return found
