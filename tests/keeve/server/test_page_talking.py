"""A session on the page: read, said something to, interrupted, forked, and given a person's word."""

from __future__ import annotations

import re
from typing import Any

import pytest
import trio

from keeve import Actor, ScriptedModel, Session, Tools, actor, effect, tool
from keeve.testing import FakeClock
from tests.page_visits import browser, elements_of, form_of, only_ours, text_of
from tests.server_worlds import World, world

HOSTILE = '</div></script><script src="//evil.example/x.js"></script><img src=x onerror=alert(1)>{{ 7 * 7 }}&lt;\'"`'
CALL = {"id": "c1", "type": "function", "function": {"name": "drop", "arguments": '{"table": "users"}'}}


@tool(approval=True)
async def drop(table: str) -> str:
    """Drop a table."""
    return f"dropped {table}"


def dropping() -> dict[str, Any]:
    """A model that wants a table dropped, and the tool that does it."""
    script = ScriptedModel(
        [
            {"role": "user", "content": "clean up"},
            {"role": "assistant", "content": None, "tool_calls": [CALL]},
            {"role": "tool", "content": "dropped users", "tool_call_id": "c1"},
            {"role": "assistant", "content": "all clean"},
        ]
    )
    return {"model": script, "tools": Tools(drop)}


class Silent:
    """A model that never answers."""

    @effect(on_crash="retry")
    async def complete(self, effect: Any, messages: Any, **_: Any) -> Any:
        await trio.sleep_forever()


class Says:
    """A model that says one thing, whatever it is asked, or breaks with it."""

    def __init__(self, text: str, *, fails: bool = False) -> None:
        self.text = text
        self.fails = fails

    @effect(on_crash="retry")
    async def complete(self, effect: Any, messages: Any, **_: Any) -> Any:
        if self.fails:
            raise ValueError(self.text)
        return {"message": {"role": "assistant", "content": self.text}, "usage": {"total_tokens": 3}}


class Calls:
    """A model that says and calls what is hostile, once, and says it again."""

    @effect(on_crash="retry")
    async def complete(self, effect: Any, messages: Any, **_: Any) -> Any:
        call = {"id": HOSTILE, "type": "function", "function": {"name": HOSTILE, "arguments": HOSTILE}}
        more = {} if len(messages) > 1 else {"tool_calls": [call]}
        return {"message": {"role": "assistant", "content": HOSTILE, **more}, "usage": None}


async def until(w: World, pattern: str) -> None:
    async for _ in w.host.observe(pattern, after="start"):
        break


async def spawned(w: World, id: str = "s", **fields: Any) -> Any:
    return await w.host.asking("ann").spawn(Session, id, **fields)


async def test_a_conversation_is_read_with_its_tools() -> None:
    async with world(devices=dropping()) as w, browser(w, "ann") as ann, trio.open_nursery() as nursery:
        s = await spawned(w, tools=Tools(drop))
        nursery.start_soon(s.turn, "clean up")
        await until(w, "(approval-wanted . _)")
        shown = text_of((await ann.get("/sessions/s")).text)
        for words in ("clean up", "drop", '{"table": "users"}', "waits", "under way"):
            assert words in shown
        await (await s.approvals).approve("c1")
        await until(w, "(turn-done . _)")
        shown = text_of((await ann.get("/sessions/s")).text)
        for words in ("answered", "dropped users", "all clean", "done"):
            assert words in shown
        assert "waits for your word" not in shown.partition("Say something")[0]


@pytest.mark.parametrize(("word", "fact"), [("approve", "approval-given"), ("refuse", "approval-refused")])
async def test_a_word_is_said_by_the_form(word: str, fact: str) -> None:
    async with world(devices=dropping()) as w, browser(w, "ann") as ann, trio.open_nursery() as nursery:
        s = await spawned(w, tools=Tools(drop))
        nursery.start_soon(s.turn, "clean up")
        await until(w, "(approval-wanted . _)")
        form = form_of((await ann.get("/sessions/s")).text, "/sessions/s/approvals/c1")
        answer = await ann.post("/sessions/s/approvals/c1", data={**form, "word": word, "reason": "not now"})
        assert answer.status_code == 303
        [said] = w.host.query(f"({fact} . _)")
        assert (said.value.keywords["by"], said.value.keywords.get("reason", "not now")) == ("ann", "not now")
        nursery.cancel_scope.cancel()


async def test_something_is_said_by_the_form_and_counts_once() -> None:
    async with world() as w, browser(w, "ann") as ann:
        s = await spawned(w)
        form = form_of((await ann.get("/sessions/s")).text, "/sessions/s/say")
        for _ in range(2):
            answer = await ann.post("/sessions/s/say", data={**form, "how": "turn", "input": "one\r\ntwo"})
            assert (answer.status_code, answer.headers["location"]) == (303, "/sessions/s#end")
        await until(w, "(turn-done . _)")
        assert await s.history == ["one\ntwo"]
        [first] = w.host.query("(turn . _)")
        assert (first.value.keywords["by"], first.value.keywords["via"]) == ("ann", "page")
        assert (await ann.get("/sessions/s")).text.count("one\ntwo") == 2


async def test_a_turn_that_runs_is_steered_and_interrupted() -> None:
    async with world(devices={"model": Silent()}) as w, browser(w, "ann") as ann:
        await spawned(w)
        shown = (await ann.get("/sessions/s")).text
        await ann.post("/sessions/s/say", data={**form_of(shown, "/sessions/s/say"), "input": "hello"})
        shown = (await ann.get("/sessions/s")).text
        # Without JavaScript it is looked at again: at another address, or to go to a part of it would be all.
        [again] = [said["content"] or "" for tag, said in elements_of(shown) if said.get("http-equiv") == "refresh"]
        assert re.fullmatch(r"3; url=/sessions/s\?now=page-\w+#end", again)
        form = form_of(shown, "/sessions/s/say")
        await ann.post("/sessions/s/say", data={**form, "how": "steer", "input": "and this"})
        assert len(list(w.host.query("(steer 1 . _)"))) == 1
        form = form_of(shown, "/sessions/s/interrupt")
        assert form["turn"] == "1"
        assert (await ann.post("/sessions/s/interrupt", data=form)).status_code == 303
        await until(w, "(turn-interrupted 1 . _)")
        assert "interrupted" in text_of((await ann.get("/sessions/s")).text)


async def test_a_session_is_forked_after_a_turn_and_once() -> None:
    async with world() as w, browser(w, "ann") as ann:
        s = await spawned(w)
        for words in ("one", "two"):
            await s.turn(words)
        form = form_of((await ann.get("/sessions/s")).text, "/sessions/s/fork")
        assert form["turn"] == "1"
        [one, other] = [(await ann.post("/sessions/s/fork", data=form)).headers["location"] for _ in range(2)]
        assert one == other
        child = one.removeprefix("/sessions/")
        assert await (await w.host.get(child)).history == ["one"]
        shown = (await ann.get(one)).text
        assert "fork of" in text_of(shown)
        assert child in text_of((await ann.get("/sessions/s")).text)


async def test_a_long_conversation_comes_in_pages() -> None:
    async with world() as w, browser(w, "ann") as ann:
        s = await spawned(w)
        for n in range(1, 46):
            await s.turn(f"words {n}.")
        newest = (await ann.get("/sessions/s")).text
        assert ("words 5." in newest, "words 6." in newest, "words 45." in newest) == (False, True, True)
        assert 'href="/sessions/s?before=6"' in newest
        earlier = (await ann.get("/sessions/s?before=6")).text
        assert ("words 1." in earlier, "words 5." in earlier, "words 6." in earlier) == (True, True, False)
        assert 'action="/sessions/s/say"' not in earlier


async def test_a_fork_shows_what_was_said_before_it() -> None:
    async with world() as w, browser(w, "ann") as ann:
        s = await spawned(w)
        await s.turn("before")
        await (await s.fork(into="t")).turn("after")
        shown = text_of((await ann.get("/sessions/t")).text)
        assert shown.index("before") < shown.index("after")


@pytest.mark.parametrize("address", ["", "?before=2"])
async def test_a_session_of_somebody_else_is_not_there(address: str) -> None:
    async with world() as w, browser(w, "bob") as bob:
        await spawned(w, "hers")
        theirs, none = [await bob.get(f"/sessions/{id}{address}") for id in ("hers", "none")]
        assert theirs.status_code == none.status_code == 404
        assert theirs.text.replace("hers", "none") == none.text


@pytest.mark.parametrize("what", ["say", "interrupt", "fork", "approvals/c1"])
async def test_nothing_is_done_with_a_session_of_somebody_else(what: str) -> None:
    async with world() as w, browser(w, "bob") as bob:
        await spawned(w, "hers")
        form = form_of((await bob.get("/")).text, "/sessions")
        theirs, none = [await bob.post(f"/sessions/{id}/{what}", data={**form, "turn": "1"}) for id in ("hers", "none")]
        assert theirs.status_code == none.status_code == 404
        assert theirs.text.replace("hers", "none") == none.text
        assert w.host.row("hers").seq == 1


@pytest.mark.parametrize("what", ["say", "interrupt", "fork", "approvals/c1"])
async def test_every_form_wants_the_token_of_the_log_in(what: str) -> None:
    async with world() as w, browser(w, "ann") as ann:
        await spawned(w)
        answer = await ann.post(f"/sessions/s/{what}", data={"input": "hello", "turn": "1", "word": "approve"})
        assert (answer.status_code, "wrong_form" in answer.text) == (403, True)
        assert w.host.row("s").seq == 1


async def test_hostile_words_are_text_wherever_a_conversation_has_them() -> None:
    async with world(devices={"model": Calls()}) as w, browser(w, "ann") as ann:
        s = await spawned(w, HOSTILE[:190])
        await s.turn(HOSTILE)
        address = f"/sessions/{(await ann.get('/')).text.partition('/sessions/')[2].partition(chr(34))[0]}"
        answer = await ann.get(address)
        only_ours(answer.text)
        assert text_of(answer.text).count(HOSTILE) >= 4
        assert "49" not in text_of(answer.text)


@pytest.mark.parametrize("fails", [False, True])
async def test_hostile_answers_and_errors_are_text(fails: bool) -> None:
    async with world(devices={"model": Says(HOSTILE, fails=fails)}) as w, browser(w, "ann") as ann:
        s = await spawned(w)
        if fails:
            with pytest.raises(ValueError, match="evil"):
                await s.turn("hello")
        else:
            await s.turn("hello")
        answer = await ann.get("/sessions/s")
        only_ours(answer.text)
        assert HOSTILE in text_of(answer.text)


async def test_hostile_calls_that_wait_are_text() -> None:
    call = {"id": f"c/{HOSTILE}", "type": "function", "function": {"name": "drop", "arguments": '{"table": "<b>"}'}}
    script = ScriptedModel(
        [{"role": "user", "content": "x"}, {"role": "assistant", "content": None, "tool_calls": [call]}]
    )
    devices = {"model": script, "tools": Tools(drop)}
    async with world(devices=devices) as w, browser(w, "ann") as ann, trio.open_nursery() as nursery:
        s = await spawned(w, tools=Tools(drop))
        nursery.start_soon(s.turn, "x")
        await until(w, "(approval-wanted . _)")
        shown = (await ann.get("/sessions/s")).text
        only_ours(shown)
        [action] = {said["action"] for tag, said in elements_of(shown) if tag == "form" and said.get("data-call")}
        form = form_of(shown, str(action))
        assert (await ann.post(str(action), data={**form, "word": "refuse"})).status_code == 303
        nursery.cancel_scope.cancel()


@actor("page.counter", version=1)
class Counter(Actor):
    def count(self, word: str) -> None:
        self.assert_fact("page.counted", word)


async def test_a_session_of_another_type_shows_what_it_stated() -> None:
    async with world(actors=[Counter]) as w, browser(w, "ann") as ann:
        await (await w.host.asking("ann").spawn(Counter, "c")).count(HOSTILE)
        answer = await ann.get("/sessions/c")
        only_ours(answer.text)
        assert "page.counted" in text_of(answer.text)


async def test_what_was_erased_reads_so() -> None:
    async with world(clock=FakeClock()) as w, browser(w, "ann") as ann:
        await (await spawned(w)).turn("a secret")
        await w.host.erase("s", turn=1)
        shown = text_of((await ann.get("/sessions/s")).text)
        assert ("[erased]" in shown, "a secret" in shown) == (True, False)


async def test_what_a_browser_says_it_takes_changes_nothing() -> None:
    async with world() as w, browser(w, "ann") as ann:
        await (await spawned(w)).turn("hello")
        answer = await ann.get("/sessions/s", headers={"accept": "text/event-stream"})
        assert (answer.status_code, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")


async def test_a_conversation_says_at_its_head_which_model_answers_and_what_that_is_told_first() -> None:
    async with world() as w, browser(w, "ann") as ann:
        await w.host.asking("ann").spawn(Session, "s", system="<b>Be brief.</b>\nAnd kind.")
        shown = (await ann.get("/sessions/s")).text
        head = text_of(shown[: shown.index('id="turns"')])
        for words in ("model model", "What the model is told first: <b>Be brief.</b> And kind.", "</b>\nAnd kind."):
            assert words in head


async def test_a_fork_or_parent_that_is_deleted_is_said_to_be_that_and_no_link_leads_to_it() -> None:
    async with world() as w, browser(w, "owner") as ann:
        parent = await w.host.spawn(Session, "s")
        for into in ("gone", "there"):
            await parent.fork(into=into)
        await w.host.delete("gone")
        shown = (await ann.get("/sessions/s")).text
        assert "gone (deleted) at" in text_of(shown)
        links = [said.get("href") for tag, said in elements_of(shown) if tag == "a"]
        assert "/sessions/there" in links
        assert "/sessions/gone" not in links
        await w.host.delete("s")
        for address in ("/sessions/there", "/"):
            shown = (await ann.get(address)).text
            assert "of s (deleted) at" in text_of(shown)
            assert "/sessions/s" not in [said.get("href") for tag, said in elements_of(shown) if tag == "a"]
