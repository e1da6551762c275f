"""Requests that no client should send: each is refused, by what is wrong with it, and shows nothing of the inside."""

from __future__ import annotations

import json
from typing import Any

import httpx2
import openai
import pytest

from keeve.server import Principal
from tests.actors.scenes import Says, says
from tests.openai_clients import client_of
from tests.server_worlds import TOKENS, World, world

DEEP: Any = "x"
for _ in range(200):
    DEEP = {"a": DEEP}

ODD = ["", "\ud800", "\x00", "a" * 5000, -1, 1e300, 10**400, True, None, [], {}, [[]], [{}], [None], DEEP, {"type": {}}]
"""What may stand anywhere."""

RESPONSES = [
    *("input", "model", "instructions", "previous_response_id", "conversation", "metadata", "stream", "background"),
    *("store", "tools", "tool_choice", "parallel_tool_calls", "max_output_tokens", "text", "reasoning", "truncation"),
    *("temperature", "top_p", "include", "user", "\ud800"),
]
CHAT = ["messages", "model", "metadata", "stream", "stream_options", "tools", "tool_choice", "stop", "seed", "n"]


async def post(w: World, path: str, body: Any, **headers: str) -> httpx2.Response:
    return await w.ann.post(path, content=json.dumps(body), headers={"content-type": "application/json", **headers})


@pytest.mark.parametrize("name", RESPONSES)
async def test_no_parameter_of_a_response_breaks_the_server(name: str) -> None:
    async with world() as w:
        for odd in ODD:
            answer = await post(w, "/v1/responses", {"input": "a", name: odd})
            assert answer.status_code < 500, (odd, answer.text)


@pytest.mark.parametrize("name", CHAT)
async def test_no_parameter_of_a_completion_breaks_the_server(name: str) -> None:
    async with world() as w:
        for odd in ODD:
            answer = await post(w, "/v1/chat/completions", {"messages": [{"role": "user", "content": "a"}], name: odd})
            assert answer.status_code < 500, (odd, answer.text)


async def test_no_item_breaks_the_server() -> None:
    async with world() as w:
        made = (await post(w, "/v1/conversations", {})).json()["id"]
        kinds = ("message", "function_call", "function_call_output", "mcp_call", "item_reference", "reasoning")
        names = ("role", "content", "call_id", "name", "arguments", "output", "id", "type")
        sound = {
            "role": "user",
            "content": "a",
            "call_id": "c",
            "name": "f",
            "arguments": "{}",
            "output": "o",
            "id": "i",
        }
        for kind in kinds:
            for name in names:
                for odd in ODD:
                    item = {"type": kind, **sound, name: odd}
                    answer = await post(w, "/v1/responses", {"input": [item]})
                    assert answer.status_code < 500, (item, answer.text)
                    if name in ("content", "type"):
                        answer = await post(w, f"/v1/conversations/{made}/items", {"items": [item]})
                        assert answer.status_code < 500, (item, answer.text)


async def test_no_message_of_a_completion_breaks_the_server() -> None:
    async with world() as w:
        for role in ("user", "system", "assistant", "tool"):
            for name in ("role", "content", "tool_call_id", "tool_calls"):
                for odd in ODD:
                    body = {"messages": [{"role": role, "content": "a", "tool_call_id": "c", name: odd}]}
                    answer = await post(w, "/v1/chat/completions", body)
                    assert answer.status_code < 500, (body, answer.text)


async def test_what_is_no_json_is_refused() -> None:
    async with world() as w:
        for text in (b"", b"{", b"[]", b'"x"', b"\xff", b"NaN", b'{"input": Infinity}', b'{"a": 1e999}', b"[" * 10**5):
            for path in ("/v1/responses", "/v1/chat/completions"):
                answer = await w.ann.post(path, content=text)
                assert answer.status_code == 400, (text, answer.text)


async def test_half_of_a_surrogate_pair_is_the_replacement_character_wherever_it_stands() -> None:
    odd = "\ud83d \ude00\ud83d\ude00"
    model = Says(*[says("well")] * 3)
    async with world(devices={"model": model}) as w:
        made = (await post(w, "/v1/conversations", {"metadata": {odd: odd}})).json()
        item = {"role": "user", "content": [{"type": "input_text", "text": odd}]}
        added = await post(w, f"/v1/conversations/{made['id']}/items", {"items": [item]})
        for path, body in (
            ("/v1/responses", {"input": odd, "conversation": made["id"]}),
            ("/v1/responses", {"input": [item], "instructions": odd, "metadata": {"a": odd}}),
            ("/v1/chat/completions", {"messages": [{"role": "user", "content": odd}], "stop": odd}),
        ):
            assert (await post(w, path, body)).status_code == 200
        named = await post(w, "/v1/responses", {"input": "a", "\ud800": 1})
    assert made["metadata"] == {"\ufffd \ufffd😀": "\ufffd \ufffd😀"}
    assert added.json()["data"][0]["content"][0]["text"] == "\ufffd \ufffd😀"
    assert [messages[-1]["content"] for messages, _ in model.asked] == ["\ufffd \ufffd😀"] * 3
    assert (named.status_code, named.json()["error"]["param"]) == (400, "\ufffd")


async def test_a_key_is_good_in_all_its_length_and_is_refused_in_its_own_words_beyond() -> None:
    async with world() as w:
        first = (await post(w, "/v1/responses", {"input": "a"})).json()["id"]
        await post(w, "/v1/responses", {"input": "b", "previous_response_id": first})
        asked: list[tuple[str, dict[str, Any]]] = [
            ("/v1/responses", {"input": "a"}),
            ("/v1/responses", {"input": "a", "previous_response_id": first}),
            ("/v1/responses", {"input": "a", "store": False}),
            ("/v1/conversations", {"metadata": {"a": "b"}, "items": [{"role": "user", "content": "a"}]}),
            ("/v1/chat/completions", {"messages": [{"role": "user", "content": "a"}]}),
        ]
        for letter, (path, body) in zip("abcde", asked, strict=True):
            for length in (1, 899, 901, 1000):
                answers = [await post(w, path, body, **{"Idempotency-Key": letter * length}) for _ in range(2)]
                if body.get("store") is False:
                    assert [answer.status_code for answer in answers] == [200, 410], answers[0].text
                else:
                    assert [answer.status_code for answer in answers] == [200, 200], answers[0].text
                    assert answers[0].json()["id"] == answers[1].json()["id"]
            for key in ("", "k" * 1001):
                refused = (await post(w, path, body, **{"Idempotency-Key": key})).json()["error"]
                assert (refused["code"], refused["param"]) == ("bad_request_id", "Idempotency-Key")
                assert f"{len(key):,} characters" in refused["message"]
                assert "openai" not in refused["message"]


@pytest.mark.parametrize("name", ["a" * 3000, "%00", "%EF%BF%BD", "a%0Ab"])
async def test_a_name_that_no_session_can_have_is_refused_as_that_of_its_header(name: str) -> None:
    async with world() as w:
        body = {"messages": [{"role": "user", "content": "a"}]}
        refused = (await post(w, "/v1/chat/completions", body, **{"X-Keeve-Session": name})).json()["error"]
    assert (refused["code"], refused["param"]) == ("bad_session_id", "X-Keeve-Session")
    assert "1 to 200 characters" in refused["message"]
    assert len(refused["message"]) < 300


async def test_no_query_breaks_a_list() -> None:
    async with world() as w:
        made = (await post(w, "/v1/conversations", {})).json()["id"]
        for query in ("limit=0", "limit=x", "limit=1000", "limit=²", "order=up", "after=x", "after=msg_1"):
            answer = await w.ann.get(f"/v1/conversations/{made}/items?{query}")
            assert (answer.status_code, answer.json()["error"]["type"]) == (400, "invalid_request_error"), query


async def test_a_session_whose_name_no_header_can_carry_is_named_percent_encoded() -> None:
    async with world() as w:
        body = {"messages": [{"role": "user", "content": "a"}]}
        answer = await post(w, "/v1/chat/completions", body, **{"x-keeve-session": "gr%C3%BC%C3%9Fe%0D%0Ax: y"})
        assert answer.status_code == 422
        answer = await post(w, "/v1/chat/completions", body, **{"x-keeve-session": "gr%C3%BC%C3%9Fe"})
        assert answer.headers["x-keeve-session"] == "gr%C3%BC%C3%9Fe"
        assert [row.id for row in w.host.sessions()] == ["grüße"]


async def test_who_may_only_read_says_nothing_and_who_may_not_manage_makes_nothing() -> None:
    async with world() as w:
        made = await client_of(w, "ann").responses.create(input="a")
        [tokens] = w.serving.auth.ways[:1]
        for name, verbs in (("reads", {"read"}), ("talks", {"read", "turn"})):
            TOKENS[name] = f"{name}-token-0123456789"
            tokens.add(TOKENS[name], Principal("ann", frozenset(verbs)))  # type: ignore[attr-defined]  # of those that are known
        try:
            reads, talks = client_of(w, "reads"), client_of(w, "talks")
            assert (await reads.responses.retrieve(made.id)).id == made.id
            for ask in (
                reads.responses.create(input="b", previous_response_id=made.id),
                reads.responses.cancel(made.id),
                talks.responses.create(input="b"),
                talks.responses.delete(made.id),
                talks.conversations.create(),
            ):
                with pytest.raises(openai.PermissionDeniedError):
                    await ask
            await talks.responses.create(input="b", previous_response_id=made.id)
            with pytest.raises(openai.PermissionDeniedError):  # it would be a fork
                await talks.responses.create(input="c", previous_response_id=made.id)
        finally:
            del TOKENS["reads"], TOKENS["talks"]
