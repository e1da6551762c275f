"""The real `openai` package and a real server: sync, on trio, through a kill, and with another server as its model."""

from __future__ import annotations

import signal
from functools import partial
from pathlib import Path

import httpx2
import openai
import pytest
import trio

from tests.model_server import held, model_server, streamed
from tests.server_process import Server, server, trusted


def sync(running: Server, **options: object) -> openai.OpenAI:
    http = httpx2.Client(trust_env=False, timeout=60, verify=trusted())
    return openai.OpenAI(api_key=running.token, base_url=f"{running.address}v1", http_client=http, **options)  # type: ignore[arg-type]  # as it takes them


def on_trio(running: Server) -> openai.AsyncOpenAI:
    http = httpx2.AsyncClient(trust_env=False, timeout=60, verify=trusted())
    return openai.AsyncOpenAI(api_key=running.token, base_url=f"{running.address}v1", http_client=http, max_retries=0)


def test_a_client_without_knowledge_of_keeve_has_conversations_forks_and_streams(store_folder: Path) -> None:
    with server(store_folder / "s") as running, sync(running) as client:
        assert [model.id for model in client.models.list()] == ["model"]
        first = client.responses.create(model="model", input="one")
        second = client.responses.create(model="model", input="two", previous_response_id=first.id)
        other = client.responses.create(model="model", input="three", previous_response_id=first.id)
        assert (first.output_text, second.output_text, other.output_text) == ("one", "two", "three")
        with client.responses.create(model="model", input="four", stream=True) as stream:
            assert [event.type for event in stream][-1] == "response.completed"
        talk = client.conversations.create()
        client.responses.create(model="model", input="five", conversation=talk.id)
        assert len(list(client.conversations.items.list(talk.id))) == 2
        made = client.chat.completions.create(model="model", messages=[{"role": "user", "content": "six"}])
        assert made.choices[0].message.content == "six"


def test_a_token_that_is_not_known_is_refused_as_clients_know_it(store_folder: Path) -> None:
    with server(store_folder / "s") as running, sync(running).with_options(api_key="wrong") as client:
        with pytest.raises(openai.AuthenticationError) as caught:
            client.models.list()
        assert caught.value.code == "not_authenticated"


def test_the_model_of_a_server_may_be_that_of_another_one(store_folder: Path) -> None:
    with server(store_folder / "a") as upstream:
        env = {"KEEVE_MODEL": "model", "KEEVE_MODEL_URL": f"{upstream.address}v1", "OPENAI_API_KEY": upstream.token}
        with server(store_folder / "b", env=env) as running, sync(running) as client:
            made = client.responses.create(model="model", input="hello", instructions="Say it again.")
            with client.chat.completions.create(
                model="model", messages=[{"role": "user", "content": "and again"}], stream=True
            ) as stream:
                text = "".join(chunk.choices[0].delta.content or "" for chunk in stream)
    assert (made.output_text, text) == ("hello", "and again")


async def test_a_stream_that_a_kill_has_cut_is_taken_up_and_a_request_that_is_sent_again_is_answered_once(
    store_folder: Path,
) -> None:
    store = store_folder / "s"
    async with model_server(held(streamed("one ", "two ", "three"), 2)) as model, trio.open_nursery() as nursery:
        env = {"KEEVE_MODEL": "small", "KEEVE_MODEL_URL": model.url}
        opened = server(store, env=env)
        running = await trio.to_thread.run_sync(opened.__enter__)
        seen: list[int] = []
        told = trio.Event()
        ids: list[str] = []
        key = {"Idempotency-Key": "k1"}

        async def listen() -> None:
            client = on_trio(running)
            try:
                async for event in await client.responses.create(
                    model="model", input="count", stream=True, extra_headers=key
                ):
                    seen.append(event.sequence_number)
                    if event.type == "response.output_text.delta":
                        told.set()
                    if event.type == "response.created":
                        ids.append(event.response.id)
            except (openai.APIError, httpx2.HTTPError):
                pass  # the server was killed

        nursery.start_soon(listen)
        await told.wait()
        await trio.to_thread.run_sync(partial(running.stop, signal.SIGKILL))
        await trio.to_thread.run_sync(partial(opened.__exit__, None, None, None))
        model.answers[:] = [streamed("one ", "two ", "three")]
        again = server(store, env=env)
        running = await trio.to_thread.run_sync(again.__enter__)
        client = on_trio(running)
        events = [
            event async for event in await client.responses.retrieve(ids[0], stream=True, starting_after=seen[-1])
        ]
        repeated = await client.responses.create(model="model", input="count", extra_headers=key)
        assert repeated.id == ids[0]
        assert repeated.output_text == "one two three"
        assert events[0].sequence_number > seen[-1]
        assert "".join(event.delta for event in events if event.type == "response.output_text.delta") == "two three"
        await client.close()
        await trio.to_thread.run_sync(partial(again.__exit__, None, None, None))
        nursery.cancel_scope.cancel()


async def test_fifty_streams_through_a_kill_end_in_one_answer_each(store_folder: Path) -> None:
    store = store_folder / "s"
    async with model_server(held(streamed("one ", "two"), 2)) as model, trio.open_nursery() as nursery:
        env = {"KEEVE_MODEL": "small", "KEEVE_MODEL_URL": model.url}
        opened = server(store, env=env)
        running = await trio.to_thread.run_sync(opened.__enter__)
        begun: set[int] = set()
        all_begun = trio.Event()

        async def listen(n: int) -> None:
            try:
                async with on_trio(running) as client:
                    async for _ in await client.responses.create(
                        model="model", input=f"count {n}", stream=True, extra_headers={"Idempotency-Key": str(n)}
                    ):
                        begun.add(n)
                        if len(begun) == 50:
                            all_begun.set()
            except (openai.APIError, httpx2.HTTPError):
                pass  # the server was killed

        for n in range(50):
            nursery.start_soon(listen, n)
        await all_begun.wait()
        await model.asked(50)
        await trio.to_thread.run_sync(partial(running.stop, signal.SIGKILL))
        await trio.to_thread.run_sync(partial(opened.__exit__, None, None, None))
        model.answers[:] = [streamed("one ", "two")]
        again = server(store, env=env)
        running = await trio.to_thread.run_sync(again.__enter__)
        texts: dict[int, str] = {}

        async def retry(n: int) -> None:
            async with on_trio(running) as client:
                made = await client.responses.create(
                    model="model", input=f"count {n}", stream=True, extra_headers={"Idempotency-Key": str(n)}
                )
                async for event in made:
                    if event.type == "response.completed":
                        texts[n] = event.response.output_text

        async with trio.open_nursery() as retrying:
            for n in range(50):
                retrying.start_soon(retry, n)
        assert texts == dict.fromkeys(range(50), "one two")
        async with httpx2.AsyncClient(base_url=running.address, headers=running.headers, trust_env=False) as client:
            listed = (await client.get("/api/v1/sessions", params={"limit": 100})).json()
        assert len(listed["sessions"]) == 50
        await trio.to_thread.run_sync(partial(again.__exit__, None, None, None))
        nursery.cancel_scope.cancel()
