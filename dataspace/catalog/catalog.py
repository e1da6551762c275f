"""The catalog: which sessions there are, and where in the log their records and facts lie.

It is derived. What has just become durable is noted in memory (`recent`) and written behind, about a
thousand records in one transaction (`tables`); a question looks into both. When the file is missing,
another log's, another version's, ahead of the log or damaged, at the start or while it runs, it is made
again from the log, in memory if it cannot be a file; the answers stay the same.

The one rule: nothing is known here that a scan of the log would not tell.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Final

import apsw

from dataspace.catalog.checked import Checked
from dataspace.catalog.connections import FAILED, remove
from dataspace.catalog.deletions import deleted_beyond
from dataspace.catalog.naming import names_for
from dataspace.catalog.recall import UNREADABLE, Notable, noted
from dataspace.catalog.recent import Recent, SessionRow, Taken
from dataspace.catalog.steady import steady
from dataspace.catalog.tables import Tables
from dataspace.catalog.tree import LogTree
from dataspace.catalog.withholding import withhold, withhold_from_start
from dataspace.catalog.writing import Flush, Writing
from dataspace.drafts import Handle
from dataspace.errors import KeeveError
from dataspace.in_logs import in_log
from dataspace.log.marks import START, Head
from dataspace.log.store import Store
from dataspace.log.verdicts import SessionDamaged
from dataspace.records import Kind

log = logging.getLogger("keeve")

RUN: Final = 1024
"""Records that are noted before they are worth a transaction."""

_PASSING: Final = (apsw.FullError, apsw.BusyError, apsw.LockedError, apsw.NoMemError)


class Catalog(Checked):
    """The catalog of `store`, in the file at `path` (`None`: in memory).

    For a store that is open for reading only, what the owner's file says is copied, and nothing is written.
    Opening costs a few milliseconds, however many sessions there are, and a scan of what the file has not
    seen. All methods are for one thread; only `Flush.write` is for another.
    """

    def __init__(self, path: Path | None, store: Store) -> None:
        self._store = store
        self._path = None if store.readonly else path
        self._names = names_for(store.secret)
        self._writing = Writing()
        self._wait = RUN
        self._making = False
        self.tree = LogTree(self)
        self._known: Sequence[SessionRow] = ()
        with self._writing:
            tables = self._found(path) or self._fresh()
        super().__init__(tables, store)
        self.beyond = {} if store.fault is None else deleted_beyond(store, self._known)
        try:
            self._begin_at(tables.head())
            withhold_from_start(store, self)
            self.catch_up()
            self._bury()
        except KeeveError:
            raise
        except FAILED:
            self.rebuild(store.head.position)
        # Who only reads may meet a file that its owner has written anew before the record that says why.
        store.withheld.told = not store.readonly

    def close(self) -> None:
        """Write what is not written yet, and close the file. In a forked child nothing is written, here or above."""
        self.flush()
        with self._writing:
            if self._store.damaged and self._path is not None and self._writing.ours:
                with suppress(*FAILED):
                    self._tables.unmark()
            self._tables.close()

    # Noting.

    def note(self, records: Sequence[Notable]) -> None:
        """Take in a batch that has just become durable. About 2 µs for each record.

        What was noted before is passed over; what is missing before it is read from the log. Where that fails it is
        owed, and read before anything is answered: whoever asks is told if it cannot be.
        """
        owed, self._owed = self._owed, 0
        try:
            self.take_in(records)
        except KeeveError as error:
            self._owed = max(owed, self._owed, records[-1].position)
            log.warning("the catalog reads what is up to position %d when it is asked: %s", self._owed, in_log(error))

    def take_in(self, records: Sequence[Notable]) -> None:
        """The same. Raises what reading raises."""
        head = self._recent.head.position
        if records and records[0].position != head + 1:
            self.catch_up(records[0].position - 1)
            head = self._recent.head.position
            records = [record for record in records if record.position > head]
        if not records:
            return
        recent = self._recent
        try:
            self._note(recent, records)
        except BaseException:
            if recent is self._recent:  # there may be half of a record in it: it is made again, of the log
                self._recent = Recent(recent.before)
            raise
        if recent is not self._recent:
            # SQLite failed under a question of `origin`, and the catalog was made anew without this batch.
            self.catch_up(records[-1].position)
            return
        recent.head = Head(records[-1].position, records[-1].hash)
        mark = self._store.mark
        # Without a mark recovery reads all of the log, and sees again what is damaged in it.
        recent.mark = mark if mark.position == recent.head.position and not self._store.damaged else None

    def _note(self, recent: Recent, records: Sequence[Notable]) -> None:
        origin = self._origin
        for record in records:
            recent.note(record, origin)
            if record.kind == Kind.FORKED:
                self.adopt(record, recent.threads[record.uid])
        if recent.erasing:
            said, recent.erasing = recent.erasing, []
            for record in said:
                withhold(self._store, record)
            self.recall.forget()

    def catch_up(self, upto: int | None = None) -> None:
        """Read and note what the log has after the head, up to position `upto` or all of it."""
        upto = self._store.head.position if upto is None else max(upto, self._owed)
        owed, self._owed = self._owed, 0
        try:
            self._catch_up(upto)
        except BaseException:
            self._owed = max(owed, self._owed, upto)
            raise

    def _catch_up(self, upto: int) -> None:
        head = self.head.position
        if upto <= head:
            return
        for stored in self._store.scan(self.at(head) if head else None):
            if stored.header.position > upto:
                break
            if stored.header.position > head:
                self.take_in([noted(stored)])
                if self.due:
                    self.flush()

    @property
    def written(self) -> int:
        """How many records the tables hold."""
        return self._stored

    @steady
    def nodes(self, level: int, n: int) -> bytes:
        """A row of the Merkle tree, for `tree`; empty when there is none."""
        return self._tables.nodes(level, n)

    @steady
    def hashes(self, first: int, last: int) -> list[bytes]:
        """The hashes of the records after position `first`, up to and with `last` or the head, in order.

        What the tables hold is read from the log: about 10 µs for each record.
        """
        found: list[bytes] = []
        written = min(last, self._stored)
        if first < written:
            scan = self._store.scan(self.at(first + 1))
            found = [stored.header.hash for stored in islice(scan, written - first)]
        for recent in self._layers():
            found += recent.hashes[max(0, first - recent.start) : max(0, last - recent.start)]
        return found

    def _origin(self, uid: bytes, handle: Handle) -> tuple[str, int, bytes] | None:
        try:
            found = self.label(uid, handle)
        except SessionDamaged:
            return None  # nobody can be shown it
        except KeeveError:
            return self._place_of(uid, handle)
        return None if found is None else (found[1], found[0].position, found[0].uid)

    def _place_of(self, uid: bytes, handle: Handle) -> tuple[str, int, bytes] | None:
        """The same where the record that states it cannot be read now: where that is, the catalog knows of itself. So
        the record that takes it back is found under every label, and whoever comes to it reads what it is about."""
        try:
            found = self.place(uid, handle.seq)
        except KeeveError:
            return UNREADABLE, 0, uid
        return None if found is None else (UNREADABLE, found[1], found[0])

    def learn(self) -> None:
        recent = self._recent
        while recent is self._recent and recent.unplaced:
            handle, by, seq, gone = recent.unplaced[-1]
            found = self.place(by, handle.seq)
            if recent is self._recent:
                recent.unplaced.pop()
                if found is not None:
                    recent.taken.append(Taken(found[1], handle.operation, UNREADABLE, by, seq, gone, found[0] == by))

    # Writing behind.

    @property
    def due(self) -> bool:
        """Whether enough has been noted for a flush."""
        return len(self._recent) >= self._wait

    def begin(self) -> Flush | None:
        """What is to be written next; None when there is nothing, or something in it is yet to be found. Noting goes on
        meanwhile."""
        if self._flushing is None:
            if not len(self._recent) or not self._complete():
                return None
            self._flushing = self._recent
            if self._store.damaged:
                self._flushing.mark = None  # as in `note`: reading may have come to it since
            self._flushing.nodes = self.tree.known(self._flushing.start, self._flushing.head.position)
            self._recent = Recent(self._flushing.head)
            self._recent.mark = self._flushing.mark
        return Flush(self._flushing, self._tables, self._writing)

    def _complete(self) -> bool:
        try:
            self.learn()
        except KeeveError:
            self._put_off()
        return not self._recent.unplaced

    def _put_off(self) -> None:
        """The file has what it has, and the memory the rest: it is written later."""
        self._wait = len(self._recent) + RUN

    def finish(self, flush: Flush) -> bool:
        """Take note that `flush` was written, or see what is to be done if it was not."""
        if flush.tables is not self._tables:
            return True  # the catalog was made anew in the meantime and holds all of it
        self._wait = RUN
        if flush.error is None:
            self._stored = flush.recent.head.position
            self._flushing = None
            return True
        if self._making:
            raise flush.error
        if isinstance(flush.error, _PASSING):
            self._put_off()  # a full disk will pass
            return False
        try:
            self.rebuild()
        except KeeveError:  # nobody can make another one now: what the file has is asked
            self._put_off()
            return False
        return True

    def flush(self) -> None:
        """Write all that has been noted. About 3 µs for each record."""
        while (flush := self.begin()) is not None:
            flush.write()
            if not self.finish(flush):
                return

    # Making it anew.

    def rebuild(self, upto: int | None = None) -> None:
        """Drop the file and make the catalog again from the log, up to `upto` or where it was.

        Raises `LogCorrupt` for a log that cannot be followed so far, and `ReadFailed`, and leaves all as it is: the
        catalog knows then what nobody can read there. Costs a scan of the log: about 40 µs for each record.
        """
        upto = max(self._recent.head.position, self._owed) if upto is None else upto
        for stored in self._store.scan():
            if stored.header.position >= upto:
                break
        with self._writing:
            try:
                self._make(upto)
            except apsw.Error:
                self._path = None
                self._make(upto)

    def leave_file(self) -> None:
        path, self._path = self._path, None
        try:
            self.rebuild()
        except KeeveError:
            self._path = path
            raise

    def wait_for_writer(self) -> None:
        with self._writing:
            pass

    def _make(self, upto: int) -> None:
        with suppress(apsw.Error):
            self._tables.close()
        self._tables = self._fresh()
        self.tree.forget()
        self._begin_at(START)
        self._making = True
        upto, self._owed = max(upto, self._owed), 0
        try:
            self.catch_up(upto)
            self._bury()
        except BaseException:
            self._owed = upto
            raise
        finally:
            self._making = False

    def _bury(self) -> None:
        """Whoever was deleted where the log cannot be read any more stays so: of a store that is open for reading."""
        if self.beyond:
            self.flush()
            self._tables.bury(self.beyond)

    def _begin_at(self, head: Head) -> None:
        self._recent = Recent(head)
        self._flushing = None
        self._stored = head.position
        self._wait = RUN

    def _found(self, path: Path | None) -> Tables | None:
        """The catalog that lies at `path`, if it is one of this log."""
        if path is None:
            return None
        tables = None
        try:
            if not path.exists():
                return None
            tables = (Tables.copy if self._store.readonly else Tables)(path, self._store.log_id, self._names)
            if self._fits(tables):
                return tables
            if tables.fits():
                self._known = list(tables.deleted().values())
        except (*FAILED, OSError):
            pass
        if tables is not None:
            tables.close()
        return None

    def _fits(self, tables: Tables) -> bool:
        if not tables.fits():
            return False
        position, digest = tables.head()
        if position == 0:
            return True
        address = tables.address(position)
        if address is None:
            return False
        try:
            header = self._store.read(address).header
        except KeeveError:
            return False
        return header.position == position and header.hash == digest

    def _fresh(self) -> Tables:
        if not self._writing.ours:
            self._path = None
        if self._path is not None:
            try:
                remove(self._path)
                return Tables.make(self._path, self._store.log_id, self._names)
            except (OSError, apsw.Error):
                self._path = None
        return Tables.make(None, self._store.log_id, self._names)
