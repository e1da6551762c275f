"""What the commands ask of a server's desk: a look at the store, a word, an outcome, an erasure; and who may."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import trio

from actors.session import Session
from keeve.client import Client, connect
from keeve.wire.tokens import Caveat, methods, mint, named, read_only, sessions
from tests.cli_worlds import Waiter
from tests.served_stores import ServedStore, served_store

Ask = Callable[[Client], Awaitable[Any]]


def looks(what: str, **how: Any) -> Ask:
    return lambda client: client.desk("look", what, how)


SHOWS = looks("show", id="s1", whole=True)
OTHER = looks("show", id="s2", whole=True)
FACTS = looks("facts", pattern="(turn . _)", at=None, session=None, lineage=False)
ERASES: Ask = lambda client: client.desk("erase", "s1", None, 1)  # noqa: E731  # each stands for a call
SAYS: Ask = lambda client: client.desk("say", "s1", "call_1")  # noqa: E731  # each stands for a call
SETTLES: Ask = lambda client: client.desk("resolve", "s1", "ff", {"value": 1})  # noqa: E731  # each stands for a call


def minted(there: ServedStore, *caveats: Caveat) -> str:
    return str(mint(there.token, bytes(16)).narrow(*caveats))


async def test_a_token_looks_at_and_does_what_it_allows(tmp_path: Path) -> None:
    async with served_store(tmp_path / "data", actors=[Waiter]) as there, trio.open_nursery() as nursery:
        for id in ("s1", "s2"):
            await (await there.host.spawn(Session, id)).turn("hello")

        async def refused(ask: Ask, *caveats: Caveat) -> str | None:
            async with connect(there.socket, token=minted(there, *caveats)) as client:
                try:
                    await ask(client)
                except Exception as error:  # noqa: BLE001  # which one it is, is what is looked at
                    return type(error).__name__
                return None

        assert await refused(SHOWS) is await refused(FACTS) is await refused(ERASES, sessions("s1")) is None
        assert await refused(SHOWS, sessions("s1"), read_only()) is None
        assert await refused(OTHER, sessions("s1")) == "NoSuchSession"
        async with connect(there.socket, token=minted(there, sessions("s1"))) as client:
            facts = await client.desk(
                "look", "facts", {"pattern": "(turn . _)", "at": None, "session": None, "lineage": False}
            )
            assert [fact["session"] for fact in facts["facts"]] == ["s1"]
            assert [held.session for held in await client.facts("(turn . _)")] == ["s1"]
            with client.observe("(_ . _)", until="head") as events:
                assert {event.session async for event in events} == {"s1"}
        assert await refused(FACTS, methods("turn")) == "Refused"
        assert await refused(SHOWS, methods("turn")) == "Refused"
        assert await refused(SHOWS, methods("look")) is None
        assert await refused(SHOWS, named("ann")) == "NoSuchSession"
        assert await refused(ERASES, read_only()) == await refused(SAYS, read_only()) == "Refused"
        assert await refused(ERASES, sessions("s2")) == await refused(SAYS, sessions("s2")) == "NoSuchSession"
        assert await refused(SAYS) == "NothingWaits"
        assert await refused(SETTLES) == "NoSuchEffect"
        assert await refused(looks("nothing")) == "NoSuchLook"
        nursery.start_soon((await there.host.spawn(Waiter, "w1")).for_tomorrow)
        while not (waiting := there.host.effects("w1")):
            await trio.lowlevel.checkpoint()

        def settles(client: Client) -> Any:
            return client.desk("resolve", waiting[0].session, waiting[0].id, {"value": 1})

        assert await refused(settles, sessions("s1")) == "NoSuchSession"
        assert await refused(settles, read_only()) == "Refused"
        async with connect(there.socket, token=minted(there, sessions("s1"))) as client:
            page = await client.desk("look", "sessions", {"prefix": "", "after": "", "limit": 10, "deleted": True})
            assert [row["id"] for row in page["sessions"]] == ["s1"]
        nursery.cancel_scope.cancel()
