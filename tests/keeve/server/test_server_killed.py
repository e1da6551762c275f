"""A server that is killed while many conversations stream: whoever asks again gets one answer, and observers all."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import httpx2
import pytest
import trio
import trio.testing

from tests.keeve.server.test_server_process import asking, model_at
from tests.model_server import held, model_server, streamed
from tests.server_process import server

API = "/api/v1"
MANY = 50


# The client leaves generators of its own to the collector where a stream is left before its end.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning")
async def test_after_a_kill_each_client_gets_one_answer_and_no_observer_a_gap(store_folder: Path) -> None:
    store = store_folder / "s"
    seen: list[str] = []

    def turn(n: int) -> tuple[str, dict[str, str]]:
        return f"{API}/sessions/s{n}/turn", {"idempotency-key": f"k{n}", "accept": "text/event-stream"}

    async def observe(client: httpx2.AsyncClient, until: int) -> None:
        """Read what was asked and answered, on from the last cursor."""
        headers = {"accept": "text/event-stream"} | ({"last-event-id": seen[-1]} if seen else {})
        pattern = {"pattern": "(turn . _)"}
        async with client.stream("GET", f"{API}/dataspace", params=pattern, headers=headers) as stream:
            async for line in stream.aiter_lines():
                if line.startswith("data: ") and "captures" in line:
                    seen.append(json.loads(line[6:])["cursor"])
                if len(seen) == until:
                    return

    async with model_server(held(streamed("he", "llo"), after=2)) as model:
        with server(store, env=model_at(model.url)) as running:
            async with asking(running) as client, trio.open_nursery() as nursery:
                for n in range(MANY):
                    await client.post(f"{API}/sessions", json={"id": f"s{n}"})

                async def say(n: int) -> None:
                    path, headers = turn(n)
                    try:
                        async with client.stream("POST", path, json={"input": "x"}, headers=headers) as stream:
                            async for _ in stream.aiter_lines():
                                pass
                    except httpx2.TransportError:
                        return

                for n in range(MANY):
                    nursery.start_soon(say, n)
                nursery.start_soon(observe, client, MANY // 2)
                await model.asked(MANY)
                while len(seen) < MANY // 2:
                    await trio.testing.wait_all_tasks_blocked(0.01)
                running.process.send_signal(signal.SIGKILL)
                await trio.to_thread.run_sync(running.process.wait)
    async with model_server(streamed("he", "llo")) as model:
        with server(store, env=model_at(model.url)) as running:
            async with asking(running) as client, trio.open_nursery() as nursery:
                answers: dict[int, httpx2.Response] = {}

                async def say_again(n: int) -> None:
                    path, headers = turn(n)
                    answers[n] = await client.post(path, json={"input": "x"}, headers=headers)

                nursery.start_soon(observe, client, MANY)
                for n in range(MANY):
                    nursery.start_soon(say_again, n)
            assert all('"output":"hello"' in answer.text for answer in answers.values())
            assert len(answers) == MANY
            async with asking(running) as client:
                page = (await client.get(f"{API}/dataspace", params={"pattern": "(turn . _)", "limit": 1000})).json()
                assert seen == [event["cursor"] for event in page["events"]]
                done = (
                    await client.get(f"{API}/dataspace", params={"pattern": "(turn-done . _)", "limit": 1000})
                ).json()
                assert len(page["events"]) == len(done["events"]) == MANY
