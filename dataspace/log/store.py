"""A store: what stands behind a log, in one small protocol, and the errors of all that keep to it.

A store holds records in the order of their positions, which begin at 1 (the store's own `CREATED`) and
have no gap. `memory` is the readable specification; `segments` is the one that is used. The test class in
`keeve.testing.stores` says in full what holds for every one of them.

The one rule: `append` takes a batch whole and makes it durable, or leaves no trace of it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import ClassVar, Final, NamedTuple, Protocol

from dataspace.errors import KeeveError
from dataspace.log.marks import Certificate, ChainHead, Damage, Head, Mark
from dataspace.log.near import Near
from dataspace.log.verdicts import SessionDamaged
from dataspace.log.withheld import Withheld
from dataspace.records import STORE_UID, Body, Header, Kind, Record, Rest
from dataspace.remedies import Remedy
from dataspace.values import Erased

MAX_RECORD = 1 << 30
"""Bytes that one record may have with its cells and pages."""
MAX_PARTS = 1 << 20
"""Cells and pages that one record may have: more would not fit into the head of its frame."""


CLOSE_THERE: Final = Remedy("close-there", "close it there, or open it here with readonly=True")
ASK_THERE: Final = Remedy(
    "ask-there",
    "ask that, over HTTP or with keeve.client.connect({path}), or end it, or open it here with readonly=True",
)
NAME_STORE: Final = Remedy(
    "name-store", "is not a store: there is nothing in it yet; name a store, or an empty or new folder"
)


class StoreOwned(KeeveError, quotes=False):
    """Another host owns the store: another process, this one by another path, or the parent of this one.

    served: whether that is a server, which lets other processes have its sessions.
    """

    usage: ClassVar[bool] = True

    def __init__(self, path: str, pid: int | None, *, served: bool = False) -> None:
        self.path = path
        self.pid = pid
        self.served = served
        owner = "another host" if pid is None else f"process {pid}"
        if pid == os.getpid():
            owner += ", which is this one: another host in it has not been closed"
        way = CLOSE_THERE()
        if served:
            owner += ", a server"
            way = ASK_THERE(path=repr(path))
        super().__init__(f"{path} is owned by {owner}: {way}")


class StaleOwner(KeeveError, quotes=False):
    """Somebody else has taken the store over. Nothing was written."""

    def __init__(self, path: str, ours: int, theirs: int | None) -> None:
        self.path = path
        self.ours = ours
        self.theirs = theirs
        taken = "by somebody else" if theirs is None else f"with epoch {theirs}"
        super().__init__(f"{path}: taken over {taken}; this host's epoch is {ours}: close it, it is no owner")


class StoreMoved(KeeveError, quotes=False):
    """The store was moved, replaced or overwritten while a host owned it. Nothing was written."""

    def __init__(self, path: str, what: str) -> None:
        self.path = path
        self.what = what
        super().__init__(
            f"{path}: {what}: the store was moved or changed under this host; put it back, or close this "
            "host and open the store where it is now"
        )


class StoreFailed(KeeveError, quotes=False):
    """The store does not write any more, since it cannot know what the disk holds. It can still be read.

    The batch that saw it first may be in the log or not: opening the store again tells.
    """

    def __init__(self, path: str, cause: str) -> None:
        self.path = path
        self.cause = cause
        super().__init__(f"{path} has stopped writing ({cause}): close it and open it again")


class StoreReadOnly(KeeveError, quotes=False):
    """An append to a store that is open for reading."""

    usage: ClassVar[bool] = True

    def __init__(self, path: str, why: str) -> None:
        self.path = path
        self.why = why
        super().__init__(f"{path} is open for reading only: {why}; use a host that owns the store to write")


class StoreDamaged(StoreReadOnly, quotes=False):
    """An append to a store that is open for reading because its log cannot be trusted: `fault` says what is wrong."""

    usage: ClassVar[bool] = False

    def __init__(self, path: str, fault: KeeveError) -> None:
        self.path = path
        self.why = str(fault)
        self.fault = fault
        KeeveError.__init__(self, f"{path} is open for reading only, and nothing can be written: {fault}")


class StoreClosed(KeeveError, quotes=False):
    """The store was closed here."""

    usage: ClassVar[bool] = True

    def __init__(self, path: str) -> None:
        self.path = path
        super().__init__(f"{path} is closed: open it again")


class NotAStore(KeeveError, quotes=False):
    """What is at the path is no store, and is left alone; without `what` it is nothing at all."""

    usage: ClassVar[bool] = True

    def __init__(self, path: str, what: str | None = None) -> None:
        self.path = path
        self.what = what
        said = f"is not a store: {what}; name a store, or an empty or new folder"
        super().__init__(f"{path} {NAME_STORE() if what is None else said}")


class WrongHead(KeeveError, quotes=False):
    """A record does not follow the newest one of its chain.

    `session` is the chain's uid in hex; `expected` the seq and hash prefix that it should name, `actual` what
    it does.
    """

    def __init__(self, session: str, expected: ChainHead, actual: ChainHead) -> None:
        self.session = session
        self.expected = expected
        self.actual = actual
        super().__init__(
            f"session {session}: a record follows seq {actual[0]} ({actual[1].hex()[:8]}), but the newest is "
            f"seq {expected[0]} ({expected[1].hex()[:8]}): load the session again and repeat the work"
        )


class RecordTooLarge(KeeveError, quotes=False):
    """A record with its cells and pages is larger than a store takes, or there are too many of them."""

    usage: ClassVar[bool] = True

    def __init__(self, session: str, seq: int, size: int, parts: int = 0) -> None:
        self.session = session
        self.seq = seq
        self.size = size
        self.parts = parts
        if parts > MAX_PARTS:
            what = f"{parts} cells and pages, {MAX_PARTS} are the most: bring fewer pieces of content at once"
        else:
            what = f"{size} bytes, {MAX_RECORD} are the most: bring the content in smaller pieces"
        super().__init__(f"session {session}: the record at seq {seq} has {what}")


class NoSuchRecord(KeeveError, LookupError, quotes=False):
    """No durable record begins at that address."""

    def __init__(self, address: int, what: str = "no record begins there") -> None:
        self.address = address
        super().__init__(f"address {address}: {what}; use one that this store gave")


class NoSuchPart(KeeveError, LookupError, quotes=False):
    """A record has no cell or page of that number."""

    def __init__(self, position: int, number: int, what: str) -> None:
        self.position = position
        self.number = number
        super().__init__(
            f"the record at position {position} has no {what} {number}: what names it is not of this log; "
            "run `keeve verify`"
        )


class BodyErased(KeeveError, quotes=False):
    """The body of a record was erased; its header stays."""

    def __init__(self, position: int) -> None:
        self.position = position
        super().__init__(
            f"the content of the record at position {position} was erased, and nothing brings it back: read on after it"
        )


class Erasure(NamedTuple):
    """What is to go of the record at an address: the cells and pages of these numbers (None: all), and its `body`."""

    address: int
    parts: Sequence[int] | None = None
    body: bool = True


class Stored(Protocol):
    """A record in a store. Its header is at hand; the rest is read when it is asked for, and checked then."""

    @property
    def address(self) -> int: ...

    @property
    def header(self) -> Header: ...

    @property
    def attachments(self) -> int:
        """How many cells and pages it has."""

    @property
    def next(self) -> int | None:
        """The address of the record after it; None while it is the newest durable one."""

    def body(self) -> Body:
        """Its two parts. Raises `SessionDamaged` or `BodyErased`; and `Archived` where `rest` is all that is here."""

    def rest(self) -> Rest | None:
        """What is here of its body if its deeds are in an archive, or lost; else None. Raises as it does elsewhere."""

    def part(self, number: int) -> bytes | Erased:
        """The stored bytes of cell or page `number`, as its digest covers them.

        Raises `SessionDamaged` or `NoSuchPart`.
        """

    def cell(self, number: int) -> str | bytes | Erased:
        """The content of cell `number`. Raises `SessionDamaged` or `NoSuchPart`."""

    def page(self, number: int) -> bytes:
        """Page `number` (counted on from the cells). Raises `SessionDamaged`, `NoSuchPart` or `BodyErased`."""


class Store(Protocol):
    """One log, open. Reading is safe from any thread; writing is for one caller at a time."""

    @property
    def log_id(self) -> bytes:
        """16 random bytes that name the log for ever."""
        ...

    @property
    def epoch(self) -> int:
        """The number of this ownership: one more than that of the owner before."""
        ...

    @property
    def head(self) -> Head:
        """The newest durable record."""
        ...

    @property
    def mark(self) -> Mark:
        """The place where the durable log ends."""
        ...

    @property
    def readonly(self) -> bool: ...

    @property
    def secret(self) -> bytes | None:
        """From which files that are derived of this store take their keys; None when it is not encrypted."""
        ...

    @property
    def withheld(self) -> Withheld:
        """The cells that are erased and may lie in the files yet: `cell` and `part` give `ERASED` for them."""
        ...

    @property
    def fault(self) -> KeeveError | None:
        """Why a store that should write does not; None while all is well."""
        ...

    @property
    def damaged(self) -> Mapping[bytes, Damage]:
        """The sessions that can be read up to a record and not written, by uid: those that opening it found, those
        that reading came to, and what a check of the log has said."""
        ...

    def append(self, records: Sequence[Record]) -> None:
        """Append a batch: durable when this returns, each record with its `position` and `address` set.

        Raises without leaving a trace: `DiskFull`, `WriteFailed`, `WrongHead`, `RecordTooLarge`,
        `StoreMoved`, `StaleOwner`, `StoreOwned` (in a forked child), `SessionDamaged`, `StoreReadOnly`,
        `StoreClosed`; or `StoreFailed`, and then for ever. A chain that this store has not seen since it was
        opened (or not for a long time) is not checked.
        """
        ...

    def refresh(self) -> Head:
        """The newest durable record by now. A store that is open for reading learns of new ones only here."""
        ...

    def settle(self, certificate: Certificate | None = None) -> None:
        """Let the log itself prove that the newest batch is durable, and keep a `certificate` in it, durably.

        Costs a commit, unless that was done before and there is nothing to keep. Raises what `append` raises.
        """
        ...

    def erase(self, erasures: Sequence[Erasure], exchange: Callable[[Callable[[], None]], bool] = ...) -> int:
        """Take content out of the log for good: headers, hashes and addresses stay. How many bodies are gone by this.
        `exchange` does what takes it away, a part at a time, or gives False: then that part stays.

        Durable when it returns, and what was erased before counts as done; a crash leaves each of them whole or gone.
        May run beside `append`, in another thread, and not beside itself. Raises `NoSuchRecord`, `NoSuchPart`, and what
        `append` raises. The embedded store writes each segment anew that is concerned.
        """
        ...

    def destroy(self, uids: Collection[bytes], unborn: Collection[bytes] = ()) -> None:
        """Destroy the keys that these sessions hold: what they alone could read, nobody can from here on.

        Durable when this returns; what forks share stays readable to them. Their tombstones have to be durable before,
        and may be read after. Nor do the `unborn` keep any key: sessions that were to be, and are not in the log. Does
        nothing where the store is not encrypted, or the keys are gone already, so that whoever was interrupted does it
        again. Costs the writing of the key file. Raises what `append` raises.
        """
        ...

    def heirs(self, uids: Collection[bytes]) -> Collection[bytes]:
        """The sessions that hold keys by way of these, or of those whose keys are destroyed: their forks.

        One that is in no record was to be a fork when the host died. It is `unborn`, and keeps readable what it has no
        use for.
        """
        ...

    def notes(self) -> Iterator[bytes]:
        """The signed notes of the certificates that were kept, as they lie there, newest first.

        The first costs a read; after it, or when its copy is gone, they are found by going back through the log.
        """
        ...

    def chain(self, uid: bytes) -> ChainHead | None:
        """The newest record of a chain, if it is known without reading."""
        ...

    def read(self, address: int, near: Near | None = None) -> Stored:
        """The durable record at `address`. Raises `NoSuchRecord`; `SessionDamaged` or `NoFrame` of an unsound frame.

        What is read for it stays in `near`, and serves the records shortly before it. Costs a read of the file or none.
        """
        ...

    def scan(self, start: int | Mark | None = None) -> Iterator[Stored]:
        """The durable records in order, to the head as it is when the end is reached: from the one at an
        address, from the first one after a mark, or from the beginning. Raises `LogCorrupt`."""
        ...

    def holds(self, mark: Mark) -> bool:
        """Whether `mark` is a durable place of this log, as it is now."""
        ...

    def close(self) -> None:
        """Settle, and give the store up. A second call does nothing."""
        ...


def record_size(record: Record) -> int:
    """Bytes of a record with all that it brings, without its frames. Raises `RecordTooLarge`."""
    size = len(record.deeds) + len(record.facts)
    for cell in record.cells:
        size += len(cell)
    for page in record.pages:
        size += len(page)
    parts = len(record.cells) + len(record.pages)
    if size > MAX_RECORD or parts > MAX_PARTS:
        raise RecordTooLarge(record.uid.hex(), record.seq, size, parts)
    return size


def check_records(records: Sequence[Record], damaged: Mapping[bytes, Damage]) -> None:
    """What every store looks at before it writes: a damaged session takes nothing but its end. Raises `SessionDamaged`
    or `RecordTooLarge`."""
    for record in records:
        if record.uid in damaged and record.uid != STORE_UID and record.kind != Kind.DELETE:
            raise SessionDamaged.of(record.uid, damaged[record.uid])
        record_size(record)
