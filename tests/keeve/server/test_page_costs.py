"""What the pages of a long session cost: what is read for them follows from what is shown, and not from its length."""

from __future__ import annotations

import pytest

from dataspace.catalog.recall import Recall
from keeve import Session
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
