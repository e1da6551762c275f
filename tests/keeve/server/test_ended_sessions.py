"""A session is deleted while clients wait for something of it: each is answered, and gives its place back."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import trio
import trio.testing

from keeve import Session
from tests.actors.test_session_on_host import Waits
from tests.keeve.server.test_page_damaged import damaged
from tests.server_worlds import World, asked_by, world

Ask = Callable[[World, str, Any], Any]


def posts(path: str, **body: Any) -> Any:
    """A request that waits for an answer, of the session `of`."""
    said = {name: value for name, value in body.items() if name not in ("accept", "named")}

    async def ask(w: World, of: str) -> httpx2.Response:
        headers = {"accept": body.get("accept", "application/json")}
        if "named" in body:
            headers[body["named"]] = of
        if path == "/v1/responses":
            said["conversation"] = of
        return await w.ann.post(path.format(of=of), json=said, headers=headers)

    return ask


def gets(path: str, accept: str) -> Any:
    """A stream of the session `of`."""

    async def ask(w: World, of: str) -> httpx2.Response:
        return await w.ann.get(path.format(of=of), headers={"accept": accept})

    return ask


SSE, LINES = "text/event-stream", "application/x-ndjson"
MESSAGES = [{"role": "user", "content": "a"}]

OPENAI = {
    "a response": posts("/v1/responses", input="a"),
    "a response in a stream": posts("/v1/responses", input="a", stream=True),
    "a completion": posts("/v1/chat/completions", messages=MESSAGES, named="x-keeve-session"),
    "a completion in a stream": posts("/v1/chat/completions", messages=MESSAGES, stream=True, named="x-keeve-session"),
}
OURS = {
    "a turn": posts("/api/v1/sessions/{of}/turn", input="a"),
    "a turn in a stream": posts("/api/v1/sessions/{of}/turn", input="a", accept=SSE),
    "the dataspace as events": gets("/api/v1/dataspace?pattern=(_%20.%20_)&session={of}", SSE),
    "the dataspace as lines": gets("/api/v1/dataspace?pattern=(_%20.%20_)&session={of}&lineage=true", LINES),
    "a completion of a session": posts("/v1/chat/completions", messages=MESSAGES, named="x-keeve-session"),
    "a completion of a session in a stream": posts(
        "/v1/chat/completions", messages=MESSAGES, stream=True, named="x-keeve-session"
    ),
}


async def answers_when_deleted(w: World, of: str, asks: dict[str, Any], delete: Any) -> dict[str, httpx2.Response]:
    """What each of the requests is answered when its session is deleted; and what is under way then."""
    answers: dict[str, httpx2.Response] = {}

    async def waits(name: str) -> None:
        answers[name] = await asks[name](w, of)

    with trio.fail_after(5):
        async with trio.open_nursery() as nursery:
            for name in asks:
                nursery.start_soon(waits, name)
                await trio.testing.wait_all_tasks_blocked()
            assert answers == {}
            assert (await delete()).status_code in (200, 204)
    return answers


def told_deleted(answer: httpx2.Response) -> bool:
    """Whether an answer, or the last event of a stream, says that the session is deleted."""
    if answer.status_code == 410:
        return bool(answer.json()["error"]["code"] == "deleted")
    last = [line for line in answer.text.splitlines() if line.strip() and not line.startswith(":")][-1]
    return answer.status_code == 200 and json.loads(last.removeprefix("data: "))["error"]["code"] == "deleted"


async def test_whoever_waits_in_a_conversation_that_is_deleted_is_answered() -> None:
    async with world(devices={"model": Waits()}) as w:
        made = (await w.ann.post("/v1/conversations", json={})).json()["id"]
        asks = {name: OPENAI[name] for name in ("a response", "a response in a stream")}
        answers = await answers_when_deleted(w, made, asks, lambda: w.ann.delete(f"/v1/conversations/{made}"))
        assert [name for name, answer in answers.items() if not told_deleted(answer)] == []
        assert under_way(w) == 0


async def test_whoever_waits_for_a_completion_in_a_session_that_is_deleted_is_answered() -> None:
    async with world(devices={"model": Waits()}) as w:
        await w.ann.post("/v1/chat/completions", json={"messages": MESSAGES, "model": "none"})
        with trio.move_on_after(0.05):
            await w.ann.post("/v1/chat/completions", json={"messages": MESSAGES}, headers={"x-keeve-session": "mine"})
        asks = {name: OPENAI[name] for name in OPENAI if "completion" in name}
        answers = await answers_when_deleted(w, "mine", asks, lambda: w.ann.delete("/api/v1/sessions/mine?force=true"))
        assert [name for name, answer in answers.items() if not told_deleted(answer)] == []
        assert under_way(w) == 0


async def test_whoever_waits_for_a_session_that_is_deleted_is_answered() -> None:
    async with world(devices={"model": Waits()}) as w:
        await w.host.asking("ann").spawn(Session, "s")
        answers = await answers_when_deleted(w, "s", OURS, lambda: w.ann.delete("/api/v1/sessions/s?force=true"))
        assert [name for name, answer in answers.items() if not told_deleted(answer)] == []
        assert under_way(w) == 0


def under_way(w: World) -> int:
    """How many requests of ann hold a place."""
    return w.serving.rates._buckets["ann"].under_way


async def test_a_damaged_session_is_deleted_over_http(store_folder: Path) -> None:
    async with damaged(store_folder / "s") as (w, _):
        owner = asked_by("owner", w.app)
        assert (await owner.delete("/api/v1/sessions/ill")).status_code in (200, 204)
        assert (await owner.get("/api/v1/sessions/ill")).status_code == 410
        answer = await owner.get("/api/v1/dataspace?pattern=(turn%20.%20_)")
        assert [event["session"] for event in answer.json()["events"]] == ["well"]
