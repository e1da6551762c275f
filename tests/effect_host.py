"""A host without a log, for tests of the runner: a device that does as it is told, and a list of all that happens."""

from __future__ import annotations

from collections import defaultdict
from contextlib import asynccontextmanager

import trio

from vat.devices.attempts import Wanted
from vat.devices.devices import Policy, effect
from vat.devices.outcomes import EffectOutcome
from vat.devices.runner import EffectRunner
from vat.devices.vault import Vault


class Device:
    """Does what its effects' first argument says, under each kind of policy; `calls` are the arguments of all calls."""

    def __init__(self, **policies: Policy) -> None:
        self.policies = policies
        self.calls = []

    @effect
    async def once(self, effect, act, *args, **kwargs):
        self.calls.append((act, *args))
        return await act(effect, *args, **kwargs) if callable(act) else act

    @effect(on_crash="retry")
    async def again(self, effect, act, *args, **kwargs):
        return await self.once(effect, act, *args, **kwargs)


class Host:
    """What a runner calls back, and a list of all that happens, in order."""

    def __init__(self, device, *, vault=None, chance=lambda: 0.0, clock=lambda: 0, **more) -> None:
        self.happened = []
        self.outcomes = {}
        self.settled = defaultdict(trio.Event)
        self.refused = False
        self.runner = EffectRunner(
            {"d": device, **more},
            vault or Vault(),
            clock=clock,
            mark_started=self.mark_started,
            in_time=self.in_time,
            settle=self.settle,
            random=chance,
            progress=lambda wanted, value: self.happened.append(("progress", wanted.key[1], value)),
        )

    async def mark_started(self, wanted):
        await trio.lowlevel.checkpoint()
        if self.refused:
            raise OSError("disk full")
        self.happened.append(("started", wanted.key[1]))

    async def in_time(self, wanted):
        pass

    def settle(self, wanted, outcome):
        assert wanted.key[1] not in self.outcomes
        assert isinstance(outcome, EffectOutcome)
        self.outcomes[wanted.key[1]] = outcome
        self.happened.append(("settled", wanted.key[1]))
        self.settled[wanted.key[1]].set()

    def want(self, number, method, *args, state="wanted", device="d", **kwargs):
        self.runner.want(Wanted((b"S" * 16, number), f"id-{number}", "s1", device, method, args, kwargs, state))

    def cancel(self, number):
        return self.runner.cancel((b"S" * 16, number))

    async def outcome(self, number=1):
        await self.settled[number].wait()
        return self.outcomes[number]


@asynccontextmanager
async def running(host):
    async with trio.open_nursery() as nursery:
        nursery.start_soon(host.runner.run)
        yield host
        nursery.cancel_scope.cancel()


async def error_of(act, vault=None, **policy):
    """The error that comes of a device doing this."""
    async with running(Host(Device(again=Policy(on_crash="retry", **policy)), vault=vault)) as host:
        host.want(1, "again", act)
        return (await host.outcome()).error


async def forever(effect):
    await trio.sleep_forever()
