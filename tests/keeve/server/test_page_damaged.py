"""A session that is damaged, on the page: what can be read is shown, what is to be done is said, nothing else fails."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import attrs
import httpx2
import pytest

from keeve import Session, open_host
from keeve.server import Auth, application
from tests.page_visits import browser, form_of, only_ours, text_of
from tests.server_worlds import World, world


@asynccontextmanager
async def damaged(folder: Path) -> AsyncIterator[tuple[World, httpx2.AsyncClient]]:
    """A store with the sessions `well` and `ill`, of whose second input a byte was changed on the disk."""
    async with open_host(folder) as host:
        await (await host.spawn(Session, "well")).turn("all is well")
        ill = await host.spawn(Session, "ill")
        await ill.turn("before")
        await ill.turn("the damage is here")
        await ill.turn("and after")
    path = folder / "log" / "00000001.seg"
    data = bytearray(path.read_bytes())
    data[data.index(b"the damage is here")] ^= 1
    path.write_bytes(data)
    async with world() as w, open_host(folder) as host:
        auth = Auth(host, w.serving.clock, w.serving.auth.ways)
        serving: Any = attrs.evolve(w.serving, host=host, auth=auth)
        there = attrs.evolve(w, serving=serving, app=application(serving))
        async with browser(there, "owner") as owner:
            yield there, owner


@pytest.mark.parametrize(
    "address", ["/", "/?q=damage", "/log", "/forks", "/forks?of=ill", "/waiting", "/sessions/well"]
)
async def test_a_damaged_session_spoils_no_page_of_others(store_folder: Path, address: str) -> None:
    async with damaged(store_folder / "s") as (_, owner):
        answer = await owner.get(address)
        assert answer.status_code == 200
        only_ours(answer.text)


async def test_what_can_be_read_of_it_is_shown_and_what_to_do_is_said(store_folder: Path) -> None:
    async with damaged(store_folder / "s") as (w, owner):
        answer = await owner.get("/sessions/ill")
        shown = text_of(answer.text)
        assert answer.status_code == 200
        for words in ("before", "damaged from seq 4 on", "keeve salvage", "seq 4 cannot be read"):
            assert words in shown
        assert 'action="/sessions/ill/say"' not in answer.text
        form = form_of(answer.text, "/sessions/ill/fork")
        assert form["at"] == "3"
        gone_on = await owner.post("/sessions/ill/fork", data={**form, "into": "cured"})
        assert gone_on.headers["location"] == "/sessions/cured"
        assert await (await w.host.get("cured")).history == ["before"]


async def test_the_log_names_the_record_in_its_place(store_folder: Path) -> None:
    async with damaged(store_folder / "s") as (_, owner):
        shown = text_of((await owner.get("/log")).text)
        assert shown.index('"before"') < shown.index("cannot be read") < shown.index('"and after"')


async def test_its_past_is_seen_up_to_the_damage(store_folder: Path) -> None:
    async with damaged(store_folder / "s") as (_, owner):
        assert (await owner.get("/sessions/ill/at/3")).status_code == 200
        answer = await owner.get("/sessions/ill/at/5")
        assert (answer.status_code, "session_damaged" in answer.text) == (500, True)
