"""What is made of a model's bytes, however they come."""

from __future__ import annotations

import json
from contextlib import suppress
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.models.answers import Assembly, Events, answer_of, message_of
from actors.models.failures import ModelError, ModelNonsense

STREAM = (
    b"\xef\xbb\xbfdata: one\n\n: a comment\r\nevent: message\r\ndata:two\r\ndata:  and more\r\n\r\n"
    b"id: 7\rdata: thr\xc3\xa9e\r\rdata\n\ndata\n\nretry: 1\n\ndata: not ended\n"
)
EVENTS = ["one", "two\n and more", "thrée", "", ""]


@given(st.lists(st.integers(0, len(STREAM)), max_size=12))
def test_events_are_the_same_however_their_bytes_are_cut(cuts):
    places = [0, *sorted(cuts), len(STREAM)]
    events = Events(10_000)
    found = [data for start, end in pairwise(places) for data in events.of(STREAM[start:end])]
    assert found == EVENTS


def test_events_are_the_same_byte_by_byte():
    events = Events(10_000)
    assert [data for at in range(len(STREAM)) for data in events.of(STREAM[at : at + 1])] == EVENTS


def test_a_long_line_in_small_pieces_costs_its_length_and_not_its_square():
    events = Events(1 << 30)
    for _ in range(200_000):
        events.of(b"data: xxxxxxxxxxxxxx")
    assert len(events.of(b"\n\n")[0]) == 200_000 * 20 - 6


def test_more_bytes_than_allowed_are_nonsense():
    events = Events(10)
    events.of(b": 3456789\n")
    with pytest.raises(ModelNonsense, match="longer than 10 bytes"):
        events.of(b"\n")


noise = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3) | st.just([]) | st.just({})


def mostly(strategy):
    """What should stand there, and sometimes what should not."""
    return strategy | strategy | strategy | noise


def parts(**optional):
    return mostly(st.fixed_dictionaries({}, optional={name: mostly(part) for name, part in optional.items()}))


function = parts(name=st.text(max_size=3), arguments=st.text(max_size=3), strict=st.booleans())
call = parts(index=st.integers(0, 3), id=st.text(max_size=3), type=st.just("function"), function=function)
message = parts(role=st.just("assistant"), content=st.text(), tool_calls=st.lists(call, max_size=3), extra=noise)
choice = parts(message=message, delta=message, finish_reason=st.just("stop"))
body = parts(
    choices=st.lists(choice, min_size=1, max_size=2),
    usage=st.dictionaries(st.text(), noise, max_size=2),
    model=st.text(),
    error=st.none() | parts(message=st.text(), code=st.integers()),
)


def is_an_answer(answer):
    calls = answer["message"].get("tool_calls") or []
    return (
        list(answer) == ["message", "usage", "model", "finish_reason"]
        and answer["message"]["role"] == "assistant"
        and all(isinstance(call["id"], str) and call["id"] for call in calls)
        and all(isinstance(call["function"]["arguments"], str) for call in calls if call.get("type") == "function")
        and json.dumps(answer)
    )


@given(body)
def test_whatever_a_body_holds_is_an_answer_or_an_error_of_ours(body):
    with suppress(ModelError):
        assert is_an_answer(answer_of(body, "small", "0" * 32))


@given(st.lists(body, max_size=4))
def test_whatever_a_stream_holds_is_an_answer_or_an_error_of_ours(chunks):
    assembly = Assembly()
    with suppress(ModelError):
        for chunk in chunks:
            assembly.add(chunk)
        assert is_an_answer(assembly.answer("small", "0" * 32))


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"error": {"message": "no"}}, "no"),
        ({"error": "no"}, "no"),
        ({"detail": "no"}, "no"),
        ({"detail": [{"loc": "x"}]}, '[{"loc": "x"}]'),
        ({"message": "no"}, "no"),
        ({"else": 1}, ""),
        ("no", "no"),
        ({"error": {"message": "x" * 9999}}, "x" * 1000),
    ],
)
def test_the_words_of_a_refusal_are_found_where_services_put_them(body, words):
    assert message_of(body) == words
