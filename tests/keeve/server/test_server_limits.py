"""How often a principal may ask, and how much at once; what a page of a browser may; what is counted and logged."""

from __future__ import annotations

import json
import logging
from base64 import b64encode
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import trio
from trio.testing import MockClock

from keeve import Session
from keeve.server import Principal, ServerSettings
from keeve.server.errors import Refusal
from keeve.server.logs import LEFT_OUT, LogHandler
from keeve.server.rate_limits import RateLimits
from keeve.server.tokens import Chains
from keeve.wire.revocations import Revocations
from keeve.wire.sturdy import SturdyRefs
from keeve.wire.tokens import Allowance, mint, named, read_only
from tests.keeve.server.test_server_wire import client_of
from tests.server_worlds import TOKENS, world
from vat.devices.vault import Vault

API = "/api/v1"


async def test_who_asks_too_often_is_told_when_to_ask_again(autojump_clock: MockClock) -> None:
    async with world(ServerSettings(requests=3)) as w:
        answers = [await w.ann.get(API) for _ in range(4)]
        assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
        assert answers[3].json()["error"]["code"] == "too_many_requests"
        assert (await w.bob.get(API)).status_code == 200
        await trio.sleep(int(answers[3].headers["retry-after"]))
        assert (await w.ann.get(API)).status_code == 200


async def test_who_has_too_much_under_way_is_told_so() -> None:
    async with world(ServerSettings(streams=1)) as w, trio.open_nursery() as nursery:
        await w.host.asking("ann").spawn(Session, "s")
        started = trio.Event()

        async def waits() -> None:
            started.set()
            await w.ann.get(f"{API}/dataspace", headers={"accept": "text/event-stream"})

        nursery.start_soon(waits)
        await started.wait()
        await trio.testing.wait_all_tasks_blocked()
        answer = await w.ann.get(API)
        assert (answer.status_code, answer.json()["error"]["code"]) == (429, "too_many_at_once")
        assert (await w.bob.get(API)).status_code == 200
        nursery.cancel_scope.cancel()


async def test_other_names_for_one_token_ask_no_more_often_and_no_more_at_once(tmp_path: Path) -> None:
    async with world(ServerSettings(requests=3)) as w:
        secret = w.serving.secret
        w.serving.auth.ways.append(Chains(secret, Revocations(tmp_path)))

        async def asked(nonce: int, name: str) -> int:
            token = mint(secret, bytes([nonce] * 16)).narrow(read_only()).narrow(named(name))
            return (await w.nobody.get(API, headers={"authorization": f"Bearer {token}"})).status_code

        assert [await asked(1, name) for name in "abcd"] == [200, 200, 200, 429]
        assert [await asked(2, name) for name in "aacc"] == [200, 200, 200, 429]
        assert await asked(3, "a") == 429


async def test_those_who_ask_no_more_are_forgotten(autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("keeve.server.rate_limits.MANY", 10)
    rates = RateLimits(60, 9)
    for n in range(50):
        rates.end(rates.begin(Principal(f"name {n}")))
        await trio.sleep(10)
    assert len(rates._buckets) <= 20


def test_a_name_that_is_made_up_is_not_noted_where_its_token_has_had_enough() -> None:
    rates = RateLimits(2, 9, lambda: 0.0)
    for n in range(9):
        with suppress(Refusal):
            rates.begin(Principal(f"name {n}", allowance=Allowance(ids=("t",))))
    assert list(rates._buckets) == ["\nt", "name 0", "name 1"]


async def test_what_is_asked_over_a_connection_counts_as_requests_do_and_waits(autojump_clock: MockClock) -> None:
    async with world(ServerSettings(requests=30)) as w, client_of(w, TOKENS["ann"]) as client:
        began = trio.current_time()
        async with trio.open_nursery() as nursery:
            for _ in range(60):
                nursery.start_soon(client.sessions)
        assert 60 <= trio.current_time() - began < 64
        assert (await w.ann.get(API)).status_code == 429
        assert (await w.bob.get(API)).status_code == 200


async def test_who_keeps_the_server_waits_for_nothing_over_a_connection(autojump_clock: MockClock) -> None:
    async with world(ServerSettings(requests=3)) as w, client_of(w, TOKENS["owner"]) as client:
        began = trio.current_time()
        for _ in range(9):
            await client.sessions()
        assert trio.current_time() - began < 1


async def test_a_token_ends_when_it_is_to() -> None:
    async with world() as w:
        clock: Any = w.serving.clock
        w.serving.auth.ways[0].add("a-token-that-ends-123", Principal("eve", until=clock() + 1_000_000))  # type: ignore[attr-defined]  # the first way has the tokens of the test
        headers = {"authorization": "Bearer a-token-that-ends-123"}
        assert (await w.nobody.get(API, headers=headers)).status_code == 200
        clock.move(2)
        assert (await w.nobody.get(API, headers=headers)).status_code == 401


@pytest.mark.parametrize(
    ("verb", "method", "path", "body"),
    [
        ("turn", "POST", "/sessions/s/turn", {"input": "x"}),
        ("turn", "POST", "/sessions/s/interrupt", {}),
        ("manage", "POST", "/sessions", {}),
        ("manage", "POST", "/sessions/s/fork", {}),
        ("manage", "DELETE", "/sessions/s", None),
        ("admin", "POST", "/verify", None),
    ],
)
async def test_what_a_token_may_not_it_does_not(verb: str, method: str, path: str, body: Any) -> None:
    async with world() as w:
        verbs = frozenset(("read", "turn", "manage", "admin")) - {verb}
        w.serving.auth.ways[0].add("a-token-with-less-123", Principal("ann", verbs))  # type: ignore[attr-defined]  # as above
        answer = await w.nobody.request(
            method, API + path, json=body, headers={"authorization": "Bearer a-token-with-less-123"}
        )
        error = answer.json()["error"]
        assert (answer.status_code, error["code"]) == (403, "not_allowed")
        assert ("keeve token make --as ann" if verb != "admin" else "the owner's token") in error["remedy"]


COOKIE = {"cookie": f"keeve_token={TOKENS['ann']}"}


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 403),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"sec-fetch-site": "same-site"}, 403),
        ({"origin": "http://127.0.0.1:8420"}, 201),
        ({"sec-fetch-site": "same-origin"}, 201),
    ],
)
async def test_a_page_elsewhere_cannot_use_the_cookie_of_ours(headers: dict[str, str], status: int) -> None:
    async with world() as w:
        answer = await w.nobody.post(f"{API}/sessions", json={}, headers=COOKIE | headers)
        assert answer.status_code == status
        assert (await w.nobody.get(f"{API}/sessions", headers=COOKIE)).status_code == 200


async def test_an_origin_that_was_allowed_may_ask() -> None:
    async with world(ServerSettings(origins=("https://app.example",), hosts=("keeve.example",))) as w:
        answer = await w.ann.get(API, headers={"origin": "https://app.example", "host": "keeve.example"})
        assert answer.status_code == 200
        assert (await w.ann.get(API, headers={"origin": "https://other.example"})).status_code == 403


async def test_every_answer_tells_browsers_to_be_careful() -> None:
    async with world() as w:
        for path in ("/healthz", API, "/nowhere"):
            headers = (await w.nobody.get(path)).headers
            assert headers["x-content-type-options"] == "nosniff"
            assert headers["x-frame-options"] == "DENY"
            assert "default-src 'none'" in headers["content-security-policy"]
            assert headers["cache-control"] == "no-store"
            assert "access-control-allow-origin" not in headers


async def test_the_numbers_are_for_whom_may_see_all() -> None:
    async with world() as w:
        await w.ann.get(API)
        assert (await w.nobody.get("/metrics")).status_code == 401
        assert (await w.ann.get("/metrics")).status_code == 403
        text = (await w.owner.get("/metrics")).text
        assert 'keeve_requests_total{method="GET",route="api:",status="200"} 1.0' in text
        assert 'keeve_requests_under_way{kind="http"} 1.0' in text


async def test_a_mistake_of_ours_is_logged_and_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    async with world() as w:

        def broken(*_: Any) -> Any:
            raise ZeroDivisionError(f"with {TOKENS['owner']} inside")

        monkeypatch.setattr(w.serving.auth, "reaches", broken)
        await w.host.spawn(Session, "s")
        answer = await w.owner.get(f"{API}/sessions")
        assert (answer.status_code, answer.json()["error"]["code"]) == (500, "internal")
        assert "ZeroDivision" not in answer.text
        [told] = [each for each in map(json.loads, w.log.getvalue().splitlines()) if each["event"] == "failed"]
        assert told["request"] == answer.headers["x-request-id"]
        assert "ZeroDivisionError" in told["exception"]
        assert TOKENS["owner"] not in w.log.getvalue()


async def test_no_secret_is_logged_whatever_it_is_called() -> None:
    async with world() as w:
        log = w.serving.log
        log.info("x", authorization="Basic abc", nested={"api_key": "k", "said": f"it is {TOKENS['ann']}"})
        log.info("x", header="Bearer abcdefgh", url="http://x/?token=abcdefgh&y=1", key="sk-abcdefgh")
        log.info(f"in the event {TOKENS['bob']}")
        text = w.log.getvalue()
        assert text.count(LEFT_OUT) == 7
        for secret in ("Basic abc", "abcdefgh", *TOKENS.values()):
            assert secret not in text


async def test_two_servers_know_nothing_of_each_other() -> None:
    async with world() as one, world() as other:
        await one.owner.post(f"{API}/sessions", json={"id": "s"})
        assert "api:/sessions" not in (await other.owner.get("/metrics")).text
        assert (await other.owner.get(f"{API}/sessions")).json()["sessions"] == []


KINDS = {
    "the owner's": TOKENS["owner"],
    "a narrowed one": str(mint(TOKENS["owner"], bytes(16)).narrow(named("ann"))),
    "a sturdy ref": SturdyRefs(TOKENS["owner"]).sturdy("ann", bytes(16), 7),
    "a model's key": "K3y+/of==some~model",
}


@pytest.mark.parametrize("kind", KINDS)
async def test_no_secret_of_any_kind_is_logged_wherever_it_stands(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = KINDS[kind]
    vault = Vault({"model": lambda: KINDS["a model's key"]})
    vault.resolve("model")
    async with world() as w:
        w.secrets.by(vault.redact)

        def broken(*_: Any) -> Any:
            raise ZeroDivisionError(f"in {secret}, {secret!r:.40}, /{quote(secret)}/x, {{'token': '{secret}'}}")

        for path in (f"/{quote(secret, safe='')}", f"{API}/sessions/{quote(secret, safe='')}/turns?token={secret}"):
            for headers in ({}, {"x-request-id": secret}, {"authorization": f"Bearer {secret}"}, {"cookie": secret}):
                await w.ann.get(path, headers=headers)
        monkeypatch.setattr(w.serving.auth, "reaches", broken)
        await w.host.asking("ann").spawn(Session, "s")
        assert (await w.ann.get(f"{API}/sessions")).status_code == 500
        w.serving.log.error("x", said={"it": [secret, b64encode(secret.encode())]}, where=f"http://x/?y={secret}&z=1")
        told = {"msg": "it is %s", "args": (secret,), "levelname": "WARNING", "name": "keeve.x"}
        LogHandler(w.serving.log).handle(logging.makeLogRecord(told))
        text = w.log.getvalue()
    assert "ZeroDivisionError" in text
    assert secret[-8:] not in text.replace("\\", "")
    assert quote(secret, safe="")[-8:] not in text
