"""The engine of a host: the rooms that run the vats of a store, put together.

    a call ──> turns (a crank) ──> commits (durable) ──> release ──> replies, mail, errands, subscriptions
                 ^ loading                                              │
                 └───────────── messages, outcomes, events <────────────┘

    turns          mailboxes, and the one task that runs vats      loading     a vat from what is stored
    commits        steps on their way to the log                   births      spawns, forks, ids
    mail           between vats                                    universal   snapshot, fork
    errands        effects                                         asking      tasks that wait for an answer
    subscriptions  actors that observe                             waking      sessions that something waits for
    care           upgrades, collecting, snapshots                 watchdog    reports what runs long
    following      what another process writes                     observers   handlers outside of all vats
    reclaiming     what was deleted or erased goes from the files

The one rule: **what is durable in a heap is taken up whenever its vat comes into memory.** So whatever dies, a batch,
a vat or the host, nothing that waits for the outside has to be remembered anywhere else.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final, Unpack

import trio

from dataspace.checkpoints.checkpoints import Checkpoints
from dataspace.errors import KeeveError
from dataspace.in_logs import in_log
from dataspace.log.store import Store
from dataspace.observe.dataspace import Dataspace
from dataspace.observe.places import Heard
from dataspace.patterns import Pattern
from dataspace.records import Kind, Record
from snapshots.cache import PageCache
from vat.crank.vat import Powers, Step, Vat
from vat.devices.timers import Timer
from vat.devices.vault import Vault
from vat.errors import gone
from vat.failures import exception_of, failure_of
from vat.heap.messages import UNIVERSAL, Call, Outcome
from vat.heap.past import NotYet
from vat.host.asking import NotRunning, Waiter
from vat.host.births import Births
from vat.host.care import Care
from vat.host.commits import Commits
from vat.host.errands import Errands
from vat.host.following import Following
from vat.host.loading import Loader
from vat.host.mail import WAKE, Mail
from vat.host.observers import Handler, Observer
from vat.host.reclaiming import Reclaiming
from vat.host.residents import Job, Resident, Residents, Work
from vat.host.scheduling import Turns
from vat.host.settings import Settings
from vat.host.subscriptions import Subscriptions
from vat.host.timely import Timely
from vat.host.universal import Universal
from vat.host.waking import Waking
from vat.host.watchdog import NAMES, Watched, watching
from vat.objects.types import Types

log = logging.getLogger("keeve")

AT_START: Final = 100
"""Sessions with pending work that are brought into memory before a host is open; the others while it is at work."""


class Engine:
    """Runs the vats of a store: what `Host` stands on. Everything here is for the trio thread."""

    def __init__(
        self,
        store: Store,
        dataspace: Dataspace,
        types: Types,
        *,
        devices: Mapping[str, object],
        stand_ins: Collection[str] = (),
        vault: Vault,
        clock: Callable[[], int],
        entropy: Callable[[int], bytes],
        settings: Settings,
        checkpoints: Checkpoints | None = None,
    ) -> None:
        catalog = dataspace.catalog
        self.checkpoints = checkpoints or Checkpoints(store, catalog)
        self.store = store
        self.dataspace = dataspace
        self.types = types
        self.entropy = entropy
        self.settings = settings
        carries, writes = settings.takes_up != "nothing", not store.readonly
        self.powers = Powers(store.log_id, clock, entropy, lambda: str(dataspace.cursor), self._begun, carries, writes)
        self.residents = Residents(settings.vats, catalog.name)
        cache, over = PageCache(settings.cache), dataspace.endings.damaged
        self.loader = Loader(store, catalog, types, self.powers, cache, self.residents.durable, over)
        self.births = Births(store, catalog, types, self.powers, self.loader, self.residents)
        self.universal = Universal(self.births.fork, self.checkpoints.expect)
        self.care = Care(settings, types, readonly=store.readonly, read_on=lambda vat: self.subscriptions.read_on(vat))
        self.commits = Commits(
            store,
            self.residents,
            note=self._note,
            release=self._release,
            resumed=lambda resident: self.turns.resume(resident),
            later=self._later,
            ended=dataspace.endings.stopped,
            certifier=self.checkpoints,
        )
        self.timely = Timely(self.residents, store, clock, lambda *method: self.errands.runner.timed(*method))
        self.turns = Turns(
            self.residents,
            self.commits,
            load=self._load,
            trouble=self.loader.trouble,
            after=self.care.after,
            evict=self._evict,
            timely=self.timely,
        )
        post, later = self.turns.post, self._later
        self.mail = Mail(self.residents, catalog, post=post, universal=self.universal.call, later=later)
        self.errands = Errands(
            {"timer": Timer(), **devices},
            vault,
            stand_ins=stand_ins,
            clock=clock,
            random=lambda: int.from_bytes(entropy(7), "big") / (1 << 56),
            hold=settings.hold_unknown,
            post=post,
            done=self.done,
            overdue=self.timely.overdue,
            later=later,
            head=lambda: store.head.position,
        )
        self.waking = Waking(self._wake, settings.retry, self.residents.name)
        self.reclaiming = Reclaiming(store, catalog, self.commits, self.births, clock, entropy, settings.reclaim)
        self.subscriptions = Subscriptions(dataspace, self.residents.name, done=self.done, retry=settings.retry)
        self.following = Following(store, dataspace, self.residents, self.commits, settings.follow)
        self.running = False
        self._takes_up = settings.takes_up != "nothing" and not store.readonly
        self._carries = True
        self._nursery: trio.Nursery | None = None
        self._calm = trio.CancelScope()
        self._left = trio.Event()

    # Running.

    @trio.lowlevel.enable_ki_protection
    async def run(self, *, task_status: Any = trio.TASK_STATUS_IGNORED) -> None:
        """Run until cancelled. `stop` first, for an orderly end."""
        try:
            writing = Watched(self._written, self._slow_store)
            with watching(self.settings.slow, self.turns.doing, NAMES, writing):
                async with trio.open_nursery() as nursery:
                    self._nursery = nursery
                    self.running = True
                    nursery.start_soon(self.commits.writer.run)
                    nursery.start_soon(self.dataspace.run)
                    if not self.store.readonly:
                        await self.reclaiming.begin()
                        nursery.start_soon(self.reclaiming.run)
                    nursery.start_soon(self.following.run if self.store.readonly else self.waking.run)
                    nursery.start_soon(self.turns.run)
                    everything = self.settings.takes_up == "all" and self._takes_up
                    pending = self.dataspace.catalog.with_pending() if everything else []
                    await nursery.start(self._outside, pending[AT_START:])
                    await self.waking.all(pending[:AT_START])
                    while pending and self.turns.busy:
                        await trio.lowlevel.checkpoint()
                    task_status.started()
        finally:
            self.running = False
            self._nursery = None
            self.commits.end(NotRunning())

    async def _outside(self, pending: Sequence[bytes], *, task_status: Any) -> None:
        """What brings vats new things to do by itself: what the last host left, effects and subscriptions.

        Ends before the rest does.
        """
        try:
            with self._calm:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self.errands.runner.run)
                    await nursery.start(self.subscriptions.run)
                    nursery.start_soon(self.waking.all, pending)
                    task_status.started()
        finally:
            self._left.set()

    async def stop(self) -> None:
        """Finish what is in the mailboxes, snapshot what changed, and make everything durable.

        Effects of which nobody would know what came of them have a while to end (`Settings.grace`); the others, and
        what still runs then, are abandoned, as their policies say. Messages between sessions are carried for a while.
        """
        self.running = False
        await self.errands.runner.finish(self.settings.grace)
        self._calm.cancel()
        with trio.move_on_after(self.settings.closing):
            await self._left.wait()  # what a device gives in spite of its cancellation is recorded too
            await self.quiet()
        self._carries = False  # what is sent from here on stays in the outbox, for the next start
        await self.quiet()
        for resident in self.residents:
            vat = resident.vat
            if vat is not None and (job := self.care.closing(resident, vat)) is not None:
                self.turns.post(resident.uid, job)
        await self.quiet()
        self.commits.writer.keep_now()

    async def quiet(self) -> None:
        """Return when no mailbox has anything and everything recorded is durable, or cannot be any more."""
        while self.turns.busy or self.commits.busy:
            await self.commits.writer.drain()
            await trio.lowlevel.checkpoint()

    # For the watchdog, which calls these (and `Turns.doing`) from a thread of its own.

    def _written(self) -> int | None:
        return self.store.head.position if self.commits.writer.busy else None

    def _slow_store(self, seconds: float) -> str:
        log.warning("the store has written nothing for more than %g s: what is to be durable waits for it", seconds)
        return "the store"

    # Asking.

    @trio.lowlevel.enable_ki_protection
    async def ask(self, uid: bytes, call: Call, waiter: Waiter | None = None) -> Outcome:
        """Put a call into a mailbox and wait for its outcome. Cancelling abandons the wait, never the call.

        With a `waiter` that is this task's, that is told, before anything else happens.
        """
        waiter = await self._waiter(waiter)
        call.reply = waiter.reply
        job = Job(call, waiter.failed)
        if call.method in UNIVERSAL:
            job = Job(None, waiter.failed, lambda vat: self.universal.call(vat, call))
        self.turns.post(uid, job)
        return await waiter.wait(lambda: self.residents.abandoned(uid, call))

    @trio.lowlevel.enable_ki_protection
    async def done(self, uid: bytes, work: Work, timely: bool = False) -> None:
        """Do a job, and return when what it recorded is durable. Raises what it raises, or why it is not durable."""
        await self._done(uid, work, await self._waiter(), timely)

    @trio.lowlevel.enable_ki_protection
    async def born(self, uid: bytes, make: Callable[[], Step | None]) -> bool:
        """Make a session by its first step, durably. False when `make` gives None: there is one of that uid."""
        waiter = await self._waiter()
        if (step := make()) is None:
            return False
        await self._done(uid, lambda vat: (step,), waiter)
        return True

    async def _done(self, uid: bytes, work: Work, waiter: Waiter, timely: bool = False) -> None:
        def do(vat: Vat) -> Sequence[Step]:
            steps = work(vat) or (Step(None),)
            steps[-1].replies.append((waiter.reply, Outcome(True, None)))
            return steps

        self.turns.post(uid, Job(None, waiter.failed, do, timely))
        outcome = await waiter.wait()
        if not outcome.succeeded:
            raise exception_of(outcome.payload)

    async def _waiter(self, given: Waiter | None = None) -> Waiter:
        await trio.lowlevel.checkpoint_if_cancelled()
        if not self.running:
            raise NotRunning
        if self.store.readonly:
            self.following.refresh()
        return given or Waiter()

    def observe_with(self, pattern: Pattern | str, handler: Handler, **how: Unpack[Heard]) -> Observer:
        """An observer in a task of its own. The head is that of now, not of when the task comes to it."""
        if self._nursery is None:
            raise NotRunning
        head = self.dataspace.places.at("head")
        if how.get("after") == "head":
            how["after"] = head
        if how.get("until") == "head":
            how["until"] = head
        observer = Observer(self.dataspace, pattern, handler, how)
        self._nursery.start_soon(observer.run)
        return observer

    # What vats need.

    def _begun(self, uid: bytes, effect: int) -> bool:
        return not self.residents.certain(uid, effect) and self.errands.runner.begun((uid, effect))

    def _load(self, resident: Resident) -> Vat:
        vat = self.loader.load(resident)
        resident.first = deque() if self.store.fault is not None else deque(self.care.first(resident, vat))
        if resident.damage is not None:
            failure = Outcome(False, failure_of(resident.damage))
            for reply in [reply for replies in vat.waiters.values() for reply in replies]:
                reply(failure)
            vat.waiters = {}
        elif self._takes_up and self.store.fault is None and not vat.heap.forking:
            self._take_up(resident)
        return vat

    def _take_up(self, resident: Resident) -> None:
        """See to all that a vat in memory waits for. May be repeated while nothing of it is on its way to the log."""
        vat = resident.vat
        assert vat is not None
        try:
            self.errands.take_up(vat)
            self.mail.take_up(resident)
            if vat.heap.system["subscriptions"].count:
                self.subscriptions.take_up(vat)
        except KeeveError as error:
            # Something cannot be read. The memory remembers it, and the vat is loaded again without it.
            log.warning("session %s: what it waits for cannot be taken up: %s", vat.id, in_log(error))

    def _evict(self, resident: Resident) -> None:
        job = None if resident.vat is None else self.care.evicting(resident.vat)
        if job is None:
            self.residents.drop(resident)
        else:
            self.turns.post(resident.uid, job)

    def tended(self, uid: bytes) -> bool:
        """Whether all that a session waits for is seen to here: it is in memory, or about to be."""
        resident = self.residents.get(uid)
        here = resident is not None and resident.vat is not None and resident.damage is None
        return self._takes_up and (here or self.errands.waits_for(uid))

    # What is durable.

    def _note(self, records: Sequence[Record]) -> None:
        self.dataspace.note(records)
        self.waking.written()

    def _release(self, resident: Resident, step: Step) -> None:
        """Let go what a step holds for the world, now that its record is durable."""
        if step.settle is not None:
            step.settle()
        for reply, outcome in step.replies:
            reply(outcome)
        if step.acknowledged is not None:
            self.mail.acknowledge(*step.acknowledged)
        if step.born is not None and step.born.pending and self.settings.takes_up == "all":
            self.turns.post(step.born.uid, WAKE)
        if step.wanted:
            self.errands.asked_here(resident.uid, step.wanted)
        vat = resident.vat
        if vat is None:
            return
        if step.sent:
            resident.released = step.sent[-1][0]
        for number in step.cancelled:
            self.errands.cancel((vat.uid, number))
        if self._takes_up and self._carries:
            for number in step.wanted:
                self.errands.want(vat, number)
            for number, uid, message in step.sent:
                self.mail.carry(resident, number, uid, message)
            if step.subscriptions:
                self.subscriptions.take_up(vat)
        if step.record is not None and step.record.kind == Kind.DELETE:
            self._bury(resident, vat)

    def _bury(self, resident: Resident, vat: Vat) -> None:
        self.commits.drop(resident, gone(vat.id))
        self.errands.bury(vat.uid)
        self.subscriptions.bury(vat.uid)
        self.mail.bury(vat)
        self.reclaiming.soon()

    # What is not.

    def _later(self, uid: bytes) -> None:
        if self._takes_up and self.store.fault is None:
            self.waking.later(uid)

    def _wake(self, uid: bytes) -> None:
        """Bring a session into memory, if anything waits for that."""
        row = self.dataspace.catalog.by_uid(uid)
        if row is None or row.deleted or not (row.pending or self.mail.waits_for(uid) or self.errands.waits_for(uid)):
            return

        def work(vat: Vat) -> Sequence[Step]:
            resident = self.residents.get(uid)
            if resident is not None and resident.damage is None:
                if resident.flying:
                    raise NotYet  # what it wants now may never become durable
                self._take_up(resident)
            return ()

        def failed(error: BaseException) -> None:
            log.warning("session %s has work pending and cannot be loaded: %s", row.id, in_log(error))

        self.turns.post(uid, Job(None, failed, work))
