"""A session in trouble: models and tools that fail, unknown outcomes, interrupts, forks in the middle of a turn."""

from __future__ import annotations

from typing import Any

import pytest

from actors.chat import MOST_CALLS, BadAnswer
from actors.models import EchoModel, ModelUnreachable
from actors.session import NOT_RUN, UNKNOWN, Session, TurnInterrupted
from dataspace.facts import fact
from dataspace.values import freeze
from tests.actors.driving import Driven
from tests.actors.scenes import Does, Says, calls, says, tool, user
from vat.devices.outcomes import EffectTimeout, UnknownDevice
from vat.failures import failure_of
from vat.heap.messages import Asker, Outcome

OPS = Asker("ops", "cli")


def session(model: object, doing: object | None = None, **fields: Any) -> Driven:
    return Driven(Session, {"model": model, "tools": Does() if doing is None else doing}, **fields)


def said(driven: Driven, input: Any) -> Any:
    """What a turn comes to."""
    answer = driven.call("turn", input)
    driven.run()
    return answer.value


# Models.


def test_a_model_that_fails_breaks_its_turn_with_its_error_and_the_next_one_goes() -> None:
    driven = session(Says(ModelUnreachable("http://x", "refused"), says("2")))
    first, second = driven.call("turn", "one"), driven.call("turn", "two")
    driven.run()
    with pytest.raises(ModelUnreachable, match="is the service running"):
        first.value  # noqa: B018  # raises what went wrong
    assert second.value == "2"
    (failed,) = driven.stated("turn-failed")
    assert failed.fields == (1, "s1")
    assert failed.keywords["error"]["error"] == "ModelUnreachable"
    assert driven.read("messages") == [user("one"), user("two"), says("2")["message"]]


@pytest.mark.parametrize(
    "answer",
    [
        None,
        "hello",
        {"message": "hello"},
        {"message": {"role": "user", "content": "x"}},
        {"message": {"role": "assistant", "tool_calls": {"id": "a"}}},
        {"message": {"role": "assistant", "tool_calls": [{"function": {"name": "x"}}]}},
        {"message": {"role": "assistant", "tool_calls": [{"id": "a"}]}},
        says(None, *[calls(f"c{n}") for n in range(MOST_CALLS + 1)]),
    ],
)
def test_an_answer_that_is_none_breaks_the_turn_and_nothing_else(answer: Any) -> None:
    driven = session(Says(answer, says("2")))
    with pytest.raises(BadAnswer, match="the model device's answer cannot be used"):
        said(driven, "one")
    assert driven.read("messages") == [user("one")]
    assert said(driven, "two") == "2"


@pytest.mark.parametrize("usage", [3, [1], {"total_tokens": "many"}, {"n": 2**80, "more": {"n": float("inf")}}])
def test_a_strange_usage_does_no_harm(usage: Any) -> None:
    driven = session(Says(says(None, calls("a"), usage=usage), says("done", usage=usage)), Does(a=1), max_tokens=10)
    assert said(driven, "go") == "done"


def test_a_device_that_is_not_there_breaks_the_turn() -> None:
    driven = session(EchoModel())
    driven.call("configure", model="oracle")
    answer = driven.call("turn", "hello")
    (number,) = driven.open
    driven.end(number, Outcome(False, freeze(failure_of(UnknownDevice("oracle.complete", ("model.complete",))))))
    with pytest.raises(UnknownDevice):
        answer.value  # noqa: B018  # raises what went wrong
    driven.call("configure", model="model")
    assert said(driven, "hello") == "hello"


# Tools.


@pytest.mark.parametrize("error", [ValueError("no such file"), EffectTimeout("tools.run", 5)])
def test_the_model_hears_of_a_tool_that_failed(error: Exception) -> None:
    model = Says(says(None, calls("a"), calls("b")), says("done"))
    driven = session(model, Does(a=error, b="fine"))
    assert said(driven, "go") == "done"
    text = f"This call failed: {type(error).__name__}: {error}"
    assert model.asked[1][0][2:] == [tool("a", text), tool("b", "fine")]
    failed = {"error": type(error).__name__, "message": str(error)}
    assert driven.stated("tool-result") == [
        fact("tool-result", 1, "s1", "a", output=text, error=failed),
        fact("tool-result", 1, "s1", "b", output="fine"),
    ]


def test_a_long_error_of_a_tool_arrives_whole() -> None:
    model = Says(says(None, calls("a")), says("done"))
    driven = session(model, Does(a=ValueError("x" * 1000)))
    driven.call("turn", "go")
    while driven.advance():
        driven.restart()
    assert driven.read("messages")[2] == tool("a", "This call failed: ValueError: " + "x" * 1000)


def test_a_tool_whose_outcome_nobody_knows_is_not_run_again_and_the_model_is_told() -> None:
    """Invariants 13 and 17: three restarts, one call; the turn goes on."""
    model, tools = Says(says(None, calls("a")), says("done")), Does(a="x")
    driven = session(model, tools)
    driven.call("turn", "go")
    driven.advance()
    driven.carry_out(driven.open[0])  # it ran, and the process died before the outcome was recorded
    for _ in range(3):
        driven.restart()
    driven.run()
    assert tools.calls == ["a"]
    assert model.asked[1][0][2:] == [tool("a", UNKNOWN)]
    assert driven.stated("tool-unknown", "tool-result") == [fact("tool-unknown", 1, "s1", "a")]
    assert driven.stated("turn-done") == [fact("turn-done", 1, "s1", output="done", usage={})]


# Interrupts.


def test_an_interrupt_ends_the_running_turn_and_gives_up_what_it_waits_for() -> None:
    """Invariant 19."""
    driven = session(Says(says("2")))
    first, second = driven.call("turn", "one"), driven.call("turn", "two")
    (asked,) = driven.open
    assert driven.call("interrupt", asker=OPS).value == 1
    assert driven.cancelled == [asked]
    with pytest.raises(TurnInterrupted, match="turn 1 of 's1' was interrupted by ops"):
        first.value  # noqa: B018  # raises what went wrong
    driven.run()
    assert second.value == "2"
    assert driven.stated("turn-interrupted", "turn-done") == [
        fact("turn-interrupted", 1, "s1", by="ops", step=1),
        fact("turn-done", 2, "s1", output="2", usage={}),
    ]


def test_an_outcome_that_comes_after_the_interrupt_changes_nothing() -> None:
    driven = session(Says(says("late")))
    driven.call("turn", "one")
    (number,) = driven.open
    outcome = driven.carry_out(number)
    driven.call("interrupt")
    records = len(driven.records)
    driven.end(number, outcome)
    assert len(driven.records) == records
    assert driven.read("messages") == [user("one")]


def test_an_interrupt_while_a_tool_runs_tells_the_model_what_is_unknown_and_what_was_not_done() -> None:
    model = Says(says(None, calls("a"), calls("b")), says("fine"))
    driven = session(model, Does(a="x", b="y"), parallel=False)
    driven.call("turn", "go")
    driven.advance()
    driven.start(driven.open[0])
    driven.restart()
    assert driven.call("interrupt", asker=OPS).value == 1
    driven.restart()
    assert said(driven, "go on") == "fine"
    assert model.asked[1][0][2:] == [tool("a", UNKNOWN), tool("b", NOT_RUN), user("go on")]
    assert driven.stated("tool-unknown", "turn-interrupted") == [
        fact("tool-unknown", 1, "s1", "a"),
        fact("turn-interrupted", 1, "s1", by="ops", step=1),
    ]


def test_an_interrupt_of_a_waiting_turn_ends_that_one_and_no_other() -> None:
    """Invariant 19."""
    driven = session(Says(says("1"), says("3")))
    one, two, three = (driven.call("turn", input) for input in ("one", "two", "three"))
    assert driven.call("interrupt", 2, asker=OPS).value == 2
    assert driven.call("interrupt", 2, asker=OPS).value is None
    assert driven.stated("turn-interrupted") == [fact("turn-interrupted", 2, "s1", by="ops", step=0)]
    while driven.advance():
        driven.restart()
    assert [done.fields[0] for done in driven.stated("turn-done")] == [1, 3]
    assert one.value == "1"
    assert [message["content"] for message in driven.read("messages")] == ["one", "1", "three", "3"]
    with pytest.raises(TurnInterrupted):
        two.value  # noqa: B018  # raises what went wrong
    assert three.outcome is None  # its caller went with the process


def test_the_caller_of_a_waiting_turn_learns_of_its_interrupt() -> None:
    driven = session(Says(says("1")))
    driven.call("turn", "one")
    two = driven.call("turn", "two")
    driven.call("interrupt", 2, asker=OPS)
    driven.run()
    with pytest.raises(TurnInterrupted, match="turn 2"):
        two.value  # noqa: B018  # raises what went wrong
    assert driven.read("status") == {"accepted": 2, "over": 2, "running": None, "limit": None, "stated": True}
    model = driven.given["model"]
    model.answers.append(says("3"))  # type: ignore[attr-defined]  # it is a Says
    assert said(driven, "three") == "3"
    assert driven.read("status") == {"accepted": 3, "over": 3, "running": None, "limit": None, "stated": True}


@pytest.mark.parametrize("turn", [None, 0, 1, 2, -1])
def test_an_interrupt_of_nothing_does_nothing(turn: int | None) -> None:
    driven = session(EchoModel())
    said(driven, "hello")
    assert driven.call("interrupt", turn).value is None
    assert driven.stated("turn-interrupted") == []
    assert said(driven, "again") == "again"


# Forks.


def test_a_fork_in_the_middle_of_a_turn_ends_it_there_and_leaves_the_parent_alone() -> None:
    """What was asked belongs to the parent, and so do the inputs that wait."""
    model = Says(says(None, calls("a"), calls("b")), says("1"), says("2"), says("child"))
    driven = session(model, Does(a="x", b="y"), parallel=False)
    answers = [driven.call("turn", "one"), driven.call("turn", "two")]
    driven.advance()
    child = driven.fork()
    assert child.open == []
    child.restart()
    driven.run()
    assert [answer.value for answer in answers] == ["1", "2"]
    assert said(child, "three") == "child"
    ended = {"error": "Forked", "message": "this was asked by 's2''s parent before the fork; ask again from here"}
    assert child.stated("tool-unknown", "turn-failed", "turn-done") == [
        fact("tool-unknown", 1, "s2", "a"),
        fact("turn-failed", 1, "s2", error=ended),
        fact("turn-failed", 2, "s2", error=ended),
        fact("turn-done", 3, "s2", output="child", usage={}),
    ]
    assert model.asked[-1][0][2:] == [tool("a", UNKNOWN), tool("b", NOT_RUN), user("three")]
    assert child.read("history") == ["one", "two", "three"]


def test_a_fork_between_turns_shares_the_past_and_nothing_after_it() -> None:
    driven = session(EchoModel())
    said(driven, "hello")
    said(driven, "again")
    child = driven.fork()
    said(child, "diverge")
    said(driven, "original")
    assert child.read("history") == ["hello", "again", "diverge"]
    assert driven.read("history") == ["hello", "again", "original"]
    child.restart()
    assert [message["content"] for message in child.read("messages")][-2:] == ["diverge", "diverge"]


@pytest.mark.parametrize("waits", [True, False])
def test_a_fork_is_told_nothing_that_only_its_parent_is_answered(waits: bool) -> None:
    """Such as the input that waited, and began in the record in which the turn before it ended."""
    model = Says(says("1"), says("2"), says("aside"))
    driven = session(model)
    driven.call("turn", "one")
    if waits:
        driven.call("turn", "two")
        driven.advance()
    else:
        driven.run()
        driven.call("turn", "two")
    child = driven.fork()
    driven.run()
    assert [message["content"] for message in driven.read("messages")] == ["one", "1", "two", "2"]
    assert [message["content"] for message in child.read("messages")] == ["one", "1"]
    assert child.read("history") == ["one", "two"]
    child.call("turn", "another")
    child.run()
    assert model.asked[-1][0] == [user("one"), says("1")["message"], user("another")]
