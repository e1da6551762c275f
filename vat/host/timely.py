"""Timely: what a vat's own timers have to say comes before what they may end.

A limit is a timer (that of `within`, of a turn, of whoever cancels at a time), and what it limits may be about to go on
when its time comes: a call that a person approves of, an effect that is to start. Which of the two is first is no race:

    a call comes, or an effect is to start  ->  the timers of that vat whose time has come are taken  ->  then that

So it is whether a host runs, or opens long after the time; and where one opens that carries out nothing, to say a word.
What a timer has given up by then is given up: the word finds nothing that waits, and the effect does not start.

The one rule: when a device is called, no timer that its vat had as it was about to be is due and not on record.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from dataspace.errors import KeeveError
from dataspace.log.store import Store
from vat.crank.vat import Step, Vat
from vat.devices.timers import Due, deadline_of
from vat.heap.entries import Effect
from vat.heap.messages import Call, Ended, Outcome
from vat.host.residents import Job, Resident, Residents

_CAME = Outcome(True, None)
"""What a timer's effect comes to."""


class Timely:
    """Knows the timers of the vats in memory. `clock`: microseconds since 1970. `timed`: whether a device's method is
    that of a timer."""

    def __init__(
        self, residents: Residents, store: Store, clock: Callable[[], int], timed: Callable[[str, str], bool]
    ) -> None:
        self._residents = residents
        self._store = store
        self._clock = clock
        self._timed = timed

    def load(self, resident: Resident, vat: Vat) -> None:
        """A vat has come into memory, as it is stored: these are its timers. Costs its effects."""
        resident.due = Due()
        with suppress(KeeveError):  # what cannot be read is remembered, and the vat is loaded again without it
            for number, entry in vat.heap.entries("effects"):
                self._add(resident, vat, number, entry)

    def note(self, resident: Resident, vat: Vat, step: Step, job: Job) -> None:
        """A vat has done a step, of this job."""
        if job.timely:
            resident.due.seq = vat.seq
        for number in step.cancelled:
            resident.due.discard(number)
        for number in step.wanted:
            entry = vat.heap.find("effects", number)
            if entry is not None:
                self._add(resident, vat, number, entry)

    def _add(self, resident: Resident, vat: Vat, number: int, entry: Sequence[Any]) -> None:
        if self._timed(entry[Effect.DEVICE], entry[Effect.METHOD]):
            read = vat.heap.read
            at = deadline_of(read(entry[Effect.ARGS]), {name: read(arg) for name, arg in entry[Effect.KEYWORDS]})
            if at is not None and at != math.inf:
                resident.due.add(number, at)

    def before(self, resident: Resident, vat: Vat, job: Job) -> list[Job]:
        """What a vat has to do before a job: take the timers whose time has come, in the order of their times."""
        if not (job.timely or isinstance(job.message, Call)) or resident.damage is not None:
            return []
        if self._store.readonly or self._store.fault is not None:
            return []
        numbers = resident.due.take(self._clock())
        if numbers:
            resident.due.seq = vat.seq  # some may be over by now, in records that are on their way
        wanted = [number for number in numbers if vat.heap.find("effects", number) is not None]
        return [Job(Ended(number, _CAME), timely=True) for number in wanted]

    def overdue(self, uid: bytes, upto: float) -> float | None:
        """None where no timer up to that number is due and not on record. Else the number of the newest that there is;
        0 for a vat that is not in memory, of which nobody knows."""
        resident = self._residents.get(uid)
        if resident is None or resident.vat is None:
            return 0 if upto else None
        due = resident.due
        under_way = resident.first or due.seq > resident.durable
        return due.newest if under_way or due.any(self._clock(), upto) else None
