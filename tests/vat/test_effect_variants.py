"""A method of a device that does several things: each has a policy, and a name, of its own."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from tests.effect_host import Host, running
from vat.devices.devices import Policy, effect
from vat.devices.outcomes import EffectTimeout, Outcome, OutcomeUnknown


class Several:
    """`run(what)`: which `what` has which policy."""

    def __init__(self, **policies):
        self.known = policies
        self.variants = {"run": self.variant}
        self.called = []

    def variant(self, what):
        return (what, self.known[what]) if what != "none" else None

    @effect
    async def run(self, effect, what):
        self.called.append(what)
        if what == "hang":
            await trio.sleep_forever()
        return what


async def outcome_of(device, what, state="wanted"):
    async with running(Host(device)) as host:
        host.want(1, "run", what, state=state)
        return await host.outcome()


async def test_what_repeats_runs_again_after_a_crash_and_what_does_not_is_unknown():
    device = Several(read=Policy(on_crash="retry"), write=Policy())
    assert await outcome_of(device, "read", "started") == Outcome("read")
    with pytest.raises(OutcomeUnknown, match=r"d\.write"):
        raise (await outcome_of(device, "write", "started")).error
    assert device.called == ["read"]


async def test_a_timeout_is_that_of_the_variant_and_names_it():
    with pytest.raises(EffectTimeout, match=r"d\.hang did not answer in its 0\.01 s"):
        raise (await outcome_of(Several(hang=Policy(timeout=0.01)), "hang")).error


@pytest.mark.parametrize("what", ["none", "unheard of"])
async def test_what_is_no_variant_has_the_policy_of_the_method(what):
    assert await outcome_of(Several(), what) == Outcome(what)


async def test_each_variant_has_its_own_limit_of_calls_at_once():
    device = Several(hang=Policy(concurrency=1), quick=Policy(concurrency=1))
    async with running(Host(device)) as host:
        host.want(1, "run", "hang")
        host.want(2, "run", "hang")
        host.want(3, "run", "quick")
        assert await host.outcome(3) == Outcome("quick")
        await trio.testing.wait_all_tasks_blocked()
        assert sorted(device.called) == ["hang", "quick"]
