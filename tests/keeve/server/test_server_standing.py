"""Tokens that end, or are revoked, while somebody is being answered."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing
from trio.testing import MockClock

from keeve import Session
from keeve.server import ServerSettings
from keeve.server.auth import unknown
from keeve.server.standing import Standing
from keeve.server.tokens import Chains
from keeve.wire.revocations import Revocations
from keeve.wire.tokens import Token, mint, named, until
from tests.actors.test_session_on_host import Waits
from tests.server_worlds import World, world


@asynccontextmanager
async def standing(folder: Path, *, watched: bool = True) -> AsyncIterator[World]:
    """A server with a model that answers nobody, and a session of ann's."""
    settings = ServerSettings(store=folder)
    async with world(settings, devices={"model": Waits()}) as w:
        w.serving.auth.ways.append(Chains(w.serving.secret, Revocations(folder)))
        if watched:
            w.serving.nursery.start_soon(w.serving.standing.watch)
        await w.host.asking("ann").spawn(Session, "s")
        yield w


class Answer:
    """What is said to a request, as it comes."""

    def __init__(self, w: World, token: str, method: str, path: str, body: Any, accept: str) -> None:
        headers = {"host": "localhost", "authorization": f"Bearer {token}", "content-type": "application/json"}
        said = [(name.encode(), value.encode()) for name, value in (headers | {"accept": accept}).items()]
        self._scope = {"type": "http", "http_version": "1.1", "scheme": "http", "method": method, "path": path}
        self._scope |= {"raw_path": path.encode(), "query_string": b"", "headers": said}
        self._scope |= {"client": None, "server": None, "state": {}}
        self._body = b"" if body is None else json.dumps(body).encode()
        self._app = w.app
        self.status = 0
        self.text = ""
        self.whole = False

    async def come(self) -> None:
        asked = False

        async def receive() -> dict[str, Any]:
            nonlocal asked
            if asked:
                await trio.sleep_forever()
            asked = True
            return {"type": "http.request", "body": self._body, "more_body": False}

        async def send(message: dict[str, Any]) -> None:
            self.status = message.get("status", self.status)
            self.text += message.get("body", b"").decode()
            self.whole = message["type"] == "http.response.body" and not message.get("more_body", False)

        await self._app(self._scope, receive, send)


def ends(w: World, token: Token) -> None:
    w.serving.clock.move(60)  # type: ignore[attr-defined]  # it is the test's


def is_revoked(w: World, token: Token) -> None:
    Revocations(w.serving.settings.store).revoke(token.id)


SSE, LINES, JSON = "text/event-stream", "application/x-ndjson", "application/json"
TURN = ("POST", "/api/v1/sessions/s/turn", {"input": "hello"})
SAID = {"model": "model", "messages": [{"role": "user", "content": "hello"}]}


@pytest.mark.parametrize("over", [ends, is_revoked])
@pytest.mark.parametrize(
    ("asked", "accept", "status"),
    [
        (("GET", "/api/v1/dataspace", None), SSE, 200),
        (("GET", "/api/v1/dataspace", None), LINES, 200),
        (TURN, SSE, 200),
        (TURN, JSON, 401),
        (("POST", "/v1/responses", {"input": "hello", "stream": True}), JSON, 200),
        (("POST", "/v1/responses", {"input": "hello"}), JSON, 401),
        (("POST", "/v1/chat/completions", SAID | {"stream": True}), JSON, 200),
    ],
)
async def test_who_is_being_answered_is_told_that_the_token_is_over(
    tmp_path: Path,
    asked: tuple[str, str, Any],
    accept: str,
    status: int,
    over: Callable[[World, Token], None],
    autojump_clock: MockClock,
) -> None:
    async with standing(tmp_path) as w, trio.open_nursery() as nursery:
        token = mint(w.serving.secret, bytes(16)).narrow(named("ann"), until(w.serving.clock() + 30_000_000))
        answer = Answer(w, str(token), *asked, accept)
        nursery.start_soon(answer.come)
        await trio.testing.wait_all_tasks_blocked()
        assert not answer.whole
        over(w, token)
    assert (answer.status, answer.whole) == (status, True)
    last = answer.text.strip().splitlines()[-1].removeprefix("data: ")
    assert json.loads(last)["error"]["code"] == "not_authenticated"
    assert ("event: error\n" in answer.text) == (status == 200 and accept != LINES)


async def test_nothing_is_told_any_more_to_a_token_that_is_over(tmp_path: Path) -> None:
    async with standing(tmp_path, watched=False) as w, trio.open_nursery() as nursery:
        token = mint(w.serving.secret, bytes(16)).narrow(named("ann"))
        answer = Answer(w, str(token), "GET", "/api/v1/dataspace", None, SSE)
        nursery.start_soon(answer.come)
        for word in ("before", "after"):
            await w.ann.post("/api/v1/sessions/s/queue", json={"input": word})
            await trio.testing.wait_all_tasks_blocked()
            is_revoked(w, token)
    assert "before" in answer.text
    assert "after" not in answer.text


async def test_what_cannot_be_told_why_is_cut_off(tmp_path: Path) -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"a", "more_body": True})
        with trio.CancelScope(shield=True):  # some are slow to leave what they do
            await send({"type": "http.response.body", "body": b"b", "more_body": False})

    said: list[Any] = []
    looks = iter([None, None, unknown("over", "")])

    def again(_: str) -> None:
        if (refusal := next(looks)) is not None:
            raise refusal

    async def send(message: Any) -> None:
        said.append(message)

    await Standing(again).answer("token", app, {"state": {}}, trio.sleep_forever, send)
    assert [message.get("body") for message in said] == [None, b"a"]


@pytest.mark.parametrize(("path", "whole"), [("/v1/responses", True), ("/api/v1/dataspace", False)])
async def test_a_stream_that_ends_so_says_all_of_it_where_nothing_else_is_shown(path: str, whole: bool) -> None:
    said: list[bytes] = []
    held: list[bool] = []

    def again(_: str) -> None:
        if held:
            raise unknown("the token has ended", "ask for a new one")

    async def send(message: Any) -> None:
        said.append(message.get("body", b""))
        held.append(True)

    async def app(_: Any, receive: Any, send: Any) -> None:
        kind = [(b"content-type", b"text/event-stream")]
        await send({"type": "http.response.start", "status": 200, "headers": kind})
        await send({"type": "http.response.body", "body": b"x", "more_body": True})

    await Standing(again).answer("t", app, {"type": "http", "path": path, "state": {}}, app, send)  # type: ignore[arg-type]  # nothing is received
    error = json.loads(said[-1].partition(b"data: ")[2])["error"]
    assert error["message"] == "the token has ended" + ("; ask for a new one" if whole else "")
