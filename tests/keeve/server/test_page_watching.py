"""The log on the page, and what waits: read by a pattern, settled by a form, and all of it as text."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from keeve import Actor, Session, Settings, Tools, actor, effect, tool
from keeve.testing import MemoryLog, memory_host
from tests.page_visits import browser, elements_of, form_of, only_ours, text_of
from tests.server_worlds import world

HOSTILE = '</ol><script src="//evil.example/x.js"></script><img src=x onerror=alert(1)>'


@actor("page.counter", version=1)
class Counter(Actor):
    def count(self, word: str, times: int = 1) -> None:
        for _ in range(times):
            self.assert_fact("page.counted", word)


class Mail:
    """A tool that begins, and never ends."""

    def __init__(self) -> None:
        self.started = trio.Event()

    @effect
    async def run(self, effect: Any, call: Any) -> Any:
        self.started.set()
        await trio.sleep_forever()


class Asks:
    """A model that has a mail sent, and then says what it was told."""

    @effect(on_crash="retry")
    async def complete(self, effect: Any, messages: Any, **_: Any) -> Any:
        if messages[-1]["role"] == "tool":
            return {"message": {"role": "assistant", "content": f"told: {messages[-1]['content']}"}, "usage": None}
        call = {"id": "c1", "type": "function", "function": {"name": "send", "arguments": f'{{"to": "{HOSTILE[:9]}"}}'}}
        return {"message": {"role": "assistant", "content": None, "tool_calls": [call]}, "usage": None}


@tool(approval=True)
async def send(to: str) -> str:
    """Send a mail."""
    return f"sent to {to}"


async def left_unknown() -> MemoryLog:
    """A log whose session `s` of ann's has a call of which nobody knows what came."""
    log, mail = MemoryLog(), Mail()
    at_once = Settings(grace=0)
    async with (
        memory_host(log, devices={"model": Asks(), "tools": mail}, settings=at_once) as host,
        trio.open_nursery() as nursery,
    ):
        tools = [{"type": "function", "function": {"name": "send"}}]
        s = await host.asking("ann").spawn(Session, "s", tools=tools)
        nursery.start_soon(s.turn, "send it")
        await mail.started.wait()
        nursery.cancel_scope.cancel()
    return log


HOLDING: dict[str, Any] = {"devices": {"model": Asks(), "tools": Mail()}, "settings": Settings(hold_unknown=True)}


async def test_the_log_is_read_by_a_pattern() -> None:
    async with world() as w, browser(w, "owner") as owner:
        await (await w.host.spawn(Session, "s")).turn("hello")
        shown = text_of((await owner.get("/log")).text)
        assert '(turn 1 "s"' in shown
        assert "(turn-done 1" in shown
        only = text_of((await owner.get("/log", params={"pattern": "(turn-done . _)"})).text)
        assert ('(turn 1 "s"' in only, "(turn-done 1" in only) == (False, True)
        none = text_of((await owner.get("/log", params={"pattern": "(nothing . _)"})).text)
        assert "Nothing matches yet" in none


async def test_a_pattern_that_is_wrong_is_told_beside_its_box() -> None:
    async with world() as w, browser(w, "owner") as owner:
        for pattern in (f"({HOSTILE}", "", "(("):
            answer = await owner.get("/log", params={"pattern": pattern})
            assert answer.status_code == 422
            only_ours(answer.text)
            [box] = [said for tag, said in elements_of(answer.text) if tag == "input" and said.get("id") == "pattern"]
            assert box["value"] == pattern


async def test_who_is_no_owner_sees_of_the_log_what_is_theirs() -> None:
    async with world() as w, browser(w, "ann") as ann, browser(w, "bob") as bob:
        await (await w.host.asking("ann").spawn(Session, "hers")).turn("a secret")
        assert "a secret" in text_of((await ann.get("/log")).text)
        assert "hers" not in text_of((await bob.get("/log")).text)
        theirs, none = [await bob.get("/log", params={"session": id}) for id in ("hers", "none")]
        assert theirs.status_code == none.status_code == 404
        assert theirs.text.replace("hers", "none") == none.text


async def test_the_log_goes_back_in_pages_without_a_gap() -> None:
    async with world(actors=[Counter]) as w, browser(w, "owner") as owner:
        c = await w.host.spawn(Counter, "c")
        for n in range(90):
            await c.count(f"word-{n}.", 3)
        seen: list[str] = []
        address = "/log?pattern=(page.counted%20_)"
        for _ in range(10):
            shown = (await owner.get(address)).text
            seen.append(text_of(shown))
            links = [said.get("href") or "" for tag, said in elements_of(shown) if tag == "a"]
            earlier = [link for link in links if link.startswith("?") and "before=" in link]
            if not earlier:
                break
            address = f"/log{earlier[0]}"
        everything = "".join(seen)
        assert {everything.count(f'"word-{n}."') for n in range(90)} == {3}


async def test_hostile_facts_are_text() -> None:
    async with world(actors=[Counter]) as w, browser(w, "owner") as owner:
        await (await w.host.spawn(Counter, HOSTILE)).count(HOSTILE)
        answer = await owner.get("/log")
        only_ours(answer.text)
        assert "page.counted" in text_of(answer.text)


async def test_nothing_waits_where_all_is_done() -> None:
    async with world() as w, browser(w, "owner") as owner:
        await (await w.host.spawn(Session, "s")).turn("hello")
        assert "every effect has its outcome" in text_of((await owner.get("/waiting")).text)


async def test_calls_that_want_a_word_wait_in_a_session_and_in_its_forks() -> None:
    tools = Tools(send)
    devices = {"model": Asks(), "tools": tools}
    async with world(devices=devices) as w, browser(w, "ann") as ann, trio.open_nursery() as nursery:
        s = await w.host.asking("ann").spawn(Session, "s", tools=tools)
        nursery.start_soon(s.turn, "send it")
        async for _ in w.host.observe("(approval-wanted . _)", after="start"):
            break
        await (await s.fork(into="t")).fork(into="u")
        answer = await ann.get("/waiting")
        only_ours(answer.text)
        for id in "stu":
            address = f"/sessions/{id}/approvals/c1"
            form = form_of(answer.text, address)
            await ann.post(address, data={**form, "word": "refuse", "reason": "not now"})
        assert "waits for your word" not in text_of((await ann.get("/waiting")).text)
        nursery.cancel_scope.cancel()


async def test_an_effect_of_unknown_outcome_says_what_to_do() -> None:
    async with world(log=await left_unknown(), **HOLDING) as w, browser(w, "ann") as ann, browser(w, "bob") as bob:
        for address in ("/waiting", "/sessions/s"):
            answer = await ann.get(address)
            only_ours(answer.text)
            assert "nobody knows what came of it" in text_of(answer.text)
            assert "Run it once more" in text_of(answer.text)
        assert "tools.run" not in (await bob.get("/waiting")).text


@pytest.mark.parametrize(
    ("how", "text", "told"),
    [
        ("text", "it was sent", "told: it was sent"),
        ("json", '"sent, in JSON"', "told: sent, in JSON"),
        ("error", "the box is full", "the box is full"),
    ],
)
async def test_an_effect_is_settled_by_the_form(how: str, text: str, told: str) -> None:
    async with world(log=await left_unknown(), **HOLDING) as w, browser(w, "ann") as ann:
        [effect] = w.host.effects("s")
        address = f"/sessions/s/effects/{effect.id}/resolve"
        form = form_of((await ann.get("/waiting")).text, address)
        answer = await ann.post(address, data={**form, "how": how, "text": text})
        assert (answer.status_code, answer.headers["location"]) == (303, "/waiting")
        async for event in w.host.observe("(turn-done . _)"):
            assert told in event.value.keywords["output"]
            break


async def test_what_settles_nothing_is_told_and_changes_nothing() -> None:
    async with world(log=await left_unknown(), **HOLDING) as w, browser(w, "ann") as ann, browser(w, "bob") as bob:
        [effect] = w.host.effects("s")
        address = f"/sessions/s/effects/{effect.id}/resolve"
        form = form_of((await ann.get("/waiting")).text, address)
        assert (await ann.post(address, data={**form, "how": "json", "text": "{"})).status_code == 422
        assert (await ann.post(address, data={"how": "text", "text": "forged"})).status_code == 403
        theirs = form_of((await bob.get("/")).text, "/logout")
        assert (await bob.post(address, data={**theirs, "how": "text", "text": "not mine"})).status_code == 404
        assert (await ann.post("/sessions/s/effects/none/resolve", data={**form, "how": "again"})).status_code == 404
        assert w.host.effects("s") == [effect]
