"""Recall: what records said, read back from the store.

`Recall` reads one record at a time by its address and keeps the last few that it decoded, so that many who
ask for the same one cost one reading. `noted` gives a record that was read in a scan the shape of one that
has just been appended.

The one rule: what is told comes from the log, never from memory that the log has not confirmed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, Protocol

from dataspace.drafts import Assertion, Handle, Load, Statement, read_deeds, read_statements
from dataspace.facts import Fact
from dataspace.log.archives import Archived
from dataspace.log.marks import Damage
from dataspace.log.rests import facts_of
from dataspace.log.store import BodyErased, NoSuchPart, NoSuchRecord, Store, Stored
from dataspace.log.unsound import NoFrame
from dataspace.log.verdicts import SessionDamaged
from dataspace.records import Header, Kind
from dataspace.values import ERASED, CellRef, Erased, FrozenDict, thaw
from dataspace.values.encoding import BadEncoding

KEPT: Final = 64
"""Decoded records that a `Recall` keeps, if they are not larger than `LARGE`."""
LARGE: Final = 1 << 16
"""Bytes (or characters) of facts, with their cells."""

UNREADABLE: Final = "\0"
"""The label, which no fact can have, under which a record is found that may have said anything."""

ANYTHING: Final = (Assertion(0, Fact(UNREADABLE, (), FrozenDict({}))),)
"""What a record says that cannot be read, as far as it is to be found."""

_TELLING: Final = frozenset(
    (Kind.SPAWN, Kind.FORKED, Kind.SNAPSHOT, Kind.DELETE, Kind.BASE, Kind.ERASE, Kind.RECLAIMED, Kind.SALVAGED)
)

Locate = Callable[[bytes, int], "tuple[bytes, int] | None"]
"""Whose record is at a seq of a lineage, and its address; None when there is none."""


class Mistaken(LookupError):
    """A record is not the one that the catalog led to. Does not leave this package: the catalog is made anew."""


class Notable(Protocol):
    """What a catalog notes of a record: `records.Record` once it is durable, or `Noted`."""

    uid: bytes
    seq: int
    kind: int
    time: int
    hash: bytes
    position: int
    address: int
    message: Any
    statements: Sequence[Any]
    pending: int


class Noted:
    """A record that was read from a store, as one that has just been appended. `message` only where it tells."""

    __slots__ = (
        "address",
        "hash",
        "kind",
        "message",
        "pending",
        "position",
        "seq",
        "statements",
        "time",
        "uid",
    )

    def __init__(self, header: Header, address: int) -> None:
        self.uid = header.uid
        self.seq = header.seq
        self.kind = header.kind
        self.time = header.time
        self.hash = header.hash
        self.position = header.position
        self.address = address
        self.message: Any = None
        self.statements: Sequence[Any] = ()
        self.pending = 0


class Said(NamedTuple):
    """A record read back: its header, its hash, where it lies, its statements, and how much they are: the bytes (or
    characters) of its facts, with their cells."""

    header: Header
    hash: bytes
    address: int
    statements: Sequence[Statement]
    size: int = 0


def noted(stored: Stored, whole: bool = False) -> Noted:
    """A scanned record, to be noted. Content in cells reads as `ERASED` unless it is wanted `whole`.

    A body that was erased says nothing. One that is damaged may have said anything, so that whoever looks for
    something comes to it, and is told.
    """
    record = Noted(stored.header, stored.address)
    load = _reading(stored)
    try:
        facts = _left(stored, record)
        if facts is None:
            body = stored.body()
            deeds = read_deeds(body.deeds)
            record.pending = deeds.pending
            if record.kind in _TELLING:
                record.message = thaw(deeds.message, load)
            facts = body.facts
        record.statements = read_statements(facts, load if whole else _unread)
    except BodyErased:
        pass
    except (SessionDamaged, BadEncoding, NoSuchPart):
        record.statements = ANYTHING
    return record


def _left(stored: Stored, record: Noted) -> bytes | None:
    """Note what is left of a record whose deeds are in an archive; gives its facts. None for any other."""
    rest = stored.rest()
    if rest is None:
        return None
    record.pending = rest.pending
    return rest.facts


class Recall:
    """Reads what records of `store` said. `locate` finds the records that their cells point to."""

    def __init__(self, store: Store, locate: Locate) -> None:
        self.store = store
        self._locate = locate
        self._kept: dict[int, Said] = {}

    def said(self, address: int) -> Said:
        """The record at `address`. An erased one has no statements.

        Raises `SessionDamaged` when it cannot be read. Costs a read and a decoding, unless it is kept.
        """
        found = self._kept.get(address)
        if found is None:
            try:
                stored = self.store.read(address)
            except NoSuchRecord as error:
                raise Mistaken from error
            found = self._read(stored)
            if found.size <= LARGE:
                while len(self._kept) >= KEPT:
                    del self._kept[next(iter(self._kept))]
                self._kept[address] = found
        return found

    def forget(self) -> None:
        """Keep nothing that was read so far: content was erased."""
        self._kept.clear()

    def asserted(self, uid: bytes, handle: Handle) -> tuple[Said, Fact] | None:
        """The record and the fact that `handle` names in the lineage of `uid`; None when there is none."""
        located = self._locate(uid, handle.seq)
        if located is None:
            return None
        owner, address = located
        said = self.said(address)
        if (said.header.uid, said.header.seq) != (owner, handle.seq):
            raise Mistaken
        for statement in said.statements:
            if statement.at == handle.operation and isinstance(statement, Assertion):
                return said, statement.fact
        return None

    def label(self, uid: bytes, handle: Handle) -> tuple[Header, str] | None:
        """The record that states what `handle` names in the lineage of `uid`, and the fact's label; None when there is
        none. What else the fact says may be in an archive that is away."""
        located = self._locate(uid, handle.seq)
        if located is None:
            return None
        owner, address = located
        try:
            said = self.said(address)
            header, statements = said.header, said.statements
        except Archived:
            stored = self.store.read(address)
            header, statements = stored.header, read_statements(facts_of(stored), _unread)
        if (header.uid, header.seq) != (owner, handle.seq):
            raise Mistaken
        for statement in statements:
            if statement.at == handle.operation and isinstance(statement, Assertion):
                return header, statement.fact.label
        return None

    def _read(self, stored: Stored) -> Said:
        header = stored.header
        statements: Sequence[Statement] = ()
        size = 0

        def load(cell: CellRef) -> str | bytes | Erased:
            nonlocal size
            content = stored.cell(cell.number) if cell.seq == header.seq else self._far(header.uid, cell)
            size += 0 if isinstance(content, Erased) else len(content)
            return content

        try:
            facts = facts_of(stored)
            statements = read_statements(facts, load)
            size += len(facts)
        except BodyErased:
            pass
        except (BadEncoding, NoSuchPart) as error:
            damage = Damage(header.seq, header.position, stored.address, str(error))
            raise SessionDamaged.of(header.uid, damage) from error
        return Said(header, header.hash, stored.address, statements, size)

    def _far(self, uid: bytes, cell: CellRef) -> str | bytes | Erased:
        located = self._locate(uid, cell.seq)
        if located is None:
            raise BadEncoding(f"a fact refers to cell {cell.number} of seq {cell.seq}, which is not there")
        owner, address = located
        try:
            stored = self.store.read(address)
        except NoSuchRecord as error:
            raise Mistaken from error
        except NoFrame as error:
            raise error.damage(owner, cell.seq) or error from error
        except SessionDamaged as error:
            if (error.session, error.seq) != (owner.hex(), cell.seq):
                raise Mistaken from error
            raise
        if (stored.header.uid, stored.header.seq) != (owner, cell.seq):
            raise Mistaken
        return stored.cell(cell.number)


def _reading(stored: Stored) -> Load:
    def load(cell: CellRef) -> str | bytes | Erased:
        return stored.cell(cell.number) if cell.seq == stored.header.seq else ERASED

    return load


def _unread(_: CellRef) -> Erased:
    return ERASED
