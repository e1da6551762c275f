"""The limit on a turn's time; those on steps and tokens are in `test_session`."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from actors.session import NOT_RUN, UNKNOWN, BadSetting, Session
from actors.tools import ApprovalWanted
from dataspace.facts import fact
from dataspace.log.memory import MemoryLog
from dataspace.values import freeze
from keeve.testing.hosts import memory_host
from tests.actors.driving import Driven
from tests.actors.scenes import Does, Says, calls, says, tool, user
from vat.devices.devices import Effect, effect
from vat.devices.outcomes import UnknownDevice
from vat.failures import failure_of
from vat.heap.messages import Call, Outcome


class Clock:
    """A timer that tests settle by hand."""

    @effect(on_crash="retry")
    async def until(self, effect: Effect, at: float) -> None:
        raise AssertionError("a test settles this")


RINGS = Outcome(True, None)


def session(*answers: Any, doing: Does | None = None, **fields: Any) -> Driven:
    devices = {"model": Says(*answers), "tools": doing or Does(a="of a", b="of b"), "timer": Clock()}
    return Driven(Session, devices, **{"max_seconds": 60, **fields})


def rings(driven: Driven) -> None:
    """The time of the turn that runs is over."""
    entries = driven.vat.heap.entries("effects")
    driven.end(next(number for number, entry in entries if entry[1] == "timer"), RINGS)


def go(driven: Driven) -> None:
    """Carry out all that is open but timers."""
    while todo := [n for n, entry in driven.vat.heap.entries("effects") if entry[1] != "timer"]:
        driven.end(todo[0], driven.carry_out(todo[0]))


def test_a_turn_that_ends_in_time_leaves_no_timer() -> None:
    driven = session(says(None, calls("a")), says("done"))
    answer = driven.call("turn", "go")
    go(driven)
    assert answer.value == "done"
    assert driven.open == []
    assert driven.vat.heap.system["effects"].count == 0
    assert driven.vat.heap.system["promises"].count == 0


def test_the_deadline_is_on_record_with_the_beginning_of_the_turn() -> None:
    driven = session(says("1"), says("2"), max_seconds=2.5)
    driven.call("turn", "one")
    driven.call("turn", "two")
    (at,) = [entry[3][0] for _, entry in driven.vat.heap.entries("effects") if entry[1] == "timer"]
    assert at == driven.records[1].time / 1_000_000 + 2.5
    go(driven)
    assert driven.stated("turn-done")[1] == fact("turn-done", 2, "s1", output="2", usage={})


def test_the_deadline_is_by_the_clock_although_that_was_ahead_once() -> None:
    driven = session(says("1"), max_seconds=2.5)
    powers = driven.world.powers
    clock = powers.clock
    powers.clock = lambda: clock() + 3_600_000_000
    driven.call("configure", max_steps=20)
    powers.clock = clock
    driven.call("turn", "one")
    (at,) = [entry[3][0] for _, entry in driven.vat.heap.entries("effects") if entry[1] == "timer"]
    assert at < clock() / 1_000_000 + 2.6


@pytest.mark.parametrize("restarts", [False, True])
def test_when_the_time_is_over_while_the_model_is_asked_the_turn_ends(restarts: bool) -> None:
    driven = session(says("late"))
    answer = driven.call("turn", "go")
    if restarts:
        driven.restart()
    rings(driven)
    assert restarts or answer.value is None
    assert driven.stated("turn-done") == [fact("turn-done", 1, "s1", output=None, usage={}, limit="time")]
    assert driven.read("status")["limit"] == "time"
    assert driven.open == []
    assert driven.read("messages") == [user("go")]


@pytest.mark.parametrize("restarts", [False, True])
def test_when_the_time_is_over_while_tools_run_each_call_gets_its_message(restarts: bool) -> None:
    """Invariant 17."""
    driven = session(says("looking", calls("a"), calls("b")), says("next"))
    answer = driven.call("turn", "go")
    model, timer = sorted(driven.open, reverse=True)
    driven.end(model, driven.carry_out(model))
    _, _, b = sorted(driven.open)
    driven.end(b, driven.carry_out(b))
    driven.start(max(driven.open))
    if restarts:
        driven.restart()
    rings(driven)
    assert timer not in driven.open
    assert restarts or answer.value == "looking"
    assert driven.read("messages")[2:] == [tool("a", UNKNOWN), tool("b", "of b")]
    assert driven.stated("tool-unknown", "turn-done") == [
        fact("tool-unknown", 1, "s1", "a"),
        fact("turn-done", 1, "s1", output="looking", usage={}, limit="time"),
    ]
    following = driven.call("turn", "go on")
    go(driven)
    assert following.value == "next"
    assert driven.read("status")["limit"] is None


def test_what_was_to_come_after_the_call_that_runs_is_not_run() -> None:
    driven = session(says("looking", calls("a"), calls("b")), parallel=False)
    driven.call("turn", "go")
    model = max(driven.open)
    driven.end(model, driven.carry_out(model))
    driven.start(max(driven.open))
    rings(driven)
    assert driven.read("messages")[2:] == [tool("a", UNKNOWN), tool("b", NOT_RUN)]
    assert driven.open == []


def test_the_answer_is_the_last_one_of_this_turn() -> None:
    driven = session(says("old"), says("late"))
    driven.call("turn", "one")
    go(driven)
    answer = driven.call("turn", "two")
    rings(driven)
    assert answer.value is None


def test_the_answer_is_that_of_the_step_before_while_the_model_is_asked_again() -> None:
    driven = session(says("looking", calls("a")), says("late"))
    answer = driven.call("turn", "go")
    driven.call("steer", "faster")
    for _ in range(2):
        number = max(driven.open)
        driven.end(number, driven.carry_out(number))
    assert driven.read("messages")[-1] == user("faster")
    rings(driven)
    assert answer.value == "looking"


def test_a_late_timer_ends_no_other_turn() -> None:
    """Invariant 19."""
    driven = session(says("1"), says("2"))
    driven.call("turn", "one")
    timer, model = sorted(driven.open)
    outcome = driven.carry_out(model)
    second = driven.call("turn", "two")
    driven.end(model, outcome)
    driven.end(timer, RINGS)  # it rang before it was told that it is given up
    assert driven.read("status")["running"] == 2
    go(driven)
    assert second.value == "2"


def test_a_limit_that_nobody_measures_fails_the_turn() -> None:
    driven = session(says("1"))
    answer = driven.call("turn", "one")
    timer = min(driven.open)
    driven.end(timer, Outcome(False, freeze(failure_of(UnknownDevice("timer.until", ())))))
    with pytest.raises(UnknownDevice):
        answer.value  # noqa: B018  # raises what went wrong
    assert driven.open == []
    assert driven.stated("turn-failed")[0].keywords["error"]["error"] == "UnknownDevice"


def test_a_model_that_fails_in_time_fails_the_turn_with_its_error() -> None:
    driven = session(ValueError("no"))
    answer = driven.call("turn", "one")
    go(driven)
    with pytest.raises(ValueError, match="no"):
        answer.value  # noqa: B018  # raises what went wrong
    assert driven.open == []


def test_an_interrupt_stops_the_timer_as_well() -> None:
    driven = session(says("1"))
    driven.call("turn", "one")
    driven.call("interrupt")
    assert driven.open == []
    assert driven.stated("turn-interrupted") == [fact("turn-interrupted", 1, "s1", by="local", step=1)]


def test_a_fork_in_the_middle_fails_once() -> None:
    driven = session(says("1"), says("2"))
    driven.call("turn", "one")
    child = driven.fork()
    assert [said.fields for said in child.stated("turn-failed", "turn-done", "turn-interrupted")] == [(1, "s2")]
    answer = child.call("turn", "two")
    go(child)
    assert answer.value == "1"


class Asks(Does):
    """A tool device that wants a person's approval."""

    @effect
    async def run(self, effect: Effect, call: Any, approved: bool = False) -> Any:
        if not approved:
            raise ApprovalWanted("look")
        return self.outputs[call["id"]]


def waits_for_a_person() -> Driven:
    driven = session(says("well", calls("a")), says("done"), says("done"), doing=Asks(a="of a"))
    driven.call("turn", "go")
    go(driven)
    return driven


def approve(driven: Driven, id: str) -> None:
    """A person approves of a call."""
    heap = driven.vat.heap
    actor = next(actor for actor in heap.actors() if heap.state(actor).type == "keeve.approvals")
    driven.note(driven.vat.take(Call(actor, "approve", freeze([id]))))


def test_a_fork_of_a_turn_that_waits_for_a_person_goes_on_with_the_time_that_is_left() -> None:
    driven = waits_for_a_person()
    child = driven.fork()
    assert child.stated("turn-failed") == []
    [parents], [its] = ([entry[3] for _, entry in each.vat.heap.entries("effects")] for each in (driven, child))
    assert its == parents
    for each in (child, driven):
        approve(each, "a")
        go(each)
        assert each.stated("turn-done")[0].keywords["output"] == "done"
        assert each.open == []


def test_a_fork_that_waits_for_a_person_ends_when_its_time_is_over() -> None:
    driven = waits_for_a_person()
    child = driven.fork()
    rings(child)
    assert child.stated("turn-done") == [fact("turn-done", 1, "s2", output="well", usage={}, limit="time")]
    assert child.read("messages")[-1] == tool("a", NOT_RUN)
    assert driven.stated("turn-done") == []


@pytest.mark.parametrize("value", [-1, float("inf"), float("nan"), "long", True, None])
async def test_a_time_that_cannot_be_meant_is_refused(value: Any) -> None:
    async with memory_host() as host:
        with pytest.raises(BadSetting, match="max_seconds"):
            await host.spawn(Session, "s1", max_seconds=value)


class Slow:
    """A model that does not answer."""

    @effect(on_crash="retry")
    async def complete(self, effect: Effect, messages: Any, **options: Any) -> Any:
        await trio.sleep_forever()


async def test_a_turn_ends_when_the_hosts_clock_says_so_after_a_restart_as_well() -> None:
    log = MemoryLog()
    async with memory_host(log, devices={"model": Slow()}) as host, trio.open_nursery() as nursery:
        s = await host.spawn(Session, "s1", max_seconds=0.05)
        assert await s.turn("hello") is None
        await s.configure(max_seconds=0.2)
        nursery.start_soon(s.turn, "again")
        async for _ in host.observe('(turn 2 "s1" . _)'):
            break
        nursery.cancel_scope.cancel()
    async with memory_host(log, devices={"model": Slow()}) as host:
        async for event in host.observe('(turn-done 2 "s1" . _)'):
            assert event.value.keywords["limit"] == "time"
            break
