"""Saying something over HTTP: at once, as it comes, queued, steered, interrupted; and once for each key."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
import trio
import trio.testing

from keeve import Session, Settings, Tools, effect, tool
from keeve.testing import MemoryLog, memory_host
from tests.server_worlds import World, world

API = "/api/v1/sessions"


class Held:
    """A model whose answers come when they are let go, a piece for each word."""

    def __init__(self) -> None:
        self.asked = trio.Semaphore(0)
        self.free = trio.Semaphore(0)
        self.calls = 0

    @effect(on_crash="retry")
    async def complete(self, effect: Any, messages: Any, **_: Any) -> Any:
        self.calls += 1
        self.asked.release()
        await self.free.acquire()
        said = f"re: {messages[-1]['content']}"
        for word in said.split():
            effect.progress({"attempt": 1, "delta": {"content": f"{word} "}})
            await trio.lowlevel.checkpoint()
        return {"message": {"role": "assistant", "content": said}, "usage": {"total_tokens": 3}}


def events_of(text: str) -> list[tuple[str, str, Any]]:
    """The event, id and data of each item of a stream."""
    found = []
    for block in text.split("\n\n"):
        lines = dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
        if lines:
            found.append((lines.get("event", ""), lines.get("id", ""), json.loads(lines["data"])))
    return found


def code(answer: httpx2.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["code"]


async def spawned(w: World, id: str = "s") -> None:
    await w.host.asking("ann", "http").spawn(Session, id)


async def test_a_turn_gives_the_answer() -> None:
    async with world() as w:
        await spawned(w)
        said = (await w.ann.post(f"{API}/s/turn", json={"input": "hello"})).json()
        assert said == {"session": "s", "turn": 1, "output": "hello", "usage": {}, "limit": None}
        parts = [{"type": "text", "text": "again"}]
        said = (await w.ann.post(f"{API}/s/turn", json={"input": parts})).json()
        assert said["turn"] == 2
        [first] = w.host.query("(turn 1 . _)")
        assert (first.value.keywords["by"], first.value.keywords["via"]) == ("ann", "http")


async def test_the_same_key_is_one_turn_and_another_content_is_refused() -> None:
    async with world() as w:
        await spawned(w)
        key = {"idempotency-key": "k"}
        for _ in range(2):
            said = (await w.ann.post(f"{API}/s/turn", json={"input": "hello"}, headers=key)).json()
            assert (said["turn"], said["output"]) == (1, "hello")
        assert code(await w.ann.post(f"{API}/s/turn", json={"input": "other"}, headers=key)) == (
            409,
            "request_conflict",
        )
        assert code(await w.ann.post(f"{API}/s/turn", json={"input": "x"}, headers={"idempotency-key": ""})) == (
            422,
            "bad_request_id",
        )
        assert len(await (await w.host.get("s")).history) == 1


async def test_a_client_that_is_gone_gets_its_answer_by_the_same_key() -> None:
    model = Held()
    async with world(devices={"model": model}) as w:
        await spawned(w)
        key = {"idempotency-key": "k"}
        with trio.CancelScope() as gone:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(lambda: w.ann.post(f"{API}/s/turn", json={"input": "hello"}, headers=key))
                await model.asked.acquire()
                gone.cancel()
        model.free.release()
        said = (await w.ann.post(f"{API}/s/turn", json={"input": "hello"}, headers=key)).json()
        assert (said["output"], model.calls) == ("re: hello", 1)


async def test_an_answer_comes_in_pieces_between_its_facts() -> None:
    model = Held()
    model.free.release()
    async with world(devices={"model": model}) as w:
        await spawned(w)
        headers = {"accept": "text/event-stream"}
        answer = await w.ann.post(f"{API}/s/turn", json={"input": "a b"}, headers=headers)
        assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
        told = events_of(answer.text)
        assert [event for event, _, _ in told] == ["turn", *["piece"] * 3, "model-output", "turn-done", "done"]
        assert "".join(data["text"] for event, _, data in told if event == "piece") == "re: a b "
        assert told[-1][2]["output"] == "re: a b"
        assert all(id for event, id, _ in told if event not in ("piece", "done"))


async def test_a_stream_goes_on_behind_the_last_event_and_a_repeated_one_tells_all_again() -> None:
    async with world() as w:
        await spawned(w)
        headers = {"accept": "text/event-stream", "idempotency-key": "k"}

        async def told(input: str = "hello", **more: str) -> Any:
            answer = await w.ann.post(f"{API}/s/turn", json={"input": input}, headers={**headers, **more})
            return events_of(answer.text)

        before = str(w.host.observe("(_ . _)", after="head").cursor)
        first = await told()
        assert [event for event, _, _ in first] == ["turn", "model-output", "turn-done", "done"]
        await w.ann.post(f"{API}/s/turn", json={"input": "another one"})
        for place in range(3):
            assert await told(**{"last-event-id": first[place][1]}) == first[place + 1 :]
        assert await told() == await told(**{"last-event-id": before}) == first
        [(event, _, said)] = await told("other")
        assert (event, said["error"]["code"]) == ("error", "request_conflict")
        assert code(
            await w.ann.post(f"{API}/s/turn", json={"input": "x"}, headers={**headers, "last-event-id": "nonsense"})
        ) == (422, "bad_cursor")


async def test_a_stream_that_goes_on_while_its_turn_runs_tells_what_comes() -> None:
    model = Held()
    async with world(devices={"model": model}) as w:
        await spawned(w)
        key = {"idempotency-key": "k"}
        headers = {**key, "accept": "text/event-stream"}
        texts: dict[str, str] = {}

        async def follow(after: str) -> None:
            more = {"last-event-id": after} if after else {}
            answer = await w.ann.post(f"{API}/s/turn", json={"input": "a b"}, headers={**headers, **more})
            texts[after] = answer.text

        async with trio.open_nursery() as nursery:
            await w.ann.post(f"{API}/s/queue", json={"input": "a b"}, headers=key)
            await model.asked.acquire()
            [turn] = [str(event.cursor) for event in w.host.query("(turn 1 . _)")]
            nursery.start_soon(follow, turn)
            nursery.start_soon(follow, "")
            await trio.testing.wait_all_tasks_blocked()
            model.free.release()
        rest = [*["piece"] * 3, "model-output", "turn-done", "done"]
        assert [event for event, _, _ in events_of(texts[turn])] == rest
        assert [event for event, _, _ in events_of(texts[""])] == ["turn", *rest]


async def test_pieces_of_the_turn_before_are_not_told() -> None:
    model = Held()
    async with world(devices={"model": model}) as w:
        await spawned(w)
        texts: list[str] = []

        async def say() -> None:
            headers = {"accept": "text/event-stream"}
            texts.append((await w.ann.post(f"{API}/s/turn", json={"input": "two"}, headers=headers)).text)

        async with trio.open_nursery() as nursery:
            await w.ann.post(f"{API}/s/queue", json={"input": "one"})
            await model.asked.acquire()
            nursery.start_soon(say)
            async for _ in w.host.observe("(turn 2 . _)"):
                break
            model.free.release()
            model.free.release()
        pieces = [data["text"] for event, _, data in events_of(texts[0]) if event == "piece"]
        assert "".join(pieces) == "re: two "


async def test_what_is_queued_is_accepted_and_answered_later() -> None:
    model = Held()
    async with world(devices={"model": model}) as w:
        await spawned(w)
        answers = [await w.ann.post(f"{API}/s/queue", json={"input": text}) for text in ("one", "two")]
        assert [(answer.status_code, answer.json()["turn"], answer.json()["joins"]) for answer in answers] == [
            (202, 1, False),
            (202, 2, False),
        ]
        model.free.release()
        model.free.release()
        async for event in w.host.observe("(turn-done 2 . _)"):
            assert event.value.keywords["output"] == "re: two"
            break


async def test_queueing_again_with_the_key_says_the_same() -> None:
    async with world() as w:
        await spawned(w)
        key = {"idempotency-key": "k"}
        one = await w.ann.post(f"{API}/s/queue", json={"input": "one"}, headers=key)
        async for _ in w.host.observe("(turn-done 1 . _)"):
            break
        assert (await w.ann.post(f"{API}/s/queue", json={"input": "one"}, headers=key)).json() == one.json()
        assert code(await w.ann.post(f"{API}/s/queue", json={"input": "two"}, headers=key)) == (409, "request_conflict")


async def test_a_steered_input_joins_the_turn_that_runs() -> None:
    model = Held()
    async with world(devices={"model": model}) as w:
        await spawned(w)
        alone = (await w.ann.post(f"{API}/s/steer", json={"input": "one"})).json()
        assert (alone["turn"], alone["joins"]) == (1, False)
        await model.asked.acquire()
        joined = (await w.ann.post(f"{API}/s/steer", json={"input": "more"})).json()
        assert (joined["turn"], joined["joins"]) == (1, True)


async def test_an_interrupt_ends_the_turn_and_its_caller_is_told() -> None:
    model = Held()
    async with world(devices={"model": model}) as w:
        await spawned(w)
        answers: list[httpx2.Response] = []

        async def say() -> None:
            answers.append(await w.ann.post(f"{API}/s/turn", json={"input": "hello"}))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(say)
            await model.asked.acquire()
            assert (await w.ann.post(f"{API}/s/interrupt", json={})).json() == {"session": "s", "turn": 1}
        assert code(answers[0]) == (409, "turn_interrupted")
        assert (await w.ann.post(f"{API}/s/interrupt")).json() == {"session": "s", "turn": None}


class Broken:
    """A model that fails."""

    @effect(on_crash="retry")
    async def complete(self, effect: Any, messages: Any, **_: Any) -> Any:
        raise LookupError("no such model")


async def test_a_turn_that_fails_is_no_mistake_of_the_server() -> None:
    async with world(devices={"model": Broken()}) as w:
        await spawned(w)
        answer = await w.ann.post(f"{API}/s/turn", json={"input": "hello"})
        assert answer.status_code == 502
        assert "no such model" in answer.json()["error"]["message"]
        headers = {"accept": "text/event-stream"}
        told = events_of((await w.ann.post(f"{API}/s/turn", json={"input": "hello"}, headers=headers)).text)
        assert [event for event, _, _ in told] == ["turn", "turn-failed", "error"]
        assert told[-1][2]["error"]["type"] == "server_error"


@pytest.mark.parametrize("body", [{}, {"input": 1}, {"input": None}, {"input": [1]}, [], {"input": "x", "to": "y"}])
async def test_an_input_that_is_none_is_refused(body: Any) -> None:
    async with world() as w:
        await spawned(w)
        answer = await w.ann.post(f"{API}/s/turn", json=body)
        assert (answer.status_code, answer.json()["error"]["code"]) == (422, "bad_body")


@tool(approval=True)
async def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


class Paying:
    """A model that pays once."""

    @effect(on_crash="retry")
    async def complete(self, effect: Any, messages: Any, **_: Any) -> Any:
        if messages[-1]["role"] == "tool":
            return {"message": {"role": "assistant", "content": messages[-1]["content"]}, "usage": None}
        call = {"id": "c1", "type": "function", "function": {"name": "pay", "arguments": '{"amount": 3}'}}
        return {"message": {"role": "assistant", "content": None, "tool_calls": [call]}, "usage": None}


@pytest.mark.parametrize(("word", "said"), [({"approve": True}, "paid 3"), ({"approve": False, "reason": "no"}, "no")])
async def test_a_call_waits_for_a_word(word: Any, said: str) -> None:
    tools = Tools(pay)
    async with world(devices={"model": Paying(), "tools": tools}) as w:
        await w.host.asking("ann", "http").spawn(Session, "s", tools=tools)
        assert (await w.ann.get(f"{API}/s/approvals")).json() == {"approvals": [], "next": None}
        await w.ann.post(f"{API}/s/queue", json={"input": "pay 3"})
        async for _ in w.host.observe("(approval-wanted . _)"):
            break
        [waiting] = (await w.ann.get(f"{API}/s/approvals")).json()["approvals"]
        assert (waiting["id"], waiting["name"], waiting["turn"]) == ("c1", "pay", 1)
        assert (await w.ann.get(f"{API}/s")).json()["approvals"] == [waiting]
        answer = await w.ann.post(f"{API}/s/approvals/c1", json=word)
        assert answer.json()["said"] == ("approved" if word["approve"] else "refused")
        async for event in w.host.observe("(turn-done 1 . _)"):
            assert said in event.value.keywords["output"]
            break
        assert code(await w.ann.post(f"{API}/s/approvals/c1", json=word)) == (404, "nothing_waits")


class Mail:
    """A tool device that never ends."""

    def __init__(self) -> None:
        self.started = trio.Event()

    @effect
    async def run(self, effect: Any, call: Any) -> Any:
        self.started.set()
        await trio.sleep_forever()


@asynccontextmanager
async def an_unknown_effect() -> AsyncIterator[World]:
    """A server with a session `s` of ann's, whose call to pay has started and has no outcome."""
    log, mail = MemoryLog(), Mail()
    async with memory_host(log, devices={"model": Paying(), "tools": mail}) as host, trio.open_nursery() as nursery:
        s = await host.asking("ann", "http").spawn(Session, "s", tools=Tools(pay))
        nursery.start_soon(s.turn, "pay 3")
        await mail.started.wait()
        nursery.cancel_scope.cancel()
    options: Any = {"devices": {"model": Paying(), "tools": Mail()}, "settings": Settings(hold_unknown=True)}
    async with world(log=log, **options) as w:
        yield w


async def test_an_effect_of_unknown_outcome_is_settled() -> None:
    async with an_unknown_effect() as w:
        [found] = (await w.ann.get(f"{API}/s/effects")).json()["effects"]
        assert (found["device"], found["state"]) == ("tools", "unknown")
        path = f"{API}/s/effects/{found['id']}/resolve"
        for wrong in ({}, {"value": 1, "error": "x"}):
            assert code(await w.ann.post(path, json=wrong)) == (422, "bad_outcome")
        assert code(await w.ann.post(f"{API}/s/effects/nope/resolve", json={"value": 1})) == (404, "no_such_effect")
        assert (await w.ann.post(path, json={"value": "it was paid"})).json()["settled"] == "value"
        for again in ({"value": "it was not"}, {"error": "it was not"}, {"again": True}):
            refused = await w.ann.post(path, json=again)
            assert code(refused) == (404, "no_such_effect")
            assert "Z by ann (http), with a value" in refused.json()["error"]["message"]
            assert "it was paid" not in refused.text
        async for event in w.host.observe("(turn-done 1 . _)"):
            assert event.value.keywords["output"] == "it was paid"
            break


async def test_an_empty_text_is_an_input_and_an_empty_list_is_none() -> None:
    async with world() as w:
        await w.ann.post(API, json={"id": "s"})
        said = await w.ann.post(f"{API}/s/turn", json={"input": ""})
        assert (said.status_code, said.json()["output"]) == (200, "")
        for way in ("turn", "queue", "steer"):
            assert code(await w.ann.post(f"{API}/s/{way}", json={"input": []})) == (422, "bad_input"), way
        assert [row["input"] for row in (await w.ann.get(f"{API}/s/turns")).json()["turns"]] == [""]
