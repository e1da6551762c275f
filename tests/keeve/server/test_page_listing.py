"""The list of sessions on the page."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from keeve import Session
from keeve.server.page import listing
from keeve.server.page.visits import Visit
from tests.page_visits import browser, elements_of, form_of, text_of
from tests.server_worlds import world

HOSTILE = '<img src=x onerror=alert(1)><script>alert("2")</script>&amp;\'"'


async def test_sessions_are_listed_with_what_was_said_first() -> None:
    async with world() as w, browser(w, "ann") as ann:
        assert "There is no session yet" in (await ann.get("/")).text
        one = await w.host.asking("ann").spawn(Session, "a/1")
        await one.turn("how is the weather")
        await one.fork(into="twin")
        shown = (await ann.get("/")).text
        assert 'href="/sessions/a%2F1"' in shown
        assert text_of(shown).count("how is the weather") == 2
        assert "fork of a/1 at" in text_of(shown)


async def test_sessions_are_found_by_id_and_by_words() -> None:
    async with world() as w, browser(w, "owner") as owner:
        for id, words in (("alpha", "one Thing"), ("beta", "another")):
            await (await w.host.spawn(Session, id)).turn(words)
        for wanted, there, gone in (
            ("ALPH", "alpha", "beta"),
            ("thing", "alpha", "beta"),
            ("another", "beta", "alpha"),
        ):
            shown = (await owner.get("/", params={"q": wanted})).text
            assert f'/sessions/{there}"' in shown
            assert f'/sessions/{gone}"' not in shown
        assert "No session has" in (await owner.get("/", params={"q": "nothing"})).text


async def test_a_session_that_goes_meanwhile_leaves_the_list_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    matches = listing._matches

    async def deleting(visit: Visit, row: dict[str, Any], wanted: str) -> bool:
        if row["id"] == "s1":
            await visit.serving.host.delete("s1", force=True)
        return await matches(visit, row, wanted)

    monkeypatch.setattr(listing, "_matches", deleting)
    async with world() as w, browser(w, "owner") as owner:
        for id in ("s1", "s2"):
            await (await w.host.spawn(Session, id)).turn("words of mine")
        shown = await owner.get("/", params={"q": "words"})
        assert (shown.status_code, shown.text.count('href="/sessions/')) == (200, 1)


async def test_the_list_comes_in_pages() -> None:
    async with world() as w, browser(w, "owner") as owner:
        for n in range(51):
            await w.host.spawn(Session, f"s{n:02}")
        first = (await owner.get("/")).text
        assert first.count('href="/sessions/') == 50
        new = next(said for tag, said in elements_of(first) if said.get("id") == "new")
        assert (first.index('id="new"') < first.index('href="/sessions/'), "open" in new) == (True, False)
        assert (await owner.get("/", params={"skip": "50"})).text.count('href="/sessions/') == 1


async def test_a_name_of_a_model_says_for_which_one_before_it_stands() -> None:
    async with world() as w, browser(w, "ann") as ann:
        serving = attrs.evolve(w.serving, named={"gpt": "model", "model": "model", "small": "small"})
        assert listing.models_of(serving) == [("gpt", ""), ("model", "gpt"), ("small", "")]
        assert '<option value="model">model</option>' in (await ann.get("/")).text


async def test_who_is_no_owner_sees_their_own() -> None:
    async with world() as w, browser(w, "ann") as ann, browser(w, "bob") as bob:
        await (await w.host.asking("ann").spawn(Session, "hers")).turn("a secret")
        assert "hers" in (await ann.get("/")).text
        for address in ("/", "/?q=hers", "/?q=secret"):
            assert "/sessions/hers" not in (await bob.get(address)).text


async def test_a_session_is_made_by_the_form_and_once() -> None:
    async with world() as w, browser(w, "ann") as ann:
        form = {**form_of((await ann.get("/")).text, "/sessions"), "id": "a b/c", "system": "Be\r\nbrief.", "model": ""}
        for _ in range(2):
            answer = await ann.post("/sessions", data=form)
            assert (answer.status_code, answer.headers["location"]) == (303, "/sessions/a%20b%2Fc")
        assert w.host.made_by("a b/c") == ("ann", "page")
        assert await (await w.host.get("a b/c")).system == "Be\nbrief."


async def test_what_cannot_be_made_is_told_on_a_page() -> None:
    async with world() as w, browser(w, "ann") as ann:
        form = form_of((await ann.get("/")).text, "/sessions")
        answer = await ann.post("/sessions", data={**form, "id": "a\nb"})
        assert (answer.status_code, "bad_session_id" in answer.text) == (422, True)
        assert answer.headers["content-type"].startswith("text/html")


async def test_hostile_words_are_text_wherever_the_list_has_them() -> None:
    async with world() as w, browser(w, "owner") as owner:
        await (await w.host.spawn(Session, HOSTILE)).turn(HOSTILE)
        for params in ({}, {"q": HOSTILE}, {"q": f"{HOSTILE}none"}, {"after": HOSTILE}):
            shown = (await owner.get("/", params=params)).text
            elements = elements_of(shown)
            assert {"img", "script"} & {tag for tag, _ in elements} == {"script"}
            assert [said["src"] for tag, said in elements if tag == "script"] == ["/static/page.js"]
            assert not [said for _, said in elements if "onerror" in said]
        assert text_of((await owner.get("/")).text).count(HOSTILE) == 2
        form = form_of(shown, "/sessions")
        refused = await owner.post("/sessions", data={**form, "id": HOSTILE})
        assert refused.status_code == 409
        assert [said.get("src") for tag, said in elements_of(refused.text) if tag in ("script", "img")] == [
            "/static/page.js"
        ]


async def test_who_may_only_look_is_offered_nothing_else() -> None:
    async with world() as w:
        from keeve.server import Principal

        w.serving.auth.ways.append(lambda token: Principal("eve", frozenset({"read"})) if token == "e" * 20 else None)
        w.nobody.headers["authorization"] = f"Bearer {'e' * 20}"
        shown = (await w.nobody.get("/")).text
        assert 'action="/sessions"' not in shown
        form = form_of(shown, "/logout")
        answer = await w.nobody.post("/sessions", data=form, headers={"origin": "http://127.0.0.1:8420"})
        assert answer.status_code == 403
        assert w.host.sessions() == []
