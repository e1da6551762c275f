"""Timely: what a vat's own timers have to say comes before what they may end.

A limit is a timer (that of `within`, of a turn, of whoever cancels at a time), and what it limits may be about to go on
when its time comes: a call that a person approves of, an effect that is to start. Which of the two is first is no race:

    a call comes, or an effect is to start  ->  the timers of that vat whose time has come are taken  ->  then that

So it is whether a host runs, or opens long after the time; and where one opens that carries out nothing, to say a word.
What a timer has given up by then is given up: the word finds nothing that waits, and the effect does not start.

What comes of that waits for its own turn: a fiber that sleeps for no time, or one that catches up with a rhythm, wants
a timer that is due with each that it takes, and nobody has to wait for the last of them.

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
from vat.heap.deadlines import deadline_in
from vat.heap.entries import Effect
from vat.heap.messages import Call, Ended, Outcome
from vat.host.due import Due
from vat.host.residents import Job, Resident, Residents

_CAME = Outcome(True, None)
"""What a timer's effect comes to."""


class Timely:
    """Knows the timers of the vats in memory. `clock`: microseconds since 1970. `timed`: whether a device's method is
    that of a timer.

    What of a vat cannot be read is remembered by its memory, and the vat is loaded again without it: so nothing that
    reads one raises here.
    """

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
        if not vat.heap.forking:  # or they are those of its parent
            with suppress(KeeveError):
                for number, entry in vat.heap.entries("effects"):
                    self._add(resident, vat, number, entry)

    def note(self, resident: Resident, vat: Vat, step: Step) -> None:
        """A vat has done a step, which is on its way to the log."""
        due = resident.due
        for number in step.cancelled:
            due.leave(number, vat.seq, resident.durable)
        if step.ended is not None:
            due.leave(step.ended, vat.seq, resident.durable)
        with suppress(KeeveError):
            for number in step.wanted:
                entry = vat.heap.find("effects", number)
                if entry is not None:
                    self._add(resident, vat, number, entry)

    def _add(self, resident: Resident, vat: Vat, number: int, entry: Sequence[Any]) -> None:
        if self._timed(entry[Effect.DEVICE], entry[Effect.METHOD]):
            at = deadline_in(vat.heap, entry)
            if at is not None and at != math.inf:
                resident.due.add(number, at)

    def before(self, resident: Resident, job: Job) -> list[Job]:
        """What a vat has to do before a job: take the timers whose time has come, in the order of their times."""
        if not (job.timely or isinstance(job.message, Call)) or resident.damage is not None:
            return []
        if self._store.readonly or self._store.fault is not None:
            return []
        return [Job(Ended(number, _CAME), timely=True) for number in resident.due.numbers(self._clock())]

    def overdue(self, uid: bytes, upto: float) -> float | None:
        """None where no timer up to the number `upto` is due and not on record. Else the newest number that there is;
        inf for a vat that is not in memory, of which nobody knows. Costs what `Due` does.

        Raises why none can be taken: the session's damage, or the fault of the store.
        """
        resident = self._residents.get(uid)
        if resident is None or resident.vat is None:
            return math.inf
        if resident.damage is not None:
            raise resident.damage
        if self._store.fault is not None:
            raise self._store.fault
        due = resident.due
        return due.newest if due.waits(self._clock(), upto, resident.durable) else None
