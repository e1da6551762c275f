"""What the pages of a long session cost: what is read for them follows from what is shown, and not from its length."""

from __future__ import annotations

import html
import re
from typing import Any

import httpx2
import pytest

from dataspace.catalog.recall import Recall
from keeve import Actor, List, Session, Text, actor
from keeve.looking import parts
from keeve.server.page import cutting
from keeve.server.page.cutting import Newest, TurnsKept
from tests.page_visits import browser
from tests.server_worlds import world

PLACES = ("/sessions/s", "/sessions/s?before=42", "/sessions/s/at/{head}", "/sessions/s/at/9", "/forks?of=s")


async def test_the_pages_of_a_long_session_do_not_read_all_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    reads = 0
    said = Recall.said

    def counted(self: Recall, address: int) -> object:
        nonlocal reads
        reads += 1
        return said(self, address)

    monkeypatch.setattr(Recall, "said", counted)
    async with world() as w, browser(w, "ann") as ann:
        s = await w.host.asking("ann").spawn(Session, "s")
        costs: dict[str, list[int]] = {place: [] for place in PLACES}
        for turns in (210, 210):
            for _ in range(turns):
                await s.turn("and so on")
            for place in PLACES:
                before = reads
                answer = await ann.get(place.format(head=w.host.row("s").seq))
                assert answer.status_code == 200, answer.text
                costs[place].append(reads - before)
    for place, (half, whole) in costs.items():
        assert whole <= half + 20, (place, half, whole)


async def test_an_older_page_ends_where_its_turns_were_over() -> None:
    async with world() as w, browser(w, "ann") as ann:
        s = await w.host.asking("ann").spawn(Session, "s")
        for n in range(1, 101):
            await s.turn(f"input {n}.")
        shown = (await ann.get("/sessions/s?before=51")).text
        assert [n for n in range(1, 101) if f"input {n}.<" in shown] == list(range(11, 51))
        assert "under way" not in shown.partition("<template")[0]


LONG = "long " * 1_500


@actor("page.lister", version=1)
class Lister(Actor):
    messages: List[str]
    kept: List[str]

    def turn(self, text: Text) -> None:
        self.messages.append(text)
        self.kept.append(text)
        self.assert_fact("page.kept", len(self.kept), Text(text))


async def followed(ann: httpx2.AsyncClient, place: str, link: str, shown: str) -> list[str]:
    """What is shown at a place, and at those before it, as far as they are linked; none of them is large."""
    found: list[str] = []
    to: str | None = place
    while to is not None:
        text = (await ann.get(to)).text
        assert len(text) < 90_000, (to, len(text))
        assert "more letters)" in text
        found = re.findall(shown, text) + found
        earlier = re.search(f'(?<! hidden>)<a href="([^"]*)">{link}', text)
        to = (
            None
            if earlier is None
            else str(httpx2.URL(f"http://x{place}").join(html.unescape(earlier[1])).raw_path, "ascii")
        )
    return found


async def test_a_page_has_what_there_is_room_for_and_leads_to_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where long texts were said, no page is large, and by its links one comes to each turn, message and fact once."""
    monkeypatch.setattr(cutting, "LETTERS", 5_000)
    for module in (cutting, parts):
        monkeypatch.setattr(module, "ROOM", 40_000)
    async with world(actors=[Lister]) as w, browser(w, "ann") as ann:
        asking = w.host.asking("ann")
        s, agent = await asking.spawn(Session, "s"), await asking.spawn(Lister, "a")
        for n in range(1, 8):
            await s.turn(f"input {n}. {LONG}")
            await agent.turn(f"note {n}. {LONG}")
        assert await followed(ann, "/sessions/s", "Earlier turns", r'id="turn-(\d)"') == list("1234567")
        every = r'data-slot="text">note (\d)'
        assert await followed(ann, "/sessions/a", "The .* before these", every) == list("1234567")
        newest = w.host.row("a").seq
        assert await followed(ann, f"/sessions/a/at/{newest}", "The .* before these", every) == list("1234567")
        kept = r'slot="text">\(page.kept (\d)'
        assert await followed(ann, "/log?pattern=(page.kept+.+_)", "Earlier", kept) == list("1234567")


async def test_what_one_record_states_stays_together_on_a_page_unless_it_alone_is_too_much() -> None:
    def stated(position: int) -> dict[str, Any]:
        return {"position": position, "text": "x", "fields": [], "keywords": {}}

    newest = Newest(3)
    for position in (1, 2, 2, 3):
        newest.add(stated(position))
    assert ([each["position"] for each in newest.events], newest.full, newest.left) == ([2, 2, 3], True, 0)
    for position in (4, 4, 4, 4, 4):
        newest.add(stated(position))
    assert ([each["position"] for each in newest.events], newest.left) == ([4, 4, 4], 2)


async def test_what_a_session_states_besides_its_turns_takes_no_room_from_them() -> None:
    def stated(label: str, number: int, size: int) -> dict[str, Any]:
        return {"label": label, "fields": [number, "s"], "keywords": {"input": "x" * size}, "position": 1}

    kept = TurnsKept(1)
    for event in (stated("turn", 1, 10), stated("score", 1_000_000, 5 << 20), stated("turn-done", 1, 10)):
        kept.add(event)
    assert ([each["label"] for each in kept.events], kept.first) == (["turn", "turn-done"], 1)
    kept.add(stated("turn", 2, 5 << 20))
    kept.add(stated("model-output", 1, 10))
    assert ([each["fields"][0] for each in kept.events], kept.first) == ([2], 2)
    assert len(kept.events[0]["keywords"]["input"]) < 201_000
