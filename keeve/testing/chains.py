"""Sessions that say the same every time: records for stores under test.

The one rule: what a chain says follows from its name and its seq.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dataspace.log.store import Store
from dataspace.records import STORE_UID, ZERO_HASH, Cell, Kind, Record

Opened = Callable[..., Store]
"""Opens the store of a test. Takes `readonly`."""


class Chain:
    """A session that says the same every time: records for a store under test."""

    def __init__(self, name: str = "s", seq: int = 0, hash: bytes = ZERO_HASH) -> None:
        self.uid = name.encode().ljust(16, b".")
        self.seq = seq
        self.hash = hash

    def record(
        self,
        text: str = "hello",
        cells: Sequence[str | bytes] = (),
        pages: Sequence[bytes] = (),
        kind: Kind = Kind.CRANK,
    ) -> Record:
        """The next record. It is the next one whether or not a store takes it; see `back`."""
        self.seq += 1
        encoded = [Cell(n.to_bytes(16, "big"), cell).encoded() for n, cell in enumerate(cells)]
        salts = self.seq.to_bytes(32, "big")
        record = Record(self.uid, self.seq, kind, self.seq, self.hash, salts, text.encode(), b"facts", encoded, pages)
        self.hash = record.hash
        return record

    def records(self, count: int) -> list[Record]:
        """The next few records."""
        return [self.record(f"{self.uid.decode()} {self.seq + 1}") for _ in range(count)]

    def back(self, record: Record) -> None:
        """Forget a record that a store did not take, and those after it."""
        self.seq = record.seq - 1
        self.hash = record.previous


def texts(store: Store, uid: bytes | None = None) -> list[str]:
    """What the sessions of a store said (or one of them), in order."""
    return [
        stored.body().deeds.decode()
        for stored in store.scan()
        if stored.header.uid != STORE_UID and uid in (None, stored.header.uid)
    ]
