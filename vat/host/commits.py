"""Commits: from a step to its record being durable, and what happens then; or to the failure of its batch.

    turns ──> add ──> writer ══ durable ══> release (replies, messages, effects, observers)
                            ══ failed ═══> the vats concerned are dropped, who waits is told

The one rule: **the embargo.** What the world can see of a step is let go by `release`, and that is called only when
all that the step recorded, or read, is durable.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Final

import trio

from dataspace.errors import KeeveError
from dataspace.in_logs import traced
from dataspace.log.store import Store, StoreDamaged, StoreReadOnly
from dataspace.log.verdicts import SessionDamaged
from dataspace.log.writer import Certifier, Writer
from dataspace.records import Record
from dataspace.remedies import Remedy
from vat.crank.vat import Step
from vat.failures import failure_of
from vat.heap.messages import Outcome
from vat.host.residents import Job, Resident, Residents

log = logging.getLogger("keeve")

LONE: Final = 2
"""Records that are committed in line when nothing else is to be done: a crank's, or the two of a fork."""


OPENED_TO_READ: Final = Remedy("opened-to-read", "it was opened with readonly=True")


def refusal(store: Store) -> StoreReadOnly:
    """What a host tells who would write into a store that is open for reading only."""
    if store.fault is not None:
        return StoreDamaged("this store", store.fault)
    return StoreReadOnly("this host", OPENED_TO_READ())


class Commits:
    """The steps on their way to the log.

    note: takes in a batch that is durable.
    release: lets go of a step. resumed: a paused resident may go on. later: has a session taken up again, since its
    batch has failed, or what was durable could not be let go. ended: is told when nothing is written any more, and why.
    certifier: signs what is durable.
    """

    def __init__(
        self,
        store: Store,
        residents: Residents,
        *,
        note: Callable[[Sequence[Record]], None],
        release: Callable[[Resident, Step], None],
        resumed: Callable[[Resident], None],
        later: Callable[[bytes], None],
        ended: Callable[[KeeveError], None],
        certifier: Certifier | None = None,
    ) -> None:
        self.writer = Writer(store, on_durable=self._durable, on_failed=self._failed, certifier=certifier)
        self._refused: KeeveError | None = refusal(store) if store.readonly else None
        self._store = store
        self._residents = residents
        self._note = note
        self._release = release
        self._resumed = resumed
        self._later = later
        self._ended = ended
        self._steps: dict[tuple[bytes, int], tuple[Resident, Step, Job]] = {}
        self._alone: dict[int, tuple[trio.Event, list[KeeveError]]] = {}

    @property
    def busy(self) -> bool:
        """Whether anything is on its way."""
        return bool(self._steps) or self.writer.busy

    def add(self, resident: Resident, step: Step, job: Job) -> KeeveError | None:
        """Take a step on its way. Gives why its record cannot be taken, if so: the vat is of no use any more."""
        record, born = step.record, step.born
        if record is None and born is None:
            vat = resident.vat
            if vat is None or resident.durable >= vat.seq:
                self._let_go(resident, step)
            else:
                resident.waiting.append((vat.seq, step, job))
            return None
        group = [each for each in (record, born) if each is not None]
        try:
            # The fork of a damaged session leaves no record in its parent's chain, which takes none.
            refusal = self._refused or (None if record is None else resident.damage or self.known(resident))
            if refusal is not None:
                raise refusal
            self.writer.enqueue(*group, wake=False)
        except KeeveError as error:
            self._fail(step, job, error)
            return error
        self._steps[group[0].uid, group[0].seq] = (resident, step, job)
        resident.flying += 1
        resident.coming.update(step.wanted)
        return None

    def known(self, resident: Resident) -> SessionDamaged | None:
        """What is known to be damaged of a session, maybe since it was loaded: whoever read it has come to that."""
        damage, vat = self._store.damaged.get(resident.uid), resident.vat
        if damage is None or vat is None or vat.deleted:
            return None
        return SessionDamaged(vat.id, damage.seq, damage.position, damage.what)

    async def put(self, record: Record) -> None:
        """Append a record that is no vat's: durable when this returns. Raises why it is not."""
        if self._refused is not None:
            raise self._refused
        over, errors = self._alone[id(record)] = trio.Event(), []
        try:
            self.writer.enqueue(record)
            await over.wait()
        finally:
            del self._alone[id(record)]
        if errors:
            raise errors[0]

    def go(self, *, lone: bool) -> None:
        """Let the writer begin. `lone`: nothing else is to be done meanwhile."""
        if not self._steps:
            return
        if lone and len(self._steps) <= LONE:
            # A hand-over to a thread would cost as much as the disk does.
            self.writer.commit_now()
        else:
            self.writer.wake()

    def _durable(self, records: Sequence[Record]) -> None:
        self._note(records)
        for record in records:
            if self._alone:
                self._over(record)
            entry = self._steps.pop((record.uid, record.seq), None)
            if entry is not None:
                resident, step, _ = entry
                resident.flying -= 1
                resident.coming.difference_update(step.wanted)
                if step.record is record:
                    resident.durable = record.seq
                    resident.newest = record
                self._let_go(resident, step)
                while resident.waiting and resident.waiting[0][0] <= resident.durable:
                    self._let_go(resident, resident.waiting.popleft()[1])
                resident.newest = None
                if resident.paused and not resident.flying:
                    resident.paused = False
                    self._resumed(resident)

    def _over(self, record: Record, *errors: KeeveError) -> None:
        """A record that is no vat's is durable, or there are errors."""
        if id(record) in self._alone:
            over, met = self._alone[id(record)]
            met += errors
            over.set()

    def _let_go(self, resident: Resident, step: Step) -> None:
        try:
            self._release(resident, step)
        except Exception as error:
            # Nothing may come out of here: the others in the batch are durable too, and have their callers.
            what = "session %s: something that became durable could not be passed on"
            log.error(what, self._residents.name(resident.uid), exc_info=traced(error))
            self._later(resident.uid)

    def _failed(self, records: Sequence[Record], error: KeeveError) -> None:
        for record in records:
            if self._alone:
                self._over(record, error)
            entry = self._steps.pop((record.uid, record.seq), None)
            if entry is not None:
                resident, step, job = entry
                resident.flying -= 1
                self._fail(step, job, error)
                self.drop(resident, error)
                self._later(resident.uid)
        if self.writer.stopped is not None:
            for resident in self._residents:  # whatever their callers wait for, it does not come any more
                self.drop(resident, error)
            self._ended(error)

    def end(self, error: KeeveError) -> None:
        """Nothing is written any more: whoever waits for that is told, and whoever comes."""
        self._refused = self._refused or error
        for over, met in self._alone.values():
            met.append(error)
            over.set()
        for resident in self._residents:
            self.drop(resident, error)
        self._ended(error)

    def drop(self, resident: Resident, error: BaseException) -> None:
        """Forget a vat and all that waits for it: what is not durable of it never happened."""
        vat = resident.vat
        self._residents.drop(resident)
        if vat is not None:
            for seq in range(resident.durable + 1, vat.seq + 1):
                entry = self._steps.pop((vat.uid, seq), None)
                if entry is not None:
                    resident.flying -= 1
                    self._fail(entry[1], entry[2], error)
        failure = Outcome(False, failure_of(error))
        waiting = [(step, job) for _, step, job in resident.waiting]
        waiters = [reply for replies in resident.waiters.values() for reply in replies]
        jobs = list(resident.mailbox)
        for held in (resident.waiting, resident.waiters, resident.mailbox):
            held.clear()
        for job in jobs:
            if job.failed is not None:
                job.failed(error)
        for reply in waiters:
            reply(failure)
        for step, job in waiting:
            self._fail(step, job, error)
        resident.paused = False

    def _fail(self, step: Step, job: Job, error: BaseException) -> None:
        if job.failed is not None:
            job.failed(error)
        failure = Outcome(False, failure_of(error))
        for reply, _ in step.replies:
            reply(failure)
