"""A store in memory: the readable specification of every other one.

A `MemoryLog` stands for the disk. It outlives the `MemoryStore` that owns it, so that a test can close a
store, or drop it as a crash would, and open another on what is left.

The one rule: nothing clever. Where this file and another store differ, the other one is wrong, unless the
conformance class says otherwise.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from hashlib import sha256
from typing import NamedTuple

from dataspace.errors import KeeveError
from dataspace.log.chains import Chains
from dataspace.log.erasing import at_once
from dataspace.log.files import SyncFailed
from dataspace.log.marks import BEGINNING, Certificate, ChainHead, Damage, Head, Mark
from dataspace.log.near import Near
from dataspace.log.notices import created
from dataspace.log.store import (
    BodyErased,
    Erasure,
    NoSuchPart,
    NoSuchRecord,
    StaleOwner,
    StoreClosed,
    StoreFailed,
    StoreOwned,
    StoreReadOnly,
    check_records,
)
from dataspace.log.withheld import Withheld
from dataspace.records import Body, Header, Record, Salts, split_body, split_cell
from dataspace.values import ERASED, Erased

NAME = "(memory)"
"""What errors say in the place of a path."""


class Kept(NamedTuple):
    """A record as it is kept: nothing that whoever made it could still change. None stands for what was erased."""

    header: Header
    body: bytes | None
    cells: tuple[bytes | None, ...]
    pages: tuple[bytes | None, ...]

    def without(self, numbers: Collection[int], body: bool) -> Kept:
        """The same with these parts erased, and the body if that goes too."""
        parts = [None if n in numbers else part for n, part in enumerate(self.cells + self.pages)]
        cells = len(self.cells)
        return Kept(self.header, None if body else self.body, tuple(parts[:cells]), tuple(parts[cells:]))

    @property
    def parts(self) -> int:
        """How many cells and pages it has."""
        return len(self.cells) + len(self.pages)

    @property
    def bodies(self) -> int:
        """How many of its bodies are still there."""
        return sum(each is not None for each in (self.body, *self.cells, *self.pages))


class MemoryLog:
    """What a disk would hold: the records by position, and the mark after each batch."""

    def __init__(self, log_id: bytes = bytes(16)) -> None:
        self.log_id = log_id
        self.records: list[Kept] = []
        self.marks: list[Mark] = [BEGINNING]
        self.damaged: dict[bytes, Damage] = {}
        self.certificates: list[Certificate] = []
        self.epoch = 0
        self.owned = False


class MemoryStore:
    """A store of what is in a `MemoryLog`. An address is a position.

    `now` gives the time in microseconds and `salts` the salts for the store's first record; by default zero
    and zeros. `failing` is what a test puts errors into: each one is raised by one append.
    """

    def __init__(
        self,
        log: MemoryLog | None = None,
        *,
        readonly: bool = False,
        now: Callable[[], int] = int,
        salts: Salts = bytes,
    ) -> None:
        self._log = MemoryLog() if log is None else log
        self.readonly = readonly
        self.secret: bytes | None = None
        self.withheld = Withheld()
        self.fault: KeeveError | None = None
        self.failing: list[KeeveError] = []
        self._chains = Chains(lambda uid: None, remembered=1 << 60)
        self._closed = False
        self._writing = threading.Lock()
        self.epoch = self._log.epoch
        if readonly:
            return
        if self._log.owned:
            raise StoreOwned(NAME, os.getpid())
        self._log.owned = True
        self._log.epoch = self.epoch = self.epoch + 1
        if not self._log.records:
            self.append([created(self.log_id, now(), salts)])
        for kept in self._log.records:
            self._chains.note({kept.header.uid: (kept.header.seq, kept.header.hash)})

    @property
    def log_id(self) -> bytes:
        return self._log.log_id

    @property
    def head(self) -> Head:
        return self.mark.head

    @property
    def mark(self) -> Mark:
        return self._log.marks[-1]

    @property
    def damaged(self) -> Mapping[bytes, Damage]:
        return self._log.damaged

    def append(self, records: Sequence[Record]) -> None:
        with self._writing:
            self._check(records)
            if not records:
                return
            heads = self._chains.follow(records)
            if self.failing:
                self._fail(self.failing.pop(0))
            position = self.head.position
            for record in records:
                position += 1
                record.position = record.address = position
            self._log.records.extend(_kept(record, self.epoch) for record in records)
            self._log.marks.append(_mark(self.mark, position, records[-1].hash))
            self._chains.note(heads)

    def _check(self, records: Sequence[Record]) -> None:
        if self.readonly:
            raise StoreReadOnly(NAME, "it was opened so")
        if self._closed:
            raise StoreClosed(NAME)
        if self._log.epoch != self.epoch:
            raise StaleOwner(NAME, self.epoch, self._log.epoch)
        if self.fault is not None:
            raise StoreFailed(NAME, str(self.fault))
        check_records(records, self.damaged)

    def _fail(self, error: KeeveError) -> None:
        if isinstance(error, SyncFailed):
            self.fault = StoreFailed(NAME, str(error))
            raise self.fault
        raise error

    def refresh(self) -> Head:
        return self.head

    def settle(self, certificate: Certificate | None = None) -> None:
        """Nothing is ever in doubt in memory."""
        if certificate is not None:
            self._check(())
            self._log.certificates.append(certificate)

    def erase(self, erasures: Sequence[Erasure], exchange: Callable[[Callable[[], None]], bool] = at_once) -> int:
        with self._writing:
            self._check(())
            before = sum(record.bodies for record in self._log.records)
            for address, parts, _ in erasures:
                kept = self.read(address).kept
                for number in range(kept.parts) if parts is None else parts:
                    if not 0 <= number < kept.parts:
                        raise NoSuchPart(address, number, "part")
            exchange(partial(self._erase, erasures))
            return before - sum(record.bodies for record in self._log.records)

    def _erase(self, erasures: Sequence[Erasure]) -> None:
        records = self._log.records
        for address, parts, body in erasures:
            kept = records[address - 1]
            records[address - 1] = kept.without(range(kept.parts) if parts is None else parts, body)

    def destroy(self, uids: Collection[bytes], unborn: Collection[bytes] = ()) -> None:
        """There are no keys in memory."""

    def heirs(self, uids: Collection[bytes]) -> Collection[bytes]:
        return ()

    def notes(self) -> Iterator[bytes]:
        return (certificate.note for certificate in reversed(self._log.certificates))

    def chain(self, uid: bytes) -> ChainHead | None:
        return self._chains.get(uid)

    def read(self, address: int, near: Near | None = None) -> MemoryStored:
        if not 0 < address <= self.head.position:
            raise NoSuchRecord(address)
        return MemoryStored(self._log, address, self.withheld)

    def scan(self, start: int | Mark | None = None) -> Iterator[MemoryStored]:
        first = start.position + 1 if isinstance(start, Mark) else start or 1
        address: int | None = first if first <= self.head.position else None
        while address is not None:
            found = self.read(address)
            yield found
            address = found.next

    def holds(self, mark: Mark) -> bool:
        return mark in self._log.marks

    def close(self) -> None:
        if not self._closed and not self.readonly and self._log.epoch == self.epoch:
            self._log.owned = False
        self._closed = True


class MemoryStored:
    """A record of a `MemoryLog`."""

    __slots__ = ("_log", "_withheld", "address", "kept")

    def __init__(self, log: MemoryLog, address: int, withheld: Withheld) -> None:
        self._log = log
        self._withheld = withheld
        self.kept = log.records[address - 1]
        self.address = address

    @property
    def header(self) -> Header:
        return self.kept.header

    @property
    def attachments(self) -> int:
        return self.kept.parts

    @property
    def next(self) -> int | None:
        return self.address + 1 if self.address < len(self._log.records) else None

    def body(self) -> Body:
        body = None if self.kept.body is None else split_body(self.kept.body)
        if body is None:
            raise BodyErased(self.address)
        return body

    def rest(self) -> None:
        """There are no archives of what is in memory."""

    def part(self, number: int) -> bytes | Erased:
        if not 0 <= number < self.attachments:
            raise NoSuchPart(self.address, number, "part")
        part = (self.kept.cells + self.kept.pages)[number]
        return ERASED if part is None or self._withheld.has(self.address, number) else part

    def cell(self, number: int) -> str | bytes | Erased:
        if not 0 <= number < len(self.kept.cells):
            raise NoSuchPart(self.address, number, "cell")
        cell = self.kept.cells[number]
        return ERASED if cell is None or self._withheld.has(self.address, number) else split_cell(cell).content

    def page(self, number: int) -> bytes:
        if not len(self.kept.cells) <= number < self.attachments:
            raise NoSuchPart(self.address, number, "page")
        page = self.kept.pages[number - len(self.kept.cells)]
        if page is None:
            raise BodyErased(self.address)
        return page


def _kept(record: Record, epoch: int) -> Kept:
    header = Header(
        record.position,
        epoch,
        record.uid,
        record.seq,
        record.kind,
        record.time,
        record.previous,
        record.body_digest,
    )
    return Kept(header, record.body(), tuple(record.cells), tuple(record.pages))


def _mark(before: Mark, position: int, hash: bytes) -> Mark:
    return Mark(1, position, position, hash, sha256(before.commit + hash).digest())
