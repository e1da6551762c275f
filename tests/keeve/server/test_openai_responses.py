"""`/v1/responses`, asked by the real `openai` package through the application's ASGI interface."""

from __future__ import annotations

from typing import Any

import openai
import pytest
import trio
import trio.lowlevel

from actors.models import ModelBusy
from actors.tools import Tools
from tests.actors.scenes import Says, calls, says
from tests.actors.test_session_on_host import Waits
from tests.openai_clients import client_of, schema
from tests.server_worlds import world


async def test_a_response_is_complete_and_can_be_looked_at_again() -> None:
    usage = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
    async with world(devices={"model": Says(says("hello there", usage=usage))}) as w:
        client = client_of(w)
        made = await client.responses.create(
            model="model", input="hi", instructions="Be brief.", metadata={"a": "b"}, temperature=0.5
        )
        again = await client.responses.retrieve(made.id)
    assert made.to_dict() == again.to_dict()
    assert (made.status, made.output_text, made.model) == ("completed", "hello there", "model")
    assert (made.instructions, made.metadata, made.temperature) == ("Be brief.", {"a": "b"}, 0.5)
    assert made.usage is not None
    assert (made.usage.input_tokens, made.usage.output_tokens, made.usage.total_tokens) == (3, 2, 5)
    assert made.output[0].type == "message"
    assert made.output[0].id.startswith("msg_")


async def test_a_response_goes_on_from_another_one_and_two_of_the_same_are_a_fork() -> None:
    model = Says(*(says(text) for text in ("one", "two", "three", "four")))
    async with world(devices={"model": model}) as w:
        client = client_of(w)
        first = await client.responses.create(input="a")
        second = await client.responses.create(input="b", previous_response_id=first.id)
        other = await client.responses.create(input="c", previous_response_id=first.id)
        last = await client.responses.create(input="d", previous_response_id=second.id)
        assert len(w.host.sessions()) == 2
    told = [[message["content"] for message in messages] for messages, _ in model.asked]
    assert told == [["a"], ["a", "one", "b"], ["a", "one", "c"], ["a", "one", "b", "two", "d"]]
    assert (second.previous_response_id, other.previous_response_id) == (first.id, first.id)
    assert last.output_text == "four"


async def test_instructions_and_tools_are_of_one_request_alone() -> None:
    model = Says(says("one"), says("two"))
    async with world(devices={"model": model}) as w:
        client = client_of(w)
        first = await client.responses.create(input="a", instructions="Rhyme.", tools=[schema("f")])
        await client.responses.create(input="b", previous_response_id=first.id)
    assert model.asked[0][0][0] == {"role": "system", "content": "Rhyme."}
    assert "tools" in model.asked[0][1]
    assert [message["role"] for message in model.asked[1][0]] == ["user", "assistant", "user"]
    assert "tools" not in model.asked[1][1]


async def test_functions_of_the_client_are_called_by_the_client() -> None:
    model = Says(says("I look.", calls("c1", "weather", city="Ulm")), says("rain"))
    async with world(devices={"model": model}) as w:
        client = client_of(w)
        first = await client.responses.create(input="weather?", tools=[schema("weather")])
        call = first.output[1]
        assert call.type == "function_call"
        assert (first.status, call.name, call.call_id) == ("completed", "weather", "c1")
        outcome: Any = {"type": "function_call_output", "call_id": call.call_id, "output": "wet"}
        second = await client.responses.create(
            input=[outcome], tools=[schema("weather")], previous_response_id=first.id
        )
        items = await client.responses.input_items.list(second.id)
    assert second.output_text == "rain"
    assert model.asked[1][0][2] == {"role": "tool", "content": "wet", "tool_call_id": "c1"}
    assert [(item.type, item.to_dict().get("output")) for item in items.data] == [("function_call_output", "wet")]


async def test_the_whole_history_may_be_in_the_input() -> None:
    model = Says(says("well"))
    async with world(devices={"model": model}) as w:
        history: Any = [
            {"role": "developer", "content": "Be kind."},
            {"role": "user", "content": [{"type": "input_text", "text": "weather?"}]},
            {"type": "reasoning", "id": "rs_1", "summary": []},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I look."}]},
            {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": "{}"},
            {"type": "function_call", "call_id": "c2", "name": "weather", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c1", "output": "wet"},
            {"type": "function_call_output", "call_id": "c2", "output": [{"type": "input_text", "text": "dry"}]},
            {"role": "user", "content": [{"type": "input_image", "image_url": "data:image/png;base64,AA=="}]},
        ]
        response = await client_of(w).responses.create(input=history)
        listed = await client_of(w).responses.input_items.list(response.id, order="asc")
    roles = [message["role"] for message in model.asked[0][0]]
    assert roles == ["system", "user", "assistant", "tool", "tool", "user"]
    assert [call["id"] for call in model.asked[0][0][2]["tool_calls"]] == ["c1", "c2"]
    assert [item.type for item in listed.data] == [
        *("message", "message", "message", "function_call", "function_call"),
        *("function_call_output", "function_call_output", "message"),
    ]


async def weather(city: str) -> str:
    """The weather in a city."""
    if city == "Atlantis":
        raise LookupError("no such city")
    return f"rain in {city}"


async def test_tools_of_the_host_are_called_here_and_shown_as_those_of_a_server() -> None:
    model = Says(says(None, calls("c1", "weather", city="Ulm"), calls("c2", "weather", city="Atlantis")), says("rain"))
    tools = Tools(weather)
    async with world(devices={"model": model, "tools": tools}) as w:
        client = client_of(w)
        host_tools: Any = [{"type": "mcp", "server_label": "tools"}]
        response = await client.responses.create(input="weather?", tools=host_tools)
        again = await client.responses.retrieve(response.id)
    one, other, said = response.output
    assert one.type == other.type == "mcp_call"
    assert (one.name, one.output, one.status) == ("weather", "rain in Ulm", "completed")
    assert other.status == "failed"
    assert "no such city" in str(other.error)
    assert said.type == "message"
    assert [each["function"]["name"] for each in model.asked[0][1]["tools"]] == ["weather"]
    assert again.to_dict() == response.to_dict()


async def test_a_model_may_be_named_together_with_the_tools_of_the_host() -> None:
    model = Says(says(None, calls("c1", "weather", city="Ulm")), says("rain"))
    tools = Tools(weather)
    async with world(devices={"model": model, "tools": tools}) as w:
        response = await client_of(w).responses.create(model="model+tools", input="weather?")
        names = [each.id async for each in client_of(w).models.list()]
    assert response.output_text == "rain"
    assert names == ["model", "model+tools"]


async def test_what_a_model_had_to_call_it_has_to_call_once() -> None:
    model = Says(says(None, calls("c1", "weather", city="Ulm")), says("rain"))
    tools = Tools(weather)
    async with world(devices={"model": model, "tools": tools}) as w:
        await client_of(w).responses.create(model="model+tools", input="weather?", tool_choice="required")
    assert [options.get("tool_choice") for _, options in model.asked] == ["required", None]


async def test_a_request_with_the_same_key_is_answered_once() -> None:
    model = Says(says("one"), says("two"), says("three"))
    async with world(devices={"model": model}) as w:
        client = client_of(w)
        key = {"Idempotency-Key": "k1"}
        first = await client.responses.create(input="a", extra_headers=key)
        assert (await client.responses.create(input="a", extra_headers=key)).id == first.id
        after = {"Idempotency-Key": "k2"}
        second = await client.responses.create(input="b", previous_response_id=first.id, extra_headers=after)
        assert (
            await client.responses.create(input="b", previous_response_id=first.id, extra_headers=after)
        ).id == second.id
        fork = {"Idempotency-Key": "k3"}
        third = await client.responses.create(input="c", previous_response_id=first.id, extra_headers=fork)
        again = await client.responses.create(input="c", previous_response_id=first.id, extra_headers=fork)
        assert third.id == again.id != second.id
        with pytest.raises(openai.ConflictError) as caught:
            await client.responses.create(input="other", extra_headers=key)
    assert caught.value.code == "request_conflict"
    assert len(model.asked) == 3


async def test_two_that_are_sent_at_once_with_the_same_key_are_one() -> None:
    """Invariant 30."""
    model = Says(says("one"))
    ids: list[str] = []
    async with world(devices={"model": model}) as w:

        async def ask() -> None:
            made = await client_of(w).responses.create(input="a", extra_headers={"Idempotency-Key": "k1"})
            ids.append(made.id)

        async with trio.open_nursery() as nursery:
            for _ in range(5):
                nursery.start_soon(ask)
    assert len(ids) == 5
    assert len(set(ids)) == 1


async def test_the_response_of_somebody_else_is_not_there() -> None:
    async with world() as w:
        made = await client_of(w, "ann").responses.create(input="a")
        bob = client_of(w, "bob")
        messages = set()
        for id in (made.id, made.id[:-1] + "9", "resp_" + "0" * 40, "resp_1"):
            for ask in (
                bob.responses.retrieve,
                bob.responses.cancel,
                bob.responses.delete,
                bob.responses.input_items.list,
            ):
                with pytest.raises(openai.NotFoundError) as caught:
                    await ask(id)
                messages.add(str(caught.value.body["message"]).replace(id, "ID"))  # type: ignore[index]  # it is a dict
            with pytest.raises(openai.NotFoundError):
                await bob.responses.create(input="b", previous_response_id=id)
        assert messages == {"there is no response 'ID'; use the id of a response of your own"}
        assert (await client_of(w).responses.retrieve(made.id)).id == made.id  # the owner of the server may


async def test_a_response_in_the_background_is_there_at_once_and_can_be_cancelled() -> None:
    model = Waits()
    async with world(devices={"model": model}) as w:
        client = client_of(w)
        made = await client.responses.create(input="a", background=True)
        assert made.status in ("queued", "in_progress")
        await model.began.wait()
        assert (await client.responses.retrieve(made.id)).status == "in_progress"
        assert (await client.responses.cancel(made.id)).status == "cancelled"
        await model.stopped.wait()
        assert (await client.responses.cancel(made.id)).status == "cancelled"


async def test_each_answer_that_is_a_response_names_its_session() -> None:
    async with world() as w:
        made = await w.ann.post("/v1/responses", json={"model": "model", "input": "a"})
        path = f"/v1/responses/{made.json()['id']}"
        for answer in (
            made,
            await w.ann.get(path),
            await w.ann.get(path, params={"stream": "true"}),
            await w.ann.post(f"{path}/cancel"),
        ):
            assert [answer.headers["x-keeve-session"]] == [row.id for row in w.host.sessions()]


async def test_one_that_goes_on_from_a_response_under_way_waits_for_it() -> None:
    model = Waits()
    async with world(devices={"model": model}) as w:
        client = client_of(w)
        first = await client.responses.create(input="a", background=True)
        second = await client.responses.create(input="b", background=True, previous_response_id=first.id)
        assert second.status == "queued"
        await client.responses.cancel(second.id)
        await client.responses.cancel(first.id)


async def test_a_response_that_is_deleted_is_gone_with_its_session() -> None:
    async with world() as w:
        client = client_of(w)
        first = await client.responses.create(input="a secret")
        second = await client.responses.create(input="b", previous_response_id=first.id)
        assert await client.responses.delete(first.id) is None
        with pytest.raises(openai.NotFoundError):
            await client.responses.retrieve(first.id)
        assert (await client.responses.retrieve(second.id)).output_text == "b"
        [session] = w.host.sessions()
        messages = await (await w.host.get(session.id)).messages
        assert "secret" not in str([message["content"] for message in messages])
        third = await client.responses.create(input="c")
        await client.responses.delete(third.id)
        assert len(w.host.sessions()) == 1


async def test_what_is_not_to_be_stored_is_gone_when_it_was_answered() -> None:
    async with world() as w:
        made = await client_of(w).responses.create(input="a", store=False)
        assert made.output_text == "a"
        assert w.host.sessions() == []


async def test_a_model_that_fails_is_an_error_with_what_it_said() -> None:
    async with world(devices={"model": Says(ModelBusy(429, "try later"), ModelBusy(429, "try later"))}) as w:
        with pytest.raises(openai.InternalServerError) as caught:
            await client_of(w).responses.create(input="a")
        assert (caught.value.code, caught.value.response.headers["x-should-retry"]) == ("model_busy", "false")
        background = await client_of(w).responses.create(input="a", background=True)
        while (failed := await client_of(w).responses.retrieve(background.id)).status != "failed":
            await trio.lowlevel.checkpoint()
        assert failed.error is not None
        assert failed.error.code == "rate_limit_exceeded"


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("max_tool_calls", 3),
        ("top_logprobs", 3),
        ("truncation", "auto"),
        ("prompt", {"id": "p"}),
        ("moderation", {"model": "m"}),
        ("nonsense", 1),
        ("temperature", 9),
        ("temperature", "hot"),
        ("stream", "yes"),
        ("metadata", {"a": 1}),
        ("tools", [{"type": "web_search"}]),
        ("tools", [{"type": "mcp", "server_label": "x", "server_url": "http://example.com"}]),
        ("tool_choice", {"type": "allowed_tools", "mode": "auto", "tools": []}),
        ("text", {"format": {"type": "odd"}}),
        ("input", [{"type": "computer_call"}]),
        ("input", [{"role": "user", "content": [{"type": "input_file", "file_id": "f"}]}]),
        ("input", [{"type": "function_call_output", "call_id": "c9", "output": "x"}]),
        ("input", 7),
        ("include", ["message.output_text.logprobs"]),
    ],
)
async def test_what_would_make_it_another_answer_is_refused_by_its_name(parameter: str, value: Any) -> None:
    async with world() as w:
        answer = await w.owner.post("/v1/responses", json={"input": "a", parameter: value})
        assert answer.status_code in (400, 422), answer.text
        error = answer.json()["error"]
        assert error["type"] == "invalid_request_error"
        assert parameter in error["message"] or str(error["param"]).startswith(parameter)


async def test_what_changes_nothing_of_the_answer_is_accepted() -> None:
    async with world() as w:
        answer = await w.owner.post(
            "/v1/responses",
            json={
                "input": "a",
                "user": "u",
                "service_tier": "flex",
                "prompt_cache_key": "k",
                "truncation": "disabled",
                "include": ["reasoning.encrypted_content"],
                "reasoning": {"effort": "low", "summary": "auto"},
                "temperature": None,
                "previous_response_id": None,
            },
        )
        assert answer.status_code == 200, answer.text


async def test_an_unknown_model_is_named() -> None:
    async with world() as w:
        with pytest.raises(openai.NotFoundError, match="there is no model 'gpt-9'"):
            await client_of(w).responses.create(model="gpt-9", input="a")
        with pytest.raises(openai.NotFoundError):
            await client_of(w).models.retrieve("gpt-9")


async def test_options_reach_the_model_in_its_own_words() -> None:
    model = Says(says("{}"))
    async with world(devices={"model": model}) as w:
        await client_of(w).responses.create(
            input="a",
            max_output_tokens=9,
            reasoning={"effort": "low"},
            text={"format": {"type": "json_schema", "name": "n", "schema": {"type": "object"}}, "verbosity": "low"},
        )
    assert model.asked[0][1] == {
        "max_completion_tokens": 9,
        "reasoning_effort": "low",
        "verbosity": "low",
        "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object"}}},
    }


async def test_an_answer_that_was_cut_is_incomplete() -> None:
    answer = {**says("half a"), "finish_reason": "length"}
    async with world(devices={"model": Says(answer)}) as w:
        made = await client_of(w).responses.create(input="a", max_output_tokens=2)
    assert made.status == "incomplete"
    assert made.incomplete_details is not None
    assert made.incomplete_details.reason == "max_output_tokens"


async def test_an_item_may_be_referred_to_by_its_owner_alone() -> None:
    model = Says(says("one"), says("two"))
    async with world(devices={"model": model}) as w:
        first = await client_of(w, "ann").responses.create(input="a")
        item: Any = {"type": "item_reference", "id": first.output[0].id}
        await client_of(w, "ann").responses.create(input=[item, {"role": "user", "content": "b"}])
        with pytest.raises(openai.BadRequestError, match="there is no item"):
            await client_of(w, "bob").responses.create(input=[item, {"role": "user", "content": "b"}])
    assert [message["content"] for message in model.asked[1][0]] == ["one", "b"]


async def test_a_tool_of_the_host_that_is_not_offered_is_not_called() -> None:
    called: list[str] = []

    async def drop(table: str) -> str:
        """Drop a table."""
        called.append(table)
        return "dropped"

    model, tools = Says(says(None, calls("c1", "drop", table="users")), says("well")), Tools(drop)
    async with world(devices={"model": model, "tools": tools}) as w:
        made = await client_of(w).responses.create(model="model", input="a", tools=[schema("other")])
    assert made.output_text == "well"
    assert called == []
