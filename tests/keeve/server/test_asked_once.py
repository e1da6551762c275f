"""What is asked again with its key is answered as the first time, and nothing is done: wherever something is changed.

Invariant 30.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
import trio
import trio.testing

from keeve import Session, Tools
from keeve.server.api.operations import TABLE
from keeve.server.repeating import Answers
from tests.keeve.server.test_api_turns import Held, Paying, an_unknown_effect, pay
from tests.keeve.server.test_server_wire import client_of
from tests.keeve.test_space_served import filled
from tests.served_stores import served_store
from tests.server_worlds import TOKENS, World, world
from vat.crank.vat import RequestConflict
from vat.host.within import dataspace_of

API = "/api/v1"
S = f"{API}/sessions/s"
KEY = {"idempotency-key": "k"}
READING = {"verify_store"}
"""What is posted and changes nothing."""
CHANGING = {each.name: each for each in TABLE if each.method == "POST" and each.name not in READING}
SPACE = ("reclaim_space", "archive_content", "bring_back_content")


async def posted(client: httpx2.AsyncClient, path: str, body: Any = None, **headers: str) -> httpx2.Response:
    return await client.post(path, json=body, headers=headers)


async def said(w: World, input: str) -> None:
    assert (await posted(w.ann, f"{S}/queue", {"input": input})).status_code == 202


# Worlds in which there is something to ask for: of each, the path, the body, another body.


@asynccontextmanager
async def a_session(**options: Any) -> AsyncIterator[World]:
    async with world(**options) as w:
        assert (await posted(w.ann, f"{API}/sessions", {"id": "s"})).status_code == 201
        yield w


@asynccontextmanager
async def a_turn_that_runs() -> AsyncIterator[World]:
    model = Held()
    async with a_session(devices={"model": model}) as w:
        await said(w, "a")
        await model.asked.acquire()
        yield w


@asynccontextmanager
async def a_call_that_waits() -> AsyncIterator[World]:
    tools = Tools(pay)
    async with world(devices={"model": Paying(), "tools": tools}) as w:
        await w.host.asking("ann", "http").spawn(Session, "s", tools=tools)
        await said(w, "pay 3")
        async for _ in w.host.observe("(approval-wanted . _)"):
            break
        yield w


async def effect(w: World) -> str:
    [found] = (await w.ann.get(f"{S}/effects")).json()["effects"]
    return f"{S}/effects/{found['id']}/resolve"


SCENES: dict[str, tuple[Callable[[], Any], str, Any, Any]] = {
    "create_session": (world, f"{API}/sessions", {"id": "new"}, {"id": "other"}),
    "take_turn": (a_session, f"{S}/turn", {"input": "a"}, {"input": "b"}),
    "queue_turn": (a_session, f"{S}/queue", {"input": "a"}, {"input": "b"}),
    "steer_turn": (a_session, f"{S}/steer", {"input": "a"}, {"input": "b"}),
    "interrupt_turn": (a_turn_that_runs, f"{S}/interrupt", {}, {"turn": 7}),
    "snapshot_session": (a_session, f"{S}/snapshot", None, None),
    "fork_session": (a_session, f"{S}/fork", {}, {"into": "other"}),
    "say_word": (a_call_that_waits, f"{S}/approvals/c1", {"approve": True}, {"approve": False, "reason": "no"}),
    "resolve_effect": (an_unknown_effect, "", {"value": "it was paid"}, {"value": "it was not"}),
}


def test_whatever_is_posted_and_changes_something_takes_a_key() -> None:
    assert {*SCENES, *SPACE} == CHANGING.keys()
    assert [name for name, each in CHANGING.items() if not each.keyed] == []


async def test_the_document_says_so_of_each() -> None:
    async with world() as w:
        paths = (await w.nobody.get(f"{API}/openapi.json")).json()["paths"]
    for path, methods in paths.items():
        for method, operation in methods.items():
            keyed = {"$ref": "#/components/parameters/IdempotencyKey"} in operation.get("parameters", [])
            assert keyed == (method == "post" and path != f"{API}/verify"), (method, path)


@pytest.mark.parametrize("name", SCENES)
async def test_asked_again_it_is_answered_as_before_and_does_nothing(name: str) -> None:
    scene, path, body, other = SCENES[name]
    async with scene() as w:
        path = path or await effect(w)
        first = await posted(w.ann, path, body, **KEY)
        assert first.is_success, first.text
        await w.settled()
        if name == "interrupt_turn":
            await said(w, "b")  # a turn that runs then, and is not to be ended
            await w.settled()
        head = dataspace_of(w.host).catalog.head.position
        for _ in range(2):
            again = await posted(w.ann, path, body, **KEY)
            assert (again.status_code, again.json()) == (first.status_code, first.json())
        if other is not None:
            refused = await posted(w.ann, path, other, **KEY)
            assert (refused.status_code, refused.json()["error"]["code"]) == (409, "request_conflict")
        await w.settled()
        assert dataspace_of(w.host).catalog.head.position == head


@pytest.mark.parametrize("outcome", [{"value": None}, {"error": "it was not paid"}, {"again": True}])
async def test_an_effect_is_settled_once_whatever_its_outcome_and_however_many_ask(outcome: Any) -> None:
    async with an_unknown_effect() as w:
        path = await effect(w)
        answers: list[Any] = []

        async def ask() -> None:
            answers.append(await posted(w.ann, path, outcome, **KEY))

        async with trio.open_nursery() as nursery:
            for _ in range(20):
                nursery.start_soon(ask)
        assert {(each.status_code, each.text) for each in answers} == {(200, answers[0].text)}
        assert answers[0].json()["settled"] == next(iter(outcome))
        refused = await posted(w.bob, path, outcome, **KEY)  # whose key that is not
        assert refused.status_code == 404


@pytest.mark.parametrize("outcome", [{"value": 1}, {"error": "no"}, {"unknown": True}, {"again": True}])
async def test_a_client_that_settles_again_after_its_connection_was_lost_is_answered(outcome: Any) -> None:
    async with an_unknown_effect() as w, client_of(w, TOKENS["ann"]) as client:
        [found] = (await w.ann.get(f"{S}/effects")).json()["effects"]
        for _ in range(2):
            asked = client.desk("resolve", "s", found["id"], outcome)
            asked._state.request = "the same"
            assert await asked is None


async def test_and_so_is_one_that_approves_again() -> None:
    async with a_call_that_waits() as w, client_of(w, TOKENS["ann"]) as client:
        for _ in range(2):
            asked = client.desk("say", "s", "c1")
            asked._state.request = "the same"
            assert await asked is None
            await w.settled()


async def test_what_is_asked_of_the_store_is_known_while_the_server_runs(tmp_path: Path) -> None:
    cold = tmp_path / "cold"
    bodies: dict[str, Any] = {"/reclaim": None, "/archive": {"into": str(cold), "idle": True}, "/bring-back": {}}
    async with served_store(tmp_path / "data") as there:
        await filled(there.host)
        headers = {"authorization": f"Bearer {there.token}"}
        async with httpx2.AsyncClient(base_url=there.url, headers=headers) as client:
            for path, body in bodies.items():
                first = await posted(client, API + path, body, **{"idempotency-key": path})
                assert first.is_success, first.text
                again = await posted(client, API + path, body, **{"idempotency-key": path})
                assert again.json() == first.json()
                assert (await posted(client, API + path, body)).json() != first.json()  # since that does something
                if path == "/archive":
                    await client.post(f"{API}/bring-back", json={})
                    await posted(client, API + path, body)
            refused = await posted(client, f"{API}/archive", bodies["/archive"], **{"idempotency-key": "/reclaim"})
            assert (refused.status_code, refused.json()["error"]["code"]) == (409, "request_conflict")


async def test_of_several_at_once_one_is_carried_out_and_a_failure_is_not_kept() -> None:
    answers, free, tried = Answers(), trio.Event(), []

    async def do() -> int:
        tried.append(len(tried))
        await free.wait()
        if len(tried) == 1:
            raise OSError
        return len(tried)

    async def ask(found: list[Any]) -> None:
        try:
            found.append(await answers.once("ann", "k", "content", do))
        except OSError:
            found.append("failed")

    found: list[Any] = []
    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(ask, found)
        await trio.testing.wait_all_tasks_blocked()
        free.set()
    assert (found, tried) == (["failed", 2, 2], [0, 1])
    with pytest.raises(RequestConflict):
        await answers.once("ann", "k", "other", do)
    assert await answers.once("bob", "k", "other", do) == 3
