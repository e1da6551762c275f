"""Residents: the vats that are in memory, each with its mailbox, and which of them leave when there are too many.

A job is what a mailbox holds: a function of the vat that gives the steps it made. `failed` is told when the job could
not be done, or its record did not become durable.

The one rule: a vat may leave memory whenever nothing in it is on its way; what it was is in the log.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

from dataspace.errors import KeeveError
from dataspace.records import Record
from vat.messages import Outcome, Reply
from vat.vat import Step, Vat

Work: TypeAlias = Callable[[Vat], "Sequence[Step]"]


class Job(NamedTuple):
    """One thing for a vat to do. `again` says that it is done once more when it could not be made durable."""

    work: Work
    failed: Callable[[BaseException], None] | None = None
    again: bool = False
    writes: bool = True


class Resident:
    """A vat in memory. `durable` is the seq of its newest durable record."""

    __slots__ = ("birth", "damage", "durable", "mailbox", "ready", "records", "snapshot", "vat", "waiting")

    def __init__(self, vat: Vat, snapshot: int, records: int, birth: Record | None = None) -> None:
        self.vat = vat
        self.birth = birth
        """Its first record, when that was made in this run."""
        self.durable = vat.seq
        self.mailbox: deque[Job] = deque()
        self.ready = False
        """Whether it stands in the queue of vats that have something to do."""
        self.waiting: deque[tuple[int, Reply, Outcome]] = deque()
        """Answers that wait until what they read is durable."""
        self.snapshot = snapshot
        """The seq of the snapshot that it was restored from, 0 for none."""
        self.records = records
        """How many records were read after that."""
        self.damage: KeeveError | None = None
        """Why it takes no more input."""

    @property
    def idle(self) -> bool:
        """Whether nothing of it is on its way."""
        vat = self.vat
        return not (self.mailbox or self.ready or self.waiting or vat.waiters) and self.durable == vat.seq


class Residents:
    """The residents by uid, the least recently used first; at most `limit` of them, as far as they are idle."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._by_uid: OrderedDict[bytes, Resident] = OrderedDict()

    def get(self, uid: bytes) -> Resident | None:
        """The resident of that uid, now the most recently used."""
        found = self._by_uid.get(uid)
        if found is not None:
            self._by_uid.move_to_end(uid)
        return found

    def add(self, resident: Resident) -> None:
        """A vat came into memory."""
        self._by_uid[resident.vat.uid] = resident

    def drop(self, uid: bytes) -> Resident | None:
        """A vat leaves memory, whatever is on its way."""
        return self._by_uid.pop(uid, None)

    def superfluous(self) -> Iterator[Resident]:
        """Those that may leave now because there are too many, the least recently used first."""
        excess = len(self._by_uid) - self.limit
        if excess <= 0:
            return
        for resident in list(self._by_uid.values()):
            if resident.idle:
                yield resident
                excess -= 1
                if not excess:
                    return

    def __len__(self) -> int:
        return len(self._by_uid)

    def __iter__(self) -> Iterator[Resident]:
        return iter(list(self._by_uid.values()))
