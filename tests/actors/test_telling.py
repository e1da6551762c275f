"""What a model is told of a tool's answer: whatever that is, it is told, and the conversation goes on."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.chat import BadInput, message_in, tellable, told
from actors.models.answers import body_of
from actors.session import Session
from actors.tools import Tools
from dataspace.values import ERASED, MAX_DEPTH, Blob, Ref, Symbol, freeze
from tests.actors.driving import Driven
from tests.actors.scenes import Does, Says, calls, says
from tests.actors.toolcalls import run

HUGE = 10**5000


def deep(levels: int, inside: Any = 1) -> Any:
    return [deep(levels - 1, inside)] if levels else inside


ODD = [
    *(HUGE, -HUGE, {"a": [HUGE]}, math.nan, [math.inf, -math.inf], b"\xff", Ref(None, 5), Symbol("q"), ERASED),
    *(Blob("a/b", b"x"), [{"type": "text", "text": HUGE}], [{"type": "text", "text": "a", "x": math.nan}]),
    *([{"type": "text", "text": None}], [{"type": "x", "x": b"y"}], {"": {"\0": "\x1b"}}, []),
    *("half \ud800", {"half \ud800": ["\ud800"]}, [{"type": "text", "text": "half \ud800"}]),
    *(deep(MAX_DEPTH - 1), [{"type": "x", "x": deep(MAX_DEPTH - 3)}], deep(MAX_DEPTH - 3, HUGE)),
]
PLACES = range(len(ODD))


def sent(messages: Any) -> Any:
    """The messages as a service gets them. Raises what cannot be sent."""
    return json.loads(body_of("small", list(messages), None, {}, stream=False))["messages"]


@pytest.mark.parametrize("place", PLACES)
def test_whatever_a_device_returns_is_told_and_never_unknown(place: int) -> None:
    model = Says(says(None, calls("a"), calls("b")), says("done"), says("next"))
    driven = Driven(Session, {"model": model, "tools": Does(a=ODD[place], b="of b")})
    for input, answer in (("go", "done"), ("on", "next")):
        said = driven.call("turn", input)
        driven.run()
        assert said.value == answer
        driven.restart()
    assert driven.stated("tool-unknown") == driven.stated("turn-failed") == []
    heard = sent(driven.read("messages"))
    assert heard[2]["role"] == "tool"
    assert heard[2]["content"] == "[]" or heard[2]["content"]


@pytest.mark.parametrize("place", PLACES)
async def test_whatever_a_function_returns_is_shortened_and_told(place: int) -> None:
    def give() -> Any:
        return ODD[place]

    output = await run(Tools(give, longest=50), "give")
    assert len(json.dumps(sent([{"role": "tool", "content": told(output)}]))) < 500


@pytest.mark.parametrize("place", PLACES)
def test_whatever_a_model_answers_can_be_sent_with_the_next_request(place: int) -> None:
    answer = says("hm", calls("a"))
    answer["message"]["odd"] = answer["message"]["tool_calls"][0]["function"]["odd"] = ODD[place]
    answer["message"] = freeze(answer["message"]) if place < len(ODD) - 3 else answer["message"]
    model = Says(answer, says("done"))
    sent([message_in(answer)])
    if place >= len(ODD) - 3:
        return  # no device can give it: it is too deep with what it is in
    driven = Driven(Session, {"model": model, "tools": Does(a="of a")})
    said = driven.call("turn", "go")
    driven.run()
    assert said.value == "done"
    sent(driven.read("messages"))


@pytest.mark.parametrize("place", [0, 3, 5, 6])
@pytest.mark.parametrize("method", ["turn", "steer"])
def test_an_input_that_would_fail_with_each_later_request_is_refused(method: str, place: int) -> None:
    driven = Driven(Session, {"model": Says(says("done")), "tools": Does()})
    with pytest.raises(BadInput, match="part 1 holds what JSON does not have"):
        driven.call(method, [{"type": "text", "text": "x"}, {"type": "x", "x": ODD[place]}]).value  # noqa: B018  # raises what went wrong
    assert driven.read("history") == []
    picture = [{"type": "image_url", "image_url": {"url": Blob("image/png", b"x")}}]
    said = driven.call(method, picture)
    driven.run()
    assert said.value == "done"


def test_what_json_has_is_told_as_it_is() -> None:
    value = {"a": [1, 2.5, None, True, "x", {"b": [10**2000]}], "c": Blob("a/b", b"x")}
    assert tellable(value) is value
    assert told([{"type": "text", "text": "x"}]) == [{"type": "text", "text": "x"}]


def test_what_is_no_value_at_all_is_told_to_be_so() -> None:
    assert told(object()).startswith("The tool answered with what cannot be shown: NotAValue: ")
    assert "cannot be shown" in told([{"type": "x", "x": object()}])


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.binary()
    | st.integers(20_000, 20_009).map(lambda bits: 1 << bits),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
    max_leaves=15,
)


@settings(max_examples=100)
@given(VALUES)
def test_any_value_is_told_as_json_or_as_it_is(value: Any) -> None:
    output = told(value)
    if not isinstance(value, str):
        json.loads(output, parse_constant=lambda name: pytest.fail(name))
