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

import math
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import Any, Final, Literal, TypeAlias

import attrs
import trio

from dataspace.errors import KeeveError, is_interrupt
from dataspace.values import Value, freeze
from vat.devices.devices import Effect, Method, methods_of
from vat.devices.outcomes import (
    EffectCancelled,
    EffectTimeout,
    Outcome,
    OutcomeUnknown,
    UnknownDevice,
    alone,
    fit_for_record,
    trace_of,
)
from vat.devices.vault import Vault
from vat.errors import place_of

Key: TypeAlias = tuple[bytes, int]
"""Which effect: the uid of the session that wants it, and its number there."""

PATIENCE: Final = 300.0
"""Seconds: the longest that an error's `retry_after` is waited for; one that asks for more ends the attempts."""

CLOSING: Final = 5.0
"""Seconds that devices have to close when the host ends."""


@attrs.define(eq=False)
class Wanted:
    """An effect that a durable record wants. `state` says whether a record says, too, that it has started."""

    key: Key
    id: str
    session: str
    device: str
    method: str
    args: Sequence[Any] = ()
    keywords: Mapping[str, Any] = attrs.field(factory=dict)
    state: Literal["wanted", "started"] = "wanted"


class AlreadyRunning(KeeveError):
    """The runner runs already; it has one task of its own."""

    def __str__(self) -> str:
        return "this runner runs already: start one for each host"


class _Lane:
    """A device's method, or a variant of it, and those that wait because it is called as often as its policy allows."""

    __slots__ = ("busy", "method", "name", "waiting")

    def __init__(self, name: str, method: Method) -> None:
        self.name = name
        self.method = method
        self.busy = 0
        self.waiting: OrderedDict[Key, _Job] = OrderedDict()

    @property
    def full(self) -> bool:
        limit = self.method.policy.concurrency
        return limit is not None and self.busy >= limit


class _Job:
    """An effect from `want` to its outcome."""

    __slots__ = ("admitted", "called", "lane", "scope", "wanted")

    def __init__(self, wanted: Wanted, lane: _Lane | None) -> None:
        self.wanted = wanted
        self.lane = lane
        self.scope = trio.CancelScope()
        self.admitted = False  # counted in its lane
        self.called = False  # the device has been called

    @property
    def name(self) -> str:
        """What it is called in errors."""
        return f"{self.wanted.device}.{self.wanted.method}" if self.lane is None else self.lane.name


class EffectRunner:
    """Runs effects on the devices of a host. What it calls back must not raise, except `mark_started`.

    mark_started: returns once it is durable that the effect starts. If it raises, the device is not called, there is no
      outcome, and the effect may be wanted again.
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
        mark_started: Callable[[Wanted], Awaitable[None]],
        settle: Callable[[Wanted, Outcome], None],
        random: Callable[[], float],
        progress: Callable[[Wanted, Value], None],
    ) -> None:
        # By identity, because one object may be a device under two names.
        self._devices = list({id(device): device for device in devices.values()}.values())
        self._lanes = {
            (name, method): _Lane(f"{name}.{method}", how)
            for name, device in devices.items()
            for method, how in methods_of(device).items()
        }
        self._variants: dict[tuple[str, str, str], _Lane] = {}
        self._vault = vault
        self._mark_started = mark_started
        self._settle = settle
        self._random = random
        self._progress = progress
        self._jobs: dict[Key, _Job] = {}
        self._nursery: trio.Nursery | None = None

    def want(self, wanted: Wanted) -> None:
        """Run this effect, once the runner runs. One that is held already is not run a second time.

        Its outcome never comes before `want` returns. Costs a task, or, while it has to wait for others of its method,
        an entry in a queue.
        """
        if wanted.key in self._jobs:
            return
        job = _Job(wanted, self._lane(wanted))
        self._jobs[wanted.key] = job
        if self._nursery is not None:
            self._admit(job, self._nursery)

    def repeatable(self, wanted: Wanted) -> bool:
        """Whether it may run again when the host ended while it ran."""
        lane = self._lane(wanted)
        return lane is not None and lane.method.policy.on_crash == "retry"

    def _lane(self, wanted: Wanted) -> _Lane | None:
        lane = self._lanes.get((wanted.device, wanted.method))
        if lane is None or lane.method.variant is None:
            return lane
        try:
            found = lane.method.variant(*wanted.args, **wanted.keywords)
        except Exception:  # noqa: BLE001 - the device's own code; the call itself will say what is wrong
            return lane
        if found is None:
            return lane
        name, policy = found
        key = (wanted.device, wanted.method, name)
        if key not in self._variants:
            self._variants[key] = _Lane(f"{wanted.device}.{name}", Method(policy, lane.method.function))
        return self._variants[key]

    def cancel(self, key: Key) -> bool:
        """Stop this effect; its outcome is `EffectCancelled`, or still what the device returned if that came first.

        `False` if there is none, so that no outcome will come.
        """
        job = self._jobs.get(key)
        if job is None:
            return False
        job.scope.cancel()
        if job.lane is not None and key in job.lane.waiting and self._nursery is not None:
            del job.lane.waiting[key]
            self._nursery.start_soon(self._carry_out, job)
        return True

    def running(self) -> list[Wanted]:
        """The effects that it holds, in the order in which they were wanted: called, or waiting for their turn."""
        return [job.wanted for job in self._jobs.values()]

    async def run(self) -> None:
        """Run effects until cancelled. Those without an outcome then are let go.

        Devices that are async context managers are entered first, in their order, and left at the end; what one raises
        while it is entered comes out of here.
        """
        if self._nursery is not None:
            raise AlreadyRunning
        stack = AsyncExitStack()
        try:
            for device in self._devices:
                if isinstance(device, AbstractAsyncContextManager):
                    await stack.enter_async_context(device)
            async with trio.open_nursery() as nursery:
                self._nursery = nursery
                for job in list(self._jobs.values()):
                    self._admit(job, nursery)
                await trio.sleep_forever()
        finally:
            self._nursery = None
            self._jobs.clear()
            for lane in (*self._lanes.values(), *self._variants.values()):
                lane.busy = 0
                lane.waiting.clear()
            with trio.CancelScope(deadline=trio.current_time() + CLOSING, shield=True):
                await stack.aclose()

    def _admit(self, job: _Job, nursery: trio.Nursery) -> None:
        lane = job.lane
        if lane is not None and not job.scope.cancel_called:
            if lane.full:
                lane.waiting[job.wanted.key] = job
                return
            lane.busy += 1
            job.admitted = True
        nursery.start_soon(self._carry_out, job)

    async def _carry_out(self, job: _Job) -> None:
        outcome: Outcome | None = None
        with job.scope:
            outcome = await self._outcome(job)
        if outcome is None and job.scope.cancel_called:
            outcome = Outcome(error=EffectCancelled(job.name, started=job.called or job.wanted.state == "started"))
        # Not in a finally: when the host stops, nothing is settled by that, and no other effect takes the place.
        del self._jobs[job.wanted.key]
        lane = job.lane
        if lane is not None and job.admitted:
            lane.busy -= 1
            if lane.waiting and self._nursery is not None:
                self._admit(lane.waiting.popitem(last=False)[1], self._nursery)
        if outcome is not None:
            self._settle(job.wanted, outcome)

    async def _outcome(self, job: _Job) -> Outcome | None:
        """What came of it; `None` if it could not be made durable that it starts."""
        await trio.lowlevel.checkpoint_if_cancelled()
        wanted, lane = job.wanted, job.lane
        surely = lane is None or lane.method.policy.on_crash == "unknown"
        if surely and wanted.state == "started":
            return Outcome(error=OutcomeUnknown(job.name, wanted.id))
        if lane is None:
            known = tuple(f"{device}.{method}" for device, method in self._lanes)
            return Outcome(error=UnknownDevice(job.name, known))
        if surely:
            try:
                await self._mark_started(wanted)
            except Exception:  # noqa: BLE001 - why it is not durable is the host's affair, which raised it
                return None
        job.called = True
        return await self._attempts(job, lane.method)

    async def _attempts(self, job: _Job, method: Method) -> Outcome:
        policy = method.policy
        attempt = 1
        while True:
            found = await self._attempt(job, method, attempt)
            if not isinstance(found, BaseException):
                return found
            error = alone(found)
            pause = max(policy.pause(attempt, self._random()), _asked_for(error))
            if attempt >= policy.attempts or not isinstance(error, policy.retry_on) or pause > PATIENCE:
                redact = self._vault.redact
                trace, at = trace_of(found, redact), redact(place_of(error))
                return Outcome(error=fit_for_record(error, job.name, redact), trace=trace, at=at)
            await trio.sleep(pause)
            attempt += 1

    async def _attempt(self, job: _Job, method: Method, attempt: int) -> Outcome | BaseException:
        """The outcome of one attempt, or what it raised."""
        wanted = job.wanted
        effect = Effect(
            id=wanted.id,
            device=wanted.device,
            method=wanted.method,
            session=wanted.session,
            attempt=attempt,
            progress=lambda value: self._progress(wanted, self._vault.redact_value(value)),
            credential=self._vault.resolve,
        )
        seconds = math.inf if method.policy.timeout is None else method.policy.timeout
        error: BaseException | None = None
        value: Value = None
        returned = False
        try:
            with trio.move_on_after(seconds) as timer:
                value = await method.function(effect, *wanted.args, **wanted.keywords)
                returned = True
        except BaseException as raised:  # whatever a device raises is its outcome
            # A cancellation as well, if it is none of this job's: that is raised again below.
            if is_interrupt(raised):
                raise
            error = raised
        finally:
            effect.end()
        if not returned:
            # A device may turn its cancellation into an error; what ended it was the cancellation all the same.
            await trio.lowlevel.checkpoint_if_cancelled()
            return error if error is not None and not timer.cancel_called else EffectTimeout(job.name, seconds)
        try:
            return Outcome(self._vault.redact_value(freeze(value, path=f"{job.name}()")))
        except BaseException as unfit:  # a subclass of str or dict may do anything when it is read
            if is_interrupt(unfit):
                raise
            return unfit


def _asked_for(error: BaseException) -> float:
    """Seconds that an error asks to be left alone for."""
    seconds = vars(error).get("retry_after")  # not getattr: a property is code, and may raise
    return seconds if (type(seconds) is int or type(seconds) is float) and seconds > 0 else 0.0
