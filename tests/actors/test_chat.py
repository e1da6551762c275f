"""A model behind an API: what it is sent, and what is made of its answers."""

from __future__ import annotations

import json
import math

import attrs
import pytest

from actors.models import (
    ChatModel,
    NotJSON,
)
from actors.models import service as service_module
from dataspace.values import ERASED, Blob, Ref, Symbol, freeze
from tests.model_calls import KEY, Call, ask
from tests.model_server import Answer, chunk, model_server, stream, streamed, whole

# What is sent


async def test_a_conversation_is_sent_to_the_byte_with_its_keys_in_order():
    messages = freeze([{"z": 1, "role": "user", "a": {"y": None, "b": [True, 1.5, "\x00é😀"]}}])
    async with model_server(streamed("hi")) as server:
        await ask(ChatModel(server.url, "small"), messages)
    sent = server.requests[0]
    assert sent.path == "/v1/chat/completions"
    assert json.dumps(sent.body["messages"]) == json.dumps(messages)
    assert sent.body["model"] == "small"
    assert "tools" not in sent.body


async def test_tools_and_options_are_sent_and_those_of_the_call_come_last():
    tools = [{"type": "function", "function": {"name": "ls", "parameters": {}}}]
    async with model_server(streamed("hi")) as server:
        model = ChatModel(server.url, "small", options={"temperature": 0, "top_p": 1, "seed": 3})
        await ask(model, tools=tools, temperature=1, seed=None)
    body = server.requests[0].body
    assert (body["tools"], body["temperature"], body["top_p"]) == (tools, 1, 1)
    assert "seed" not in body


async def test_the_id_of_the_effect_is_the_idempotency_key():
    async with model_server(streamed("hi")) as server:
        await ask(ChatModel(server.url, "small"))
    assert server.requests[0].headers["idempotency-key"] == "0123456789abcdef0123456789abcdef"


async def test_a_compressed_answer_is_not_asked_for_as_it_can_grow_to_any_size():
    async with model_server(streamed("hi")) as server:
        await ask(ChatModel(server.url, "small"))
    assert server.requests[0].headers["accept-encoding"] == "identity"


async def test_the_key_is_sent_as_a_bearer_and_without_one_nothing_is():
    async with model_server(streamed("hi")) as server:
        await ask(ChatModel(server.url, "small", "openai"))
        await ask(ChatModel(server.url, "small"))
    with_key, without = server.requests
    assert with_key.headers["authorization"] == f"Bearer {KEY}"
    assert "authorization" not in without.headers


async def test_what_json_does_not_have_is_sent_in_words_where_there_are_any():
    messages = [{"role": Symbol("user"), "content": [ERASED, Blob("image/png", b"hi")]}]
    async with model_server(streamed("hi")) as server:
        await ask(ChatModel(server.url, "small"), messages)
    assert server.requests[0].body["messages"] == [
        {"role": "user", "content": ["[erased]", "data:image/png;base64,aGk="]}
    ]


@pytest.mark.parametrize("value", [b"bytes", Ref(None, 3), float("nan"), float("inf")])
async def test_what_json_cannot_carry_is_refused_and_nothing_is_sent(value):
    async with model_server(streamed("hi")) as server:
        with pytest.raises(NotJSON):
            await ask(ChatModel(server.url, "small"), [{"role": "user", "content": value}])
        assert server.connections == 0


# What comes back


async def test_a_stream_becomes_one_message():
    async with model_server(streamed("hel", "lo")) as server:
        answer = await ask(ChatModel(server.url, "small"))
    assert answer == {
        "message": {"role": "assistant", "content": "hello"},
        "usage": {"prompt_tokens": 3, "completion_tokens": 2},
        "model": "small-1",
        "finish_reason": "stop",
    }


async def test_the_pieces_of_a_stream_are_told_as_progress():
    call = Call(attempt=2)
    async with model_server(streamed("hel", "lo")) as server:
        await call(ChatModel(server.url, "small"))
    assert [each["delta"].get("content") for each in call.heard] == ["", "hel", "lo"]
    assert {each["attempt"] for each in call.heard} == {2}


def call_piece(index, **function):
    return chunk({"tool_calls": [{"index": index, "function": function}]})


async def test_streamed_tool_calls_are_put_together_by_their_index():
    answer = stream(
        chunk({"role": "assistant", "content": None}),
        chunk(
            {"tool_calls": [{"index": 1, "id": "b", "type": "function", "function": {"name": "cat", "arguments": ""}}]}
        ),
        chunk(
            {"tool_calls": [{"index": 0, "id": "a", "type": "function", "function": {"name": "ls", "arguments": "{"}}]}
        ),
        call_piece(1, arguments='{"path"'),
        call_piece(0, arguments="}"),
        call_piece(1, arguments=':"x"}', name="cat"),
        chunk({}, "tool_calls"),
    )
    async with model_server(answer) as server:
        found = await ask(ChatModel(server.url, "small"))
    assert found["finish_reason"] == "tool_calls"
    assert found["message"] == {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "ls", "arguments": "{}"}},
            {"id": "b", "type": "function", "function": {"name": "cat", "arguments": '{"path":"x"}'}},
        ],
    }


async def test_tool_calls_without_an_index_are_told_apart_by_their_ids():
    def part(arguments, id=None, name=None):
        return chunk({"tool_calls": [{"id": id, "function": {"name": name, "arguments": arguments}}]})

    answer = stream(part("{", "a", "ls"), part("}"), part("[", "b", "cat"), part("]", "b"), chunk({}, "tool_calls"))
    async with model_server(answer) as server:
        calls = (await ask(ChatModel(server.url, "small")))["message"]["tool_calls"]
    assert [(call["id"], call["function"]["arguments"]) for call in calls] == [("a", "{}"), ("b", "[]")]


@pytest.mark.parametrize("streaming", [True, False])
async def test_a_tool_call_without_an_id_gets_the_same_one_in_each_attempt(streaming):
    call = {"type": "function", "function": {"name": "ls", "arguments": "{}"}}
    answers = {
        True: stream(chunk({"tool_calls": [{"index": 0, **call}]}, "tool_calls")),
        False: whole({"role": "assistant", "content": None, "tool_calls": [{"id": "", **call}]}),
    }
    async with model_server(answers[streaming]) as server:
        found = [await ask(ChatModel(server.url, "small")) for _ in range(2)]
    assert {each["message"]["tool_calls"][0]["id"] for each in found} == {"call_0123456789abcdef_0"}


async def test_what_a_service_adds_to_a_message_is_kept():
    answer = stream(
        chunk({"reasoning": "hm"}), chunk({"reasoning": "m", "annotations": [1]}), chunk({"content": "x"}, "stop")
    )
    async with model_server(answer) as server:
        found = await ask(ChatModel(server.url, "small"))
    assert found["message"] == {"role": "assistant", "content": "x", "reasoning": "hmm", "annotations": [1]}


async def test_an_answer_in_one_piece_keeps_its_message_as_it_came():
    message = {"content": "hi", "role": "assistant", "refusal": None, "extra": {"b": 1, "a": 2}}
    async with model_server(whole(message, usage={"total_tokens": 5})) as server:
        found = await ask(ChatModel(server.url, "small", stream=False))
    assert "stream" not in server.requests[0].body
    assert json.dumps(found["message"]) == json.dumps(message)
    assert found["usage"] == {"total_tokens": 5}


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999"])
@pytest.mark.parametrize("streaming", [False, True])
async def test_numbers_that_json_does_not_have_are_null_and_do_not_stop_the_next_request(number, streaming):
    odd = {"content": "hi", "logprob": math.nan}
    usage = {"total_tokens": math.nan, "cost": 0.5}
    answer = stream(chunk(odd), chunk({}, "stop"), chunk(None, usage=usage)) if streaming else whole(odd, usage=usage)
    answer = attrs.evolve(answer, pieces=tuple(piece.replace(b"NaN", number.encode()) for piece in answer.pieces))
    async with model_server(answer, streamed("on")) as server:
        model = ChatModel(server.url, "small")
        found = await ask(model)
        assert found["usage"] == {"total_tokens": None, "cost": 0.5}
        assert found["message"].get("logprob") is None
        assert (await ask(model, messages=[found["message"]]))["message"]["content"] == "on"


async def test_a_service_that_does_not_stream_is_understood_all_the_same():
    async with model_server(whole({"role": "assistant", "content": "hi"})) as server:
        assert (await ask(ChatModel(server.url, "small")))["message"]["content"] == "hi"


async def test_a_stream_may_close_after_its_last_piece_without_saying_done():
    async with model_server(stream(chunk({"content": "hi"}, "stop"), done=False)) as server:
        assert (await ask(ChatModel(server.url, "small")))["message"]["content"] == "hi"


async def test_a_connection_that_breaks_after_the_answer_is_done_takes_nothing_away():
    async with model_server(stream(chunk({"content": "hi"}, "stop"), cut=True)) as server:
        assert (await ask(ChatModel(server.url, "small")))["message"]["content"] == "hi"


async def test_a_service_that_does_not_end_its_response_after_the_answer_is_left(monkeypatch):
    monkeypatch.setattr(service_module, "LINGER", 0.01)
    async with model_server(stream(chunk({"content": "hi"}, "stop"), silent=True)) as server:
        assert (await ask(ChatModel(server.url, "small")))["message"]["content"] == "hi"


async def test_comments_and_empty_pieces_of_a_stream_are_passed_over():
    answer = Answer(
        headers={"Content-Type": "text/event-stream; charset=utf-8"},
        pieces=(b": waiting\r\n\r\n", *stream(chunk({}), chunk({"content": "hi"}, "stop")).pieces),
    )
    async with model_server(answer) as server:
        assert (await ask(ChatModel(server.url, "small")))["message"]["content"] == "hi"
