"""A browser: Debian's Chromium, driven by Playwright, and what is looked for on every page that it shows.

Playwright's loop runs in the thread of a test for as long as the browser is there. So these tests are no async ones,
and the server is a process of its own.

The one rule: what a browser complains of is a failure, wherever it happens: a policy that refuses something, an error
of a module, an answer of the server that is one. Each that is meant is expected by name.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import attrs

from tests.server_process import Server

ROOT = Path(__file__).parent.parent.parent
SHOTS = ROOT / ".outside" / "page"
"""Where pictures of pages are left, to be looked at."""

CHROMIUM = shutil.which("chromium")


def missing() -> str:
    """Why there is no browser; "" where there is one."""
    if CHROMIUM is None:
        return "Chromium is not installed (Debian: chromium)"
    if find_spec("playwright") is None or find_spec("axe_playwright_python") is None:
        return "Playwright is not installed (pip: playwright, axe-playwright-python)"
    return ""


@contextmanager
def chromium() -> Iterator[Any]:
    """The browser."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@attrs.define(slots=False)  # Playwright leaves a note on it
class Visitor:
    """Somebody with a tab open. `expected` are patterns of complaints that are meant."""

    server: Server
    page: Any
    complaints: list[str] = attrs.field(factory=list)
    expected: list[str] = attrs.field(factory=list)

    def go(self, place: str) -> None:
        """Open a place of the server."""
        self.page.goto(self.server.address.rstrip("/") + place)

    def log_in(self, token: str | None = None) -> None:
        """By the link that the server prints."""
        self.expected.append("401")  # the page that says how one logs in is one
        self.go(f"/#token={token or self.server.token}")
        self.page.get_by_role("navigation").wait_for()

    def say(self, words: str) -> None:
        """Say something, as people do, when the page has its modules."""
        self.page.wait_for_load_state()
        self.page.get_by_label("Say something").fill(words)
        self.page.get_by_role("button", name="Send", exact=True).click()

    def sees(self, words: str | re.Pattern[str]) -> None:
        """Wait until it is on the page."""
        self.page.get_by_text(words).first.wait_for()

    def badge(self, which: str, *states: str) -> str:
        """What a line of the badge says when it has come to one of these states."""
        found = ", ".join(f"#badge-{which}[data-state='{state}']" for state in states)
        line = self.page.locator(found)
        line.wait_for()
        return str(line.text_content())

    def picture(self, name: str, **how: Any) -> None:
        """Leave a picture."""
        SHOTS.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=SHOTS / f"{name}.png", **how)

    def is_narrow(self) -> bool:
        """Whether nothing reaches beyond the window's width."""
        return bool(self.page.evaluate("document.documentElement.scrollWidth <= innerWidth"))

    def barriers(self) -> list[str]:
        """What axe-core finds that is serious, or worse."""
        from axe_playwright_python.sync_playwright import Axe

        found = Axe().run(self.page).response["violations"]
        return [
            f"{self.page.url}: {each['id']}: {each['nodes'][0]['html'][:200]}"
            for each in found
            if each["impact"] in ("serious", "critical")
        ]

    def hears(self, said: Any) -> None:
        """What the browser says of a page."""
        if said.type in ("error", "warning"):
            self.complaints.append(f"{said.type}: {said.text} ({said.location.get('url', '')})")

    def unexpected(self) -> list[str]:
        """The complaints that were not meant."""
        return [each for each in self.complaints if not any(re.search(one, each) for one in self.expected)]


@contextmanager
def visiting(browser: Any, server: Server, *, token: str | None = "", **how: Any) -> Iterator[Visitor]:
    """A visitor in a browser of their own; logged in as the owner, as whoever has `token`, or (None) not at all."""
    context = browser.new_context(**{"viewport": {"width": 1280, "height": 800}, **how})
    context.set_default_timeout(20_000)
    visitor = Visitor(server, context.new_page())
    page = visitor.page
    page.on("pageerror", lambda error: visitor.complaints.append(f"error: {error}"))
    page.on("console", visitor.hears)
    if token is not None and how.get("java_script_enabled", True):
        visitor.log_in(token or None)
    yield visitor
    context.close()
    assert visitor.unexpected() == []
