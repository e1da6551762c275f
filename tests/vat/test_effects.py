"""The runner of effects: what it calls, how often, and what comes of it."""

from __future__ import annotations

import sys
from collections import defaultdict
from contextlib import asynccontextmanager

import attrs
import pytest
import trio

from dataspace.values import NotAValue
from vat.devices import Policy, effect
from vat.effects import EffectRunner, Wanted
from vat.outcomes import DeviceFailed, EffectCancelled, EffectTimeout, Outcome, OutcomeUnknown, UnknownDevice
from vat.vault import NoCredential, Vault

CANARY = "sk-canary-5f0c9d"


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

    def __init__(self, device, *, vault=None, chance=lambda: 0.0, **more) -> None:
        self.happened = []
        self.outcomes = {}
        self.settled = defaultdict(trio.Event)
        self.refused = False
        self.runner = EffectRunner(
            {"d": device, **more},
            vault or Vault(),
            mark_started=self.mark_started,
            settle=self.settle,
            random=chance,
            progress=lambda wanted, value: self.happened.append(("progress", wanted.key[1], value)),
        )

    async def mark_started(self, wanted):
        await trio.lowlevel.checkpoint()
        if self.refused:
            raise OSError("disk full")
        self.happened.append(("started", wanted.key[1]))

    def settle(self, wanted, outcome):
        assert wanted.key[1] not in self.outcomes
        assert isinstance(outcome, Outcome)
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


# What is called, and when


async def test_an_effect_comes_to_its_value():
    async with running(Host(Device())) as host:
        host.want(1, "again", {"a": [1, 2]})
        assert await host.outcome() == Outcome({"a": [1, 2]})


async def test_the_value_of_an_effect_is_frozen():
    async with running(Host(Device())) as host:
        host.want(1, "again", {"a": [1]})
        with pytest.raises(TypeError, match="cannot be changed"):
            (await host.outcome()).value["a"].append(2)


async def test_a_plain_function_is_called_as_call():
    @effect
    async def double(effect, number):
        return number * 2

    async with running(Host(Device(), double=double)) as host:
        host.want(1, "call", 21, device="double")
        assert await host.outcome() == Outcome(42)


async def test_a_device_is_told_which_effect_it_is():
    async def who(effect, **options):
        return [effect.id, effect.device, effect.method, effect.session, effect.attempt, options["x"]]

    async with running(Host(Device())) as host:
        host.want(1, "again", who, x=5)
        assert await host.outcome() == Outcome(["id-1", "d", "again", "s1", 1, 5])


async def test_arguments_are_handed_over_as_they_are():
    class View(list):
        def __iter__(self):
            raise AssertionError("was read")

    view = View([1, 2, 3])

    async def same(effect, given):
        return given is view

    async with running(Host(Device())) as host:
        host.want(1, "again", same, view)
        assert await host.outcome() == Outcome(True)


async def test_effects_wanted_before_the_runner_runs_wait_for_it():
    host = Host(Device())
    host.want(1, "again", "early")
    await trio.testing.wait_all_tasks_blocked()
    assert host.outcomes == {}
    async with running(host):
        assert await host.outcome() == Outcome("early")


async def test_an_outcome_never_comes_while_an_effect_is_being_wanted():
    async with running(Host(Device())) as host:
        await trio.testing.wait_all_tasks_blocked()
        host.want(1, "again", "value")
        host.want(2, "gone", "value")
        host.want(3, "once", "value", state="started")
        assert host.happened == []


async def test_that_an_effect_starts_is_durable_before_the_device_is_called():
    async def act(effect):
        host.happened.append(("called", 1))

    async with running(Host(Device())) as host:
        host.want(1, "once", act)
        await host.outcome()
        assert host.happened == [("started", 1), ("called", 1), ("settled", 1)]


async def test_an_effect_that_may_be_run_again_is_called_without_a_record_that_it_starts():
    async with running(Host(Device())) as host:
        host.want(1, "again", "value")
        await host.outcome()
        assert host.happened == [("settled", 1)]


async def test_a_device_is_not_called_when_its_start_cannot_be_made_durable(autojump_clock):
    device = Device()
    async with running(Host(device)) as host:
        host.refused = True
        host.want(1, "once", "value")
        await trio.sleep(1)
        assert (device.calls, host.outcomes, host.runner.running()) == ([], {}, [])

        host.refused = False
        host.want(1, "once", "value")
        assert await host.outcome() == Outcome("value")


# After a crash


async def test_an_effect_that_had_started_is_unknown_and_not_called_again(autojump_clock):
    """Invariant 13: three restarts, one call."""
    device = Device()
    state = "wanted"
    for _ in range(3):
        host = Host(device)
        async with running(host):
            host.want(1, "once", forever, state=state)
            await trio.sleep(1)
            state = "started" if ("started", 1) in host.happened else state
    assert len(device.calls) == 1
    error = host.outcomes[1].error
    assert isinstance(error, OutcomeUnknown)
    assert "nobody knows whether d.once (effect id-1) happened" in str(error)


async def test_an_effect_that_had_not_started_is_called_after_a_crash():
    async with running(Host(Device())) as host:
        host.want(1, "once", "value", state="wanted")
        assert await host.outcome() == Outcome("value")


async def test_an_effect_that_may_be_run_again_is_called_after_a_crash():
    async with running(Host(Device())) as host:
        host.want(1, "again", "value", state="started")
        assert await host.outcome() == Outcome("value")


async def test_one_that_had_started_on_a_device_that_is_gone_is_unknown():
    async with running(Host(Device())) as host:
        host.want(1, "once", device="gone", state="started")
        assert isinstance((await host.outcome()).error, OutcomeUnknown)


async def test_what_runs_when_the_host_stops_is_let_go_without_an_outcome(autojump_clock):
    async def stubborn(effect):
        try:
            await trio.sleep_forever()
        except trio.Cancelled:
            raise ValueError("I was disturbed") from None

    async def in_a_nursery(effect):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(stubborn, effect)
            await trio.sleep_forever()

    host = Host(Device(once=Policy(concurrency=1)))
    async with running(host):
        host.want(1, "again", forever)
        host.want(2, "again", stubborn)
        host.want(3, "again", in_a_nursery)
        host.want(4, "once", forever)
        host.want(5, "once", forever)
        await trio.sleep(1)
    assert host.outcomes == {}
    assert host.runner.running() == []


async def test_nothing_that_waits_is_called_when_the_host_stops(autojump_clock):
    device = Device(again=Policy(concurrency=1))
    host = Host(device)

    async def unmoved(effect):
        with trio.CancelScope(shield=True):
            await trio.sleep(1)
        return "done"

    async with running(host):
        host.want(1, "again", unmoved)
        host.want(2, "again", "next")
        await trio.sleep(0.5)
    assert host.outcomes == {1: Outcome("done")}
    assert len(device.calls) == 1


async def test_a_runner_can_run_again(autojump_clock):
    host = Host(Device(again=Policy(concurrency=1)))
    async with running(host):
        host.want(1, "again", forever)
        host.want(2, "again", forever)
        await trio.sleep(1)
    async with running(host):
        host.want(2, "again", "value")
        assert await host.outcome(2) == Outcome("value")


# One call for one effect


async def test_an_effect_that_is_held_is_not_called_a_second_time(autojump_clock):
    device = Device()
    async with running(Host(device)) as host:
        host.want(1, "once", forever)
        await trio.sleep(1)
        host.want(1, "once", forever, state="started")
        await trio.sleep(1)
        assert len(device.calls) == 1
        assert host.outcomes == {}


async def test_the_effects_that_are_held_can_be_listed(autojump_clock):
    async with running(Host(Device(again=Policy(concurrency=1)))) as host:
        for number in (3, 1, 2):
            host.want(number, "again", forever)
        await trio.sleep(1)
        assert [wanted.key[1] for wanted in host.runner.running()] == [3, 1, 2]


async def test_calls_of_one_method_are_limited_and_come_in_the_order_in_which_they_were_wanted(autojump_clock):
    now, most, order = set(), [], []

    async def act(effect, number):
        now.add(number)
        most.append(len(now))
        order.append(number)
        await trio.sleep(1)
        now.remove(number)

    async with running(Host(Device(again=Policy(concurrency=2)))) as host:
        for number in range(9):
            host.want(number, "again", act, number)
        await host.outcome(8)
        assert max(most) == 2
        assert [sorted(order[start : start + 2]) for start in range(0, 9, 2)] == [[0, 1], [2, 3], [4, 5], [6, 7], [8]]


async def test_a_limited_method_does_not_hold_up_another_one():
    async with running(Host(Device(once=Policy(concurrency=1)))) as host:
        host.want(1, "once", forever)
        host.want(2, "once", forever)
        host.want(3, "again", "value")
        assert await host.outcome(3) == Outcome("value")


async def test_one_that_fails_makes_room_for_the_next():
    async def fail(effect):
        raise ValueError

    async with running(Host(Device(again=Policy(concurrency=1)))) as host:
        host.want(1, "again", fail)
        host.want(2, "again", "value")
        assert await host.outcome(2) == Outcome("value")


# Cancelling


async def test_a_cancelled_effect_breaks_and_says_that_it_may_have_happened(autojump_clock):
    async with running(Host(Device())) as host:
        host.want(1, "once", forever)
        await trio.sleep(1)
        assert host.cancel(1)
        assert (await host.outcome()).error.args == EffectCancelled("d.once", started=True).args


async def test_an_effect_that_waits_for_its_turn_is_cancelled_without_being_called(autojump_clock):
    device = Device(again=Policy(concurrency=1))
    async with running(Host(device)) as host:
        host.want(1, "again", forever)
        host.want(2, "again", forever)
        host.want(3, "again", "third")
        await trio.sleep(1)
        host.cancel(2)
        assert (await host.outcome(2)).error.args == EffectCancelled("d.again", started=False).args
        assert len(device.calls) == 1
        host.cancel(1)
        assert await host.outcome(3) == Outcome("third")


async def test_an_effect_can_be_cancelled_before_the_runner_runs():
    device = Device()
    host = Host(device)
    host.want(1, "again", "value")
    host.cancel(1)
    async with running(host):
        assert isinstance((await host.outcome()).error, EffectCancelled)
        assert device.calls == []


async def test_a_value_that_came_before_the_cancellation_took_effect_stands(autojump_clock):
    async def unmoved(effect):
        with trio.CancelScope(shield=True):
            await trio.sleep(1)
        return "done"

    async with running(Host(Device())) as host:
        host.want(1, "once", unmoved)
        await trio.sleep(0.5)
        host.cancel(1)
        assert await host.outcome() == Outcome("done")


async def test_an_error_that_a_cancellation_causes_is_a_cancellation(autojump_clock):
    async def stubborn(effect):
        try:
            await trio.sleep_forever()
        finally:
            raise ValueError("I was disturbed")

    async def in_a_nursery(effect):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(stubborn, effect)
            await trio.sleep_forever()

    async with running(Host(Device())) as host:
        host.want(1, "once", stubborn)
        host.want(2, "once", in_a_nursery)
        await trio.sleep(1)
        host.cancel(1)
        host.cancel(2)
        assert isinstance((await host.outcome(1)).error, EffectCancelled)
        assert isinstance((await host.outcome(2)).error, EffectCancelled)


async def test_a_cancelled_effect_is_not_tried_again(autojump_clock):
    device = Device(again=Policy(on_crash="retry", attempts=9, retry_on=(ValueError,), backoff=30))

    async def fail(effect):
        raise ValueError

    async with running(Host(device)) as host:
        host.want(1, "again", fail)
        await trio.sleep(1)
        host.cancel(1)
        assert isinstance((await host.outcome()).error, EffectCancelled)
        assert len(device.calls) == 1


async def test_cancelling_what_is_not_held_says_so():
    async with running(Host(Device())) as host:
        assert not host.cancel(1)


# Timeouts and further attempts


async def test_a_device_that_hangs_is_stopped_at_its_timeout(autojump_clock):
    error = await error_of(forever, timeout=5)
    assert error.args == EffectTimeout("d.again", 5).args
    assert str(error).startswith("d.again did not answer in its 5 s")


async def test_an_error_that_a_timeout_causes_is_a_timeout(autojump_clock):
    async def stubborn(effect):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(disturbed)
            await trio.sleep_forever()

    async def disturbed():
        try:
            await trio.sleep_forever()
        finally:
            raise ValueError("I was disturbed")

    assert isinstance(await error_of(stubborn, timeout=5), EffectTimeout)


async def test_what_is_worth_another_attempt_gets_one_after_a_growing_pause(autojump_clock):
    times = []

    async def third_time_lucky(effect):
        times.append((effect.attempt, trio.current_time()))
        if effect.attempt < 3:
            raise ConnectionError
        return "at last"

    policy = Policy(on_crash="retry", attempts=3, retry_on=(OSError,), backoff=2)
    async with running(Host(Device(again=policy), chance=lambda: 0.5)) as host:
        host.want(1, "again", third_time_lucky)
        assert await host.outcome() == Outcome("at last")
    assert [attempt for attempt, _ in times] == [1, 2, 3]
    first, second, third = (time for _, time in times)
    assert (second - first, third - second) == (pytest.approx(1.5), pytest.approx(3.0))


async def test_attempts_end_at_their_number(autojump_clock):
    calls = []

    async def fail(effect):
        calls.append(effect.attempt)
        raise ConnectionError("gone")

    error = await error_of(fail, attempts=3, retry_on=(OSError,))
    assert (type(error), str(error), calls) == (ConnectionError, "gone", [1, 2, 3])


async def test_another_error_is_not_worth_another_attempt(autojump_clock):
    calls = []

    async def fail(effect):
        calls.append(effect.attempt)
        raise ValueError

    await error_of(fail, attempts=3, retry_on=(OSError,))
    assert calls == [1]


async def test_a_timeout_counts_for_one_attempt_and_can_be_worth_another(autojump_clock):
    async def slow_at_first(effect):
        await trio.sleep(10 if effect.attempt == 1 else 1)
        return "in time"

    policy = Policy(on_crash="retry", timeout=5, attempts=2, retry_on=(EffectTimeout,))
    async with running(Host(Device(again=policy))) as host:
        host.want(1, "again", slow_at_first)
        assert await host.outcome() == Outcome("in time")


class Busy(Exception):
    def __init__(self, retry_after):
        super().__init__()
        self.retry_after = retry_after


@pytest.mark.parametrize(("asked", "waited"), [(7, 7), (0.1, 1), ("soon", 1), (None, 1), (float("nan"), 1), (-5, 1)])
async def test_an_error_can_ask_for_a_longer_pause(autojump_clock, asked, waited):
    times = []

    async def busy(effect):
        times.append(trio.current_time())
        raise Busy(asked)

    await error_of(busy, attempts=2, retry_on=(Busy,), backoff=1)
    assert times[1] - times[0] == pytest.approx(waited)


async def test_a_pause_that_is_too_long_ends_the_attempts(autojump_clock):
    calls = []

    async def busy(effect):
        calls.append(effect.attempt)
        raise Busy(86_400)

    await error_of(busy, attempts=2, retry_on=(Busy,))
    assert calls == [1]


# Everything is an outcome


async def test_a_device_that_the_host_does_not_have_is_an_outcome_that_names_those_it_has():
    async with running(Host(Device())) as host:
        host.want(1, "complete", device="model")
        host.want(2, "thrice")
        assert str((await host.outcome(1)).error).startswith(
            "this host has no model.complete; its devices offer: d.again, d.once."
        )
        assert isinstance((await host.outcome(2)).error, UnknownDevice)


async def test_what_a_device_raises_is_the_outcome():
    async def fail(effect):
        raise LookupError("not on the shelf")

    error = await error_of(fail)
    assert (type(error), error.args) == (LookupError, ("not on the shelf",))


async def test_a_result_that_is_no_value_is_an_outcome_that_names_the_place():
    async def wrong(effect):
        return {"items": [1, object()]}

    error = await error_of(wrong)
    assert isinstance(error, NotAValue)
    assert str(error) == "d.again().items[1]: object is not a value"


async def test_a_result_that_cannot_even_be_read_is_an_outcome():
    class Trap(dict):
        def items(self):
            raise RuntimeError("a trap")

    async def wrong(effect):
        return Trap()

    assert str(await error_of(wrong)) == "a trap"


async def test_wrong_arguments_are_an_outcome():
    async def no_arguments(effect):
        raise AssertionError

    async with running(Host(Device())) as host:
        host.want(1, "again", no_arguments, 1, 2, 3)
        assert isinstance((await host.outcome()).error, TypeError)


async def test_a_device_that_ends_the_program_ends_its_effect_alone():
    async def leave(effect):
        sys.exit("enough")

    error = await error_of(leave)
    assert str(error) == "d.again raised SystemExit: enough"


async def test_one_error_in_a_nursery_is_that_error_and_several_are_told_together():
    async def fail(word):
        raise ValueError(word)

    async def in_a_nursery(effect, *words):
        async with trio.open_nursery() as nursery:
            for word in words:
                nursery.start_soon(fail, word)

    async def one(effect):
        await in_a_nursery(effect, "first")

    async def two(effect):
        await in_a_nursery(effect, "same", "same")

    error = await error_of(one)
    assert (type(error), error.args) == (ValueError, ("first",))
    error = await error_of(two)
    assert isinstance(error, DeviceFailed)
    assert str(error).endswith("(2 sub-exceptions): same; same")


async def test_an_error_that_cannot_be_shown_is_an_outcome():
    class Bad(Exception):
        def __str__(self):
            raise RuntimeError

        __repr__ = __str__

    async def fail(effect):
        raise Bad

    error = await error_of(fail)
    assert str(error) == "d.again raised Bad: its message cannot be shown (RuntimeError)"


async def test_a_very_large_result_is_an_outcome_like_any_other():
    async def much(effect):
        return "x" * 50_000_000

    async with running(Host(Device())) as host:
        host.want(1, "again", much)
        assert len((await host.outcome()).value) == 50_000_000


async def test_whatever_devices_do_the_runner_goes_on():
    async def fail(effect):
        raise BaseExceptionGroup("all at once", [ValueError(), SystemExit()])

    async with running(Host(Device())) as host:
        host.want(1, "again", fail)
        host.want(2, "again", "value")
        assert isinstance((await host.outcome(1)).error, DeviceFailed)
        assert await host.outcome(2) == Outcome("value")


async def test_an_outcome_keeps_no_frame_of_the_device_alive():
    async def fail(effect):
        try:
            raise LookupError("inner")
        except LookupError as error:
            raise ValueError("outer") from error

    async with running(Host(Device())) as host:
        host.want(1, "again", fail)
        outcome = await host.outcome()
    assert (outcome.error.__traceback__, outcome.error.__cause__, outcome.error.__context__) == (None, None, None)
    assert "LookupError: inner" in outcome.trace
    assert 'raise ValueError("outer") from error' in outcome.trace


# Progress


async def test_progress_reaches_the_host_in_order_and_before_the_outcome():
    async def act(effect):
        effect.progress("h")
        effect.progress({"i": 1})

    async with running(Host(Device())) as host:
        host.want(1, "again", act)
        await host.outcome()
        assert host.happened == [("progress", 1, "h"), ("progress", 1, {"i": 1}), ("settled", 1)]


async def test_progress_that_comes_after_the_outcome_is_dropped():
    kept = []

    async def act(effect):
        kept.append(effect)

    async with running(Host(Device())) as host:
        host.want(1, "again", act)
        await host.outcome()
        kept[0].progress("late")
        assert host.happened == [("settled", 1)]


# Credentials


@attrs.define
class Telltale(Exception):
    """An error that quotes what it knows in every way."""

    key: str

    def __str__(self):
        return f"refused: {self.key}"


def quoting(make):
    async def act(effect):
        key = effect.credential("openai")
        effect.progress(f"using {key}")
        raise make(key) from RuntimeError(key)

    return act


def noted(key):
    error = ValueError("refused")
    error.add_note(f"the key was {key}")
    return error


def attributed(key):
    error = ValueError("refused")
    error.request = {"headers": [("Authorization", f"Bearer {key}")]}
    return error


@pytest.mark.parametrize(
    "make",
    [
        ValueError,
        lambda key: ValueError({"deep": [(f"Bearer {key}",)]}),
        lambda key: ValueError(key.encode()),
        lambda key: FileNotFoundError(2, "no such file", f"/keys/{key}"),
        lambda key: UnicodeDecodeError("utf-8", key.encode(), 0, 1, key),
        lambda key: ExceptionGroup(key, [ValueError(key), Telltale(key)]),
        lambda key: type(key, (Exception,), {})(),
        SystemExit,
        Telltale,
        noted,
        attributed,
    ],
)
async def test_a_credential_is_in_no_error_no_trace_and_no_progress(make):
    """Invariant 20."""
    async with running(Host(Device(), vault=Vault({"openai": lambda: CANARY}))) as host:
        host.want(1, "again", quoting(make))
        outcome = await host.outcome()
    error = outcome.error
    everything = [repr(error), str(error), repr(vars(error)), repr(error.args), type(error).__name__, outcome.trace]
    assert CANARY not in "".join([*everything, repr(outcome), repr(host.happened)])
    assert "‹credential openai›" in outcome.trace


async def test_an_error_that_quotes_a_credential_keeps_its_class_where_it_can():
    async with running(Host(Device(), vault=Vault({"openai": lambda: CANARY}))) as host:
        host.want(1, "again", quoting(lambda key: LookupError(f"no user {key}")))
        error = (await host.outcome()).error
    assert (type(error), str(error)) == (LookupError, "no user ‹credential openai›")


async def test_a_credential_is_in_no_result():
    """Invariant 20."""

    async def act(effect):
        return {"headers": {"authorization": f"Bearer {effect.credential('openai')}"}}

    async with running(Host(Device(), vault=Vault({"openai": lambda: CANARY}))) as host:
        host.want(1, "again", act)
        assert await host.outcome() == Outcome({"headers": {"authorization": "Bearer ‹credential openai›"}})


async def test_a_credential_that_the_host_does_not_have_is_an_outcome():
    async def act(effect):
        effect.credential("openai")

    error = await error_of(act)
    assert isinstance(error, NoCredential)
    assert "add the name to it" in str(error)


async def test_a_credential_is_resolved_at_each_use():
    values = iter(["first", "second"])

    async def act(effect):
        return len(effect.credential("openai")), len(effect.credential("openai"))

    async with running(Host(Device(), vault=Vault({"openai": lambda: next(values)}))) as host:
        host.want(1, "again", act)
        assert await host.outcome() == Outcome([5, 6])


# Devices that are opened and closed


class Opened(Device):
    def __init__(self, log, name="a", **policies):
        super().__init__(**policies)
        self.log, self.name = log, name

    async def __aenter__(self):
        self.log.append(f"open {self.name}")

    async def __aexit__(self, *error):
        await trio.sleep(1)
        self.log.append(f"close {self.name}")


async def test_devices_are_opened_in_order_and_closed_at_the_end_once_each(autojump_clock):
    log = []
    first = Opened(log, "a")
    async with running(Host(first, again=first, other=Opened(log, "b"))) as host:
        host.want(1, "again", "value")
        await host.outcome()
        assert log == ["open a", "open b"]
    assert log == ["open a", "open b", "close b", "close a"]


async def test_a_device_that_cannot_be_opened_is_told_to_the_host(autojump_clock):
    class Broken(Opened):
        async def __aenter__(self):
            raise OSError("no such program")

    log = []
    host = Host(Opened(log), broken=Broken(log))
    with pytest.raises(OSError, match="no such program"):
        await host.runner.run()
    assert log == ["open a", "close a"]


async def test_many_waiting_effects_cost_no_task_each(autojump_clock):
    async with running(Host(Device(again=Policy(concurrency=1)))) as host:
        host.want(0, "again", forever)
        await trio.sleep(1)
        before = trio.lowlevel.current_statistics().tasks_living
        for number in range(1, 1000):
            host.want(number, "again", forever)
        await trio.sleep(1)
        assert trio.lowlevel.current_statistics().tasks_living == before
