"""`/v1/chat/completions`, without a session and in one that the client names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import openai
import pytest
import trio
import trio.testing

from actors.models import ModelRefused
from actors.session import Session
from actors.tools import Tools
from tests.actors.scenes import Says, calls, says
from tests.keeve.server.test_openai_responses import weather
from tests.openai_clients import Streams, client_of
from tests.server_worlds import world
from vat.devices.devices import Effect, effect

LEAVES_THE_REST = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
"""The package reads a stream up to [DONE], and leaves the generator that reads it to the collector."""


def user(text: str) -> Any:
    return {"role": "user", "content": text}


def function(name: str) -> Any:
    return {"type": "function", "function": {"name": name, "parameters": {"type": "object"}}}


async def test_a_completion_answers_the_conversation_that_it_is_given() -> None:
    usage = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
    model = Says(says("well", usage=usage))
    history: Any = [
        {"role": "system", "content": "Be kind."},
        user("a"),
        {"role": "assistant", "content": None, "tool_calls": [calls("c1", "f")]},
        {"role": "tool", "tool_call_id": "c1", "content": "3"},
        {"role": "assistant", "content": "three"},
        user("b"),
    ]
    async with world(devices={"model": model}) as w:
        made = await client_of(w).chat.completions.create(model="model", messages=history, temperature=0.1)
        assert len(w.host.sessions()) == 1
    assert model.asked[0][0] == history
    assert model.asked[0][1] == {"temperature": 0.1}
    assert (made.choices[0].message.content, made.choices[0].finish_reason) == ("well", "stop")
    assert made.usage is not None
    assert made.usage.total_tokens == 5


@pytest.mark.parametrize("header", ["X-Keeve-Session", "X-Hermes-Session-Id"])
async def test_in_a_session_only_what_is_new_counts(header: str) -> None:
    model = Says(says("one"), says("two"), says("three"))
    async with world(devices={"model": model}) as w:
        completions = client_of(w).chat.completions
        named = {header: "my talk"}
        raw = await completions.with_raw_response.create(model="model", messages=[user("a")], extra_headers=named)
        assert raw.headers[header] == "my talk"
        await completions.create(model="model", messages=[user("b")], extra_headers=named)
        whole: Any = [
            {"role": "system", "content": "Hm."},
            user("a"),
            {"role": "assistant", "content": "one"},
            user("c"),
        ]
        await completions.create(model="model", messages=whole, extra_headers=named)
        assert [row.id for row in w.host.sessions()] == ["my talk"]
        assert await (await w.host.get("my talk")).history == ["a", "b", "c"]
    assert [message["content"] for message in model.asked[2][0]] == ["Hm.", "a", "one", "b", "two", "c"]


async def test_sessions_of_one_name_are_apart_for_those_who_ask() -> None:
    async with world() as w:
        named = {"X-Keeve-Session": "talk"}
        for name in ("ann", "bob", "ann", "bob"):
            await client_of(w, name).chat.completions.create(model="model", messages=[user(name)], extra_headers=named)
        ids = [row.id for row in w.host.sessions()]
        assert len(ids) == 2
        histories = [await (await w.host.get(id)).history for id in ids]
    assert sorted(histories) == [["ann", "ann"], ["bob", "bob"]]


async def test_functions_of_the_client_are_its_own_to_call() -> None:
    model = Says(says("I look.", calls("c1", "f")), says("three"))
    async with world(devices={"model": model}) as w:
        completions = client_of(w).chat.completions
        named = {"X-Keeve-Session": "talk"}
        first = await completions.create(
            model="model", messages=[user("a")], tools=[function("f")], extra_headers=named
        )
        message = first.choices[0].message
        assert first.choices[0].finish_reason == "tool_calls"
        assert message.tool_calls is not None
        outcome: Any = {"role": "tool", "tool_call_id": message.tool_calls[0].id, "content": "3"}
        whole: Any = [user("a"), message.to_dict(), outcome]
        second = await completions.create(model="model", messages=whole, tools=[function("f")], extra_headers=named)
    assert second.choices[0].message.content == "three"
    assert [each["role"] for each in model.asked[1][0]] == ["user", "assistant", "tool"]


async def test_tools_of_the_host_are_called_here() -> None:
    model, tools = Says(says(None, calls("c1", "weather", city="Ulm")), says("rain")), Tools(weather)
    async with world(devices={"model": model, "tools": tools}) as w:
        made = await client_of(w).chat.completions.create(model="model+tools", messages=[user("weather?")])
    assert (made.choices[0].message.content, made.choices[0].message.tool_calls) == ("rain", None)


@LEAVES_THE_REST
async def test_a_completion_is_streamed_in_chunks() -> None:
    async with world(devices={"model": Streams(["hel", "lo"])}) as w:
        stream = await client_of(w).chat.completions.create(
            model="model", messages=[user("a")], stream=True, stream_options={"include_usage": True}
        )
        chunks = [chunk async for chunk in stream]
    assert [chunk.choices[0].delta.content for chunk in chunks[:-1]] == ["", "hel", "lo", None]
    assert chunks[-2].choices[0].finish_reason == "stop"
    assert chunks[-1].choices == []
    assert len({chunk.id for chunk in chunks}) == 1


@LEAVES_THE_REST
async def test_calls_are_streamed_for_the_client_that_puts_them_together() -> None:
    async with (
        world(devices={"model": Says(says("I look.", calls("c1", "f", a=1)))}) as w,
        client_of(w).chat.completions.stream(model="model", messages=[user("a")], tools=[function("f")]) as stream,
    ):
        final = await stream.get_final_completion()
    [call] = final.choices[0].message.tool_calls or ()
    assert (final.choices[0].message.content, call.function.arguments) == ("I look.", '{"a": 1}')
    assert final.choices[0].finish_reason == "tool_calls"


async def test_a_completion_with_the_same_key_is_answered_once() -> None:
    model = Says(says("one"), says("two"))
    async with world(devices={"model": model}) as w:
        completions = client_of(w).chat.completions
        for headers in ({}, {"X-Keeve-Session": "talk"}):
            key = {"Idempotency-Key": "k", **headers}
            one = await completions.create(model="model", messages=[user("a")], extra_headers=key)
            other = await completions.create(model="model", messages=[user("a")], extra_headers=key)
            assert one.id == other.id
    assert len(model.asked) == 2


@LEAVES_THE_REST
async def test_a_model_that_refuses_is_an_error_in_the_stream_as_well() -> None:
    async with world(devices={"model": Says(*[ModelRefused(400, "too long")] * 2)}) as w:
        completions = client_of(w).chat.completions
        with pytest.raises(openai.APIStatusError) as caught:
            await completions.create(model="model", messages=[user("a")])
        assert caught.value.code == "model_refused"
        with pytest.raises(openai.APIError, match=r"too long.*; \w"):  # and what to do
            async for _ in await completions.create(model="model", messages=[user("a")], stream=True):
                pass


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("n", 2),
        ("logprobs", True),
        ("functions", []),
        ("audio", {}),
        ("messages", []),
        ("messages", [{"role": "nobody", "content": "x"}]),
        ("messages", [{"role": "user"}]),
        ("tools", [{"type": "custom"}]),
    ],
)
async def test_what_would_make_it_another_completion_is_refused_by_its_name(parameter: str, value: Any) -> None:
    async with world() as w:
        answer = await w.owner.post("/v1/chat/completions", json={"messages": [user("a")], parameter: value})
        assert answer.status_code == 400, answer.text
        error = answer.json()["error"]
        assert parameter in error["message"] or str(error["param"]).startswith(parameter)


async def test_nothing_new_in_a_session_is_refused() -> None:
    async with world() as w:
        answer = await w.owner.post(
            "/v1/chat/completions",
            json={"messages": [user("a"), {"role": "assistant", "content": "b"}]},
            headers={"X-Keeve-Session": "talk"},
        )
        assert answer.status_code == 400


async def test_a_completion_that_is_not_to_be_stored_is_gone_when_it_was_answered() -> None:
    async with world() as w:
        await client_of(w).chat.completions.create(model="model", messages=[user("a")], store=False)
        assert w.host.sessions() == []


@LEAVES_THE_REST
async def test_a_session_of_another_type_takes_its_turn_as_it_is_set() -> None:
    model = Streams(["o", "ne"], ["tw", "o"], ["three"])
    async with world(devices={"model": model}) as w:
        s = await w.host.asking("owner").spawn(Session, "talk", system="Be brief.")
        completions = client_of(w).chat.completions
        named = {"X-Keeve-Session": "talk"}
        made = await completions.create(model="model", messages=[user("a")], extra_headers=named)
        stream = await completions.create(model="model", messages=[user("b")], extra_headers=named, stream=True)
        texts = [chunk.choices[0].delta.content async for chunk in stream]
        with pytest.raises(openai.BadRequestError, match="has its own temperature"):
            await completions.create(model="model", messages=[user("c")], extra_headers=named, temperature=1)
        history = await s.history
    assert made.choices[0].message.content == "one"
    assert texts == ["", "tw", "o", None]
    assert history == ["a", "b"]


@LEAVES_THE_REST
async def test_in_a_session_of_another_type_a_completion_is_named_by_its_turn() -> None:
    first = trio.Event()
    model = Streams([first, "o", "ne"], ["tw", "o"], ["three"], ["four"])
    async with world(devices={"model": model}) as w:
        await w.host.asking("owner").spawn(Session, "talk")
        completions = client_of(w).chat.completions
        answers: dict[str, Any] = {}

        async def ask(key: str, stream: bool = False) -> None:
            headers = {"X-Keeve-Session": "talk", "Idempotency-Key": key}
            asked: Any = {"model": "model", "messages": [user(key)], "extra_headers": headers}
            if not stream:
                answers[key] = (await completions.create(**asked)).to_dict()
                return
            chunks = [chunk async for chunk in await completions.create(stream=True, **asked)]
            text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks)
            answers[f"{key} streamed"] = (chunks[0].id, chunks[0].created, text)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask, "a")
            while not model.asked:  # noqa: ASYNC110  # a stand-in for a model has no event for it
                await trio.sleep(0.001)
            nursery.start_soon(ask, "b", True)  # it waits for its turn, and hears nothing of the one that runs
            await w.settled()
            first.set()
        before = dict(answers)
        await ask("c")
        for key in ("a", "b"):
            await ask(key)
            await ask(key, True)
        assert answers["a"] == before["a"]
        assert answers["b streamed"] == before["b streamed"]
    assert [answers[f"{key} streamed"] for key in "ab"] == [
        (answers[key]["id"], answers[key]["created"], answers[key]["choices"][0]["message"]["content"]) for key in "ab"
    ]
    assert [answers[key]["id"][-1] for key in "abc"] == ["1", "2", "3"]
    assert answers["b streamed"][2] == "two"
    assert len(model.asked) == 3


@LEAVES_THE_REST
async def test_the_last_answer_is_whole_whatever_was_told_of_those_before() -> None:
    said = [says("I look.", calls("c1", "weather", city="Ulm")), says("It rains.")]
    async with world(devices={"model": Tells("I look.", *said), "tools": Tools(weather)}) as w:
        await w.host.asking("owner").spawn(Session, "talk", tools=Tools(weather))
        named = {"X-Keeve-Session": "talk"}
        stream = await client_of(w).chat.completions.create(
            model="model", messages=[user("a")], extra_headers=named, stream=True
        )
        texts = [chunk.choices[0].delta.content async for chunk in stream]
    assert texts == ["", "I look.", "It rains.", None]


class Tells(Says):
    """Tells what it says of its first answer, and of no other."""

    def __init__(self, told: str, *answers: Any) -> None:
        super().__init__(*answers)
        self.told = [told]

    @effect(on_crash="retry")
    async def complete(self, effect: Effect, messages: Sequence[Any], **options: Any) -> Any:
        await trio.testing.wait_all_tasks_blocked(0.05)
        while self.told:
            effect.progress({"attempt": effect.attempt, "delta": {"content": self.told.pop()}})
        return self.answers.pop(0)
