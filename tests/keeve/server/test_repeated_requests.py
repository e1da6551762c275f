"""A request that comes again is known by what its client sent: what the server puts to it, has or lacks by then, is
no part of it.

Invariant 30. A server that was started again is another one on the same log.
"""

from __future__ import annotations

import sys
from typing import Any

import pytest

from actors.mcp import McpTools
from actors.models import EchoModel
from actors.talking import Model
from actors.toolbox import Toolbox
from actors.tools import Tools
from dataspace.log.archives import Archived
from keeve import Actor, Session, actor
from keeve.server import ServerSettings
from keeve.testing import MemoryLog
from tests.keeve.server.test_server_wire import client_of
from tests.server_worlds import TOKENS, world
from vat.crank.vat import RequestConflict
from vat.host.host import Host
from vat.objects.types import type_of

API = "/api/v1/sessions"
KEY = {"idempotency-key": "k"}
DOWN = [sys.executable, "-c", "import sys; sys.exit('no such shop')"]


async def add(a: int, b: int) -> int:
    """The sum."""
    return a + b


async def double(a: int) -> int:
    """Twice as much."""
    return 2 * a


def having(*tools: Any, model: str = "model") -> dict[str, Any]:
    return {model: EchoModel(), "tools": Tools(*tools)}


def down() -> dict[str, Any]:
    return having(McpTools(DOWN, prefix="shop_"))


LATER = {"other tools": lambda: having(double), "a server of tools that is down": down, "none": dict}


def code(answer: Any) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["code"]


@pytest.mark.parametrize("later", LATER)
async def test_a_session_is_found_again_whatever_tools_the_server_has_by_then(later: str) -> None:
    log = MemoryLog()
    async with world(log=log, devices=having(add)) as w:
        made = await w.ann.post(API, json={"id": "s"}, headers=KEY)
        assert made.status_code == 201
    async with world(log=log, devices=LATER[later]()) as w:
        again = await w.ann.post(API, json={"id": "s"}, headers=KEY)
        assert (again.status_code, again.json()["uid"]) == (201, made.json()["uid"])
        assert len(await (await w.host.get("s")).tools) == 1


@pytest.mark.parametrize("fields", [{"system": "Brief."}, {"tools": []}, {"model": "model"}])
async def test_other_content_is_refused_also_where_the_server_would_have_put_the_same_to_it(fields: Any) -> None:
    async with world(devices=having(add)) as w:
        assert (await w.ann.post(API, json={}, headers=KEY)).status_code == 201
        assert code(await w.ann.post(API, json={"fields": fields}, headers=KEY)) == (409, "request_conflict")
        own = {"fields": {"tools": w.serving.tools.schemas}}
        assert code(await w.ann.post(API, json=own, headers=KEY)) == (409, "request_conflict")


@actor("test.boxed", version=1)
class Boxed(Actor):
    model: Model
    tools: Toolbox


@pytest.mark.parametrize("kind", [Session, Boxed])
@pytest.mark.parametrize("later", ["the same", *LATER])
async def test_a_request_of_older_records_is_the_same_whatever_there_is_by_then(kind: Any, later: str) -> None:
    log, type = MemoryLog(), type_of(kind).name
    said = {"id": "s", "type": type, "fields": {"model": "model"}}
    async with world(log=log, devices=having(add), actors=[Boxed]) as w:
        # As it was recorded before what was sent had a digest of its own.
        await w.host.asking("ann").spawn(kind, "s", request="k", tools=w.serving.tools.schemas, model="model")
    devices = having(add) if later == "the same" else LATER[later]()
    async with world(log=log, devices=devices, actors=[Boxed]) as w:
        assert (await w.ann.post(API, json=said, headers=KEY)).status_code == 201
        async with client_of(w, TOKENS["ann"]) as client:
            await client.spawn(kind, "s", request="k", model="model")
        for fields in ({"model": "another"}, {"tools": []}, {}):
            other = await w.ann.post(API, json={**said, "fields": fields}, headers=KEY)
            assert code(other) == (409, "request_conflict")


async def long(a: int) -> int:
    return a


long.__doc__ = "Does much. " * 40
LONG = "Be brief. " * 40


@pytest.mark.parametrize("kind", [Session, Boxed])
@pytest.mark.parametrize("later", ["the same", *LATER])
async def test_a_request_of_older_records_whose_tools_are_erased_is_the_same_as_far_as_that_can_be_told(
    kind: Any, later: str
) -> None:
    log, type, tools = MemoryLog(), type_of(kind).name, Tools(long)
    given = {"system": LONG, "max_steps": 7} if kind is Session else {"model": "model"}
    said = {"id": "s", "type": type, "fields": given}
    async with world(log=log, devices=having(long), actors=[Boxed]) as w:
        made = await w.host.asking("ann").spawn(kind, "s", request="k", tools=tools.schemas, **given)
        assert await w.host.erase("s", seq=1, force=True)
    devices = having(long) if later == "the same" else LATER[later]()
    async with world(log=log, devices=devices, actors=[Boxed]) as w:
        again = await w.ann.post(API, json=said, headers=KEY)
        assert (again.status_code, again.json()["uid"]) == (201, made._uid.hex())
        async with client_of(w, TOKENS["ann"]) as client:
            assert (await (await client.spawn(kind, "s", request="k", **given)).describe())["id"] == "s"
            with pytest.raises(RequestConflict):
                await client.spawn(kind, request="k", **given)
        others: list[Any] = [
            {**given, "model": "another"},
            {**given, "tools": []},
            {**given, "tools": Tools(add).schemas},
        ]
        if kind is Session:
            others += [{**given, "max_steps": 8}, {"system": LONG}]
        for fields in others:
            other = await w.ann.post(API, json={**said, "fields": fields}, headers=KEY)
            assert code(other) == (409, "request_conflict"), fields
        for other in ({**said, "id": "t"}, {"type": type, "fields": given}):
            assert code(await w.ann.post(API, json=other, headers=KEY)) == (409, "request_conflict")
        assert [row.id for row in w.host.sessions()] == ["s"]


async def test_where_its_tools_are_there_other_content_is_refused_though_the_rest_is_erased() -> None:
    log = MemoryLog()
    async with world(log=log, devices=having(add)) as w:
        await w.host.asking("ann").spawn(Session, "s", request="k", tools=w.serving.tools.schemas, system=LONG)
        assert await w.host.erase("s", seq=1, force=True)
        for system, status in ((LONG, 201), (LONG * 2, 409)):
            said = {"id": "s", "fields": {"system": system}}
            assert (await w.ann.post(API, json=said, headers=KEY)).status_code == status


async def test_where_all_that_it_began_with_is_away_it_is_known_by_its_type_and_its_id(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log = MemoryLog()
    async with world(log=log, devices=having(add)) as w:
        made = await w.host.asking("ann").spawn(Session, "s", request="k", tools=w.serving.tools.schemas)

    def away(*_: Any) -> Any:
        raise Archived(1, ["cold"], 2)

    async with world(log=log, devices=having(double), actors=[Boxed]) as w:
        monkeypatch.setattr(Host, "look", away)
        again = await w.ann.post(API, json={"id": "s"}, headers=KEY)
        assert (again.status_code, again.json()["uid"]) == (201, made._uid.hex())
        for other in ({}, {"id": "t"}, {"id": "s", "type": "test.boxed"}):
            assert code(await w.ann.post(API, json=other, headers=KEY)) == (409, "request_conflict")


async def test_one_of_older_records_without_tools_is_the_same_too() -> None:
    log = MemoryLog()
    async with world(log=log) as w:
        await w.host.asking("ann").spawn(Session, "s", request="k")
    async with world(log=log, devices=having(add)) as w:
        assert (await w.ann.post(API, json={"id": "s"}, headers=KEY)).status_code == 201


@pytest.mark.parametrize("later", LATER)
async def test_clients_over_a_connection_find_it_again_too_and_by_either_door(later: str) -> None:
    log = MemoryLog()
    async with world(log=log, devices=having(add)) as w, client_of(w, TOKENS["ann"]) as client:
        await client.spawn(Session, "s", request="k")
    async with world(log=log, devices=LATER[later]()) as w, client_of(w, TOKENS["ann"]) as client:
        assert (await (await client.spawn(Session, "s", request="k")).describe())["id"] == "s"
        assert (await w.ann.post(API, json={"id": "s"}, headers=KEY)).status_code == 201
        with pytest.raises(RequestConflict):
            await client.spawn(Session, "s", request="k", tools=[])


async def test_what_was_made_needs_no_room() -> None:
    async with world(ServerSettings(sessions=3)) as w, client_of(w, TOKENS["ann"]) as client:
        made = await w.ann.post(API, json={"id": "s"}, headers=KEY)
        await w.ann.post(f"{API}/s/turn", json={"input": "a"})
        forks = [{"turn": 1, "into": "f"}, {"at": 2, "into": "f2"}]
        for n, fork in enumerate(forks):
            assert (
                await w.ann.post(f"{API}/s/fork", json=fork, headers={"idempotency-key": f"f{n}"})
            ).status_code == 201
        assert code(await w.ann.post(API)) == (403, "too_many_sessions")
        assert (await w.ann.post(API, json={"id": "s"}, headers=KEY)).json()["uid"] == made.json()["uid"]
        for n, fork in enumerate(forks):
            again = await w.ann.post(f"{API}/s/fork", json=fork, headers={"idempotency-key": f"f{n}"})
            assert (again.status_code, again.json()["id"]) == (201, fork["into"])
        assert (await (await client.spawn(Session, "s", request="k")).describe())["id"] == "s"
        twin = await client.get("s").fork(at=2, into="f2", request="f1")
        assert (await twin.describe())["id"] == "f2"


async def test_what_cannot_be_is_refused_before_anything_is_made() -> None:
    async with world(devices=down()) as w:
        assert code(await w.ann.post(API, headers=KEY)) == (503, "server_unavailable")
        assert w.host.sessions() == []
