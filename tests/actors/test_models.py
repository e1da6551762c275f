"""Model devices: the echo, the script, and any OpenAI-compatible service."""

from __future__ import annotations

import json
from pathlib import Path

import httpx2
import pytest
import trio

from actors.models import (
    BadModelSetting,
    BadModelURL,
    ChatModel,
    EchoModel,
    ModelBusy,
    ModelCut,
    ModelNonsense,
    ModelRefused,
    ModelUnreachable,
    NotJSON,
    ScriptedModel,
    ScriptMismatch,
    model_from_environment,
)
from actors.models import chat as chat_module
from dataspace.values import ERASED, Blob, Ref, Symbol, freeze
from tests.model_server import Answer, chunk, failing, model_server, stream, streamed, whole
from vat.devices import Effect, Policy, methods_of
from vat.effects import EffectRunner, Wanted
from vat.outcomes import Outcome
from vat.vault import NoCredential, Vault

KEY = "sk-canary-71aa90"
HELLO = [{"role": "user", "content": "hello"}]
TRANSCRIPTS = Path(__file__).parents[3] / "shared" / "data" / "transcripts"


class Call:
    """One call of a model, outside of any host."""

    def __init__(self, key: str = KEY, attempt: int = 1) -> None:
        self.heard = []
        self.effect = Effect(
            id="0123456789abcdef0123456789abcdef",
            device="model",
            method="complete",
            session="s1",
            attempt=attempt,
            progress=self.heard.append,
            credential=Vault({"openai": lambda: key}).resolve,
        )

    async def __call__(self, device, messages=HELLO, **more):
        return await device.complete(self.effect, messages, **more)


async def ask(device, messages=HELLO, **more):
    return await Call()(device, messages, **more)


async def run_to_outcome(device, messages=HELLO):
    """The outcome of a model under the runner, with the policy that it declares."""
    settled = []

    def settle(wanted, outcome):
        settled.append(outcome)
        nursery.cancel_scope.cancel()

    async def never(wanted):
        raise AssertionError("a model may run again, so nothing is recorded before it is called")

    async with trio.open_nursery() as nursery:
        runner = EffectRunner(
            {"model": device},
            Vault({"openai": lambda: KEY}),
            mark_started=never,
            settle=settle,
            random=lambda: 0.0,
            progress=lambda wanted, value: None,
        )
        runner.want(Wanted((b"S" * 16, 1), "id-1", "s1", "model", "complete", (messages,)))
        nursery.start_soon(runner.run)
    return settled[0]


def impatient(**more) -> Policy:
    return Policy(on_crash="retry", backoff=0, retry_on=(ModelUnreachable, ModelBusy, ModelCut), **more)


def content(outcome: Outcome) -> str:
    return outcome.value["message"]["content"]


# The echo


async def test_the_echo_says_again_what_was_said_last():
    answer = await ask(EchoModel(), [*HELLO, {"role": "user", "content": "again"}])
    assert answer["message"] == {"role": "assistant", "content": "again"}


@pytest.mark.parametrize(
    ("said", "echoed"),
    [
        ([{"type": "text", "text": "look: "}, {"type": "image_url"}, {"type": "text", "text": "a cat"}], "look: a cat"),
        (None, ""),
        (ERASED, "[erased]"),
        ("", ""),
    ],
)
async def test_the_echo_says_the_text_of_any_content(said, echoed):
    assert (await ask(EchoModel(), [{"role": "user", "content": said}]))["message"]["content"] == echoed


async def test_the_echo_looks_at_the_last_message_only():
    class History:
        def __len__(self):
            return 10_000

        def __getitem__(self, index):
            assert index == -1
            return {"role": "user", "content": "hello"}

    assert (await ask(EchoModel(), History()))["message"]["content"] == "hello"


async def test_the_echo_of_an_empty_conversation_is_empty():
    assert (await ask(EchoModel(), []))["message"]["content"] == ""


def test_models_may_run_again_after_a_crash():
    for model in (EchoModel(), ScriptedModel([]), ChatModel("http://localhost/v1", "small")):
        assert {name: method.policy.on_crash for name, method in methods_of(model).items()} == {"complete": "retry"}


# The script

SCRIPT = [
    {"role": "system", "content": "be brief"},
    {"role": "user", "content": "what is there?"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "ls", "arguments": '{"b":1,"a":2}'}}],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "a file"},
    {"role": "assistant", "content": "a file"},
    {"role": "user", "content": "thanks"},
]


async def test_the_script_answers_with_what_comes_next():
    model = ScriptedModel(SCRIPT)
    assert (await ask(model, SCRIPT[:2]))["message"] == SCRIPT[2]
    assert (await ask(model, freeze(SCRIPT[:4])))["message"] == SCRIPT[4]


def changed(*path, to):
    copy = json.loads(json.dumps(SCRIPT[:4]))
    *way, last = path
    place = copy
    for step in way:
        place = place[step]
    place[last] = to
    return copy


@pytest.mark.parametrize(
    ("messages", "says"),
    [
        (
            changed(1, "content", to="what?"),
            "messages[1].content: the transcript has 'what is there?', the conversation 'what?'",
        ),
        (changed(2, "content", to=""), "messages[2].content: the transcript has None, the conversation ''"),
        (
            changed(2, "tool_calls", 0, "id", to=True),
            "messages[2].tool_calls[0].id: the transcript has 'c1', the conversation True",
        ),
        (
            changed(2, "tool_calls", to=[]),
            "messages[2].tool_calls: the transcript has 1 items, the conversation 0 items",
        ),
        (
            [{"content": "be brief", "role": "system"}, *SCRIPT[1:4]],
            "messages[0]: the transcript has the keys ['role', 'content'], the conversation ['content', 'role']",
        ),
        (SCRIPT[:1], "messages[1]: the transcript has a message of 'user', the conversation wants an answer"),
        (SCRIPT, "messages[6]: the transcript has ended, the conversation wants an answer"),
    ],
)
async def test_the_script_names_the_first_difference(messages, says):
    with pytest.raises(ScriptMismatch) as caught:
        await ask(ScriptedModel(SCRIPT), messages)
    assert str(caught.value) == says


async def test_of_long_texts_the_script_shows_where_they_part():
    script = [{"role": "user", "content": "x" * 5000 + "left"}, {"role": "assistant", "content": ""}]
    given = [{"role": "user", "content": "x" * 5000 + "right"}]
    with pytest.raises(ScriptMismatch, match=r"'x{20}left' \(from character 4980\), the conversation 'x{20}right'"):
        await ask(ScriptedModel(script), given)


@pytest.mark.skipif(not TRANSCRIPTS.is_dir(), reason="the recorded agent runs are not beside this project")
async def test_the_script_plays_real_agent_runs_to_their_end():
    for path in sorted(TRANSCRIPTS.glob("*.jsonl")):
        script = [json.loads(line) for line in path.read_text().splitlines()]
        model, messages, played = ScriptedModel(script), [], 0
        for message in script:
            if message["role"] == "assistant":
                assert (await ask(model, messages))["message"] == message
                played += 1
            messages.append(freeze(message))
        assert played == sum(message["role"] == "assistant" for message in script) > 50


# A service: what is sent


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


# A service: what comes back


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
    monkeypatch.setattr(chat_module, "LINGER", 0.01)
    async with model_server(stream(chunk({"content": "hi"}, "stop"), silent=True)) as server:
        assert (await ask(ChatModel(server.url, "small")))["message"]["content"] == "hi"


async def test_comments_and_empty_pieces_of_a_stream_are_passed_over():
    answer = Answer(
        headers={"Content-Type": "text/event-stream; charset=utf-8"},
        pieces=(b": waiting\r\n\r\n", *stream(chunk({}), chunk({"content": "hi"}, "stop")).pieces),
    )
    async with model_server(answer) as server:
        assert (await ask(ChatModel(server.url, "small")))["message"]["content"] == "hi"


# A service: what goes wrong

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
    async with model_server(Answer(307, {"Location": "https://else.example/v1?key=canary"})) as server:
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


async def test_a_service_that_says_nothing_is_given_up():
    async with model_server(Answer(silent=True, headers={"Content-Type": "application/json"})) as server:
        with pytest.raises(ModelCut, match="ReadTimeout"):
            await ask(ChatModel(server.url, "small", timeout=0.05))


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
    assert model._own is None


async def test_a_client_of_ones_own_is_used_and_left_open():
    async with model_server(streamed("hi")) as server, httpx2.AsyncClient(headers={"X-Team": "blue"}) as client:
        async with ChatModel(server.url, "small", client=client) as model:
            await ask(model)
        assert not client.is_closed
    assert server.requests[0].headers["x-team"] == "blue"


async def test_many_calls_at_once_do_not_wait_for_each_other():
    async with model_server(streamed("hi")) as server, ChatModel(server.url, "small", timeout=5) as model:
        server.together = 120
        async with trio.open_nursery() as nursery:
            for _ in range(120):
                nursery.start_soon(ask, model)
        assert server.connections == 120


# The key


class Leaky:
    """A service that quotes the key in whatever it says."""

    answers = (
        failing(401, f"Incorrect API key provided: {KEY}"),
        failing(500, f"upstream failed for Bearer {KEY}"),
        Answer(403, {}, (f"<html>{KEY}".encode(),)),
        stream(f"oops {KEY}"),
        stream({"error": f"bad key {KEY}"}),
        stream(chunk({"content": f"your key is {KEY}"}, "stop")),
        whole({"role": "assistant", "content": f"your key is {KEY}", KEY: 1}),
        Answer(307, {"Location": f"https://else.example/{KEY}"}),
    )


@pytest.mark.parametrize("answer", Leaky.answers)
async def test_the_key_is_in_no_outcome_whatever_the_service_says(answer):
    """Invariant 20."""
    async with model_server(answer) as server:
        outcome = await run_to_outcome(ChatModel(server.url, "small", "openai", policy=impatient()))
        assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    said = outcome.value if outcome.error is None else (str(outcome.error), vars(outcome.error), outcome.error.args)
    assert KEY not in repr((outcome, said, outcome.trace))
    assert "‹credential openai›" in repr(said)


async def test_no_error_of_the_http_library_is_carried_along():
    """Invariant 20. Such an error holds the request, with its headers."""
    async with model_server(streamed("hi")) as server:
        pass
    with pytest.raises(ModelUnreachable) as caught:
        await ask(ChatModel(server.url, "small", "openai"))
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


@pytest.mark.parametrize("key", ["two\nlines", "schlüssel", "nul\x00"])
async def test_a_key_that_no_header_can_carry_is_refused_without_showing_it(key):
    async with model_server(streamed("hi")) as server:
        with pytest.raises(NoCredential) as caught:
            await Call(key)(ChatModel(server.url, "small", "openai"))
    assert repr(key)[1:-1] not in str(caught.value)
    assert server.requests == []


async def test_space_around_a_key_is_not_part_of_it():
    async with model_server(streamed("hi")) as server:
        await Call(f" {KEY}\n")(ChatModel(server.url, "small", "openai"))
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize(
    "url", ["api.example.com/v1", "ftp://x/v1", "", "http://", "https://me:canary@x/v1", "http://\x00canary/v1"]
)
def test_a_base_url_that_cannot_be_used_is_refused_without_showing_it(url):
    with pytest.raises(BadModelURL) as caught:
        ChatModel(url, "small")
    assert "canary" not in str(caught.value)
    assert caught.value.__context__ is None


@pytest.mark.parametrize(
    ("url", "asked"),
    [
        ("https://x.example/v1", "https://x.example/v1/chat/completions"),
        ("https://x.example/v1/", "https://x.example/v1/chat/completions"),
        ("https://x.example/v1/chat/completions", "https://x.example/v1/chat/completions"),
        ("http://x.example:8080", "http://x.example:8080/chat/completions"),
    ],
)
def test_a_base_url_is_completed(url, asked):
    assert repr(ChatModel(url, "small")) == f"ChatModel({asked!r}, 'small', credential=None)"


async def test_the_query_of_a_base_url_is_sent_and_not_shown():
    async with model_server(failing(500)) as server:
        model = ChatModel(f"{server.url}?api-version=7", "small")
        with pytest.raises(ModelBusy):
            await ask(model)
    assert server.requests[0].path == "/v1/chat/completions?api-version=7"
    assert "api-version" not in repr(model)


# From the environment


def test_without_a_name_the_echo_is_chosen_whatever_keys_there_are():
    chosen = model_from_environment({"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": "https://x.example/v1"})
    assert isinstance(chosen.device, EchoModel)
    assert chosen.credentials == {}


@pytest.mark.parametrize(
    ("environ", "shown"),
    [
        ({}, "ChatModel('https://api.openai.com/v1/chat/completions', 'small', credential=None)"),
        (
            {"OPENAI_BASE_URL": "https://b/v1", "OPENAI_API_KEY": KEY},
            "ChatModel('https://b/v1/chat/completions', 'small', credential='model')",
        ),
        (
            {
                "OPENAI_BASE_URL": "https://b/v1",
                "KEEVE_MODEL_URL": "http://a/v1",
                "KEEVE_MODEL_KEY": "MINE",
                "MINE": KEY,
            },
            "ChatModel('http://a/v1/chat/completions', 'small', credential='model')",
        ),
    ],
)
def test_a_name_chooses_a_service_and_what_it_needs(environ, shown):
    chosen = model_from_environment({"KEEVE_MODEL": "small", **environ})
    assert repr(chosen.device) == shown
    vault = Vault(chosen.credentials)
    assert [vault.resolve(name) for name in vault.names()] == ([KEY] if KEY in environ.values() else [])
    assert KEY not in repr(chosen)


@pytest.mark.parametrize(
    ("environ", "says"),
    [
        ({"KEEVE_MODEL_URL": "http://a/v1"}, "KEEVE_MODEL_URL is set, but KEEVE_MODEL is not"),
        ({"KEEVE_MODEL": "small", "KEEVE_MODEL_KEY": "sk-canary-1"}, "KEEVE_MODEL_KEY is the name of the variable"),
        ({"KEEVE_MODEL": "small", "KEEVE_MODEL_KEY": "canary1"}, "KEEVE_MODEL_KEY names a variable that is not set"),
    ],
)
def test_settings_that_cannot_be_followed_are_refused_without_showing_them(environ, says):
    with pytest.raises(BadModelSetting, match=says) as caught:
        model_from_environment(environ)
    assert "canary" not in str(caught.value)
