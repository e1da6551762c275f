"""The page by keys alone, without JavaScript, and as screen readers are told of it."""

from __future__ import annotations

import re
from typing import Any

from tests.page.browsing import visiting
from tests.page.model import Model
from tests.server_process import Server


def test_all_of_it_goes_without_a_mouse(chrome: Any, served: Server) -> None:
    with visiting(chrome, served) as visitor:
        page, press = visitor.page, visitor.page.keyboard.press
        press("Tab")
        assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
        press("Enter")
        page.locator("#main:focus").wait_for()
        press("/")
        assert page.evaluate("document.activeElement.id") == "q"
        if not page.get_by_role("button", name="Make it").is_visible():
            page.get_by_text("New session", exact=True).press("Enter")
        page.get_by_role("button", name="Make it").press("Enter")
        page.get_by_label("Say something").wait_for()
        page.wait_for_load_state()
        page.locator("h1").click()  # out of whatever has the keys
        press("n")
        assert page.evaluate("document.activeElement.id") == "input"
        page.keyboard.type("by keys/n")
        press("Control+Enter")
        visitor.sees("You said: by keys/n")
        page.get_by_role("link", name="The past").press("Enter")
        page.wait_for_url("**/at/*")
        here = page.url
        page.locator("body").press("ArrowLeft")
        page.wait_for_url(re.compile(r".*/at/(?!" + here.rpartition("/")[2] + r"$)"))
        page.locator("body").press("ArrowRight")
        page.wait_for_url(here)
        page.locator("svg a").last.focus()
        press("Enter")
        page.wait_for_url("**/sessions/*")


def test_reading_and_writing_go_without_javascript(chrome: Any, served: Server, small: Model) -> None:
    with visiting(chrome, served, java_script_enabled=False) as visitor:
        visitor.expected.append("401")
        page = visitor.page
        visitor.go("/")
        page.get_by_label("Token").fill(served.token)
        page.get_by_role("button", name="Log in").click()
        if not page.get_by_role("button", name="Make it").is_visible():  # open where there is none yet
            page.get_by_text("New session", exact=True).click()
        page.get_by_role("textbox", name="Id").fill("plain")
        page.get_by_role("button", name="Make it").click()
        small.go_on.clear()
        visitor.say("without scripts")
        visitor.sees("under way")
        small.go_on.set()
        visitor.sees("You said: without scripts")  # the page looks again by itself
        visitor.sees("not checked")
        page.get_by_role("button", name=re.compile("^Fork here")).click()
        page.get_by_text("at seq").first.wait_for()
        visitor.say("drop it")
        page.reload()
        page.get_by_role("button", name="Refuse").click()
        page.locator(".state[data-state='refused']").wait_for()
        page.get_by_role("link", name="The past").click()
        visitor.sees("as it was at seq")
        page.get_by_role("link", name="Log", exact=True).click()
        visitor.sees('"without scripts"')
        page.get_by_role("button", name="Log out").click()
        page.get_by_label("Token").wait_for()


def test_screen_readers_are_told_what_things_are(chrome: Any, served: Server) -> None:
    with served.client() as client:
        client.post("/api/v1/sessions", json={"id": "heard"})
        client.post("/api/v1/sessions/heard/turn", json={"input": "hello"})
    with visiting(chrome, served) as visitor:
        page = visitor.page
        visitor.go("/sessions/heard")
        log = page.get_by_role("log", name="Conversation")
        log.get_by_role("heading", name="Turn 1").wait_for()
        log.get_by_role("button", name="Fork here, after turn 1").wait_for()
        page.get_by_role("list", name="What this browser has checked").wait_for()
        page.get_by_role("textbox", name="Say something").wait_for()
        visitor.go("/forks?of=heard")
        page.get_by_role("link", name="heard at seq 3, the head").wait_for()
        page.get_by_role("region", name="Picture of the forks").wait_for()
        visitor.go("/log")
        page.get_by_role("list", name="Events").wait_for()
        page.get_by_role("button", name="Hold").wait_for()
        assert page.title() == "Log · Keeve"
        # A form that says nothing is not sent, and what a tail has is not read out line by line.
        assert page.locator("#tail").get_attribute("aria-live") is None
