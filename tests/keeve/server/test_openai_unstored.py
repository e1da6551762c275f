"""`store: false` keeps nothing of its request, and touches nothing of what was there before."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import attrs
import openai
import pytest
import trio
import trio.testing

from actors.responding import Responding
from actors.tools import Tools
from keeve.server import Principal, ServerSettings
from keeve.server.listening import HttpListener
from keeve.server.openai.unstored import PREFIX, VIA, Unstored
from keeve.testing import MemoryLog
from tests.actors.scenes import Says, says
from tests.actors.test_session_on_host import Waits
from tests.keeve.server.test_openai_chat import user
from tests.keeve.server.test_openai_streams import streamed_to
from tests.openai_clients import Streams, client_of
from tests.server_worlds import TOKENS, World, world


@contextmanager
def token_for(w: World, *verbs: str, **limits: Any) -> Iterator[openai.AsyncOpenAI]:
    """A client with a token of ann's that may only do that."""
    TOKENS["less"] = "less-token-0123456789"
    w.serving.auth.ways[0].add(TOKENS["less"], Principal("ann", frozenset(verbs), **limits))  # type: ignore[attr-defined]  # of those that are known
    try:
        yield client_of(w, "less")
    finally:
        del TOKENS["less"]


async def left(w: World) -> list[list[Any]]:
    """What the sessions that are there have been given."""
    return [await (await w.host.get(row.id)).history for row in w.host.sessions()]


async def test_after_a_response_it_is_a_fork_and_what_was_before_stays() -> None:
    model = Says(*(says(text) for text in ("one", "two", "three", "four", "five")))
    async with world(devices={"model": model}) as w:
        client = client_of(w, "ann")
        first = await client.responses.create(input="a")
        second = await client.responses.create(input="b", previous_response_id=first.id)
        for id in (second.id, first.id):
            made = await client.responses.create(input="c", previous_response_id=id, store=False)
            assert (made.store, made.previous_response_id) == (False, id)
            with pytest.raises(openai.NotFoundError):
                await client.responses.retrieve(made.id)
            with pytest.raises(openai.NotFoundError):
                await client.responses.create(input="d", previous_response_id=made.id)
        assert await left(w) == [["a", "b"]]
        third = await client.responses.create(input="e", previous_response_id=second.id)  # nothing came in between
        assert await left(w) == [["a", "b", "e"]]
    told = [[message["content"] for message in messages] for messages, _ in model.asked]
    assert told[2:4] == [["a", "one", "b", "two", "c"], ["a", "one", "c"]]
    assert third.output_text == "five"


async def test_in_a_conversation_it_knows_what_was_said_and_adds_nothing() -> None:
    model = Streams(["o", "ne"], ["two"], ["three"])
    async with world(devices={"model": model}) as w:
        client = client_of(w, "ann")
        talk = await client.conversations.create(items=[{"type": "message", "role": "user", "content": "precious"}])
        running = await client.responses.create(input="a", conversation=talk.id, background=True)
        made = await client.responses.create(input="b", conversation=talk.id, store=False)
        assert made.output_text == "two"
        stream = await client.responses.create(input="c", conversation=talk.id, store=False, stream=True)
        assert [event.type async for event in stream][-1] == "response.completed"
        assert (await client.responses.retrieve(running.id)).output_text == "one"
        items = await client.conversations.items.list(talk.id, order="asc")
        assert await left(w) == [["a"]]
    assert [item.to_dict()["content"][0]["text"] for item in items.data] == ["precious", "a", "one"]  # type: ignore[index]  # as it is
    said = [[message["content"] for message in asked] for asked in model.asked]
    assert said[1:] == [["precious", "a", "one", last] for last in ("b", "c")]


async def test_who_may_not_make_and_delete_sessions_asks_nothing_that_has_to_be_deleted() -> None:
    async with world() as w:
        ann = client_of(w, "ann")
        talk = await ann.conversations.create(items=[{"type": "message", "role": "user", "content": "precious"}])
        first = await ann.responses.create(input="a")
        [item] = (await ann.conversations.items.list(talk.id)).data
        before = [(row.id, row.seq) for row in w.host.sessions()]
        with token_for(w, "read", "turn") as less:
            for ask in (
                less.responses.create(input="b", store=False),
                less.responses.create(input="b", store=False, conversation=talk.id),
                less.responses.create(input="b", store=False, previous_response_id=first.id),
                less.chat.completions.create(model="model", messages=[user("b")], store=False),
                less.conversations.items.delete(str(item.id), conversation_id=talk.id),
                less.conversations.delete(talk.id),
                less.responses.delete(first.id),
            ):
                with pytest.raises(openai.PermissionDeniedError):
                    await ask
        assert [(row.id, row.seq) for row in w.host.sessions()] == before


async def test_what_was_said_before_a_fork_goes_only_by_who_may_take_it_out_there() -> None:
    async with world() as w:
        ann = client_of(w, "ann")
        first = await ann.responses.create(input="precious")
        await ann.responses.create(input="b", previous_response_id=first.id)
        other = await ann.responses.with_raw_response.create(input="c", previous_response_id=first.id)
        fork = other.headers["x-keeve-session"]
        there = f"resp_{w.host.row(fork).uid.hex()}00000001"
        with token_for(w, "read", "turn", "manage", sessions=frozenset((fork,))) as less:
            assert (await less.responses.retrieve(there)).output_text == "precious"
            with pytest.raises(openai.PermissionDeniedError):
                await less.responses.delete(there)
            await less.responses.delete(other.parse().id)
        assert (await ann.responses.retrieve(first.id)).output_text == "precious"
        await ann.responses.delete(there)
        assert (await ann.responses.retrieve(first.id)).output_text == "[erased]"


async def test_a_session_of_the_clients_own_is_kept_or_not_named() -> None:
    async with world() as w:
        completions = client_of(w).chat.completions
        for name in ("X-Keeve-Session", "X-Hermes-Session-Id"):
            with pytest.raises(openai.BadRequestError, match="is kept there") as caught:
                await completions.create(
                    model="model", messages=[user("a")], store=False, extra_headers={name: "my talk"}
                )
            assert caught.value.param == "store"
        assert w.host.sessions() == []


@pytest.mark.parametrize("path", ["/v1/responses", "/v1/chat/completions"])
async def test_a_client_that_leaves_takes_what_it_said_along(path: str) -> None:
    model = Waits()
    said = {"input": "private"} if path == "/v1/responses" else {"messages": [user("private")]}
    body = json.dumps({**said, "store": False, "stream": True})
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKENS['ann']}\r\n"
    async with world(ServerSettings(port=0), devices={"model": model}) as w, trio.open_nursery() as nursery:
        first = await w.host.asking("ann", "openai").spawn(Responding, "kept")
        listens = HttpListener(w.app, w.serving.settings)
        await nursery.start(listens.run, trio.Event())
        async with await trio.open_tcp_stream("127.0.0.1", listens.port) as client:
            await client.send_all(f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode())
            await model.began.wait()
            [private] = w.host.sessions(PREFIX)
            assert w.host.made_by(private.id) == ("ann", VIA)  # from its first record on: a kill finds it
        with trio.fail_after(10):
            while w.host.sessions(PREFIX):  # noqa: ASYNC110  # nobody is told
                await trio.sleep(0.01)
            await model.stopped.wait()
        assert [row.id for row in w.host.sessions()] == ["kept"]
        assert await first.history == []
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("path", ["/v1/responses", "/v1/chat/completions"])
async def test_a_request_without_a_stream_is_given_up_when_its_client_is_gone(path: str) -> None:
    model, gone = Waits(), trio.Event()
    said = {"input": "private"} if path == "/v1/responses" else {"messages": [user("private")]}

    async def send(message: Any) -> None:
        pass  # nobody is there

    async with world(devices={"model": model}) as w, trio.open_nursery() as nursery:
        nursery.start_soon(streamed_to, w, path, {**said, "store": False, "stream": False}, send, gone)
        await model.began.wait()
        assert len(w.host.sessions(PREFIX)) == 1
        gone.set()
        await w.settled()
        assert w.host.sessions(PREFIX) == []
        assert model.stopped.is_set()
        nursery.cancel_scope.cancel()


async def test_when_a_stream_has_ended_nothing_is_there_any_more() -> None:
    ended: list[int] = []
    async with world(devices={"model": Says(says("well"))}) as w:

        async def send(message: Any) -> None:
            if message["type"] == "http.response.body" and not message["more_body"]:
                ended.append(len(w.host.sessions()))

        await streamed_to(w, "/v1/responses", {"input": "a", "store": False}, send)
    assert ended == [0]


async def test_a_repetition_waits_for_the_same_answer_and_neither_takes_it_from_the_other() -> None:
    began = trio.Event()
    model = Streams([began, "one"])
    async with world(devices={"model": model}) as w:
        client = client_of(w, "ann")
        answers: list[Any] = []

        async def ask(**body: Any) -> None:
            key = {"Idempotency-Key": "k"}
            answers.append(await client.responses.create(input="a", store=False, extra_headers=key, **body))

        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(ask)
            await w.settled()
            began.set()
        assert len({each.id for each in answers}) == len(model.asked) == 1
    assert [each.output_text for each in answers] == ["one"] * 3


async def test_what_a_server_that_was_killed_has_left_goes_at_the_next_start() -> None:
    log = MemoryLog()
    async with world(log=log) as w:
        for by, via, id in (("ann", VIA, f"{PREFIX}1"), ("ann", "http", f"{PREFIX}2"), ("ann", "openai", "kept")):
            s: Any = await w.host.asking(by, via).spawn(Responding, id)
            await s.turn("hello")
    async with world(log=log) as w:
        await w.settled()
        assert [row.id for row in w.host.sessions()] == ["kept", f"{PREFIX}2"]


async def test_tools_of_the_host_do_what_they_are_asked_there_too() -> None:
    async def nothing() -> str:
        """Nothing."""
        return "nothing"

    async with world(devices={"model": Says(says("well")), "tools": Tools(nothing)}) as w:
        made = await client_of(w).responses.create(model="model+tools", input="a", store=False)
        assert made.output_text == "well"
        assert w.host.sessions() == []


async def test_nobody_finds_a_key_by_trying_keys_against_the_id_of_its_session() -> None:
    async with world() as w:
        one = Unstored(w.serving)
        assert one.id("ann", "k") == one.id("ann", "k") != one.id("bob", "k")
        other = Unstored(attrs.evolve(w.serving, secret="another"))
        assert one.id("ann", "k") != other.id("ann", "k")
