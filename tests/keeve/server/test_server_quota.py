"""How many sessions a principal may have: whoever goes away, asks at once, or takes other names has no more."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trio

from dataspace.catalog.catalog import Catalog
from keeve import Session
from keeve.server import Principal, ServerSettings, quota
from keeve.server.tokens import Chains
from keeve.wire.revocations import Revocations
from keeve.wire.tokens import methods, mint, named
from tests.keeve.server.test_server_wire import client_of
from tests.server_worlds import World, _client, world
from vat.errors import Refused
from vat.host.host import Host

SESSIONS = "/api/v1/sessions"


def there(w: World) -> int:
    return len(w.host.sessions())


async def test_who_goes_away_while_a_session_is_made_has_it_counted() -> None:
    async with world(ServerSettings(sessions=3)) as w:
        for after in range(40):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(w.ann.post, SESSIONS)
                for _ in range(after):
                    await trio.lowlevel.checkpoint()
                nursery.cancel_scope.cancel()
        for _ in range(3):
            await w.ann.post(SESSIONS)
        assert there(w) == 3


async def test_many_who_ask_at_once_for_the_first_time_have_no_more() -> None:
    async with world(ServerSettings(sessions=3)) as w:
        for n in range(5):
            await w.host.asking("bob").spawn(Session, f"bob {n}")
        await w.host.asking("ann").spawn(Session, "ann")
        async with trio.open_nursery() as nursery:
            for _ in range(8):
                nursery.start_soon(w.ann.post, SESSIONS)
        assert there(w) == 8


async def test_a_token_under_many_names_makes_no_more_than_under_one(tmp_path: Path) -> None:
    async with world(ServerSettings(sessions=3)) as w:
        secret = w.serving.secret
        w.serving.auth.ways.append(Chains(secret, Revocations(tmp_path)))

        async def made(name: str, nonce: int = 1) -> int:
            token = mint(secret, bytes([nonce] * 16)).narrow(methods("read", "manage", "spawn")).narrow(named(name))
            return (await _client(w.app, str(token)).post(SESSIONS)).status_code

        assert [await made(name) for name in "xyzxa"] == [201, 201, 201, 403, 403]
        assert await made("x", 2) == 201
        other = mint(secret, bytes([1] * 16)).narrow(methods("spawn"), named("b"))
        async with client_of(w, str(other)) as client:
            with pytest.raises(Refused, match="narrowed from this token"):
                await client.spawn(Session)
        [y] = [row.id for row in w.host.sessions() if w.host.made_by(row.id)[0] == "y"]
        await w.host.delete(y)
        assert [await made(name) for name in "ab"] == [403, 403]  # x has two of three now, and z the third
        assert list(w.serving.quota._tokens) == ["x", "z"]


async def test_at_the_limit_nothing_is_looked_through(monkeypatch: pytest.MonkeyPatch) -> None:
    async with world(ServerSettings(sessions=2)) as w:
        assert [(await w.ann.post(SESSIONS)).status_code for _ in range(3)] == [201, 201, 403]
        [first, _] = w.host.sessions()
        looked: list[Any] = []
        monkeypatch.setattr(Catalog, "sessions", lambda *given, **how: looked.append(how) or [])
        assert (await w.ann.post(SESSIONS)).status_code == 403
        await w.host.delete(first.id)
        assert [(await w.ann.post(SESSIONS)).status_code for _ in range(2)] == [201, 403]
        assert looked == []


async def test_the_first_session_of_somebody_costs_a_look_at_their_own_and_at_no_record(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with world(ServerSettings(sessions=9)) as w:
        for name, count in (("bob", 40), ("ann", 7)):
            for n in range(count):
                await w.host.asking(name).spawn(Session, f"{name} {n}")
        rows: list[str] = []
        read: list[Any] = []
        sessions = Catalog.sessions

        def listed(*given: Any, **how: Any) -> Any:
            page = sessions(*given, **how)
            rows.extend(row.id for row in page)
            return page

        monkeypatch.setattr(Catalog, "sessions", listed)
        monkeypatch.setattr(Host, "made_by", lambda *given: read.append(given))
        monkeypatch.setattr(quota, "PAGE", 2)
        assert [(await w.ann.post(SESSIONS)).status_code for _ in range(3)] == [201, 201, 403]
        assert rows == [f"ann {n}" for n in range(7)]
        assert read == []


async def test_what_is_gone_makes_room_and_a_repetition_takes_none() -> None:
    async with world(ServerSettings(sessions=2)) as w:
        for _ in range(3):
            assert (await w.ann.post(SESSIONS, headers={"idempotency-key": "k"})).status_code == 201
        assert (await w.ann.post(SESSIONS, json={"id": "b"})).status_code == 201
        assert (await w.ann.post(SESSIONS, json={"id": "b"})).status_code == 403
        assert (await w.ann.delete(f"{SESSIONS}/b")).status_code == 200
        assert (await w.ann.post(SESSIONS, json={"id": "b"})).status_code == 410  # an id that is never free again
        assert (await w.ann.post(f"{SESSIONS}", json={"id": "c"})).status_code == 201
        assert (await w.ann.post(f"{SESSIONS}/c/fork", json={})).status_code == 403


async def test_who_has_nothing_is_not_remembered(tmp_path: Path) -> None:
    async with world() as w:
        secret, counts = w.serving.secret, w.serving.quota
        w.serving.auth.ways.append(Chains(secret, Revocations(tmp_path)))
        for n in range(3):
            token = mint(secret, bytes(16)).narrow(methods("read", "manage")).narrow(named(f"n{n}"))
            client = _client(w.app, str(token))
            assert (await client.post(SESSIONS, json={"type": "no.such"})).status_code == 422
            id = (await client.post(SESSIONS)).json()["id"]
            assert (await client.post(SESSIONS, json={"id": id})).status_code == 409
            assert (await client.delete(f"{SESSIONS}/{id}")).status_code == 200
        assert (dict(counts._there), dict(counts._coming), counts._tokens, counts._upto) == ({}, {}, {}, {})


async def test_a_session_that_is_gone_is_seen_by_nobody_but_who_may_everything() -> None:
    async with world() as w:
        auth = w.serving.auth
        principals = [Principal("ann"), Principal("ann", everyone=True), Principal("owner", frozenset({"admin"}))]
        await w.host.asking("ann").spawn(Session, "s")
        uid = w.host.row("s").uid
        assert [auth.sees(each, "s", uid) for each in principals] == [True] * 3
        await w.host.delete("s")
        assert [auth.sees(each, "s", uid) for each in principals] == [False, False, True]
        assert not auth._owners


async def test_an_owner_who_is_asked_for_is_kept_before_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("keeve.server.auth.OWNERS_KEPT", 2)
    async with world() as w:
        rows = []
        for id in "abc":
            await w.host.asking("ann").spawn(Session, id)
            rows.append(w.host.row(id))
        for n in (0, 1, 0, 2):
            assert w.serving.auth.owner(rows[n]) == "ann"
        assert list(w.serving.auth._owners) == [rows[0].uid, rows[2].uid]
