"""An answer with very many tool calls: each costs the same, and few are under way at once."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

from actors.chat import MOST_CALLS
from actors.session import NOT_RUN, Session
from actors.session.calls import AT_ONCE
from tests.actors.driving import Driven
from tests.actors.scenes import Says, calls, says, tool
from vat.devices.devices import Effect, effect


class Repeats:
    """Tools that say the id of their call; `c7` fails."""

    @effect
    async def run(self, effect: Effect, call: Any, approved: bool = False) -> str:
        if call["id"] == "c7":
            raise LookupError("not this one")
        return f"of {call['id']}"


def a_session(count: int, **fields: Any) -> Driven:
    """A session whose model calls so many tools."""
    model = Says(says(None, *[calls(f"c{n}", text="x" * 40) for n in range(count)]), says("done"))
    driven = Driven(Session, {"model": model, "tools": Repeats()}, **fields)
    driven.call("turn", "go")
    return driven


def said(n: int) -> str:
    """What the model is told of a call."""
    return "This call failed: LookupError: not this one" if n == 7 else f"of c{n}"


def worked(work: Callable[[], None]) -> int:
    """How many functions were called for it."""
    count = 0

    def note(frame: Any, event: str, arg: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


def from_the_last(driven: Driven) -> None:
    """Carry out what is open, what was wanted last at first."""
    while driven.open:
        number = driven.open[-1]
        driven.end(number, driven.carry_out(number))


@pytest.mark.parametrize("fields", [{"parallel": True}, {"parallel": False}])
@pytest.mark.parametrize("carry_out", [Driven.run, from_the_last])
def test_twice_as_many_calls_cost_twice_as_much(fields: Any, carry_out: Callable[[Driven], None]) -> None:
    costs = []
    for count in (150, 300):
        driven = a_session(count, **fields)
        costs.append(worked(lambda driven=driven: carry_out(driven)))  # type: ignore[misc]  # the loop's own
        assert driven.stated("turn-done")[0].keywords["output"] == "done"
        assert driven.read("messages")[2:-1] == [tool(f"c{n}", said(n)) for n in range(count)]
    assert costs[1] < 2.3 * costs[0]


def test_an_answer_may_call_so_many_tools_and_of_one_that_calls_more_nothing_is_called() -> None:
    """Whatever a model says, it holds up the other sessions no longer than that takes: also with tools that are not."""
    driven = a_session(MOST_CALLS)
    driven.run()
    assert driven.read("messages")[2:-1] == [tool(f"c{n}", said(n)) for n in range(MOST_CALLS)]
    more = a_session(MOST_CALLS + 1)
    more.run()
    (failed,) = more.stated("turn-failed")
    assert failed.keywords["error"]["error"] == "BadAnswer"
    assert "it calls more than 1000 tools, and none of them was called" in failed.keywords["error"]["message"]
    assert more.stated("tool-call") == []
    more.call("turn", "and on")
    more.run()
    assert more.stated("turn-done")[-1].keywords["output"] == "done"


def test_of_many_calls_only_some_are_under_way_at_once() -> None:
    driven = a_session(AT_ONCE + 3)
    driven.advance()
    assert len(driven.open) == AT_ONCE
    for place in (7, 5, 0):
        driven.end(number := driven.open[place], driven.carry_out(number))
    assert len(driven.open) == AT_ONCE
    assert len(driven.stated("tool-call")) == AT_ONCE + 3
    driven.run()
    assert driven.stated("turn-done")[0].keywords["output"] == "done"


def test_an_interrupt_of_many_calls_says_of_each_what_came_of_it() -> None:
    driven = a_session(3 * AT_ONCE)
    driven.advance()
    driven.call("interrupt")
    assert driven.read("messages")[2:] == [tool(f"c{n}", NOT_RUN) for n in range(3 * AT_ONCE)]
    assert driven.open == []


def test_as_many_as_an_answer_may_call_are_given_up_at_once() -> None:
    driven = a_session(MOST_CALLS)
    driven.advance()
    assert len(driven.open) == AT_ONCE
    driven.call("interrupt")
    assert len(driven.read("messages")) == MOST_CALLS + 2


def test_an_answer_that_calls_more_tools_than_a_crank_has_deliveries_ends_the_turn() -> None:
    driven = a_session(12_000)
    driven.advance()
    (failed,) = driven.stated("turn-failed")
    assert failed.keywords["error"]["error"] == "BadAnswer"
    assert len(driven.read("messages")) == 1
