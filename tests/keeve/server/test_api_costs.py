"""What one request may cost: no answer of the API is as long as the store, nor holds everybody up while it is made."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest
import trio

from dataspace.catalog.catalog import Catalog
from dataspace.log.memory import MemoryStore
from dataspace.observe import observation, turns
from dataspace.observe.cursor import BadCursor
from keeve import Actor, List, Map, Session, Set, Tools, actor, looking
from keeve.looking import pages, parts, state
from keeve.looking import sessions as shows
from keeve.server import Principal
from keeve.server.page import waiting
from keeve.settings import VERBS
from tests.giving_way import beside_others
from tests.keeve.server.test_own_agents import Pays, pay
from tests.keeve.server.test_page_talking import Silent
from tests.page_visits import browser
from tests.server_worlds import TOKENS, World, world

API = "/api/v1"
TURNS = 8


async def talked(w: World, by: str, id: str, text: str = "x" * 300) -> None:
    s = await w.host.asking(by, "http").spawn(Session, id)
    for _ in range(TURNS):
        await s.turn(text)


async def in_pages(client: httpx2.AsyncClient, path: str, of: str, **query: Any) -> list[list[Any]]:
    """The pages of a list, each behind the one before."""
    found: list[list[Any]] = []
    following: Any = None
    while not found or following is not None:
        after = {} if following is None else {"after": following}
        page = (await client.get(f"{API}{path}", params={**query, **after})).json()
        found.append(page[of])
        following = page["next"]
    return found


@pytest.mark.parametrize(
    ("path", "of", "query"),
    [
        ("/sessions/s/messages", "messages", {}),
        ("/sessions/s/turns", "turns", {}),
        ("/sessions/s/chain", "records", {"words": "true"}),
        ("/facts", "facts", {"pattern": "(turn . _)"}),
    ],
)
async def test_a_page_ends_where_it_has_many_bytes(
    path: str, of: str, query: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with world() as w:
        await talked(w, "ann", "s")
        whole = await in_pages(w.ann, path, of, limit=1000, **query)
        assert len(whole) == 1
        monkeypatch.setattr(parts, "ROOM", 2_000)
        cut = await in_pages(w.ann, path, of, limit=1000, **query)
        assert len(cut) > 1
        assert [item for page in cut for item in page] == whole[0]


@actor("costs.keeps", version=1)
class Keeps(Actor):
    a: List[str]
    b: Map[str, str]
    c: Set[int]
    d: str = "x" * 700
    e: List[int]

    def keep(self) -> None:
        self.a.extend([str(n) * 100 for n in range(5)])
        for name in ("one", "two", "three", "$four"):
            self.b[name] = "y" * 400
        for n in range(9):
            self.c.add(n)

    def ask(self) -> None:
        for n in range(5):
            self.device("model").complete([str(n) * 400])


async def test_the_fields_of_a_session_come_in_parts_that_have_as_many_bytes_as_an_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with world(actors=[Keeps]) as w:
        await (await w.host.asking("ann").spawn(Keeps, "k")).keep()
        whole = (await w.ann.get(f"{API}/sessions/k/state")).json()
        assert (len(whole["fields"]), whole["next"]) == (5, None)
        monkeypatch.setattr(parts, "ROOM", 600)
        for ask in (
            lambda query: w.ann.get(f"{API}/sessions/k/state", params=query),
            lambda query: looked_at(w, "state", id="k", at=query["at"], after=query["after"]),
        ):
            fields: dict[str, Any] = {}
            after, several = "", 0
            while after is not None:
                part = (await ask({"at": whole["seq"], "after": after})).json()
                assert len(str(part["fields"])) < 1500
                looking.put_together(fields, part["fields"])
                after, several = part["next"], several + 1
            assert fields == whole["fields"]
            assert several == 3
        answer = await w.ann.get(f"{API}/sessions/k/state", params={"after": "nowhere"})
        assert (answer.status_code, answer.json()["error"]["code"]) == (422, "bad_cursor")


async def looked_at(w: World, what: str, **how: Any) -> httpx2.Response:
    """A look at the store, as an answer."""
    return httpx2.Response(200, json=await looking.look(looking.reading_of(w.host), what, how))


async def test_effects_come_in_parts_and_a_session_says_that_not_all_of_them_are_here(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with world(actors=[Keeps], devices={"model": Silent()}) as w:
        await (await w.host.asking("ann").spawn(Keeps, "k")).ask()
        await w.settled()
        [whole] = await in_pages(w.ann, "/sessions/k/effects", "effects")
        assert [each["state"] for each in whole] == ["running"] * 5
        monkeypatch.setattr(parts, "ROOM", 600)
        pages = await in_pages(w.ann, "/sessions/k/effects", "effects")
        assert (len(pages), [each for page in pages for each in page]) == (3, whole)
        shown = (await w.ann.get(f"{API}/sessions/k")).json()
        assert (len(shown["effects"]), shown["truncated"]) == (2, ["effects"])
        answer = await w.ann.get(f"{API}/sessions/k/effects", params={"after": "gone"})
        assert (answer.status_code, answer.json()["error"]["code"]) == (422, "bad_cursor")
        for what, how in (("show", {"whole": True}), ("waits", {})):
            told = (await looked_at(w, what, id="k", **how)).json()
            assert (len(told["effects"]), told["truncated"]) == (2, ["effects"])
        found = await looking.look(looking.reading_of(w.host), "waiting", {"effect": whole[4]["id"]})
        assert [each["id"] for each in found["effects"]] == [whole[4]["id"]]


async def test_a_page_of_what_waits_goes_on_behind_what_is_settled_by_then() -> None:
    items = [5, 7, 8]

    async def page(after: str) -> Any:
        return await looking.page_of(items, lambda item: {"n": item}, lambda item: (1, item), after, limit=2)

    found, behind = await page("")
    assert ([each["n"] for each in found], behind) == ([5, 7], "1.7")
    items.remove(7)
    assert await page(behind) == ([{"n": 8}], None)
    for wrong in ("1.", "-1", "a 3", "."):
        with pytest.raises(BadCursor):
            await page(wrong)


async def test_a_session_is_shown_with_its_newest_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    async with world() as w:
        await talked(w, "ann", "s")
        monkeypatch.setattr(shows, "ROOM", 2_000)
        told = (await looked_at(w, "show", id="s", whole=False)).json()
        assert [turn["turn"] for turn in told["turns"]] == [6, 7, 8]
        assert (told["turns_before"], told["turns"][-1]["state"]) == (5, "done")


async def test_a_list_of_sessions_ends_where_many_were_looked_at_that_are_not_ones_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(parts, "LOOKED_AT", 3)
    async with world() as w:
        for n in range(7):
            await w.host.asking("ann" if n == 5 else "bob").spawn(Session, f"s{n}")
        seen = looking.reading_of(w.host, lambda row: row.id == "s5")
        found: list[list[str]] = []
        after: Any = ""
        while after is not None:
            how = {"prefix": "", "after": after, "limit": 100, "deleted": False}
            page = await looking.look(seen, "sessions", how)
            found.append([row["id"] for row in page["sessions"]])
            after = page["next"]
        assert found == [[], ["s5"], []]


@pytest.mark.parametrize("limits", [{}, {"sessions": frozenset(("s1", "s5", "s9"))}, {"verbs": frozenset(VERBS)}])
async def test_for_a_list_of_ones_own_sessions_those_of_others_are_not_looked_at(
    limits: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with world() as w:
        for n in range(7):
            await w.host.asking("ann" if n in (1, 5) else "bob").spawn(Session, f"s{n}")
        principal, looked = Principal("ann", **limits), 0
        reaches = w.serving.auth.reaches

        def counted(who: Principal, row: Any) -> bool:
            nonlocal looked
            looked += 1
            return reaches(who, row)

        monkeypatch.setattr(w.serving.auth, "reaches", counted)
        w.serving.auth.ways[0].add(TOKENS["ann"], principal)  # type: ignore[attr-defined]  # of those that are known
        listed = await in_pages(w.ann, "/sessions", "sessions", limit=1)
        mine = ["s1", "s5"] if "verbs" not in limits else [f"s{n}" for n in range(7)]
        assert [row["id"] for page in listed for row in page] == mine
        assert looked <= 2 * len(mine)


@pytest.mark.parametrize(
    "path",
    [
        "/facts?pattern=(_+_+missing)",
        "/dataspace?pattern=(_+_+missing)",
        "/sessions/s/chain?words=true&limit=1000",
        "/sessions/s/messages?limit=1000",
        "/sessions/s/state",
        "/sessions/s/turns?limit=1000",
    ],
)
async def test_others_have_their_turns_while_an_answer_is_made(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "AT_ONCE", 2)
    monkeypatch.setattr(state, "AT_ONCE", 2)
    monkeypatch.setattr(pages, "FEW", 2)
    monkeypatch.setattr(observation, "TURN", 2)
    monkeypatch.setattr(turns, "TURN", 2)
    async with world() as w:
        await talked(w, "ann", "s")
        await (await w.host.get("s")).snapshot()
        async with beside_others() as reads:
            reads.count(monkeypatch, MemoryStore, "read")
            assert (await w.ann.get(f"{API}{path}")).status_code == 200
    assert 0 < reads.longest <= 16, reads.longest


async def test_the_page_of_what_waits_passes_by_what_is_not_ones_own(monkeypatch: pytest.MonkeyPatch) -> None:
    tools = Tools(pay)
    devices = {"model": Pays(), "tools": tools}
    async with world(devices=devices) as w, browser(w, "ann") as ann, trio.open_nursery() as nursery:
        for n in range(8):
            s = await w.host.asking("bob").spawn(Session, f"s{n}", tools=tools)
            nursery.start_soon(s.turn, "pay")
            async for _ in w.host.observe("(approval-wanted . _)", session=f"s{n}"):
                break
        await ann.get("/waiting")  # who made which is known by then
        async with beside_others() as reads:
            reads.count(monkeypatch, MemoryStore, "read")
            assert "every effect has its outcome" in (await ann.get("/waiting")).text
        nursery.cancel_scope.cancel()
    assert 0 < reads.longest <= 2, reads.longest


async def test_others_have_their_turns_while_much_that_waits_is_put_on_a_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "AT_ONCE", 2)
    async with world(actors=[Keeps], devices={"model": Silent()}) as w, browser(w, "ann") as ann:
        await (await w.host.asking("ann").spawn(Keeps, "k")).ask()
        await w.settled()
        async with beside_others() as faces:
            faces.count(monkeypatch, waiting, "effect_face")
            assert (await ann.get("/waiting")).status_code == 200
    assert 0 < faces.longest <= 4  # two rounds, at the most, between two turns of another task


async def test_of_an_effect_it_is_said_how_much_it_was_given_and_nothing_of_it_is_read() -> None:
    tools = Tools(pay)
    async with world(devices={"model": Silent(), "tools": tools}) as w, trio.open_nursery() as nursery:
        s = await w.host.asking("ann").spawn(Session, "s", tools=tools)
        nursery.start_soon(s.turn, "a secret of a long conversation")
        async for _ in w.host.observe("(turn . _)"):
            break
        for path, of in (("/sessions/s", "effects"), ("/sessions/s/effects", "effects")):
            answer = await w.ann.get(f"{API}{path}")
            [effect] = answer.json()[of]
            assert effect["args"] == ["(1 items)"]
            assert "a secret" not in str(effect)
        nursery.cancel_scope.cancel()


async def test_a_list_is_looked_through_a_little_at_a_time_wherever_it_is_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(parts, "AT_ONCE", 2)
    how = {"prefix": "", "after": "", "limit": 100, "deleted": False}
    async with world() as w:
        for n in range(7):
            await w.host.spawn(Session, f"s{n}")
        async with beside_others() as looked:
            store = looking.reading_of(w.host, lambda _: looked.step() or False)
            assert await looking.look(store, "sessions", how) == {"sessions": [], "next": None}
            monkeypatch.setattr(parts, "LOOKED_AT", 3)
            assert await looking.look(store, "sessions", how) == {"sessions": [], "next": "s2"}
    assert looked.longest == 2


async def test_the_picture_of_many_forks_is_made_a_little_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observation, "TURN", 2)
    monkeypatch.setattr(turns, "TURN", 2)
    async with world() as w, browser(w, "ann") as ann:
        s = await w.host.asking("ann").spawn(Session, "s")
        for n in range(24):
            await s.fork(into=f"f{n}")
        await ann.get("/forks?of=s")  # who made which is known by then
        async with beside_others() as reads:
            reads.count(monkeypatch, Catalog, "said")
            assert "f23" in (await ann.get("/forks?of=s")).text
    assert 0 < reads.longest <= 12, reads.longest
