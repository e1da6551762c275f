"""What waits, in pages: over HTTP and on the page."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
import trio

from dataspace.errors import KeeveError
from keeve import looking
from keeve.looking import waitlist
from keeve.server.page import waiting
from tests.cli_worlds import SOON, Keeper, Stuck, Waiter
from tests.page_visits import browser, only_ours
from tests.server_worlds import World, world

WAITING = "/api/v1/waiting"
KINDS = ("effects", "approvals", "fibers", "promises")


async def forgotten(call: Any, *args: Any) -> None:
    """Call it, whatever comes of it."""
    with suppress(KeeveError):
        await call(*args)


@asynccontextmanager
async def waits() -> AsyncIterator[World]:
    """Of ann's: `a` waits for `w1`, that for a person, `w2` for a tool or a time. Of bob's: one waits for a person."""
    async with world(actors=[Waiter], devices={"tool": Stuck()}, settings=SOON) as w, trio.open_nursery() as nursery:
        w1, a, w2 = [await w.host.asking("ann").spawn(Waiter, id) for id in ("w1", "a", "w2")]
        theirs = await w.host.asking("bob").spawn(Waiter, "theirs")
        nursery.start_soon(forgotten, w1.for_itself)
        for call in (w1.for_a_person, theirs.for_a_person):
            nursery.start_soon(forgotten, call, "40")
        nursery.start_soon(forgotten, a.for_another, w1)
        nursery.start_soon(forgotten, w2.for_one_of_two)
        await w.settled()
        nursery.start_soon(forgotten, a.for_what_is_owed)  # by which it knows that its message has come
        await w.settled()
        yield w
        nursery.cancel_scope.cancel()


async def in_pages(w: World, limit: int, **query: Any) -> list[Any]:
    """The pages, each behind the one before."""
    pages: list[Any] = []
    while not pages or pages[-1]["next"] is not None:
        after = {"after": pages[-1]["next"]} if pages else {}
        answer = await w.ann.get(WAITING, params={"limit": limit, **query, **after})
        assert answer.status_code == 200, answer.text
        pages.append(answer.json())
    return pages


def joined(pages: list[Any], kind: str) -> list[Any]:
    return [each for page in pages for each in page[kind]]


async def test_pages_of_what_waits_have_all_of_it_once_in_one_order(monkeypatch: pytest.MonkeyPatch) -> None:
    async with waits() as w:
        [whole] = await in_pages(w, 1000)
        assert {each["session"] for kind in KINDS for each in whole[kind]} == {"w1", "a", "w2"}
        assert [each["session"] for each in whole["fibers"]] == ["w1"] * 4 + ["a"] * 2 + ["w2"]
        for limit in (1, 2, 5):
            pages = await in_pages(w, limit)
            assert all(sum(len(page[kind]) for kind in KINDS) == limit for page in pages[:-1])
            assert {kind: joined(pages, kind) for kind in KINDS} == {kind: whole[kind] for kind in KINDS}
        pages = await in_pages(w, 1, session="w2")
        assert {kind: len(joined(pages, kind)) for kind in KINDS} == {
            "effects": 2,
            "approvals": 0,
            "fibers": 1,
            "promises": 0,
        }
        monkeypatch.setattr(waitlist, "LOOKED_INTO", 1)
        pages = await in_pages(w, 1000)
        assert len(pages) > 2
        assert {kind: joined(pages, kind) for kind in KINDS} == {kind: whole[kind] for kind in KINDS}


async def test_a_page_goes_on_behind_what_is_gone_and_of_nobody_elses_sessions() -> None:
    async with waits() as w:
        [whole] = await in_pages(w, 1000)
        first, *_ = await in_pages(w, 1)
        [settled] = first["effects"]
        await w.host.delete("w1", force=True)
        rest = (await w.ann.get(WAITING, params={"after": first["next"]})).json()
        assert settled == whole["effects"][0]
        assert [each["id"] for each in rest["effects"]] == [each["id"] for each in whole["effects"][1:]]
        assert {each["session"] for each in rest["fibers"]} <= {"w2", "a"}
        for query, said in (
            ({"after": "nowhere"}, (422, "bad_cursor")),
            ({"after": "0.1"}, (422, "bad_cursor")),
            ({"session": "theirs"}, (404, "no_such_session")),
        ):
            answer = await w.ann.get(WAITING, params=query)
            assert (answer.status_code, answer.json()["error"]["code"]) == said


async def test_on_the_page_one_goes_on_to_what_waits_in_further_sessions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "LOOKED_AT", 1)
    async with waits() as w, browser(w, "ann") as ann:
        address: str | None = "/waiting"
        found: list[str] = []
        while address:
            shown = (await ann.get(address)).text
            only_ours(shown)
            found += re.findall(r'<h2 id="waits-\d+"><a href="/sessions/(\w+)"', shown)
            link = re.search(r'href="(/waiting\?after=[^"]+)"', shown)
            address = link[1] if link else None
        assert found == ["w1", "w2"]
        assert (await ann.get("/waiting?after=nowhere")).status_code == 422


async def test_a_look_gives_the_kinds_that_are_asked_for() -> None:
    async with waits() as w:
        told = await looking.look(looking.reading_of(w.host), "waiting", {"kinds": ["approvals"], "limit": 1})
        assert (len(told["approvals"]), told["effects"], told["fibers"]) == (1, [], [])
        assert told["truncated"] == ["approvals"]
        told = await looking.look(looking.reading_of(w.host), "waits", {"id": "w2", "kinds": ["effects"], "limit": 1})
        assert (len(told["effects"]), told["truncated"]) == (1, ["effects"])


async def test_a_session_that_only_waits_for_another_is_told_over_http_with_that() -> None:
    async with world(actors=[Waiter, Keeper]) as w:
        w1 = await w.host.asking("ann").spawn(Waiter, "w1")
        asks = await w.host.asking("ann").spawn(Keeper, "asks")
        await asks.ask(w1)
        [told] = await in_pages(w, 1000, session="asks")
        [promise] = told["promises"]
        assert (promise["session"], promise["waits_for"]) == ("asks", [{"kind": "session", "session": "w1"}])
        assert [told[kind] for kind in ("effects", "approvals", "fibers", "unreadable")] == [[]] * 4
