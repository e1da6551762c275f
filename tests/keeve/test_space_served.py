"""Space on a server that runs: what was deleted goes from the files, and content to an archive and back, when asked."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import httpx2
import pytest
import trio

from actors.session import Session
from keeve.cli import progress
from keeve.principals import OWNER
from keeve.server import Principal
from keeve.settings import VERBS
from keeve.wire.tokens import Allowance
from tests.keeve.canaries import LONG, found
from tests.served_stores import asked, served_store
from tests.server_worlds import world

API = "/api/v1"
SAID = "CANARYSAID"


async def filled(host: Any) -> None:
    """A session that has said much, and one that was deleted."""
    s1, gone = await host.spawn(Session, "s1"), await host.spawn(Session, "gone")
    await s1.turn(f"{SAID} in s1{LONG}")
    await s1.turn(f"and on{LONG}{LONG}")
    await gone.turn(f"{SAID} in gone{LONG}")
    await host.delete("gone")
    await host.spawn(Session, "s2")


async def test_the_commands_ask_the_server_that_has_the_store(tmp_path: Path) -> None:
    store, cold = tmp_path / "data", tmp_path / "cold"
    async with served_store(store) as there:
        await filled(there.host)
        cleared = await asked("gc", "--store", store, "--json")
        assert (cleared.code, cleared.json["sessions"], cleared.json["freed"] >= 0) == (0, 1, True)
        assert not [path for path in (store / "log").iterdir() if f"{SAID} in gone".encode() in path.read_bytes()]
        gone = await asked("archive", "--into", cold, "--idle", "--server", there.socket, "--json")
        assert (gone.code, gone.json["folder"], gone.json["pieces"] > 0) == (0, str(cold), True)
        assert found(store / "log", SAID) == []
        assert f"{SAID} in s1" in (await asked("show", "s1", "--store", store)).out  # read from there
        back = await asked("archive", "--back", "--store", store)
        assert (back.code, back.out) == (0, f"{gone.json['pieces']} pieces of content came back to 1 segment\n")
        assert (await asked("gc", "--server", there.socket)).out == "nothing to do\n"
        assert await (await there.host.get("s1")).turn("still here") == "still here"


async def test_over_http_others_are_served_meanwhile_and_a_place_is_named_from_the_root(tmp_path: Path) -> None:
    cold = tmp_path / "cold"
    async with served_store(tmp_path / "data") as there:
        await filled(there.host)
        headers = {"authorization": f"Bearer {there.token}"}
        async with httpx2.AsyncClient(base_url=there.url, headers=headers) as client, trio.open_nursery() as nursery:
            answers: dict[str, Any] = {}

            async def archive() -> None:
                answers["archived"] = await client.post(f"{API}/archive", json={"into": str(cold), "idle": True})

            nursery.start_soon(archive)
            assert (await client.post(f"{API}/sessions/s2/turn", json={"input": "meanwhile"})).status_code == 200
        archived = answers["archived"]
        assert (archived.status_code, archived.json()["folder"]) == (200, str(cold))
        async with httpx2.AsyncClient(base_url=there.url, headers=headers) as client:
            refused = await client.post(f"{API}/archive", json={"into": "cold"})
            assert (refused.status_code, refused.json()["error"]["param"]) == (422, "into")
            back = await client.post(f"{API}/bring-back", json={})
            assert (back.status_code, back.json()["pieces"]) == (200, archived.json()["pieces"])


@pytest.mark.parametrize("words", [("--into", "cold", "--idle"), ("--back", "--from", "cold")])
async def test_a_folder_of_the_server_s_machine_is_none_of_the_one_who_asks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    looked: list[Path] = []
    monkeypatch.setattr(progress, "_bytes_in", lambda folder: looked.append(folder) or 0)
    monkeypatch.chdir(tmp_path)
    async with served_store(tmp_path / "data") as there:
        said = await asked("archive", *words, "--server", there.socket)
    assert (said.code, said.out, "'cold' is no whole path" in said.err) == (2, "", True)
    assert (looked, os.listdir(tmp_path)) == ([], ["data"])


async def test_a_token_that_was_made_of_the_owner_s_is_refused(tmp_path: Path) -> None:
    async with served_store(tmp_path / "data") as there:
        made = (await asked("token", "make", "--store", there.folder)).out.strip()
        for words in (("gc",), ("archive", "--into", tmp_path / "cold"), ("archive", "--back")):
            said = await asked(*words, env={"KEEVE_SERVER": there.url, "KEEVE_TOKEN": made})
            assert said.code == 2
            assert "the owner's token alone may" in said.err
        async with httpx2.AsyncClient(base_url=there.url, headers={"authorization": f"Bearer {made}"}) as client:
            for what, body in (("reclaim", {}), ("archive", {"into": str(tmp_path / "cold")}), ("bring-back", {})):
                assert (await client.post(f"{API}/{what}", json=body)).status_code == 403
    assert not (tmp_path / "cold").exists()


async def test_only_the_owner_s_own_token_may() -> None:
    async with world() as w:
        assert (await w.owner.post(f"{API}/reclaim")).json() == {"sessions": 0, "bodies": 0, "pages": 0, "archived": 0}
        refused = await w.ann.post(f"{API}/reclaim")
        assert (refused.status_code, refused.json()["error"]["code"]) == (403, "not_allowed")
    everything = frozenset(VERBS)
    assert Principal(OWNER, everything).owns
    assert not Principal("root", everything).owns
    assert not Principal(OWNER, everything, allowance=Allowance()).owns
