"""Sessions under any run of inputs, interrupts and restarts: what comes out does not depend on the restarts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from actors.session import Session
from tests.actors.driving import Driven
from tests.actors.scenes import Does, calls, says
from vat.devices.devices import Effect, effect
from vat.heap.entries import KEPT


class Follows:
    """A model without a state: the last input says what each answer does: `t` calls a tool, `T` two, `!` fails."""

    @effect(on_crash="retry")
    async def complete(self, effect: Effect, messages: Sequence[Any], **options: Any) -> Any:
        place = max(place for place, message in enumerate(messages) if message["role"] == "user")
        answers = sum(message["role"] == "assistant" for message in messages[place:])
        letter = messages[place]["content"][answers : answers + 1]
        if letter == "!":
            raise ValueError(f"answer {answers}")
        many = {"t": 1, "T": 2}.get(letter, 0)
        asked = [calls(f"{len(messages)}-{each}") for each in range(many)]
        return says(f"{letter}{answers}", *asked, usage={"total_tokens": 1})


class Echoes(Does):
    """Tools that answer every call."""

    @effect
    async def run(self, effect: Effect, call: Mapping[str, Any]) -> Any:
        self.calls.append(call["id"])
        if call["id"].endswith("7-0"):
            raise KeyError("seven")
        return call["id"]


actions = st.lists(
    st.one_of(
        st.tuples(st.just("turn"), st.text("tT!x", max_size=4)),
        st.tuples(st.just("steer"), st.text("tT!x", max_size=3)),
        st.tuples(st.just("advance"), st.integers(1, 4)),
        st.tuples(st.just("end"), st.integers(0, 2)),
        st.tuples(st.just("interrupt"), st.one_of(st.none(), st.integers(1, 6))),
    ),
    max_size=14,
)


def played(
    actions: Sequence[tuple[str, Any]], restarts: Sequence[bool], *, parallel: bool = True
) -> tuple[Driven, Echoes]:
    """A session after these actions and what follows; restarted where `restarts` (taken round and round) says so."""
    tools = Echoes()
    driven = Driven(Session, {"model": Follows(), "tools": tools}, max_steps=3, parallel=parallel)
    count = 0

    def perhaps() -> None:
        nonlocal count
        count += 1
        if restarts and restarts[count % len(restarts)]:
            if count % 3 == 0:
                driven.snapshot()
            driven.restart()

    def advance(place: int = 0) -> bool:
        if not driven.open:
            return False
        number = sorted(driven.open)[place % len(driven.open)]
        outcome = driven.carry_out(number)
        perhaps()
        driven.end(number, outcome)
        perhaps()
        return True

    for what, how in actions:
        if what in ("turn", "steer"):
            driven.call(what, how)
        elif what == "end":
            advance(how)
        elif what == "interrupt":
            driven.call("interrupt", how)
        else:
            for _ in range(how):
                advance()
        perhaps()
    while advance():
        pass
    return driven, tools


@given(actions, st.lists(st.booleans(), min_size=1, max_size=7), st.booleans())
def test_restarts_change_nothing(actions: Sequence[tuple[str, Any]], restarts: Sequence[bool], parallel: bool) -> None:
    """Invariants 8 and 14."""
    plain, once = played(actions, [], parallel=parallel)
    restarted, again = played(actions, restarts, parallel=parallel)
    assert restarted.read("messages") == plain.read("messages")
    assert [fact for fact in restarted.facts if fact.label != "snapshot"] == plain.facts
    assert restarted.read("usage") == plain.read("usage")
    assert again.calls == once.calls


@given(actions, st.lists(st.booleans(), max_size=7), st.booleans())
def test_every_turn_ends_once_and_the_model_is_never_left_with_an_open_call(
    actions: Sequence[tuple[str, Any]], restarts: Sequence[bool], parallel: bool
) -> None:
    """Invariants 15, 17 and 18."""
    driven, _ = played(actions, restarts, parallel=parallel)
    accepted = [fact.fields[0] for fact in driven.stated("turn")]
    ended = [fact.fields[0] for fact in driven.stated("turn-done", "turn-failed", "turn-interrupted")]
    assert accepted == list(range(1, len(accepted) + 1))
    assert sorted(ended) == accepted
    assert driven.read("status")["running"] is None
    assert [entry for _, entry in driven.vat.heap.entries("promises") if entry[0] < KEPT] == []
    messages = driven.read("messages")
    for place, message in enumerate(messages):
        asked = [call["id"] for call in message.get("tool_calls", ())]
        if asked and place + 1 < len(messages):  # the last ones may wait for the next turn, after a limit
            told = [after.get("tool_call_id") for after in messages[place + 1 : place + 1 + len(asked)]]
            assert told == asked


@given(actions, st.lists(st.booleans(), max_size=7))
def test_what_was_steered_in_is_neither_lost_nor_said_twice(
    actions: Sequence[tuple[str, Any]], restarts: Sequence[bool]
) -> None:
    steers = 0
    named = []
    for what, how in actions:
        steers += what == "steer"
        named.append((what, f"{how} steer {steers}" if what == "steer" else how))
    driven, _ = played(named, restarts)
    joined = [fact.keywords["input"] for fact in driven.stated("steered")]
    turns = [fact.keywords["input"] for fact in driven.stated("turn") if "steer" in fact.keywords["input"]]
    given = [how for what, how in named if what == "steer"]
    assert sorted([*joined, *turns], key=lambda input: int(input.split()[-1])) == given
    said = [message["content"] for message in driven.read("messages") if message["role"] == "user"]
    assert [input for input in said if input in joined] == joined
    assert driven.vat.heap.system["effects"].count == 0


@given(actions, st.lists(st.booleans(), max_size=7))
def test_usage_is_that_of_the_answers(actions: Sequence[tuple[str, Any]], restarts: Sequence[bool]) -> None:
    driven, _ = played(actions, restarts)
    answers = len(driven.stated("model-output"))
    counted = {"said": {"turn": {"total_tokens": answers}}} if answers else {}
    assert driven.read("usage") == counted
    assert driven.call("own_usage").value == counted


@given(actions, actions, st.lists(st.booleans(), max_size=7))
def test_a_fork_at_any_point_begins_with_a_turn_that_works(
    before: Sequence[tuple[str, Any]], after: Sequence[tuple[str, Any]], restarts: Sequence[bool]
) -> None:
    """Invariants 15, 17, 19 and 28: nothing that is done in one is felt in the other."""
    driven, _ = played(before, restarts)
    plain = driven.read("messages")
    for what, how in after:
        if what in ("turn", "steer", "interrupt"):
            driven.call(what, how)
    child = driven.fork()
    messages = child.read("messages")
    assert child.open == []
    assert child.read("status")["running"] is None
    assert messages[: len(plain)] == plain
    driven.run()
    assert child.read("messages") == messages
    answer = child.call("turn", "x")
    child.run()
    assert answer.value == "x0"
    assert driven.read("status")["running"] is None
