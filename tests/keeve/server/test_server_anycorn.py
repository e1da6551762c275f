"""The application under another server: it is ASGI, and nothing in it knows by whom it is run."""

from __future__ import annotations

from functools import partial

import anycorn
import httpx2
import trio

from keeve import Session
from keeve.server.listening import config_of
from tests.keeve.server.test_api_turns import events_of
from tests.server_worlds import TOKENS, world


async def test_anycorn_serves_it_too() -> None:
    async with world() as w, trio.open_nursery() as nursery:
        await w.host.asking("ann", "http").spawn(Session, "s")
        config = anycorn.Config()
        config.bind = ["127.0.0.1:0"]
        config.errorlog = config_of(w.serving.settings).errorlog
        stop = trio.Event()
        [address] = await nursery.start(partial(anycorn.serve, w.app, config, shutdown_trigger=stop.wait))
        headers = {"authorization": f"Bearer {TOKENS['ann']}"}
        async with httpx2.AsyncClient(base_url=address, headers=headers, trust_env=False) as ann:
            said = await ann.post("/api/v1/sessions/s/turn", json={"input": "hello"})
            assert said.json()["output"] == "hello"
            streamed = await ann.post(
                "/api/v1/sessions/s/turn", json={"input": "again"}, headers={"accept": "text/event-stream"}
            )
            assert events_of(streamed.text)[-1][2]["output"] == "again"
            assert (await ann.get("/api/v1", headers={"host": "evil.example"})).status_code == 421
        stop.set()
