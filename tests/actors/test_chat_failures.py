"""A model behind an API: what goes wrong, and what is tried again."""

from __future__ import annotations

import httpx2
import pytest
import trio

from actors.models import (
    ChatModel,
    ModelBusy,
    ModelCut,
    ModelNonsense,
    ModelRefused,
    ModelUnreachable,
)
from actors.models import chat as chat_module
from tests.model_calls import ask, content, impatient, run_to_outcome
from tests.model_server import Answer, chunk, failing, model_server, stream, streamed, whole

# What goes wrong


ROLE = {"role": "assistant"}


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (Answer(headers={"Content-Type": "text/html"}, pieces=(b"<html>welcome",)), "it is no JSON but text/html"),
        (Answer(), "it is no JSON but of no type"),
        (Answer(pieces=(b"[" * 100_000,)), "it is no JSON"),
        (Answer(pieces=(b"[]",)), "the answer is a list instead of an object"),
        (Answer(pieces=(b"{}",)), "the answer has nothing for 'choices'"),
        (Answer(pieces=(b'{"choices": []}',)), "it has no choices"),
        (Answer(pieces=(b'{"choices": [3]}',)), r"choices\[0\] is a int instead of an object"),
        (Answer(pieces=(b'{"choices": [{"message": "hi"}]}',)), r"choices\[0\] has a str for 'message'"),
        (whole({"role": "user", "content": "hi"}), "it has the role 'user' instead of 'assistant'"),
        (whole({**ROLE, "tool_calls": {}}), "the message has a dict for 'tool_calls'"),
        (whole({**ROLE, "tool_calls": [{"function": {}}]}), r"tool_calls\[0\].function has nothing for 'name'"),
        (whole({**ROLE, "tool_calls": [{"function": {"name": "ls", "arguments": {}}}]}), "has a dict for 'arguments'"),
        (
            whole({**ROLE, "tool_calls": [{"id": 7, "function": {"name": "ls", "arguments": ""}}]}),
            r"tool_calls\[0\].id is a int instead of a string",
        ),
        (stream("{oops"), "a piece of the stream is no JSON: '{oops'"),
        (stream("[1]"), "a piece of the stream is a list instead of an object"),
        (stream('{"choices": {"a": 1}}'), "choices is no list"),
        (stream(chunk({"tool_calls": [{"index": "x"}]})), "the index of a tool call is a str instead of a number"),
        (stream(chunk({"tool_calls": [{"index": 0, "id": "a"}]}, "stop")), r"tool_calls\[0\].function has no name"),
    ],
)
async def test_an_answer_that_is_none_is_nonsense_that_says_what_is_wrong(answer, says):
    async with model_server(answer) as server:
        with pytest.raises(ModelNonsense, match=says):
            await ask(ChatModel(server.url, "small"))


@pytest.mark.parametrize(
    "answer",
    [
        stream(chunk({"content": "hel"}), done=False),
        stream(chunk({"content": "hel"}), done=False, cut=True),
        Answer(headers={"Content-Type": "application/json"}, pieces=(b'{"choices": [',), cut=True),
    ],
)
async def test_an_answer_that_breaks_off_is_cut(answer):
    async with model_server(answer) as server:
        with pytest.raises(ModelCut, match="ask again"):
            await ask(ChatModel(server.url, "small"))


@pytest.mark.parametrize(
    "answer",
    [
        Answer(pieces=(b"x" * 1500,)),
        stream(*[chunk({"content": "x" * 80})] * 20),
        stream(chunk({"content": "x" * 1500})),
        Answer(headers={"Content-Type": "text/event-stream"}, pieces=(b"data: " + b"x" * 1500,)),
    ],
)
async def test_an_answer_that_is_too_long_is_refused(monkeypatch, answer):
    monkeypatch.setattr(chat_module, "LARGEST_ANSWER", 1000)
    async with model_server(answer) as server:
        with pytest.raises(ModelNonsense, match=r"longer than|exceeded"):
            await ask(ChatModel(server.url, "small"))


async def test_a_long_refusal_is_read_in_part():
    async with model_server(Answer(400, {}, (b"no " * 100_000,))) as server:
        with pytest.raises(ModelRefused) as caught:
            await ask(ChatModel(server.url, "small"))
    assert len(caught.value.message) <= 1000


@pytest.mark.parametrize(
    ("status", "says"),
    [
        (400, "look at the messages"),
        (401, "is the right credential"),
        (404, "is the base URL right"),
        (418, "not today"),
    ],
)
async def test_a_refusal_gives_the_words_of_the_service_and_advice(status, says):
    async with model_server(failing(status)) as server:
        with pytest.raises(ModelRefused, match=rf"the model refused \({status}\): not today.*") as caught:
            await ask(ChatModel(server.url, "small"))
    assert says in str(caught.value)
    assert not isinstance(caught.value, ModelBusy)


@pytest.mark.parametrize("status", [408, 409, 429, 500, 503, 529])
async def test_some_refusals_mean_busy(status):
    async with model_server(failing(status)) as server:
        with pytest.raises(ModelBusy):
            await ask(ChatModel(server.url, "small"))


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry_after": "7"}, 7),
        ({"retry_after": "Wed, 21 Oct 2015 07:28:09 GMT", "date": "Wed, 21 Oct 2015 07:28:00 GMT"}, 9),
        ({"retry_after": "Wed, 21 Oct 2015 07:27:00 GMT", "date": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0),
        ({"retry_after": "Wed, 21 Oct 2015 07:28:09 GMT"}, None),
        ({"retry_after": "soon"}, None),
        ({"retry_after": "-3"}, None),
        ({}, None),
    ],
)
async def test_a_busy_service_can_say_when_to_come_again(headers, seconds):
    async with model_server(failing(429, **headers)) as server:
        with pytest.raises(ModelBusy) as caught:
            await ask(ChatModel(server.url, "small"))
    assert caught.value.retry_after == seconds


async def test_an_error_inside_a_stream_is_a_refusal():
    async with model_server(
        stream(chunk({"content": "hel"}), {"error": {"message": "overloaded", "code": 503}})
    ) as server:
        with pytest.raises(ModelBusy, match="overloaded"):
            await ask(ChatModel(server.url, "small"))


async def test_a_service_that_has_moved_is_not_followed():
    place = "https://u:canary@else.example/v1?key=canary#canary"
    async with model_server(Answer(307, {"Location": place})) as server:
        with pytest.raises(ModelRefused, match=r"moved to https://else.example/v1; use") as caught:
            await ask(ChatModel(server.url, "small"))
    assert "canary" not in str(caught.value)


async def test_a_service_that_is_not_there_is_unreachable():
    async with model_server(streamed("hi")) as server:
        pass
    with pytest.raises(
        ModelUnreachable, match=r"no answer from http://127.0.0.1:.*ConnectError.*is the service running"
    ):
        await ask(ChatModel(server.url, "small"))


async def test_a_service_without_tls_is_said_to_be_one():
    async with model_server(streamed("hi")) as server:
        with pytest.raises(ModelUnreachable, match=r"ConnectError: no TLS there, \w+; .* URL with http://"):
            await ask(ChatModel(server.url.replace("http:", "https:"), "small"))


async def test_a_service_that_says_nothing_is_given_up():
    async with model_server(Answer(silent=True, headers={"Content-Type": "application/json"})) as server:
        model = ChatModel(server.url, "small", timeout=0.05)
        model._service._timeout.connect = 20.0  # it is there, but on a busy machine not so soon
        with pytest.raises(ModelCut, match="ReadTimeout"):
            await ask(model)


# A service under the runner


async def test_a_busy_service_is_asked_again_with_the_same_idempotency_key():
    async with model_server(failing(500), failing(429, retry_after="0"), streamed("hi")) as server:
        outcome = await run_to_outcome(ChatModel(server.url, "small", policy=impatient(attempts=3)))
    assert content(outcome) == "hi"
    assert [request.headers["idempotency-key"] for request in server.requests] == ["id-1"] * 3


async def test_an_answer_that_was_cut_is_asked_for_again():
    async with model_server(stream(chunk({"content": "x"}), done=False, cut=True), streamed("hi")) as server:
        assert content(await run_to_outcome(ChatModel(server.url, "small", policy=impatient(attempts=2)))) == "hi"


async def test_a_refusal_is_not_asked_again():
    async with model_server(failing(401), streamed("hi")) as server:
        outcome = await run_to_outcome(ChatModel(server.url, "small"))
    assert isinstance(outcome.error, ModelRefused)
    assert len(server.requests) == 1


async def test_connections_are_kept_while_a_host_runs():
    async with model_server(streamed("hi")) as server, ChatModel(server.url, "small") as model:
        for _ in range(3):
            await ask(model)
        assert server.connections == 1
    assert model._service._own is None


async def test_a_client_of_ones_own_is_used_and_left_open():
    async with model_server(streamed("hi")) as server, httpx2.AsyncClient(headers={"X-Team": "blue"}) as client:
        async with ChatModel(server.url, "small", client=client) as model:
            await ask(model)
        assert not client.is_closed
    assert server.requests[0].headers["x-team"] == "blue"


async def test_many_calls_at_once_do_not_wait_for_each_other():
    async with model_server(streamed("hi")) as server, ChatModel(server.url, "small", timeout=60) as model:
        server.together = 120
        async with trio.open_nursery() as nursery:
            for _ in range(120):
                nursery.start_soon(ask, model)
        assert server.connections == 120
