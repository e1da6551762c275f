"""A session of a type of one's own on the page: made, talked to, and shown when nobody has its code."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from keeve import Actor, List, Model, Session, Text, Toolbox, actor, effect, user
from keeve.server.page import agents
from keeve.testing import MemoryLog, memory_host
from tests.page_visits import browser, form_of, only_ours, text_of
from tests.server_worlds import world

HOSTILE = '</div></template><script src="//evil.example/x.js"></script><img src=x onerror=alert(1)>'


class Gate:
    """A device that answers when it is open."""

    def __init__(self) -> None:
        self.open = trio.Event()

    @effect(on_crash="retry")
    async def opened(self, effect: Any) -> None:
        await self.open.wait()


@actor("page.echo", version=1)
class Echo(Actor):
    """It keeps what was said to it, states how much that is, and says it again."""

    times: int
    mood: str = "calm"
    messages: List[dict]

    async def turn(self, text: Text) -> Text:
        if text == "break":
            raise ValueError("it is broken")
        if text == "wait":
            await self.device("gate").opened()
        self.messages.append(user(text))
        self.assert_fact("page.heard", len(self.messages), Text(text))
        return text * self.times


@actor("page.armed", version=1)
class Armed(Actor):
    """It has a model and tools, which are actors of its session."""

    model: Model
    tools: Toolbox


SCHEMA = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object", "title": HOSTILE}}}


@actor("page.mute", version=1)
class Mute(Actor):
    count: int = 0


async def test_a_session_of_an_own_type_is_made_by_the_form_and_what_is_wrong_is_told_beside_it() -> None:
    async with world(actors=[Echo, Mute]) as w, browser(w, "ann") as ann:
        shown = (await ann.get("/")).text
        for words in ("page.echo", "times has to be given", "messages (a list)", "page.mute"):
            assert words in " ".join(text_of(shown).split())
        form = {**form_of(shown, "/sessions"), "type": "page.echo", "id": "e1"}
        for given, said in (
            ("{", "the fields are no JSON"),
            ("[1]", "no object"),
            ("{}", "needs a value for its field 'times'"),
            ('{"times": 2, "nothing": 3}', "has no field 'nothing'"),
        ):
            answer = await ann.post("/sessions", data={**form, "fields": given})
            assert (answer.status_code, said in text_of(answer.text)) == (422, True), text_of(answer.text)
            assert given in text_of(answer.text)
        assert w.host.sessions() == []
        answer = await ann.post("/sessions", data={**form, "fields": '{"times": 2}'})
        assert (answer.status_code, answer.headers["location"]) == (303, "/sessions/e1")
        assert w.host.row("e1").type == "page.echo"
        other = {**form_of(shown, "/sessions"), "key": "other", "id": "s1", "fields": '{"max_steps": 3}'}
        assert (await ann.post("/sessions", data=other)).status_code == 303


async def test_an_own_agent_is_talked_to_by_the_form_and_its_answer_counts_once() -> None:
    async with world(actors=[Echo]) as w, browser(w, "ann") as ann:
        await w.host.asking("ann").spawn(Echo, "e", times=2)
        form = {**form_of((await ann.get("/sessions/e")).text, "/sessions/e/say"), "how": "ask"}
        for _ in range(2):
            shown = await ann.post("/sessions/e/say", data={**form, "input": HOSTILE})
            assert shown.status_code == 200
            only_ours(shown.text)
            assert HOSTILE * 2 in text_of(shown.text)  # its answer
        assert await (await w.host.get("e")).messages == [user(HOSTILE)]
        shown = (await ann.get("/sessions/e")).text
        only_ours(shown)
        assert shown.index('id="turns"') < shown.index('id="words"') < shown.index('id="say"')
        for words in ("page.heard", "mood", "calm", "1"):
            assert words in text_of(shown)
        failed = await ann.post("/sessions/e/say", data={**form, "key": "other", "input": "break"})
        assert "it is broken" in text_of(failed.text)
        assert "Say something" in text_of(failed.text)


async def test_who_has_no_answer_after_a_while_asks_again_with_the_same_form(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agents, "PATIENCE", 0.05)
    gate = Gate()
    async with world(actors=[Echo], devices={"gate": gate}) as w, browser(w, "ann") as ann:
        await w.host.asking("ann").spawn(Echo, "e", times=2)
        form = {**form_of((await ann.get("/sessions/e")).text, "/sessions/e/say"), "how": "ask"}
        shown = (await ann.post("/sessions/e/say", data={**form, "input": "wait"})).text
        assert "It has not answered yet" in text_of(shown)
        again = form_of(shown, "/sessions/e/say")
        assert (again["key"], again["input"]) == (form["key"], "wait")
        monkeypatch.setattr(agents, "PATIENCE", 10)
        gate.open.set()
        shown = (await ann.post("/sessions/e/say", data={**again, "how": "ask"})).text
        assert "waitwait" in text_of(shown)


async def test_a_type_without_turns_is_shown_and_takes_nothing() -> None:
    async with world(actors=[Mute]) as w, browser(w, "ann") as ann:
        await w.host.asking("ann").spawn(Mute, "m")
        shown = (await ann.get("/sessions/m")).text
        assert "no method turn" in text_of(shown)
        assert "count" in text_of(shown)
        assert "/sessions/m/say" not in shown


async def test_a_session_whose_code_is_not_here_is_shown_in_words() -> None:
    log = MemoryLog()
    async with memory_host(log, actors=[Echo]) as host:
        e = await host.asking("ann").spawn(Echo, "e", times=2)
        await e.turn("what was said")
    async with world(log=log) as w, browser(w, "ann") as ann:
        answer = await ann.get("/sessions/e")
        assert answer.status_code == 200
        for words in ("does not run the type", "page.echo", "what was said", "page.heard"):
            assert words in text_of(answer.text)
        assert "/sessions/e/say" not in answer.text
        told: Any = (await w.ann.get("/api/v1/sessions/e")).json()
        assert (told["type"], told["status"]) == ("page.echo", None)
        assert (await w.ann.get("/api/v1/sessions/e/state")).json()["fields"]["times"] == 2


async def test_the_list_has_the_first_words_of_an_own_agent_that_keeps_them() -> None:
    async with world(actors=[Echo]) as w, browser(w, "ann") as ann:
        e = await w.host.asking("ann").spawn(Echo, "e", times=2)
        for words in (HOSTILE, "what was said later"):
            await e.turn(words)
        for params, there in (({}, True), ({"q": "EVIL.example"}, True), ({"q": "later"}, False)):
            shown = (await ann.get("/", params=params)).text
            only_ours(shown)
            assert (HOSTILE in text_of(shown)) is there


async def test_fields_that_are_actors_are_shown_as_what_they_are_and_tools_by_their_names() -> None:
    async with world(actors=[Armed]) as w, browser(w, "ann") as ann:
        await w.host.asking("ann").spawn(Armed, "a", model="model", tools=[SCHEMA])
        await w.host.asking("ann").spawn(Session, "s", tools=[SCHEMA])
        for place, said in (
            ("/sessions/a", ("keeve.model", 'model: "model"', "keeve.toolbox")),
            ("/sessions/s/at/1", ("keeve.approvals", "max_steps")),
        ):
            shown = (await ann.get(place)).text
            only_ours(shown)
            assert '<details class="tool"><summary><bdi class="mono">weather</bdi></summary>' in shown
            for words in (*said, "onerror=alert"):
                assert words in text_of(shown)
            assert "$ref" not in shown
