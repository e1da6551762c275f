"""A method of a device that does several things: each has a policy, and a name, of its own."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from tests.effect_host import Host, running
from vat.devices.devices import Policy, effect
from vat.devices.outcomes import EffectOutcome, EffectTimeout, OutcomeUnknown


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
    assert await outcome_of(device, "read", "started") == EffectOutcome("read")
    with pytest.raises(OutcomeUnknown, match=r"d\.write"):
        raise (await outcome_of(device, "write", "started")).error
    assert device.called == ["read"]


async def test_a_timeout_is_that_of_the_variant_and_names_it():
    with pytest.raises(EffectTimeout, match=r"d\.hang did not answer in its 0\.01 s"):
        raise (await outcome_of(Several(hang=Policy(timeout=0.01)), "hang")).error


async def test_what_is_no_variant_has_the_policy_of_the_method():
    assert await outcome_of(Several(), "none") == EffectOutcome("none")


@pytest.mark.parametrize("error", [KeyError("unheard of"), SystemExit(3)], ids=["error", "exit"])
async def test_a_call_of_which_nobody_knows_the_policy_is_not_made(error):
    """It breaks with what was raised instead of its policy, and does not say that it started."""
    device = Several()

    def variant(what):
        raise error

    device.variants = {"run": variant}
    async with running(Host(device)) as host:
        host.want(1, "run", "write")
        outcome = await host.outcome()
        assert ("started", 1) not in host.happened
    assert type(error).__name__ in repr(outcome.error)
    assert device.called == []


async def test_a_call_that_had_started_is_of_unknown_outcome_when_nobody_knows_its_policy():
    assert isinstance((await outcome_of(Several(), "unheard of", "started")).error, OutcomeUnknown)


async def test_each_variant_has_its_own_limit_of_calls_at_once():
    device = Several(hang=Policy(concurrency=1), quick=Policy(concurrency=1))
    async with running(Host(device)) as host:
        host.want(1, "run", "hang")
        host.want(2, "run", "hang")
        host.want(3, "run", "quick")
        assert await host.outcome(3) == EffectOutcome("quick")
        await trio.testing.wait_all_tasks_blocked()
        assert sorted(device.called) == ["hang", "quick"]


@pytest.mark.parametrize("given", ["one", (1, 2, 3), ([], Policy()), ("name", None), 5], ids=repr)
async def test_what_is_no_name_and_policy_breaks_its_own_call_and_no_other(given):
    device = Several()
    device.variants = {"run": lambda what: given if what == "odd" else None}
    async with running(Host(device)) as host:
        host.want(1, "run", "odd")
        host.want(2, "run", "fine")
        assert await host.outcome(2) == EffectOutcome("fine")
        assert isinstance((await host.outcome(1)).error, TypeError | ValueError)
    assert device.called == ["fine"]
