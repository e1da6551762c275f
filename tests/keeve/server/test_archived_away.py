"""Content that is in an archive which is not there: what the server says of it, on the page and over the API."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs

from keeve import Session, open_host
from keeve.server import Auth, application
from tests.page_visits import browser, text_of
from tests.server_worlds import asked_by, world


async def test_what_is_away_is_said_and_nothing_else_fails(store_folder: Path) -> None:
    folder, cold = store_folder / "s", store_folder / "cold"
    async with open_host(folder, segment_bytes=4096) as host:
        s = await host.spawn(Session, "s")
        await s.turn("long ago" + " and so on" * 60)
        await s.turn("and later" + " and so on" * 300)
        await host.spawn(Session, "other")
        await host.archive(cold, idle=True)
    cold.rename(store_folder / "elsewhere")
    async with world() as w, open_host(folder) as host:
        auth = Auth(host, w.serving.clock, w.serving.auth.ways)
        serving: Any = attrs.evolve(w.serving, host=host, auth=auth)
        there = attrs.evolve(w, serving=serving, app=application(serving))
        owner = asked_by("owner", there.app)
        for path in ("/turns", "/messages"):
            answer = await owner.get(f"/api/v1/sessions/s{path}")
            assert (answer.status_code, answer.json()["error"]["code"]) == (503, "archived")
            assert str(cold) not in answer.text  # where things lie on the server is not for clients
        page = (await owner.get("/api/v1/dataspace?pattern=(turn . _)&marks=true")).json()
        assert [each["away"] for each in page["unreadable"]] == [True, True]
        assert str(cold) not in str(page)
        async with browser(there, "owner") as visitor:
            for address in ("/", "/?q=long", "/forks", "/forks?of=s", "/waiting", "/log"):
                assert (await visitor.get(address)).status_code == 200, address
            shown = await visitor.get("/sessions/s")
            assert shown.status_code == 200
            assert "in an archive that is not there" in text_of(shown.text)
            assert "damaged" not in text_of(shown.text)
    async with open_host(folder, archives=[store_folder / "elsewhere"]) as host:
        assert (await (await host.get("s")).history)[0].startswith("long ago")
