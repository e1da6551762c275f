"""A session: turns, tools, the queue, limits, and what it states."""

from __future__ import annotations

import json
from inspect import signature
from typing import Any

import pytest

from actors.chat import BadInput
from actors.models import EchoModel
from actors.session import NOT_RUN, BadSetting, Session
from actors.session.settings import SETTINGS
from dataspace.drafts import read_deeds
from dataspace.facts import fact
from dataspace.records import Record
from tests.actors.driving import Driven, size_of
from tests.actors.scenes import Does, Says, calls, says, tool, user
from vat.heap.messages import Asker

LOOK = {"type": "function", "function": {"name": "look", "description": "Look at it. " * 30, "parameters": {}}}


def session(model: object, doing: object | None = None, **fields: Any) -> Driven:
    return Driven(Session, {"model": model, "tools": Does() if doing is None else doing}, **fields)


def said(driven: Driven, input: Any) -> Any:
    """What a turn comes to."""
    answer = driven.call("turn", input)
    driven.run()
    return answer.value


# Turns.


def test_a_turn_gives_what_the_model_says() -> None:
    driven = session(EchoModel())
    assert said(driven, "hello") == "hello"
    assert driven.read("history") == ["hello"]
    assert driven.read("messages") == [user("hello"), says("hello")["message"]]


def test_a_turn_states_what_was_accepted_said_and_done() -> None:
    driven = session(EchoModel())
    answer = driven.call("turn", "hello", asker=Asker("ann", "cli", "r1"))
    assert driven.stated("turn") == [fact("turn", 1, "s1", input="hello", request="r1", by="ann", via="cli")]
    driven.run()
    assert answer.value == "hello"
    assert driven.stated("model-output", "turn-done") == [
        fact("model-output", 1, "s1", 1, message={"role": "assistant", "content": "hello"}),
        fact("turn-done", 1, "s1", output="hello", usage={}),
    ]


def test_parts_of_content_are_an_input_too() -> None:
    parts = [{"type": "text", "text": "what is it?"}, {"type": "image_url", "image_url": {"url": "data:..."}}]
    driven = session(Says(says("a cat")))
    assert said(driven, parts) == "a cat"
    assert driven.read("history") == [parts]
    assert driven.read("messages")[0] == user(parts)


@pytest.mark.parametrize("input", [None, 3, [], ["text"], [{"text": "hello"}], {"type": "text"}])
def test_what_is_no_input_is_refused_and_leaves_nothing(input: Any) -> None:
    driven = session(EchoModel())
    with pytest.raises(BadInput):
        said(driven, input)
    assert driven.read("history") == []
    assert driven.stated("turn") == []
    assert said(driven, "hello") == "hello"


def test_the_system_message_comes_first_and_once() -> None:
    model = Says(says("1"), says("2"))
    driven = session(model, system="Be brief.")
    said(driven, "one")
    said(driven, "two")
    assert model.asked[1][0][0] == {"role": "system", "content": "Be brief."}
    assert [message["role"] for message in driven.read("messages")] == ["system", *["user", "assistant"] * 2]


def test_options_and_tools_reach_the_model() -> None:
    model = Says(says("ok"))
    driven = session(model, options={"temperature": 0}, tools=[LOOK])
    said(driven, "hello")
    assert model.asked[0][1] == {"temperature": 0, "tools": [LOOK]}


def test_usage_is_summed_over_a_turn_and_over_all() -> None:
    first = says(None, calls("a"), usage={"total_tokens": 3, "details": {"cached": 1}})
    model = Says(first, says("done", usage={"total_tokens": 4}), says("more", usage={"total_tokens": 5}))
    driven = session(model, Does(a="x"))
    said(driven, "one")
    said(driven, "two")
    assert [done.keywords["usage"] for done in driven.stated("turn-done")] == [
        {"total_tokens": 7, "details": {"cached": 1}},
        {"total_tokens": 5},
    ]
    assert driven.read("usage") == {"said": {"turn": {"total_tokens": 12, "details": {"cached": 1}}}}


def test_every_text_is_a_cell_however_short() -> None:
    """What people, the model and tools say can be erased alone: it stands in no record."""
    secrets = ["sesame-in", "sesame-out", "sesame-arg", "sesame-tool"]
    model = Says(says("sesame-out", calls("a", word="sesame-arg")), says("sesame-out"))
    driven = session(model, Does(a="sesame-tool"))
    said(driven, "sesame-in")
    for record in driven.records:
        for secret in secrets:
            assert secret.encode() not in record.deeds + record.facts
    assert all(any(secret.encode() in cell for record in driven.records for cell in record.cells) for secret in secrets)


def test_an_input_that_has_waited_is_stored_once() -> None:
    """It is the same cell as a turn that was accepted, as one that waits, and among the messages."""
    driven = session(Says(says("first"), says("second")))
    driven.call("turn", "begins at once")
    driven.call("turn", [{"type": "text", "text": "waits for it"}])
    driven.advance()
    driven.advance()
    assert [message["content"] for message in driven.read("messages")] == [
        *("begins at once", "first"),
        *([{"type": "text", "text": "waits for it"}], "second"),
    ]
    for text in (b"begins at once", b"waits for it"):
        assert sum(text in cell for record in driven.records for cell in record.cells) == 1
    driven.restart()
    assert driven.read("messages")[2]["content"][0]["text"] == "waits for it"


# Tools.


def test_tools_are_called_one_after_another_if_that_is_wanted() -> None:
    model = Says(says("looking", calls("a", at=1), calls("b", at=2)), says("done"))
    tools = Does(a="first", b="second")
    driven = session(model, tools, parallel=False)
    driven.call("turn", "look")
    driven.advance()
    assert len(driven.open) == 1
    driven.run()
    assert tools.calls == ["a", "b"]
    assert model.asked[1][0][2:] == [tool("a", "first"), tool("b", "second")]
    assert driven.stated("tool-call", "tool-result") == [
        fact("tool-call", 1, "s1", "a", name="look", arguments='{"at": 1}'),
        fact("tool-result", 1, "s1", "a", output="first"),
        fact("tool-call", 1, "s1", "b", name="look", arguments='{"at": 2}'),
        fact("tool-result", 1, "s1", "b", output="second"),
    ]


@pytest.mark.parametrize(
    ("output", "heard"),
    [
        ({"rows": [1, 2], "ok": True}, '{"rows": [1, 2], "ok": true}'),
        ([{"type": "text", "text": "seen"}], [{"type": "text", "text": "seen"}]),
        ([], "[]"),
        (None, "null"),
        (b"\x00\x01", '"#\\"0001\\""'),
        ("ünï", "ünï"),
    ],
)
def test_a_tool_may_return_any_value(output: Any, heard: Any) -> None:
    driven = session(Says(says(None, calls("a")), says("done")), Does(a=output))
    assert said(driven, "go") == "done"
    assert driven.read("messages")[2] == tool("a", heard)
    assert driven.stated("tool-result") == [fact("tool-result", 1, "s1", "a", output=output)]


def test_a_limit_on_steps_records_the_last_calls_and_does_not_start_them() -> None:
    tools = Does()
    driven = session(Says(says("looking", calls("a"), calls("b")), says("fine")), tools, max_steps=1)
    assert said(driven, "look") == "looking"
    assert tools.calls == []
    assert driven.stated("tool-call") == []
    assert driven.stated("turn-done") == [fact("turn-done", 1, "s1", output="looking", usage={}, limit="steps")]
    assert driven.read("messages")[-1]["tool_calls"] == [calls("a"), calls("b")]


def test_after_a_limit_the_next_turn_tells_the_model_what_was_not_done() -> None:
    """Invariant 17: a call without a result does not block the turns after it."""
    model = Says(says("looking", calls("a"), calls("b")), says("fine"))
    driven = session(model, max_steps=1)
    said(driven, "look")
    driven.restart()
    assert said(driven, "go on") == "fine"
    assert model.asked[1][0][2:] == [tool("a", NOT_RUN), tool("b", NOT_RUN), user("go on")]
    assert driven.stated("turn-done")[1] == fact("turn-done", 2, "s1", output="fine", usage={})


def test_a_limit_on_tokens_ends_a_turn_before_its_next_call() -> None:
    model = Says(
        says("looking", calls("a"), usage={"total_tokens": 60}), says("x", calls("b"), usage={"total_tokens": 60})
    )
    tools = Does(a="seen")
    driven = session(model, tools, max_tokens=100)
    assert said(driven, "look") == "x"
    assert tools.calls == ["a"]
    assert driven.stated("turn-done")[0].keywords["limit"] == "tokens"


def test_a_last_answer_that_uses_too_many_tokens_is_told_of_as_well() -> None:
    driven = session(Says(says("much", usage={"total_tokens": 101}), says("little")), Does(), max_tokens=100)
    assert said(driven, "talk") == "much"
    assert driven.stated("turn-done")[0].keywords["limit"] == "tokens"
    assert driven.read("status")["limit"] == "tokens"
    assert said(driven, "again") == "little"
    assert driven.read("status")["limit"] is None
    assert driven.read("messages")[2:] == [user("again"), {"role": "assistant", "content": "little"}]


def test_a_chat_offers_no_tools_and_calls_none() -> None:
    model, tools = Says(says("let me", calls("a"))), Does()
    driven = session(model, tools, mode="chat")
    driven.call("configure", tools=[LOOK])
    assert said(driven, "look") == "let me"
    assert model.asked[0][1] == {}
    assert tools.calls == []
    assert driven.stated("turn-done")[0].keywords["limit"] == "mode"


# The queue.


def test_inputs_that_come_while_a_turn_runs_are_run_in_order() -> None:
    """Invariant 18."""
    model = Says(says("1"), says("2"), says("3"))
    driven = session(model)
    answers = [driven.call("turn", input) for input in ("one", "two", "three")]
    assert driven.read("history") == ["one", "two", "three"]
    assert driven.read("messages") == [user("one")]
    assert len(driven.open) == 1
    driven.run()
    assert [answer.value for answer in answers] == ["1", "2", "3"]
    assert [asked[-1] for asked, _ in model.asked] == [user("one"), user("two"), user("three")]
    assert [done.fields[0] for done in driven.stated("turn-done")] == [1, 2, 3]


def test_the_queue_survives_a_restart_at_every_point() -> None:
    model = Says(says("1"), says("x", calls("a")), says("2"), says("3"), says("4"))
    driven = session(model, Does(a="seen"))
    for input in ("one", "two", "three"):
        driven.call("turn", input)
        driven.restart()
    while driven.advance():
        driven.restart()
        driven.snapshot()
        driven.restart()
    assert [done.fields[0] for done in driven.stated("turn-done")] == [1, 2, 3]
    assert said(driven, "four") == "4"
    assert driven.read("status") == {"accepted": 4, "over": 4, "running": None, "limit": None, "stated": True}


def test_a_repeated_request_gives_the_same_turn() -> None:
    """Invariant 30."""
    driven = session(EchoModel())
    asker = Asker("ann", "cli", "r1")
    first = driven.call("turn", "hello", asker=asker)
    driven.restart()
    again = driven.call("turn", "hello", asker=asker)
    driven.run()
    assert first.outcome is None  # its caller went with the process
    assert again.value == "hello"
    assert driven.call("turn", "hello", asker=asker).value == "hello"
    assert driven.read("history") == ["hello"]


def test_a_request_repeated_in_the_middle_of_a_long_turn_is_answered_too() -> None:
    """Invariant 30."""
    driven = session(Says(says(None, calls("a")), says("done")), Does(a="seen"))
    asker = Asker("ann", "cli", "r1")
    driven.call("turn", "go", asker=asker)
    driven.restart()
    driven.advance()  # the model has answered, a tool is wanted
    again = driven.call("turn", "go", asker=asker)
    driven.run()
    assert again.value == "done"


# Settings.


def test_what_is_configured_holds_from_the_next_request_on() -> None:
    first, second = Says(says("1")), Says(says("2"))
    driven = Driven(Session, {"model": first, "other": second, "tools": Does()}, system="Be brief.")
    said(driven, "one")
    driven.call("configure", model="other", system="Be long.", options={"seed": 1}, tools=[LOOK]).value  # noqa: B018  # raises what went wrong
    driven.restart()
    assert said(driven, "two") == "2"
    messages, options = second.asked[0]
    assert messages[0] == {"role": "system", "content": "Be long."}
    assert options == {"seed": 1, "tools": [LOOK]}


@pytest.mark.parametrize(("field", "value"), [("mode", "robot"), ("max_steps", 0)])
def test_a_setting_that_cannot_be_meant_is_refused(field: str, value: Any) -> None:
    driven = session(EchoModel())
    with pytest.raises(BadSetting, match=field):
        driven.call("configure", **{field: value}, system="changed").value  # noqa: B018  # raises what went wrong
    assert driven.read("system") == ""
    with pytest.raises(BadSetting, match=field):
        said(session(EchoModel(), **{field: value}), "hello")


def test_a_setting_that_there_is_not_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(TypeError, match=r"no setting 'max_tokns' to configure: it has .*max_tokens"):
        session(EchoModel()).call("configure", max_tokns=1).value  # noqa: B018  # raises what went wrong


def test_settings_that_are_named_for_whoever_mistypes_one_are_those_that_configure_takes() -> None:
    taken = signature(Session.configure).parameters
    assert set(SETTINGS) == {name for name, one in taken.items() if one.kind is one.KEYWORD_ONLY}


def test_a_bare_function_as_a_tool_is_refused_with_what_to_make_of_it() -> None:
    def add(a: int) -> int:
        return a

    with pytest.raises(BadSetting, match=r"make Tools\(add\) of it"):
        Session.given({"tools": [add]})


def test_the_steps_of_a_turn_cannot_be_taken_from_outside() -> None:
    driven = session(EchoModel())
    for method in ("_begin", "_answered", "_returned", "_raised", "_failed"):
        with pytest.raises(AttributeError):
            driven.call(method, "x", 1)


# Cost.


def bytes_of_turn(driven: Driven) -> int:
    before = len(driven.records)
    said(driven, "x" * 100)
    return sum(map(size_of, driven.records[before:]))


def test_a_turn_records_the_same_after_ten_turns_and_after_a_thousand() -> None:
    """Invariant 36: neither the history nor the tools' schemas are recorded again."""
    driven = session(EchoModel(), tools=[LOOK] * 50)
    sizes = [bytes_of_turn(driven) for _ in range(1000)]
    assert sizes[999] - sizes[10] < 100  # numbers take another byte or two from 128 and from 256 on
    assert sizes[999] == sizes[500]


def test_a_long_turn_keeps_few_promises_and_ends_in_a_small_record() -> None:
    steps = 60
    model = Says(*[says("on", calls(f"c{step}")) for step in range(steps)], says("done"))
    driven = session(model, Does(**{f"c{step}": "seen" for step in range(steps)}))
    answer = driven.call("turn", "go")
    while driven.open:
        driven.advance()
        assert driven.vat.heap.system["promises"].count <= 6
    assert answer.value == "done"
    assert operations(driven.records[-1]) <= 15


def operations(record: Record) -> int:
    return len(read_deeds(record.deeds).operations)


def test_key_order_and_texts_that_look_like_json_are_kept() -> None:
    """Invariant 27."""
    message = {"content": '{"a": 1}', "x": [{"b": 1, "a": 2}], "role": "assistant", "refusal": None}
    driven = session(Says({"message": message, "usage": None, "model": "m"}))
    said(driven, "hello")
    driven.snapshot()
    driven.restart()
    assert json.dumps(driven.read("messages")[1]) == json.dumps(message)
