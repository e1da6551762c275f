"""The engine of a host: runs the vats of a store, and lets go what they make when it is durable.

    a call ──> mailbox ──> crank ──> record ──> writer ══ durable ══> replies, messages, effects, observers

One task takes the vats that have something to do in turn and runs one job of each; the writer makes what they
recorded durable; only then does anything leave (`_release`).

The one rule: **the embargo.** Whatever the world can see of a step is let go by `_release`, and nobody else calls it
than the writer's notice that the step's record is durable.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal

import attrs
import outcome as outcomes
import trio

from dataspace.cursor import Cursor
from dataspace.drafts import read_deeds
from dataspace.errors import KeeveError
from dataspace.events import Event
from dataspace.log.files import DiskFull, WriteFailed
from dataspace.log.store import Store
from dataspace.log.verdicts import SessionDamaged
from dataspace.log.writer import Writer
from dataspace.observe import Dataspace, NoSuchSession
from dataspace.patterns import Pattern
from dataspace.records import Record
from dataspace.values import Value, freeze
from snapshots.cache import PageCache
from snapshots.handle import Tree
from vat.carrying import arriving, event_value
from vat.collections import view_of
from vat.devices import methods_of
from vat.effects import EffectRunner, Wanted
from vat.errors import Deleted, exception_of, failure_of
from vat.heap import ROOT_ACTOR
from vat.messages import Call, Detach, Ended, Observed, Outcome, Reply, Settled
from vat.observers import Observer
from vat.outcomes import Outcome as EffectOutcome
from vat.residents import Job, Resident, Residents
from vat.restore import Lineage, Restored, restore
from vat.types import Types
from vat.vat import Powers, Step, Vat
from vat.vault import Vault

log = logging.getLogger("keeve")

LONE: Final = 2
"""Records that are committed in line when nothing else is to be done: a crank's, or the two of a fork."""

IN_TURN: Final = 64
"""Jobs that are done before other tasks get a chance."""


@attrs.frozen
class Settings:
    """How a host behaves; every number may be changed.

    vats: how many sessions stay in memory while they are idle.
    cache: bytes of heap pages kept in memory, for all vats together.
    first_snapshot, snapshot_cranks, snapshot_bytes: a session is snapshotted after so many records once, and then
      whenever so many records or bytes have come since.
    closing_records: at an orderly stop, a session is snapshotted when so many records have come since.
    retry: seconds until what could not be made durable is offered again.
    hold_unknown: whether an effect of unknown outcome stays open until somebody resolves it.
    takes_up: whose effects, messages and subscriptions are carried out here: of `"all"` sessions, those with pending
      work being loaded at the start; of those that somebody has `"asked"` for; of none (`"nothing"`), so that they
      stay as they are for another host. For tools that do not have an application's devices.
    """

    vats: int = 1000
    cache: int = 32 << 20
    first_snapshot: int = 16
    snapshot_cranks: int = 256
    snapshot_bytes: int = 1 << 20
    closing_records: int = 8
    retry: float = 1.0
    hold_unknown: bool = False
    takes_up: Literal["all", "asked", "nothing"] = "all"


_DETACH: Final = Job(lambda vat: [vat.take(Detach())], again=True)


class NotRunning(KeeveError):
    """The host is closed, or is closing."""

    usage = True

    def __init__(self) -> None:
        super().__init__("the host is closed: open it again with open_host(...)")


class Engine:
    """Runs the vats of a store: what `Host` stands on. Everything here is for the trio thread."""

    def __init__(
        self,
        store: Store,
        dataspace: Dataspace,
        types: Types,
        *,
        devices: Mapping[str, object],
        vault: Vault,
        clock: Callable[[], int],
        entropy: Callable[[int], bytes],
        settings: Settings,
    ) -> None:
        self.store = store
        self.dataspace = dataspace
        self.types = types
        self.settings = settings
        self.entropy = entropy
        self.cache = PageCache(settings.cache)
        self.powers = Powers(store.log_id, clock, entropy, lambda: str(dataspace.cursor))
        self.writer = Writer(store, on_durable=self._durable, on_failed=self._failed)
        self.runner = EffectRunner(
            devices,
            vault,
            mark_started=self._mark_started,
            settle=self._effect_settled,
            random=lambda: int.from_bytes(entropy(7), "big") / (1 << 56),
            progress=self._progress,
        )
        self._retried = {
            (name, method)
            for name, device in devices.items()
            for method, how in methods_of(device).items()
            if how.policy.on_crash == "retry"
        }
        self.residents = Residents(settings.vats)
        self.forks: Any = None
        """Forks a vat (`vat.carrying.Fork`): the host's affair, since ids are."""
        self.progress: list[Callable[[Wanted, Value], None]] = []
        """Those who want to hear what running effects tell."""
        self.held: dict[tuple[bytes, int], Wanted] = {}
        """Effects of unknown outcome that wait for somebody to resolve them."""
        self.running = False
        self._ready: deque[Resident] = deque()
        self._parked: trio.lowlevel.Task | None = None
        self._steps: dict[tuple[bytes, int], tuple[Resident, Step, Job]] = {}
        self._again: list[tuple[bytes, Job]] = []
        self._retry = trio.Event()
        self._nursery: trio.Nursery | None = None
        self._subscribed: dict[tuple[bytes, int], trio.CancelScope] = {}

    # Running.

    async def run(self, *, task_status: Any = trio.TASK_STATUS_IGNORED) -> None:
        """Run until cancelled. `stop` first, for an orderly end."""
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            self.running = True
            try:
                nursery.start_soon(self.writer.run)
                nursery.start_soon(self.runner.run)
                nursery.start_soon(self._offer_again)
                nursery.start_soon(self.dataspace.run)
                self._wake_pending()
                task_status.started()
                await self._take_turns()
            finally:
                self.running = False
                self._nursery = None

    async def stop(self) -> None:
        """Finish what is in the mailboxes, snapshot what changed, and make everything durable."""
        await self.quiet()
        self.running = False
        for resident in self.residents:
            vat = resident.vat
            if vat.acked or vat.cranks_since_snapshot >= self.settings.closing_records:
                self._post(resident, Job(lambda vat: [*_forget(vat), vat.snapshot()[0]]))
        await self.quiet()

    async def quiet(self) -> None:
        """Return when no mailbox has anything and everything recorded is durable."""
        while self._ready or self.writer.busy or self._steps:
            if self.store.fault is not None:
                return
            await self.writer.drain()
            await trio.lowlevel.checkpoint()

    async def _take_turns(self) -> None:
        ready = self._ready
        done = 0
        while True:
            while ready:
                resident = ready.popleft()
                resident.ready = False
                if resident.mailbox:
                    self._do(resident, resident.mailbox.popleft())
                    if resident.mailbox and not resident.ready:
                        resident.ready = True
                        ready.append(resident)
                done += 1
                if done >= IN_TURN:
                    done = 0
                    await trio.lowlevel.checkpoint()
            if 0 < len(self._steps) <= LONE:
                # Nothing else is to be done: a hand-over to a thread would cost as much as the disk does.
                self.writer.commit_now()
            elif self._steps:
                self.writer.wake()
            if not ready:
                self._evict()
                self._parked = trio.lowlevel.current_task()
                await trio.lowlevel.wait_task_rescheduled(self._unpark)

    def _unpark(self, _: Any) -> trio.lowlevel.Abort:
        self._parked = None
        return trio.lowlevel.Abort.SUCCEEDED

    def _wake(self) -> None:
        if self._parked is not None:
            task, self._parked = self._parked, None
            trio.lowlevel.reschedule(task)

    def post(self, uid: bytes, job: Job) -> None:
        """Put a job into the mailbox of a session, loading it first. Raises what loading raises."""
        self._post(self.resident(uid), job)

    def _post(self, resident: Resident, job: Job) -> None:
        if resident.vat.heap.forking and not resident.mailbox:
            resident.mailbox.append(_DETACH)
        resident.mailbox.append(job)
        self._make_ready(resident)

    def _detach(self, resident: Resident) -> None:
        """Let a fork do its first crank, in which whatever waits for the outside breaks."""
        resident.mailbox.append(_DETACH)
        self._make_ready(resident)

    def _make_ready(self, resident: Resident) -> None:
        if not resident.ready:
            resident.ready = True
            self._ready.append(resident)
            self._wake()

    def _do(self, resident: Resident, job: Job) -> None:
        vat = resident.vat
        try:
            if vat.deleted:
                raise Deleted(f"session {vat.id!r} has been deleted; its id never comes back")
            if resident.damage is not None and job.writes:
                raise resident.damage
            steps = job.work(vat)
        except Exception as error:  # whatever it is belongs to who asked
            if job.failed is not None:
                job.failed(error)
            if not isinstance(error, KeeveError | TypeError | ValueError | LookupError):
                log.exception("session %s: a job failed in the runtime; the session is loaded again", vat.id)
                self._drop(resident, error)
            return
        except BaseException as error:
            self._drop(resident, error)
            raise
        for step in steps:
            if step.failure is not None:
                log.info("session %s: a delivery failed: %r", vat.id, step.failure)
            if step.record is not None:
                self._enqueue(resident, step, job)
                if step.also is not None:
                    child, born = step.also
                    self.residents.add(child)
                    self._enqueue(child, born, job)
                    if child.vat.heap.pending:
                        self._detach(child)
            elif resident.durable >= vat.seq:
                self._release(resident, step)
            else:
                resident.waiting.extend((vat.seq, reply, outcome) for reply, outcome in step.replies)
                if step.acknowledged is not None:
                    self._acknowledge(step.acknowledged)
        if self._wants_snapshot(vat) and not resident.mailbox:
            self._post(resident, Job(lambda vat: [vat.snapshot()[0]] if self._wants_snapshot(vat) else []))

    def _enqueue(self, resident: Resident, step: Step, job: Job) -> None:
        record = step.record
        assert record is not None
        self._steps[record.uid, record.seq] = (resident, step, job)
        self.writer.enqueue(record, wake=False)

    def _wants_snapshot(self, vat: Vat) -> bool:
        settings = self.settings
        records = vat.cranks_since_snapshot
        if not vat.snapshot_seq:
            return records >= settings.first_snapshot
        return records >= settings.snapshot_cranks or vat.bytes_since_snapshot >= settings.snapshot_bytes

    # Durability.

    def _durable(self, records: Sequence[Record]) -> None:
        self.dataspace.note(records)
        for record in records:
            entry = self._steps.pop((record.uid, record.seq), None)
            if entry is not None:
                resident, step, _ = entry
                resident.durable = record.seq
                self._release(resident, step)
                while resident.waiting and resident.waiting[0][0] <= record.seq:
                    _, reply, outcome = resident.waiting.popleft()
                    reply(outcome)
        if self._again:
            self._retry.set()

    def _release(self, resident: Resident, step: Step) -> None:
        """Let go what a step holds for the world, now that its record is durable."""
        vat = resident.vat
        if step.settle is not None:
            step.settle()
        for reply, outcome in step.replies:
            reply(outcome)
        if step.acknowledged is not None:
            self._acknowledge(step.acknowledged)
        if self.settings.takes_up != "nothing":
            for number, uid, message in step.sent:
                self._carry(vat, number, uid, message)
            for number in step.wanted:
                self._want(vat, number)
            for number in step.cancelled:
                self.held.pop((vat.uid, number), None)
                self.runner.cancel((vat.uid, number))
            if step.subscriptions:
                self._subscribe(vat)
        if vat.deleted:
            self._bury(resident)

    def _failed(self, records: Sequence[Record], error: Exception) -> None:
        """A batch did not become durable: the vats concerned are dropped, and their callers get the error."""
        for record in records:
            entry = self._steps.get((record.uid, record.seq))
            if entry is not None:
                self._drop(entry[0], error)

    def _drop(self, resident: Resident, error: BaseException) -> None:
        """Forget a vat: what is not durable of it never happened. The next message finds it as the log has it."""
        vat = resident.vat
        if self.residents.get(vat.uid) is resident:
            self.residents.drop(vat.uid)
        failure = Outcome(False, failure_of(error))
        jobs: list[Job] = []
        for seq in range(resident.durable + 1, vat.seq + 1):
            entry = self._steps.pop((vat.uid, seq), None)
            if entry is not None:
                _, step, job = entry
                for reply, _ in step.replies:
                    reply(failure)
                if not jobs or jobs[-1] is not job:
                    jobs.append(job)
        for _, reply, _ in resident.waiting:
            reply(failure)
        for replies in vat.waiters.values():
            for reply in replies:
                reply(failure)
        jobs.extend(resident.mailbox)
        resident.mailbox.clear()
        resident.waiting.clear()
        vat.waiters.clear()
        for job in jobs:
            if job.again:
                self._again.append((vat.uid, job))
            elif job.failed is not None and isinstance(error, Exception):
                job.failed(error)
        if self._again and self._nursery is not None:
            self._nursery.start_soon(self._retry_later)

    async def _retry_later(self) -> None:
        await trio.sleep(self.settings.retry)
        self._retry.set()

    async def _offer_again(self) -> None:
        while True:
            await self._retry.wait()
            self._retry = trio.Event()
            again, self._again = self._again, []
            for uid, job in again:
                self._offer(uid, job)

    def _offer(self, uid: bytes, job: Job) -> None:
        """Post a job that the world outside brought and will not bring again."""
        try:
            self.post(uid, job)
        except KeeveError as error:
            log.warning("session %s cannot take what came for it: %s", uid.hex(), error)

    # Loading.

    def resident(self, uid: bytes) -> Resident:
        """The vat of a session, loaded if need be. Raises `LookupError` kinds, `Deleted` or what restoring raises."""
        found = self.residents.get(uid)
        if found is None:
            found = self._load(uid)
        return found

    def restored(self, uid: bytes, upto: int) -> Restored:
        """A session's heap as of a seq, from what is stored."""
        catalog = self.dataspace.catalog
        return restore(self.lineage(uid), catalog, self.cache, upto)

    def lineage(self, uid: bytes) -> Lineage:
        """The records of a session and its ancestors."""
        return Lineage(uid, self.dataspace.catalog, self.store.read)

    def type_name(self, vat: Vat) -> str:
        """The registered name of a session's first actor."""
        return vat.heap.state(ROOT_ACTOR).type

    def first_message(self, uid: bytes) -> Mapping[str, Any]:
        """What a session's first record says: who asked for it, and with which request."""
        resident = self.residents.get(uid)
        if resident is not None and resident.birth is not None:
            said: Mapping[str, Any] = resident.birth.message
            return said
        row = self.dataspace.catalog.by_uid(uid)
        if row is None:
            raise NoSuchSession(uid.hex())
        stored = self.lineage(uid).at(row.parent_seq + 1)
        born: Mapping[str, Any] = read_deeds(stored.body().deeds).message
        return born

    def _load(self, uid: bytes) -> Resident:
        row = self.dataspace.catalog.by_uid(uid)
        if row is None:
            raise NoSuchSession(uid.hex())
        if row.deleted:
            raise Deleted(f"session {row.id!r} has been deleted; its id never comes back")
        self.types[row.type]
        damage = self.store.damaged.get(uid)
        restored = self.restored(uid, row.seq if damage is None else min(row.seq, damage.seq - 1))
        for problem in restored.passed_over:
            log.warning("session %s: restored without %s", row.id, problem)
        vat = Vat(uid, row.id, restored.heap, restored.seq, restored.hash, self.types, self.powers)
        vat.snapshot_seq = restored.snapshot
        vat.cranks_since_snapshot = restored.records
        resident = Resident(vat, restored.snapshot, restored.records)
        if damage is not None:
            resident.damage = SessionDamaged(row.id, damage.seq, damage.position, damage.what)
        self.add(resident)
        return resident

    def add(self, resident: Resident) -> None:
        """A vat is in memory now: what it waits for is taken up again."""
        vat = resident.vat
        self.residents.add(resident)
        if self.store.readonly or resident.damage is not None or self.settings.takes_up == "nothing":
            return
        heap = vat.heap
        if heap.forking:
            if heap.pending:
                self._detach(resident)
            return
        page = heap.memory.page
        for number, _ in list(heap.system["effects"].items(loader=page)):
            self._want(vat, number)
        for number, (uid, message) in list(heap.system["outbox"].items(loader=page)):
            self._carry(vat, number, uid, message)
        if heap.system["subscriptions"].count:
            self._subscribe(vat)

    def _wake_pending(self) -> None:
        if self.store.readonly or self.settings.takes_up != "all":
            return
        for uid in self.dataspace.catalog.with_pending():
            try:
                self.resident(uid)
            except KeeveError as error:
                log.warning("session %s has work pending and cannot be loaded: %s", uid.hex(), error)

    def _evict(self) -> None:
        for resident in self.residents.superfluous():
            self.residents.drop(resident.vat.uid)

    def _bury(self, resident: Resident) -> None:
        uid = resident.vat.uid
        gone = Deleted(f"session {resident.vat.id!r} has been deleted; its id never comes back")
        for job in resident.mailbox:
            if job.failed is not None:
                job.failed(gone)
        resident.mailbox.clear()
        self.residents.drop(uid)
        for key in [key for key in self._subscribed if key[0] == uid]:
            self._subscribed.pop(key).cancel()
        for wanted in self.runner.running():
            if wanted.key[0] == uid:
                self.runner.cancel(wanted.key)
        for key in [key for key in self.held if key[0] == uid]:
            del self.held[key]

    # Between vats.

    def _carry(self, sender: Vat, number: int, uid: bytes, message: Mapping[str, Value]) -> None:
        """Deliver a message whose record is durable; one that cannot be is answered for its receiver."""
        job = arriving(self, sender, number, message)
        try:
            self.post(uid, job)
        except (Deleted, NoSuchSession) as error:
            sender.acked.add(number)
            promise = message.get("promise")
            if promise is not None:
                settled = Settled(uid, None, promise, Outcome(False, failure_of(error)))
                self._offer(sender.uid, Job(lambda vat: [vat.take(settled)], again=True))
        except KeeveError as error:
            # It stays in the sender's outbox, and is delivered when the receiver can be loaded again.
            log.warning("session %s: a message from %s waits: %s", uid.hex(), sender.id, error)

    def _acknowledge(self, acknowledged: tuple[bytes, int]) -> None:
        uid, number = acknowledged
        sender = self.residents.get(uid)
        if sender is not None:
            sender.vat.acked.add(number)

    # Effects.

    def _want(self, vat: Vat, number: int) -> None:
        entry = vat.heap.find("effects", number)
        if entry is None:
            return
        id, device, method, args, keywords, _, started = entry
        heap = vat.heap
        read = [view_of(heap, arg) if isinstance(arg, Tree) else heap.read(arg) for arg in args]
        named = {name: view_of(heap, arg) if isinstance(arg, Tree) else heap.read(arg) for name, arg in keywords}
        state: Any = "started" if started else "wanted"
        wanted = Wanted((vat.uid, number), id.hex(), vat.id, device, method, read, named, state)
        if started and self.settings.hold_unknown and (device, method) not in self._retried:
            self.held[wanted.key] = wanted
        else:
            self.runner.want(wanted)

    async def _mark_started(self, wanted: Wanted) -> None:
        uid, number = wanted.key

        def work(vat: Vat) -> list[Step]:
            step = vat.started(number)
            if step is None:
                raise LookupError(f"effect {wanted.id} is not wanted any more")
            return [step]

        await self.done(uid, work)
        wanted.state = "started"

    def _effect_settled(self, wanted: Wanted, outcome: EffectOutcome) -> None:
        if outcome.error is not None:
            if outcome.trace:
                log.info("session %s: %s.%s failed\n%s", wanted.session, wanted.device, wanted.method, outcome.trace)
            payload, succeeded = freeze(failure_of(outcome.error)), False
        else:
            payload, succeeded = outcome.value, True
        self.settle(wanted.key, Outcome(succeeded, payload))

    def settle(self, key: tuple[bytes, int], outcome: Outcome) -> None:
        """An effect has its outcome."""
        ended = Ended(key[1], outcome)
        self._offer(key[0], Job(lambda vat: [vat.take(ended)], again=True))

    def _progress(self, wanted: Wanted, value: Value) -> None:
        for hear in self.progress:
            hear(wanted, value)

    # Subscriptions of actors.

    def _subscribe(self, vat: Vat) -> None:
        """Have the tasks run that the vat's subscriptions need, and no others."""
        wanted = {
            (vat.uid, number) for number, _ in vat.heap.system["subscriptions"].items(loader=vat.heap.memory.page)
        }
        for key in [key for key in self._subscribed if key[0] == vat.uid and key not in wanted]:
            self._subscribed.pop(key).cancel()
        for key in sorted(wanted - self._subscribed.keys()):
            if self._nursery is not None:
                scope = self._subscribed[key] = trio.CancelScope()
                self._nursery.start_soon(self._observe_for, key, scope)

    async def _observe_for(self, key: tuple[bytes, int], scope: trio.CancelScope) -> None:
        """Bring a subscription its events, one after another: each is recorded before the next one is read."""
        uid, number = key
        with scope:
            entry = self.resident(uid).vat.heap.find("subscriptions", number)
            if entry is None:
                return
            pattern, _, _, text = entry
            after: Any = text if text == "start" else Cursor.parse(text)
            async for event in self.dataspace.observe(pattern, after=after):
                assert isinstance(event, Event)
                observed = Observed(number, event_value(event), str(event.cursor))
                await self._take_in(uid, observed)

    async def _take_in(self, uid: bytes, message: Observed) -> None:
        while True:
            try:
                return await self.done(uid, lambda vat: [vat.take(message)])
            except (DiskFull, WriteFailed):
                await trio.sleep(self.settings.retry)

    # Asking.

    async def ask(self, uid: bytes, call: Call, *, writes: bool = True) -> Outcome:
        """Put a call into a mailbox and wait for its outcome. Cancelling abandons the wait, never the call."""

        def post(reply: Reply, failed: Callable[[BaseException], None]) -> None:
            call.reply = reply
            self.post(uid, Job(lambda vat: [vat.take(call)], failed, writes=writes))

        outcome: Outcome = await self._await(post)
        return outcome

    async def settled(self, key: tuple[bytes, int], outcome: Outcome) -> None:
        """Settle an effect, durably."""
        await self.done(key[0], lambda vat: [vat.take(Ended(key[1], outcome))])

    def observe_with(self, pattern: Pattern | str, handler: Any, **how: Any) -> Observer:
        """An observer in a task of its own."""
        if self._nursery is None:
            raise NotRunning
        observer = Observer(self.dataspace, pattern, handler, how)
        self._nursery.start_soon(observer.run)
        return observer

    async def done(self, uid: bytes, work: Callable[[Vat], Sequence[Step]]) -> None:
        """Do a job, and return when what it recorded is durable. Raises what it raises, or why it is not durable."""

        def post(reply: Reply, failed: Callable[[BaseException], None]) -> None:
            def do(vat: Vat) -> Sequence[Step]:
                steps = work(vat)
                steps[-1].replies.append((reply, Outcome(True, None)))
                return steps

            self.post(uid, Job(do, failed))

        outcome = await self._await(post)
        if not outcome.succeeded:
            raise exception_of(outcome.payload)

    async def _await(self, post: Callable[[Reply, Callable[[BaseException], None]], None]) -> Outcome:
        if not self.running:
            raise NotRunning
        task = trio.lowlevel.current_task()
        waiting = True

        def reply(outcome: Outcome) -> None:
            nonlocal waiting
            if waiting:
                waiting = False
                trio.lowlevel.reschedule(task, outcomes.Value(outcome))

        def failed(error: BaseException) -> None:
            nonlocal waiting
            if waiting:
                waiting = False
                trio.lowlevel.reschedule(task, outcomes.Error(error))

        def abandon(_: Any) -> trio.lowlevel.Abort:
            nonlocal waiting
            waiting = False
            return trio.lowlevel.Abort.SUCCEEDED

        post(reply, failed)
        outcome: Outcome = await trio.lowlevel.wait_task_rescheduled(abandon)
        return outcome


def _forget(vat: Vat) -> list[Step]:
    step = vat.forget()
    return [] if step is None else [step]
