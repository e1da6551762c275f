"""The runner: calls devices under trio, outside all vats, and hands back what came of it.

Whoever wants an effect says so (`want`) after the record that wants it is durable; what came of it goes to `settle`,
once. Between the two stands the policy that the device declares:

1. An effect whose policy is `"unknown"` is called only after `mark_started` has made durable that it starts.
2. One that had started before (in a host that has ended) is not called; its outcome is `OutcomeUnknown`.
3. One whose policy is `"retry"` is called, whatever happened before.

The one rule: **everything that happens to an effect is an outcome.** A device that raises, hangs, is not there, calls
`sys.exit()` or returns what is no value breaks its own effect, and nothing else. Only the end of `run` leaves effects
without one; they are wanted again when their vat is loaded the next time.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from traceback import StackSummary
from typing import Final

import trio

from dataspace.errors import KeeveError
from dataspace.interrupts import is_interrupt
from dataspace.values import Value
from vat.devices.attempts import Attempts, Key, Wanted
from vat.devices.devices import Method, Policy, methods_of
from vat.devices.outcomes import EffectCancelled, EffectOutcome, OutcomeUnknown, UnknownDevice
from vat.devices.timers import Deadlines, Timer
from vat.devices.vault import Vault
from vat.heap.deadlines import deadline_of

log = logging.getLogger("keeve")

CLOSING: Final = 5.0
"""Seconds that devices have to close when the host ends, and to stop before it is said which of them does not."""


class AlreadyRunning(KeeveError, quotes=False):
    """The runner runs already; it has one task of its own."""

    def __str__(self) -> str:
        return "this runner runs already: start one for each host"


class _Lane:
    """A device's method, or a variant of it, and those that wait because it is called as often as its policy allows."""

    __slots__ = ("broken", "busy", "method", "name", "timed", "waiting")

    def __init__(self, name: str, method: Method, timed: bool = False, *, broken: bool = False) -> None:
        self.name = name
        self.method = method
        self.timed = timed  # it is called when its time has come, and not before
        self.broken = broken  # nobody knows its policy, so that it is not called
        self.busy = 0
        self.waiting: OrderedDict[Key, _Job] = OrderedDict()

    @property
    def full(self) -> bool:
        limit = self.method.policy.concurrency
        return limit is not None and self.busy >= limit


class _Job:
    """An effect from `want` to its outcome."""

    __slots__ = ("admitted", "called", "due", "lane", "scope", "task", "wanted")

    def __init__(self, wanted: Wanted, lane: _Lane | None) -> None:
        self.wanted = wanted
        self.lane = lane
        if lane is not None:
            wanted.name = lane.name
        self.due: float | None = None  # when its time comes, while that lies ahead
        self.scope = trio.CancelScope()
        self.task: trio.lowlevel.Task | None = None
        self.admitted = False  # counted in its lane
        self.called = False  # the device has been called

    @property
    def risky(self) -> bool:
        """Whether nobody would know what came of it, if the host ended now."""
        return self.admitted and self.lane is not None and self.lane.method.policy.on_crash == "unknown"


def _raising(error: BaseException) -> Callable[..., Awaitable[Value]]:
    """What stands for a method of which it cannot be said how it is to be called."""

    async def raises(*_: object, **__: object) -> Value:
        raise error

    return raises


class EffectRunner:
    """Runs effects on the devices of a host. What it calls back must not raise, except `mark_started`.

    clock: microseconds since 1970, for timers.
    mark_started: returns once it is durable that the effect starts. If it raises, the device is not called, there is no
      outcome, and the effect may be wanted again.
    in_time: the same, before any call, for what the effect's vat has to take first: its timers whose time has come.
    settle: takes the outcome, once; from then on the effect is the caller's, to keep and to offer until it is
      recorded, and not to be wanted again meanwhile.
    random: gives a number in [0, 1), for the pauses between attempts.
    progress: hears what a running device tells (redacted, frozen).

    Raises `NotADevice` or `BadPolicy` for a device that cannot be one.
    """

    def __init__(
        self,
        devices: Mapping[str, object],
        vault: Vault,
        *,
        clock: Callable[[], int],
        mark_started: Callable[[Wanted], Awaitable[None]],
        in_time: Callable[[Wanted], Awaitable[None]],
        settle: Callable[[Wanted, EffectOutcome], None],
        random: Callable[[], float],
        progress: Callable[[Wanted, Value], None],
    ) -> None:
        # By identity, because one object may be a device under two names.
        self._devices = dict({id(device): (name, device) for name, device in devices.items()}.values())
        self._lanes = {
            (name, method): _Lane(f"{name}.{method}", how, isinstance(device, Timer))
            for name, device in devices.items()
            for method, how in methods_of(device).items()
        }
        self._variants: dict[tuple[str, str, str], _Lane] = {}
        self._attempts = Attempts(vault, random=random, progress=progress)
        self._mark_started = mark_started
        self._in_time = in_time
        self._settle = settle
        self._jobs: dict[Key, _Job] = {}
        self._deadlines: Deadlines[Key] = Deadlines(clock, self._due)
        self._runs = False
        self._nursery: trio.Nursery | None = None
        """Where effects run, until `run` begins to end: from then on it may be closed, and what is wanted is left."""
        self._starts = True
        self._leaving = ""
        """The device that is closing."""
        self._ended = trio.Event()

    def want(self, wanted: Wanted) -> None:
        """Run this effect, once the runner runs. One that is held already is not run a second time.

        Its outcome never comes before `want` returns. Costs a task, or, while it has to wait for its time or for others
        of its method, an entry in a queue.
        """
        if wanted.key in self._jobs:
            return
        job = _Job(wanted, self._lane(wanted))
        self._jobs[wanted.key] = job
        if self._nursery is not None:
            try:
                self._admit(job, self._nursery)
            except BaseException:
                del self._jobs[wanted.key]
                raise

    def has(self, device: str, method: str) -> bool:
        """Whether there is a device of that name with that method."""
        return (device, method) in self._lanes

    def timed(self, device: str, method: str) -> bool:
        """Whether that is a timer's."""
        lane = self._lanes.get((device, method))
        return lane is not None and lane.timed

    def repeatable(self, wanted: Wanted) -> bool:
        """Whether it may run again when the host ended while it ran."""
        lane = self._lane(wanted)
        return lane is not None and lane.method.policy.on_crash == "retry"

    def begun(self, key: Key) -> bool:
        """Whether a device may have been given this effect; False only where it would be durable that it starts."""
        job = self._jobs.get(key)
        if job is None or job.lane is None or job.called or job.wanted.state == "started":
            return True
        return job.lane.method.policy.on_crash != "unknown"

    def _lane(self, wanted: Wanted) -> _Lane | None:
        lane = self._lanes.get((wanted.device, wanted.method))
        if lane is None or lane.method.variant is None:
            return lane
        try:
            found = lane.method.variant(*wanted.args, **wanted.keywords)
            if found is None:
                return lane
            name, policy = found
            if type(name) is not str or not isinstance(policy, Policy):
                raise TypeError(f"the variant of {lane.name} is no name and Policy, but {found!r}")
        except BaseException as error:  # the device's own code: whatever it raises or gives is the outcome
            if is_interrupt(error):
                raise
            return _Lane(lane.name, Method(Policy(), _raising(error)), broken=True)
        key = (wanted.device, wanted.method, name)
        if key not in self._variants:
            self._variants[key] = _Lane(f"{wanted.device}.{name}", Method(policy, lane.method.function))
        return self._variants[key]

    def cancel(self, key: Key) -> bool:
        """Stop this effect; its outcome is `EffectCancelled`, or still what the device returned if that came first.

        `False` if there is none, so that no outcome will come; nor does one when `run` is about to end.
        """
        job = self._jobs.get(key)
        if job is None:
            return False
        job.scope.cancel()
        if self._waits(job) and self._nursery is not None:
            self._nursery.start_soon(self._carry_out, job)
        return True

    def _waits(self, job: _Job) -> bool:
        """Whether it waits for its time or for its turn; it does so no more."""
        key = job.wanted.key
        if job.due is not None:
            return self._deadlines.discard(job.due, key)
        return job.lane is not None and job.lane.waiting.pop(key, None) is not None

    def running(self) -> list[Wanted]:
        """The effects that it holds, in the order in which they were wanted: called, or waiting for their turn."""
        return [job.wanted for job in self._jobs.values()]

    async def run(self) -> None:
        """Run effects until cancelled. Those without an outcome then are let go.

        Devices that are async context managers are entered first, in their order, and left at the end; what one raises
        while it is entered comes out of here. A device that does not stop when it is cancelled is named in the log.
        """
        if self._runs:
            raise AlreadyRunning
        self._runs = True
        stack = AsyncExitStack()
        naming = trio.CancelScope()
        self._starts = True
        try:
            for name, device in self._devices.items():
                if isinstance(device, AbstractAsyncContextManager):
                    await stack.enter_async_context(self._entered(name, device))
            async with trio.open_nursery() as nursery:
                self._nursery = nursery
                nursery.start_soon(self._deadlines.run)
                for job in list(self._jobs.values()):
                    self._admit(job, nursery)
                try:
                    await trio.sleep_forever()
                finally:
                    self._nursery = None
                    trio.lowlevel.spawn_system_task(self._name_who_stays, naming)
        finally:
            self._runs = False
            self._nursery = None
            self._jobs.clear()
            self._deadlines.clear()
            for lane in (*self._lanes.values(), *self._variants.values()):
                lane.busy = 0
                lane.waiting.clear()
            try:
                with trio.CancelScope(deadline=trio.current_time() + CLOSING, shield=True):
                    await stack.aclose()
            finally:
                self._leaving = ""
                naming.cancel()

    @asynccontextmanager
    async def _entered(self, name: str, device: AbstractAsyncContextManager[object]) -> AsyncIterator[None]:
        async with device:
            yield
            self._leaving = name

    async def finish(self, seconds: float) -> None:
        """Start nothing more, and wait up to `seconds` for those effects of which nobody would know what came of them.

        What is wanted from now on is left for the next start.
        """
        self._starts = False
        with trio.move_on_after(seconds):
            while any(job.risky for job in self._jobs.values()):
                await self._ended.wait()

    async def _name_who_stays(self, naming: trio.CancelScope) -> None:
        """Say which devices keep a host from ending, ever more rarely."""
        seconds = CLOSING
        with naming:
            while True:
                await trio.sleep(seconds)
                if self._leaving:
                    log.warning("the host cannot end: the device %r has not closed", self._leaving)
                for job in list(self._jobs.values()):
                    if job.task is not None:
                        log.warning(
                            "the host cannot end: %s (effect %s of session %s) was cancelled and goes on:\n%s",
                            job.wanted.name,
                            job.wanted.id,
                            job.wanted.session,
                            "".join(StackSummary.extract(job.task.iter_await_frames()).format()),
                        )
                seconds *= 2

    def _admit(self, job: _Job, nursery: trio.Nursery) -> None:
        lane = job.lane
        if not job.scope.cancel_called:
            if not self._starts:
                return
            if lane is not None:
                if lane.timed and job.due is None:
                    at = deadline_of(job.wanted.args, job.wanted.keywords)
                    if at is not None and self._deadlines.lies_ahead(at):
                        job.due = at
                        self._deadlines.add(at, job.wanted.key)
                        return
                if lane.full:
                    lane.waiting[job.wanted.key] = job
                    return
                lane.busy += 1
                job.admitted = True
        nursery.start_soon(self._carry_out, job)

    def _due(self, key: Key) -> None:
        job = self._jobs[key]
        job.due = None
        if self._nursery is not None:
            self._admit(job, self._nursery)

    async def _carry_out(self, job: _Job) -> None:
        outcome: EffectOutcome | None = None
        job.task = trio.lowlevel.current_task()
        try:
            with job.scope:
                outcome = await self._outcome(job)
        finally:
            job.task = None
        if outcome is None and job.scope.cancel_called:
            started = job.called or job.wanted.state == "started"
            outcome = EffectOutcome(error=EffectCancelled(job.wanted.name, started=started))
        # Not in a finally: when the host stops, nothing is settled by that, and no other effect takes the place.
        del self._jobs[job.wanted.key]
        lane = job.lane
        if lane is not None and job.admitted:
            lane.busy -= 1
            if lane.waiting and self._nursery is not None:
                self._admit(lane.waiting.popitem(last=False)[1], self._nursery)
        if outcome is not None:
            self._settle(job.wanted, outcome)
        self._ended.set()
        self._ended = trio.Event()

    async def _outcome(self, job: _Job) -> EffectOutcome | None:
        """What came of it; `None` if it could not be made durable that it starts."""
        await trio.lowlevel.checkpoint_if_cancelled()
        wanted, lane = job.wanted, job.lane
        surely = lane is None or lane.method.policy.on_crash == "unknown"
        if surely and wanted.state == "started":
            return EffectOutcome(error=OutcomeUnknown(job.wanted.name, wanted.id))
        if lane is None:
            known = tuple(f"{device}.{method}" for device, method in self._lanes)
            log.warning(
                "session %s wants %s, and this host has no such device: give it with devices={%r: ...}",
                wanted.session,
                job.wanted.name,
                wanted.device,
            )
            return EffectOutcome(error=UnknownDevice(job.wanted.name, known))
        if not lane.broken and not lane.timed:
            try:
                if surely:
                    await self._mark_started(wanted)
                await self._in_time(wanted)
            except Exception:  # noqa: BLE001 - why it is not durable is the host's affair, which raised it
                return None
            await trio.lowlevel.checkpoint_if_cancelled()  # by what was taken first
        job.called = True
        return await self._attempts.outcome(wanted, lane.name, lane.method)
