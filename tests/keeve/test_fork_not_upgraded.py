"""A fork of a session whose code cannot be upgraded is made, and named, by whichever door: it is not loaded for that.

Invariant 43: what is refused leaves nothing behind, so what is there is not told as refused.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx2
import pytest

from keeve import Actor, Session, Text, actor, open_host, read
from keeve.client import connect
from keeve.errors import Refused, UpgradeFailed
from keeve.wire.tokens import methods
from tests.cli_runner import keeve
from tests.keeve.server.test_server_wire import client_of, minted, served
from tests.served_stores import ServedStore, asked, served_store


@actor("tests.forked", version=1)
class Written(Actor):
    text: str

    def write(self, text: Text) -> None:
        self.text = text


@actor("tests.forked", version=2)
class Newer(Actor):
    text: str

    @classmethod
    def upgrade(cls, state: dict[str, Any], from_version: int) -> None:
        raise ValueError("it cannot be")

    @read
    def status(self) -> str:
        return self.text


@pytest.fixture
async def folder(tmp_path: Path) -> Path:
    async with open_host(tmp_path / "data", actors=[Written]) as host:
        await (await host.spawn(Written, "s", text="")).write("said")
    return tmp_path / "data"


async def in_python(there: ServedStore) -> str:
    await (await there.host.get("s")).fork(into="twin")
    return "twin"


async def over_http(there: ServedStore) -> str:
    headers = {"authorization": f"Bearer {there.token}", "idempotency-key": "k"}
    async with httpx2.AsyncClient(base_url=there.url, headers=headers) as client:
        for _ in range(2):
            answer = await client.post("/api/v1/sessions/s/fork", json={"into": "twin"})
            assert answer.status_code == 201, answer.text
        shown = await client.get("/api/v1/sessions/twin")
        assert (shown.status_code, shown.json()["status"]) == (200, None)
        id: str = answer.json()["id"]
        return id


async def by_the_command(there: ServedStore) -> str:
    said = await asked("fork", "s", "--into", "twin", "--store", there.folder)
    assert said.code == 0, said.err
    return said.out.strip()


async def by_a_client(there: ServedStore) -> str:
    async with connect(there.url, token=there.token) as client:
        twin = await client.get("s").fork(into="twin")
        id: str = await client.desk("name", twin)
        return id


@pytest.mark.parametrize("door", [in_python, over_http, by_the_command, by_a_client])
async def test_it_is_made_and_its_id_is_said(folder: Path, door: Any) -> None:
    async with served_store(folder, actors=[Newer]) as there:
        assert await door(there) == "twin"
        assert [row.id for row in there.host.sessions()] == ["s", "twin"]
        for id in ("s", "twin"):
            with pytest.raises(UpgradeFailed):
                await (await there.host.get(id)).status()
    async with open_host(folder, actors=[Written]) as host:
        assert await (await host.get("twin")).text == "said"


async def test_and_by_a_command_that_has_the_store_to_itself(folder: Path) -> None:
    said = await asked("fork", "s", "--into", "twin", "--store", folder, "--actors", f"{__name__}:Newer")
    assert (said.code, said.out) == (0, "twin\n")
    assert [row["id"] for row in keeve("ls", "--store", folder, "--json").json["sessions"]] == ["s", "twin"]


async def test_the_name_behind_a_ref_is_for_who_may_have_it_described(tmp_path: Path) -> None:
    async with served(tmp_path) as w:
        await w.host.spawn(Session, "s")
        async with client_of(w, minted(w, methods("get", "status"))) as client:
            ref = await client.get("s")
            with pytest.raises(Refused):
                await client.desk("name", ref)
            with pytest.raises(TypeError, match="give a ref that came over this connection"):
                await client.desk("name", "s")
        async with client_of(w, minted(w, methods("get", "describe"))) as client:
            assert await client.desk("name", client.get("s")) == "s"
