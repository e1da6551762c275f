"""What a command says with a request id is said once, whether a server has the store or not; and nobody else is taken
for who said it.

Invariant 30.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx2
import pytest

from keeve import Session, open_host
from keeve.client import connect
from keeve.principals import LOCAL, OWNER
from keeve.wire.tokens import Caveat, methods, mint, named, sessions
from tests.cli_runner import Said
from tests.served_stores import ServedStore, asked, served_store
from vat.crank.vat import RequestConflict
from vat.host.repetitions import also_as


@pytest.fixture
async def store(tmp_path: Path) -> Path:
    async with open_host(tmp_path / "data") as host:
        await host.spawn(Session, "s")
    return tmp_path / "data"


async def say(store: Path, verb: str, text: str) -> Said:
    return await asked(verb, "s", text, "--request-id", "R1", "--store", store, "--json")


async def say_there(store: Path, verb: str, text: str) -> Said:
    async with served_store(store):
        return await say(store, verb, text)


async def said_by(store: Path) -> list[tuple[Any, Any]]:
    """In whose name each turn was said, and what."""
    async with open_host(store) as host:
        turns = [event.value.keywords for event in host.query("(turn . _)", session="s")]
        return [(each["by"], each["input"]) for each in turns]


@pytest.mark.parametrize("verb", ["turn", "queue", "steer"])
@pytest.mark.parametrize(("first", "then", "by"), [(say_there, say, OWNER), (say, say_there, LOCAL)])
async def test_it_is_said_once_at_either_door(store: Path, verb: str, first: Any, then: Any, by: str) -> None:
    told = await first(store, verb, "pay 5")
    assert told.code == 0, told.err
    for _ in range(2):
        again = await then(store, verb, "pay 5")
        assert (again.code, again.json["turn"]) == (0, 1)
        assert again.json.get("output") == told.json.get("output")
    other = await then(store, verb, "pay 6")
    assert (other.code, "already made with other content" in other.err) == (2, True)
    assert await said_by(store) == [(by, "pay 5")]


async def another(there: ServedStore, *caveats: Caveat) -> Any:
    token = str(mint(there.token, bytes(16)).narrow(*caveats))
    async with connect(there.url, token=token) as client:
        return await client.get("s").turn("pay 5", request="R1")


@pytest.mark.parametrize(
    "caveats", [[sessions("s"), named("ann")], [methods("get", "turn")], [sessions("s")]], ids=["ann", "owner", "one"]
)
async def test_a_token_that_was_made_of_the_owners_has_no_part_in_what_the_files_say(
    store: Path, caveats: list[Caveat]
) -> None:
    assert (await say(store, "turn", "pay 5")).code == 0
    async with served_store(store) as there:
        await another(there, *caveats)
    assert [by for by, _ in await said_by(store)] == [LOCAL, "ann" if len(caveats) == 2 else OWNER]


async def test_whoever_is_called_local_over_the_network_has_no_part_in_what_the_owner_says(store: Path) -> None:
    async with served_store(store) as there:
        assert (await say(store, "turn", "pay 5")).code == 0
        await another(there, named(LOCAL), sessions("s"))
    assert [by for by, _ in await said_by(store)] == [OWNER, LOCAL]


async def test_what_was_said_with_one_id_at_both_doors_before_stays_each_doors_own(store: Path) -> None:
    """Of a store of before, where both were carried out."""
    async with open_host(store) as host:
        await (await host.get("s")).turn("pay 5", request="R1")
        await (await host.asking(OWNER, "wire").get("s")).turn("pay 6", request="R1")
    assert (await say_there(store, "turn", "pay 6")).json["output"] == "pay 6"
    assert (await say(store, "turn", "pay 5")).json["output"] == "pay 5"
    assert len(await said_by(store)) == 2


async def test_a_programs_host_and_the_api_know_their_own_requests_alone(store: Path) -> None:
    assert (await say_there(store, "turn", "pay 5")).code == 0
    async with open_host(store) as host:
        await (await host.get("s")).turn("pay 6", request="R1")
        with pytest.raises(RequestConflict):
            await (await host.get("s")).turn("pay 5", request="R1")
    async with served_store(store) as there:
        headers = {"authorization": f"Bearer {there.token}", "idempotency-key": "R1"}
        async with httpx2.AsyncClient(base_url=there.url, headers=headers) as client:
            answer = await client.post("/api/v1/sessions/s/turn", json={"input": "pay 5"})
    assert answer.json()["turn"] == 1
    assert len(await said_by(store)) == 2


async def test_a_session_that_the_files_made_is_found_again_by_the_owner_over_a_connection(tmp_path: Path) -> None:
    async with open_host(tmp_path) as host:
        await host.spawn(Session, request="R1", system="Brief.")
    async with served_store(tmp_path) as there:
        async with connect(there.url, token=there.token) as client:
            found = await client.spawn(Session, request="R1", system="Brief.")
            assert (await found.describe())["id"] == there.host.sessions()[0].id
            with pytest.raises(RequestConflict):
                await client.spawn(Session, request="R1", system="Long.")
        token = str(mint(there.token, bytes(16)).narrow(methods("spawn")))
        async with connect(there.url, token=token) as client:
            await client.spawn(Session, request="R1", system="Brief.")  # who was given this is another one
        assert len(there.host.sessions()) == 2


async def test_a_session_that_the_owner_made_over_a_connection_is_found_again_on_the_files(tmp_path: Path) -> None:
    async with served_store(tmp_path) as there, connect(there.url, token=there.token) as client:
        await client.spawn(Session, request="R1", system="Brief.")
    async with open_host(tmp_path) as host:
        files = also_as(host, OWNER)
        found = await files.spawn(Session, request="R1", system="Brief.")
        assert (await found.describe())["id"] == host.sessions()[0].id
        with pytest.raises(RequestConflict):
            await files.spawn(Session, request="R1", system="Long.")
        assert len(host.sessions()) == 1
        await host.spawn(Session, request="R1", system="Long.")  # a program's host knows its own requests alone
        assert len(host.sessions()) == 2
