"""Agents of one's own in a browser: made, talked to, given a person's word; and an answer that had begun before."""

from __future__ import annotations

import re
from typing import Any

from tests.page.browsing import Visitor, visiting
from tests.page.model import Model
from tests.server_process import Server


def made(visitor: Visitor, type: str, id: str, fields: str = "") -> None:
    page = visitor.page
    visitor.go("/")
    page.get_by_text("New session of a type of this server").click()
    page.get_by_label("Type").select_option(type)
    box = page.locator("#own")
    box.get_by_label("Id").fill(id)
    box.get_by_label("Its fields").fill(fields)
    box.get_by_role("button", name="Make it").click()


def below_all_and_seen(visitor: Visitor, name: str) -> bool:
    """Whether a button stands below what was said, and above where one writes."""
    page = visitor.page
    boxes = [page.get_by_role("button", name=name), page.locator("#turns"), page.locator("#say")]
    button, turns, say = (each.bounding_box() for each in boxes)
    return bool(turns["y"] + turns["height"] <= button["y"] and button["y"] + button["height"] <= say["y"])


def test_an_agent_is_made_and_talked_to_and_its_answer_comes(chrome: Any, served: Server, small: Model) -> None:
    with visiting(chrome, served) as visitor:
        page = visitor.page
        visitor.expected.append("422")
        made(visitor, "page.agent", "own", "{")
        visitor.sees("the fields are no JSON")
        assert visitor.barriers() == []
        visitor.picture("agent-wrong")
        page.locator("#own").get_by_label("Its fields").fill('{"model": "model"}')
        page.locator("#own").get_by_role("button", name="Make it").click()
        page.get_by_role("heading", name="own").wait_for()
        small.go_on.clear()
        visitor.say("hello <b>there</b>")
        assert page.locator("#turns .entry .text").all_text_contents() == ["hello <b>there</b>"]  # at once, as sent
        visitor.sees("is answering")
        with visiting(chrome, served) as other:  # who comes later sees what is kept, and what comes
            other.go("/sessions/own")
            other.sees("hello <b>there</b>")
            small.go_on.set()
            for each in (visitor, other):
                each.sees("You said: hello <b>there</b>")
        page.locator("#preview").wait_for(state="hidden")
        assert page.locator("#turns .entry").count() == 2
        visitor.say("drop it")
        page.get_by_role("button", name="Approve").wait_for()
        assert below_all_and_seen(visitor, "Refuse")
        page.reload()
        assert below_all_and_seen(visitor, "Refuse")
        visitor.picture("agent-word")
        page.get_by_role("button", name="Approve").click()
        visitor.sees("Approved.")
        visitor.sees("dropped users")
        page.locator("#turns").get_by_text("done", exact=True).wait_for()
        assert page.locator("#turns .entry").count() == 6
        visitor.picture("agent-1280", full_page=True)
        page.reload()
        assert page.locator("#turns .entry").count() == 6
        assert visitor.barriers() == []


def test_an_agent_that_keeps_no_messages_answers_and_states(chrome: Any, served: Server) -> None:
    for scripts in (True, False):
        with visiting(chrome, served, java_script_enabled=scripts, color_scheme="dark") as visitor:
            page = visitor.page
            if not scripts:
                visitor.expected.append("401")
                visitor.go("/")
                page.get_by_label("Token").fill(served.token)
                page.get_by_role("button", name="Log in").click()
            made(visitor, "page.terse", f"terse-{scripts}")
            visitor.say("one")
            visitor.sees("1: one")
            page.get_by_text("What it has stated").click()
            visitor.sees(re.compile("page.asked 1"))
            visitor.say("two")
            visitor.sees("2: two")


def test_an_agent_that_shortens_its_messages_is_shown_with_those_that_it_has(chrome: Any, served: Server) -> None:
    with visiting(chrome, served) as visitor:
        made(visitor, "page.brief", "brief")
        for text, entries in (("one", 2), ("two", 4), ("three", 2), ("four", 4)):
            visitor.say(text)
            visitor.sees(f"{text}!")
            assert visitor.page.locator("#turns .entry").count() == entries
        visitor.page.reload()
        assert visitor.page.locator("#turns .entry").count() == 2


def test_an_answer_that_had_begun_is_shown_as_far_as_it_has_come(chrome: Any, served: Server, small: Model) -> None:
    with served.client() as client:
        client.post("/api/v1/sessions", json={"id": "begun"})
        small.go_on.clear()
        client.post("/api/v1/sessions/begun/queue", json={"input": "a question"})
        with visiting(chrome, served) as visitor:
            visitor.go("/sessions/begun")
            visitor.sees("is answering")
            began = visitor.page.locator("#preview-text").text_content()
            assert began
            assert "You said: a question".startswith(began[:10])
            visitor.page.reload()
            visitor.sees("is answering")
            assert visitor.page.locator("#preview-text").text_content() == began
            small.go_on.set()
            visitor.sees("You said: a question")
            visitor.page.locator("#preview").wait_for(state="hidden")
            visitor.say("more")
            visitor.sees("You said: more")
            assert "via http" in str(visitor.page.locator("h2 .quiet").last.text_content())


def test_an_agent_on_a_small_screen(chrome: Any, served: Server) -> None:
    for width, scheme in ((360, "light"), (360, "dark"), (1280, "light"), (1280, "dark")):
        viewport = {"width": width, "height": 740}
        with visiting(chrome, served, viewport=viewport, color_scheme=scheme) as visitor:
            if width == 360 and scheme == "light":
                made(visitor, "page.agent", "narrow")
                visitor.say("long words")
                visitor.sees("https://example.org")
            visitor.go("/sessions/narrow")
            visitor.sees("https://example.org")
            assert visitor.is_narrow()
            assert visitor.barriers() == []
            visitor.picture(f"agent-{width}-{scheme}", full_page=True)
            visitor.go("/")
            visitor.page.get_by_text("New session of a type of this server").click()
            assert visitor.is_narrow()
            assert visitor.barriers() == []
            visitor.picture(f"types-{width}-{scheme}", full_page=True)
