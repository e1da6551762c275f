"""Steering: inputs that join the turn that runs at its next step, or become turns."""

from __future__ import annotations

from typing import Any

import pytest

from actors.chat import BadInput
from actors.models import EchoModel, ModelUnreachable
from actors.session import Session, TurnInterrupted
from dataspace.facts import fact
from tests.actors.driving import Driven
from tests.actors.scenes import Does, Says, calls, says, tool, user
from vat.errors import Forked
from vat.heap.messages import Asker


def session(*answers: Any, doing: Does | None = None, **fields: Any) -> Driven:
    return Driven(Session, {"model": Says(*answers), "tools": doing or Does(a="of a", b="of b")}, **fields)


def asked(driven: Driven, time: int) -> Any:
    """The messages with which the model was asked that time."""
    return driven.given["model"].asked[time][0]  # type: ignore[attr-defined]  # it is a Says


def test_it_joins_the_running_turn_after_the_tools_and_before_the_model() -> None:
    driven = session(says(None, calls("a"), calls("b")), says("done"))
    first = driven.call("turn", "go")
    driven.advance()
    joined = driven.call("steer", "not there", asker=Asker("ann", "cli", "r1"))
    assert driven.stated("steer") == [fact("steer", 1, "s1", input="not there", request="r1", by="ann", via="cli")]
    driven.run()
    assert asked(driven, 1)[2:] == [tool("a", "of a"), tool("b", "of b"), user("not there")]
    assert driven.stated("steered") == [
        fact("steered", 1, "s1", 2, input="not there", request="r1", by="ann", via="cli")
    ]
    assert first.value == joined.value == "done"
    assert driven.read("history") == ["go"]
    assert [said.fields for said in driven.stated("turn")] == [(1, "s1")]


def test_what_comes_while_the_model_is_asked_joins_after_its_tools() -> None:
    driven = session(says(None, calls("a")), says("done"))
    driven.call("turn", "go")
    driven.call("steer", "one")
    driven.advance()
    driven.call("steer", "two")
    driven.run()
    assert asked(driven, 1)[2:] == [tool("a", "of a"), user("one"), user("two")]


def test_without_a_running_turn_it_is_a_turn() -> None:
    driven = session(says("hi"))
    answer = driven.call("steer", "hello")
    driven.run()
    assert answer.value == "hi"
    assert driven.stated("turn", "steer") == [
        fact("turn", 1, "s1", input="hello", request=None, by="local", via="python")
    ]


def test_what_comes_too_late_for_the_running_turn_is_the_next_one() -> None:
    driven = session(says("first"), says("second"))
    first = driven.call("turn", "go")
    steered = driven.call("steer", "and more")
    driven.run()
    assert [first.value, steered.value] == ["first", "second"]
    assert driven.read("history") == ["go", "and more"]
    assert asked(driven, 1) == [user("go"), says("first")["message"], user("and more")]
    assert driven.stated("steered") == []
    assert [said.fields[0] for said in driven.stated("turn", "turn-done")] == [1, 1, 2, 2]


def test_it_is_a_turn_behind_those_that_were_accepted_before_it() -> None:
    """Invariant 18."""
    driven = session(says("1"), says("2"), says("3"), says("4"))
    for way, input in (("turn", "one"), ("turn", "two"), ("steer", "three"), ("steer", "four")):
        driven.call(way, input)
    driven.run()
    assert driven.read("history") == ["one", "two", "three", "four"]
    assert [done.fields[0] for done in driven.stated("turn-done")] == [1, 2, 3, 4]


@pytest.mark.parametrize("end", ["interrupt", "error", "limit"])
def test_it_is_not_lost_however_the_turn_ends(end: str) -> None:
    first = ModelUnreachable("http://x", "refused") if end == "error" else says(None, calls("a"))
    driven = session(first, says("next"), max_steps=1)
    driven.call("turn", "go")
    steered = driven.call("steer", "and more")
    if end == "interrupt":
        driven.call("interrupt")
        driven.given["model"].answers.pop(0)  # type: ignore[attr-defined]  # it is a Says
    driven.run()
    assert steered.value == "next"
    assert driven.read("history") == ["go", "and more"]


def test_it_breaks_with_the_turn_that_it_joined() -> None:
    driven = session(says(None, calls("a")), ModelUnreachable("http://x", "refused"), says("next"))
    first = driven.call("turn", "go")
    driven.call("turn", "after")
    joined = driven.call("steer", "and more")
    driven.run()
    for answer in (first, joined):
        with pytest.raises(ModelUnreachable):
            answer.value  # noqa: B018  # raises what went wrong
    assert driven.stated("turn-done")[0].fields[0] == 2


def test_it_is_interrupted_with_the_turn_that_it_joined() -> None:
    driven = session(says(None, calls("a")), says("never"))
    driven.call("turn", "go")
    joined = driven.call("steer", "and more")
    driven.advance()
    driven.advance()
    assert driven.stated("steered")
    driven.call("interrupt")
    with pytest.raises(TurnInterrupted):
        joined.value  # noqa: B018  # raises what went wrong
    assert driven.read("history") == ["go"]


@pytest.mark.parametrize("at", range(5))
def test_a_restart_at_any_point_neither_loses_nor_doubles_it(at: int) -> None:
    """Invariant 8."""
    driven = session(says(None, calls("a"), calls("b")), says("done"), says("next"))
    driven.call("turn", "go")
    for place in range(5):
        if place == at:
            driven.call("steer", "and more")
            driven.restart()
            driven.snapshot()
            driven.restart()
        driven.advance()
    driven.run()
    assert [message["content"] for message in driven.read("messages")].count("and more") == 1
    assert driven.read("history") == (["go"] if at < 3 else ["go", "and more"])


def test_a_request_that_is_repeated_steers_once() -> None:
    """Invariant 30."""
    driven = session(says(None, calls("a")), says("done"))
    driven.call("turn", "go")
    asker = Asker("ann", "cli", "r1")
    for _ in range(2):
        driven.call("steer", "and more", asker=asker)
        driven.restart()
    driven.run()
    assert driven.call("steer", "and more", asker=asker).value == "done"
    assert [message["content"] for message in driven.read("messages")].count("and more") == 1


def test_in_a_fork_it_stays_with_the_parent() -> None:
    driven = session(says("first"), says("second"), says("child"))
    driven.call("turn", "go")
    steered = driven.call("steer", "and more")
    child = driven.fork()
    driven.run()
    assert steered.value == "second"
    assert child.read("history") == ["go"]
    assert child.open == []
    answer = child.call("turn", "other")
    child.run()
    assert answer.value == "child"
    assert child.read("history") == ["go", "other"]


def test_an_interrupt_of_its_turn_ends_that_one() -> None:
    """Invariant 19: once it is a turn it has a number of its own."""
    driven = session(says("first"), says("never"))
    driven.call("turn", "go")
    steered = driven.call("steer", "and more")
    driven.advance()
    assert driven.call("interrupt", 1).value is None
    assert driven.call("interrupt", 2).value == 2
    with pytest.raises(TurnInterrupted, match="turn 2"):
        steered.value  # noqa: B018  # raises what went wrong


@pytest.mark.parametrize("input", [None, 3, []])
def test_what_is_no_input_is_refused_and_leaves_nothing(input: Any) -> None:
    driven = Driven(Session, {"model": EchoModel(), "tools": Does()})
    driven.call("turn", "go")
    with pytest.raises(BadInput):
        driven.call("steer", input).value  # noqa: B018  # raises what went wrong
    driven.run()
    assert driven.read("history") == ["go"]


def test_forked_is_what_a_steer_of_the_parent_comes_to_in_its_fork() -> None:
    driven = session(says("first"), says("second"))
    driven.call("turn", "go")
    driven.call("steer", "and more")
    child = driven.fork()
    failed = [said.keywords["error"]["error"] for said in child.stated("turn-failed")]
    assert failed == [Forked.__name__]
    child.restart()
    assert child.vat.heap.state(1).fields["_steers"].count == 0


def test_it_begins_after_turns_that_were_ended_while_they_waited_and_none_of_them_runs() -> None:
    """Invariant 19."""
    driven = session(says("1"), says("4"))
    driven.call("turn", "one")
    waiting = [driven.call("turn", input) for input in ("two", "three")]
    steered = driven.call("steer", "four")
    for n in (2, 3):
        driven.call("interrupt", n)
    driven.run()
    assert steered.value == "4"
    for n, answer in zip((2, 3), waiting, strict=True):
        with pytest.raises(TurnInterrupted, match=f"turn {n} of 's1' was interrupted by local"):
            answer.value  # noqa: B018  # raises what went wrong
    assert [message["content"] for message in driven.read("messages")] == ["one", "1", "four", "4"]
    assert driven.read("status") == {"accepted": 4, "over": 4, "running": None, "limit": None, "stated": True}
