"""The tool calls of one answer: at once or one after another, each with its message, in their order."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest

from actors.chat import MOST_CALLS
from actors.session import NOT_RUN, UNKNOWN, Session, TurnInterrupted
from dataspace.facts import fact
from tests.actors.driving import Driven
from tests.actors.scenes import Does, Says, calls, says, schema, tool, user
from vat.devices.devices import Effect, effect
from vat.errors import Forked
from vat.heap.messages import Asker

OPS = Asker("ops", "cli")


def begun(*ids: str, then: Any = None, doing: Does | None = None, **fields: Any) -> Driven:
    """A session whose model has called these tools."""
    model = Says(says("looking", *map(calls, ids)), then or says("done"), says("more"))
    driven = Driven(Session, {"model": model, "tools": doing or Does(**{id: f"of {id}" for id in ids})}, **fields)
    driven.call("turn", "look")
    driven.advance()
    return driven


def end(driven: Driven, number: int) -> None:
    driven.end(number, driven.carry_out(number))


def test_the_calls_of_one_answer_are_started_at_once() -> None:
    driven = begun("a", "b", "c")
    assert len(driven.open) == 3
    assert [said.fields[2] for said in driven.stated("tool-call")] == ["a", "b", "c"]


@pytest.mark.parametrize("order", list(permutations(range(3))))
@pytest.mark.parametrize("restarts", [False, True])
def test_the_order_of_their_messages_is_theirs_in_whichever_order_they_end(
    order: tuple[int, ...], restarts: bool
) -> None:
    """Invariant 8."""
    driven = begun("a", "b", "c")
    opened = list(driven.open)
    for place in order:
        end(driven, opened[place])
        if restarts:
            driven.restart()
    driven.run()
    assert driven.given["model"].asked[1][0][2:] == [tool(id, f"of {id}") for id in "abc"]  # type: ignore[attr-defined]  # it is a Says
    assert [said.fields[2] for said in driven.stated("tool-result")] == ["abc"[place] for place in order]
    assert driven.stated("turn-done")[0].keywords["output"] == "done"


def test_until_all_are_over_the_messages_have_those_that_are() -> None:
    driven = begun("a", "b", "c")
    a, b, c = driven.open
    end(driven, c)
    assert driven.read("messages")[2:] == [tool("c", "of c")]
    end(driven, a)
    assert driven.read("messages")[2:] == [tool("a", "of a"), tool("c", "of c")]
    assert driven.open == [b]


@pytest.mark.parametrize("parallel", [True, False])
@pytest.mark.parametrize("offered", [["look"], []])
def test_what_is_not_offered_is_not_called_whatever_the_device_has(offered: list[str], parallel: bool) -> None:
    names = iter(["danger", "look", "danger"])
    asked = [calls(id, next(names)) for id in "abc"]
    model, doing = Says(says("looking", *asked), says("done")), Does(a="no", b="of b", c="no")
    tools = [schema(name) for name in offered]
    driven = Driven(Session, {"model": model, "tools": doing}, tools=tools, parallel=parallel)
    driven.call("turn", "look")
    driven.run()
    assert doing.calls == (["b"] if offered else [])
    first, second, third = (said["content"] for said in model.asked[1][0][2:])
    refused = f"This call failed: NoSuchTool: there is no tool 'danger'; there are {'look' if offered else 'none'}"
    assert (first, third) == (refused, refused)
    assert second == "of b" if offered else "no tool 'look'" in second
    assert [said.fields[2] for said in driven.stated("tool-call")] == ["a", "b", "c"]
    assert sorted(said.fields[2] for said in driven.stated("tool-result")) == ["a", "b", "c"]
    assert driven.stated("turn-done")[0].keywords["output"] == "done"


def test_as_many_calls_of_nothing_as_an_answer_may_have_are_refused_in_one_go() -> None:
    model = Says(says("looking", *(calls(f"{n}", "danger") for n in range(MOST_CALLS))), says("done"))
    driven = Driven(Session, {"model": model, "tools": Does()})
    driven.call("turn", "look")
    driven.run()
    assert len(model.asked[1][0]) == MOST_CALLS + 2
    assert driven.stated("turn-done")[0].keywords["output"] == "done"


def test_two_calls_of_one_id_have_each_their_own_outcome() -> None:
    driven = begun("a", "a")
    first, second = driven.open
    driven.given["tools"].outputs["a"] = "second"  # type: ignore[attr-defined]  # it is a Does
    end(driven, second)
    driven.given["tools"].outputs["a"] = "first"  # type: ignore[attr-defined]  # as above
    end(driven, first)
    assert driven.read("messages")[2:4] == [tool("a", "first"), tool("a", "second")]


def test_one_after_another_is_a_setting() -> None:
    driven = begun("a", "b", "c", parallel=False)
    for id in "abc":
        assert len(driven.open) == 1
        assert driven.stated("tool-call")[-1].fields[2] == id
        driven.advance()
    driven.run()
    assert driven.stated("turn-done")[0].keywords["output"] == "done"


def test_one_after_another_may_be_asked_for_while_calls_run() -> None:
    driven = begun("a", "b", parallel=False)
    driven.call("configure", parallel=True)
    driven.run()
    assert driven.read("messages")[2:4] == [tool("a", "of a"), tool("b", "of b")]
    assert driven.stated("turn-done")[0].keywords["output"] == "done"


def test_what_fails_is_unknown_or_answers_has_each_its_message() -> None:
    """Invariants 13 and 17."""
    driven = begun("a", "b", "c", doing=Does(a=ValueError("no such file"), b="lost", c="fine"))
    a, b, c = driven.open
    end(driven, a)
    driven.carry_out(b)  # it ran, and the process died before the outcome was recorded
    end(driven, c)
    for _ in range(3):
        driven.restart()
    driven.run()
    assert driven.given["tools"].calls == ["a", "b", "c"]  # type: ignore[attr-defined]  # it is a Does
    failed = "This call failed: ValueError: no such file"
    assert driven.read("messages")[2:5] == [tool("a", failed), tool("b", UNKNOWN), tool("c", "fine")]
    assert [(said.label, said.fields[2]) for said in driven.stated("tool-result", "tool-unknown")] == [
        ("tool-result", "a"),
        ("tool-result", "c"),
        ("tool-unknown", "b"),
    ]
    assert driven.stated("turn-done")[0].keywords["output"] == "done"


def test_an_interrupt_reaches_all_that_run_and_keeps_what_is_over() -> None:
    """Invariant 19."""
    driven = begun("a", "b", "c")
    a, b, c = driven.open
    end(driven, b)
    driven.start(a)
    assert driven.call("interrupt", asker=OPS).value == 1
    assert driven.cancelled == [a, c]
    assert driven.open == []
    assert driven.read("messages")[2:] == [tool("a", UNKNOWN), tool("b", "of b"), tool("c", NOT_RUN)]
    assert driven.stated("tool-unknown", "turn-interrupted") == [
        fact("tool-unknown", 1, "s1", "a"),
        fact("turn-interrupted", 1, "s1", by="ops", step=1),
    ]
    answer = driven.call("turn", "go on")
    driven.run()
    assert answer.value == "done"


@pytest.mark.parametrize("restarts", [False, True])
def test_a_call_that_is_given_up_before_its_device_has_it_was_not_run(restarts: bool) -> None:
    driven = begun("a", "b")
    driven.start(driven.open[0])
    if restarts:
        driven.restart()
    driven.call("interrupt")
    assert driven.read("messages")[2:] == [tool("a", UNKNOWN), tool("b", NOT_RUN)]
    assert driven.stated("tool-unknown") == [fact("tool-unknown", 1, "s1", "a")]
    (result,) = driven.stated("tool-result")
    assert (result.fields[2], result.keywords["output"]) == ("b", NOT_RUN)
    error = dict(result.keywords["error"])
    assert error["error"] == "EffectCancelled"
    assert error["message"].startswith("tools.look was cancelled before it started and did not happen")


class Again(Does):
    """Tools that may be called twice."""

    @effect(on_crash="retry")
    async def run(self, effect: Effect, call: Any) -> Any:
        return "done"


def test_of_a_call_that_may_be_made_twice_nobody_knows_whether_it_has_begun() -> None:
    driven = begun("a", doing=Again())
    driven.call("interrupt")
    assert driven.read("messages")[2:] == [tool("a", UNKNOWN)]


def test_an_interrupt_of_calls_that_run_one_after_another_starts_no_more() -> None:
    driven = begun("a", "b", "c", parallel=False)
    driven.advance()
    driven.start(driven.open[0])
    assert driven.call("interrupt", asker=OPS).value == 1
    driven.run()
    assert driven.read("messages")[2:] == [tool("a", "of a"), tool("b", UNKNOWN), tool("c", NOT_RUN)]
    assert driven.stated("tool-unknown") == [fact("tool-unknown", 1, "s1", "b")]
    assert len(driven.stated("tool-call")) == 2


def test_what_a_call_gives_after_its_turn_was_ended_changes_nothing() -> None:
    driven = begun("a", "b")
    a = driven.open[0]
    outcome = driven.carry_out(a)
    driven.call("interrupt")
    messages = driven.read("messages")
    driven.end(a, outcome)
    assert driven.read("messages") == messages


def test_a_fork_gives_up_all_that_run_and_its_parent_goes_on() -> None:
    driven = begun("a", "b", "c")
    end(driven, driven.open[1])
    child = driven.fork()
    driven.run()
    assert driven.stated("turn-done")[0].keywords["output"] == "done"
    assert child.open == []
    assert child.read("messages")[2:] == [tool("a", UNKNOWN), tool("b", "of b"), tool("c", UNKNOWN)]
    assert child.stated("turn-failed")[0].keywords["error"]["error"] == "Forked"
    answer = child.call("turn", "go on")
    child.run()
    assert answer.value == "more"


@pytest.mark.parametrize("error", [TurnInterrupted("turn 7 of 'other' was interrupted"), ConnectionError("gone")])
def test_a_tool_that_tells_of_another_sessions_interrupt_has_failed_and_no_more(error: Exception) -> None:
    """Invariant 19: a stop that was meant for another session's turn ends none here."""
    driven = begun("a", doing=Does(a=error))
    driven.run()
    assert driven.read("messages")[2]["content"].startswith(f"This call failed: {type(error).__name__}")
    assert driven.stated("turn-done")[0].keywords["output"] == "done"


def test_a_tool_that_tells_of_another_sessions_fork_has_failed_and_no_more() -> None:
    driven = begun("a", doing=Does(a=Forked("another one")))
    waits = driven.call("turn", "and then")
    driven.run()
    assert waits.value == "more"
    assert driven.stated("turn-failed") == []


def test_many_calls_at_once_keep_their_order() -> None:
    ids = [f"c{place}" for place in range(120)]
    driven = begun(*ids)
    for number in sorted(driven.open, key=lambda number: number * 7919 % 120):
        end(driven, number)
    driven.run()
    assert driven.read("messages")[2:-1] == [tool(id, f"of {id}") for id in ids]
    assert driven.vat.heap.system["promises"].count == 0


def test_the_next_turn_begins_after_an_answer_whose_calls_came_in_any_order() -> None:
    driven = begun("a", "b")
    driven.call("turn", "and then")
    end(driven, driven.open[1])
    assert user("and then") not in driven.read("messages")
    driven.run()
    assert [done.fields[0] for done in driven.stated("turn-done")] == [1, 2]
