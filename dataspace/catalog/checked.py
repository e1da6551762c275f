"""Records that the catalog leads to, each held against what was asked for.

A row of the catalog may be wrong and look sound. Whoever follows it comes to another record than the one that was
asked for, and the record's header says so: then the catalog is made anew from the log, and asked again.

The one rule: what comes out of here is what the log has at that place. (What a row leaves out, nobody misses here;
`checking` finds it.)
"""

from __future__ import annotations

from collections.abc import Mapping

from dataspace.catalog.lookups import Leg, Lookups
from dataspace.catalog.recall import ANYTHING, Mistaken, Notable, Recall, Said
from dataspace.catalog.recent import SessionRow, Thread
from dataspace.catalog.steady import steady
from dataspace.catalog.tables import Tables
from dataspace.drafts import Handle
from dataspace.errors import KeeveError
from dataspace.facts import Fact
from dataspace.log.store import NoSuchRecord, Store, Stored
from dataspace.log.unsound import NoFrame
from dataspace.log.verdicts import LogCorrupt, SessionDamaged
from dataspace.records import Header, Kind


class Checked(Lookups):
    """The records of a `Catalog`'s `store`, by position, by seq, and by handle.

    `beyond` are the sessions that were deleted where the log cannot be read any more.
    """

    beyond: Mapping[bytes, int] = {}

    def __init__(self, tables: Tables, store: Store) -> None:
        super().__init__(tables)
        self._store = store
        self._doubts = 0
        self.recall = Recall(store, self._locate)

    @steady
    def stored(self, position: int) -> Stored:
        """The record at `position`, which has been noted."""
        try:
            stored = self._store.read(self._address(position))
        except NoSuchRecord as error:
            raise Mistaken from error
        except SessionDamaged as error:
            if error.position != position:
                raise Mistaken from error
            raise
        if stored.header.position != position:
            raise Mistaken
        return stored

    @steady
    def said(self, position: int) -> Said:
        """What the record at `position`, which has been noted, said. Raises `SessionDamaged`."""
        said = self.recall.said(self._address(position))
        if said.header.position != position:
            raise Mistaken
        return said

    @steady
    def asserted(self, uid: bytes, handle: Handle) -> tuple[Said, Fact] | None:
        """The record and the fact that `handle` names in the lineage of `uid`; None when there is none."""
        return self.recall.asserted(uid, handle)

    @steady
    def label(self, uid: bytes, handle: Handle) -> tuple[Header, str] | None:
        """The record that states what `handle` names in the lineage of `uid`, and the label; None if there is none."""
        return self.recall.label(uid, handle)

    @steady
    def headed(self, uid: bytes) -> SessionRow | None:
        """The session with that uid, deleted ones included, and its head as the log has it. Costs a read."""
        row = self.by_uid(uid)
        if row is not None:
            try:
                header = self.stored(row.position).header
            except NoFrame as error:
                if error.damage(uid, row.seq) is None:
                    raise
                return row
            except SessionDamaged as error:
                if (error.session, error.seq) != (uid.hex(), row.seq):
                    raise Mistaken from error
                return row  # who loads it comes to that
            if (header.uid, header.seq, header.hash) != (uid, row.seq, row.hash):
                raise Mistaken
            if row.position <= self._stored and self._tables.position(uid, row.seq + 1) is not None:
                raise Mistaken  # it was the head once
            tombstone = self.stored(row.deleted).header if row.deleted and uid not in self.beyond else None
            if (
                (header.kind == Kind.DELETE)
                if tombstone is None
                else (tombstone.uid, tombstone.kind) != (uid, Kind.DELETE)
            ):
                raise Mistaken
        return row

    def adopt(self, record: Notable, thread: Thread) -> None:
        """A fork whose first record cannot be read, or names a parent that is not in the log, goes on from the session
        whose record that follows. (Of one that is erased its tombstone tells.)"""
        birth = thread.birth
        if birth is None or (record.statements is not ANYTHING if birth.parent is None else self._has(birth.parent)):
            return
        leg = self._followed(record.address)
        if leg is not None:
            thread.birth = birth._replace(parent=leg.uid, parent_seq=leg.upto)

    def _has(self, uid: bytes) -> bool:
        """Whether there is that session. Where nobody can tell now it is believed to whoever names it."""
        try:
            return self.by_uid(uid) is not None
        except KeeveError:
            return True

    def _followed(self, address: int) -> Leg | None:
        """Whose record the first one of a fork follows, which lies at an address; None where that is not in the log.

        The hashes tell, for who does not find the parent that is named. Costs a look at each session.
        """
        born = self._store.read(address).header
        at = born.seq - 1
        for row in self.all_sessions(deleted=True):
            place = self.place(row.uid, at) if row.parent_seq < at <= row.seq and row.uid != born.uid else None
            if place is not None and self.stored(place[1]).header.hash == born.previous:
                return Leg(row.uid, at)
        return None

    def doubt(self) -> bool:
        """Make the catalog anew: it has led to a record of another session, or of other words, than was asked for.

        Once in its file and once in memory; after that it is right, and this gives False. So it does of a log that
        cannot be followed to its end: the catalog is left as it is.
        """
        self._doubts += 1
        try:
            if self._doubts == 1:
                self.rebuild()
            elif self._doubts == 2:
                self.leave_file()
        except LogCorrupt:
            return False
        except KeeveError:
            self._doubts -= 1
            raise
        return self._doubts <= 2

    def _address(self, position: int) -> int:
        address = self.at(position)
        if address is None:
            raise Mistaken
        return address

    def _locate(self, uid: bytes, seq: int) -> tuple[bytes, int] | None:
        """Whose record is at `seq` of a lineage, and its address."""
        place = self.place(uid, seq)
        return None if place is None else (place[0], self._address(place[1]))
