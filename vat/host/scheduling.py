"""Turns: takes the residents that have something to do in turn, and does one job of each.

One task runs all vats of a host. A job whose vat is not in memory loads it; a job that fails in the runtime, or that
came upon something unreadable, leaves no trace: its vat is loaded again before the next one.

The one rule: a vat does one thing at a time, and nothing that it did leaves this file but through `Commits`.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Final, TypeVar

import trio

from dataspace.errors import KeeveError
from dataspace.in_logs import in_log, traced
from vat.crank.vat import Step, Vat
from vat.heap.past import NotYet
from vat.host.commits import Commits
from vat.host.residents import Job, Resident, Residents
from vat.host.timely import Timely

log = logging.getLogger("keeve")

A = TypeVar("A")
B = TypeVar("B")

IN_TURN: Final = 64
"""Jobs that are done before other tasks get a chance, at the most."""

SLICE: Final = 0.01
"""Seconds after which they get it whatever was done: of the jobs, only the one that runs then is finished."""

REFUSALS: Final = (KeeveError, TypeError, ValueError, LookupError, AttributeError)
"""What a vat may raise to who asked, having changed nothing."""


class Turns:
    """The mailboxes, and the task that empties them.

    load: brings a resident's vat into memory. after: what a vat does after a job. trouble: something of a session could
    not be read; gives what is lost by that, if anything is. evict: a resident may leave memory. timely: which timers
    are taken before a job.
    """

    def __init__(
        self,
        residents: Residents,
        commits: Commits,
        *,
        load: Callable[[Resident], Vat],
        trouble: Callable[[bytes, Exception], Exception | None],
        after: Callable[[Resident, Vat], Sequence[Step]],
        evict: Callable[[Resident], None],
        timely: Timely,
    ) -> None:
        self._residents = residents
        self._commits = commits
        self._load = load
        self._trouble = trouble
        self._after = after
        self._evict = evict
        self._timely = timely
        self._ready: deque[Resident] = deque()
        self._parked: trio.lowlevel.Task | None = None
        self._held: set[bytes] = set()
        self.current: Resident | None = None
        """The resident whose job is being done now."""

    @property
    def busy(self) -> bool:
        """Whether any resident has something to do."""
        return bool(self._ready)

    def doing(self) -> str | None:
        """What is being done now, in words; None for nothing. For any thread."""
        resident = self.current
        if resident is None:
            return None
        vat = resident.vat
        if vat is None:
            return f"session {resident.uid.hex()} (loading)"
        doing = vat.crank.doing
        what = "between two calls" if doing is None else f"{doing.type}.{doing.method}, actor {doing.actor}"
        return f"session {vat.id!r} ({what})"

    def post(self, uid: bytes, job: Job) -> None:
        """Put a job into a mailbox. It is done, or `job.failed` is told, and never before this returns."""
        resident = self._residents.use(uid)
        resident.mailbox.append(job)
        self.make_ready(resident)

    def make_ready(self, resident: Resident) -> None:
        """Give a resident its turn, if it has something to do and may do it."""
        if resident.mailbox and not resident.ready and not resident.paused and resident.uid not in self._held:
            resident.ready = True
            self._ready.append(resident)
            if self._parked is not None:
                task, self._parked = self._parked, None
                trio.lowlevel.reschedule(task)

    def resume(self, resident: Resident) -> None:
        """All that a paused resident recorded is durable now."""
        if resident.stale:
            resident.let_go()
        self.make_ready(resident)

    def hold(self, uids: Iterable[bytes]) -> None:
        """Do no job of these sessions, until `release`; what they have recorded is on its way to the log."""
        self._held.update(uids)

    def release(self, uids: Iterable[bytes]) -> None:
        """Go on with these sessions, from what is stored."""
        self._held.difference_update(uids)
        for uid in uids:
            resident = self._residents.get(uid)
            if resident is not None:
                self.make_ready(resident)

    def unload(self, uid: bytes) -> bool:
        """Have a vat loaded again before its next job, if all that it recorded is durable; whether that is so. If not,
        ask again."""
        resident = self._residents.get(uid)
        if resident is not None:
            if resident.flying or resident.waiting:
                return False
            resident.let_go()
        return True

    @trio.lowlevel.enable_ki_protection
    async def run(self) -> None:
        """Do what is to be done, for ever."""
        ready = self._ready
        while True:
            done, until = 0, trio.current_time() + SLICE
            while ready and done < IN_TURN and (not done or trio.current_time() < until):
                resident = ready.popleft()
                resident.ready = False
                if resident.mailbox and not resident.paused and resident.uid not in self._held:
                    self._do(resident)
                    self.make_ready(resident)
                done += 1
            self._commits.go(lone=not ready)
            for resident in self._residents.superfluous():
                self._evict(resident)
            if ready:
                await trio.lowlevel.checkpoint()
            else:
                self._parked = trio.lowlevel.current_task()
                await trio.lowlevel.wait_task_rescheduled(self._unpark)

    def _unpark(self, _: Any) -> trio.lowlevel.Abort:
        self._parked = None
        return trio.lowlevel.Abort.SUCCEEDED

    def _do(self, resident: Resident) -> None:
        """Do the next job of a resident. One that cannot be done yet goes back to where it was."""
        self.current = resident
        try:
            if resident.damage is None and not resident.flying and self._commits.known(resident) is not None:
                resident.let_go()
            vat = resident.vat or self._loaded(resident)
            if vat is None:
                return
            if not resident.first and resident.timed is not resident.mailbox[0]:
                resident.timed = resident.mailbox[0]
                resident.first.extend(self._timely.before(resident, resident.timed))
            jobs = resident.first or resident.mailbox
            job = jobs.popleft()
            try:
                steps = _interruptible(_done, job, vat)
            except NotYet as error:
                jobs.appendleft(job)
                self._put_off(resident, error)
                return
            except Exception as error:  # noqa: BLE001  # whatever it is belongs to who asked
                self._refused(resident, jobs, job, error)
                return
            except BaseException:  # Ctrl-C in user code: nobody knows how far it came
                jobs.appendleft(job)
                raise
        finally:
            self.current = None
        assert resident.memory is not None
        if resident.memory.trouble is not None:
            self._unreadable(resident, jobs, job, resident.memory.trouble)
            return
        if job is resident.timed:
            resident.timed = None
        for step in steps:
            refusal = self._recorded(resident, vat, step, job)
            if refusal is not None:
                self._undone(resident, jobs, refusal)
                return
        if vat.deleted:
            resident.paused = True
        elif not self._looked_after(resident, vat) or vat.spent:
            self._spoil(resident)

    def _put_off(self, resident: Resident, error: NotYet) -> None:
        """A job is done again when what it needs is durable, or when what another session records is settled."""
        resident.paused = bool(resident.flying)
        if error.settled is not None:
            resident.paused = True
            error.settled(partial(self._go_on, resident))

    def _go_on(self, resident: Resident) -> None:
        if resident.paused and not resident.flying:
            resident.paused = False
            self.resume(resident)

    def _looked_after(self, resident: Resident, vat: Vat) -> bool:
        """What a vat does after a job. False when the vat is of no use any more."""
        self.current = resident
        try:
            steps = _interruptible(self._after, resident, vat)
        except Exception as error:
            what = "session %s: what follows a job failed; the session is loaded again"
            log.error(what, vat.id, exc_info=traced(error))
            return False
        finally:
            self.current = None
        return all(self._recorded(resident, vat, step, Job(None)) is None for step in steps)

    def _recorded(self, resident: Resident, vat: Vat, step: Step, job: Job) -> KeeveError | None:
        """A step is on its way to the log, or this is why it cannot be."""
        for said in step.unheard:
            log.warning("session %s: %s", vat.id, said)
        if step.failure is not None and log.isEnabledFor(logging.INFO):
            log.info("session %s: a delivery failed: %s", vat.id, in_log(step.failure))
        refusal = self._commits.add(resident, step, job)
        if refusal is None:
            self._timely.note(resident, vat, step)
        return refusal

    def _loaded(self, resident: Resident) -> Vat | None:
        """The vat, from what is stored; None when it cannot be loaded, and all who want something of it were told."""
        try:
            vat = self._load(resident)
            self._timely.load(resident, vat)
            return vat
        except Exception as error:
            if not isinstance(error, KeeveError):
                log.error("session %s cannot be loaded", self._residents.name(resident.uid), exc_info=traced(error))
            self._commits.drop(resident, error)
            return None

    def _refused(self, resident: Resident, jobs: deque[Job], job: Job, error: Exception) -> None:
        """A job raised. If that is an answer to who asked, the vat is as it was; otherwise it is loaded again."""
        vat = resident.vat
        assert vat is not None
        assert resident.memory is not None
        if resident.memory.trouble is not None:
            self._unreadable(resident, jobs, job, resident.memory.trouble)
            return
        known = isinstance(error, REFUSALS)
        if not known:
            what = "session %s: a job failed in the runtime; the session is loaded again"
            log.error(what, vat.id, exc_info=traced(error))
        undone = not known or vat.heap.mark()
        if undone:
            self._undone(resident, jobs, error)
        if job.timely and jobs is resident.first:
            self._untimely(resident, error)
        if job.failed is not None:
            if undone:
                job.failed(error)
            else:  # like any answer, it waits for what it follows from
                self._commits.add(resident, Step(None, settle=partial(job.failed, error)), job)

    def _untimely(self, resident: Resident, error: Exception) -> None:
        """A timer's time could not be taken: nor is what that was to come before."""
        resident.first.clear()
        if resident.mailbox:
            later = resident.mailbox.popleft()
            if later.failed is not None:
                later.failed(error)

    def _unreadable(self, resident: Resident, jobs: deque[Job], job: Job, error: Exception) -> None:
        """Something could not be read: the vat is loaded again without it. The job is done then if nothing is lost by
        that, and fails otherwise."""
        lost = self._trouble(resident.uid, error)
        if lost is None:
            jobs.appendleft(job)
        self._spoil(resident)
        if lost is not None:
            if job.failed is not None:
                job.failed(lost)
            self.post(resident.uid, Job(None))  # so that whoever waits for something of it is told

    def _undone(self, resident: Resident, jobs: deque[Job], error: Exception) -> None:
        """The vat could not do a job, and holds what must not be recorded."""
        if jobs is resident.mailbox or resident.flying:
            self._spoil(resident)
        else:  # it would fail again after each load, and what waits for it would never have its turn
            self._commits.drop(resident, error)

    def _spoil(self, resident: Resident) -> None:
        """A vat is not what it should be: it is loaded again, as soon as what it did record is durable."""
        resident.stale = True
        if resident.flying:
            resident.paused = True
        else:
            resident.let_go()


@trio.lowlevel.disable_ki_protection
def _interruptible(what: Callable[[A, B], Sequence[Step]], one: A, other: B) -> Sequence[Step]:
    """Do something where Ctrl-C may end it: it runs user code, which may run for ever."""
    return what(one, other)


def _done(job: Job, vat: Vat) -> Sequence[Step]:
    """What came of a job."""
    if job.message is not None:
        return (vat.take(job.message),)
    return () if job.work is None else job.work(vat)
