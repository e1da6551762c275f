"""Somebody with a browser, in this process: a client with the cookie of the page, and the forms that it is shown."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from html.parser import HTMLParser

import httpx2

from tests.server_worlds import TOKENS, World

ORIGIN = {"origin": "http://127.0.0.1:8420"}
"""What browsers send with a form of ours."""


@asynccontextmanager
async def browser(w: World, name: str) -> AsyncIterator[httpx2.AsyncClient]:
    """A browser that is logged in. It sends its Origin with everything, which harms nothing."""
    transport = httpx2.ASGITransport(app=w.app, raise_app_exceptions=True)
    async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:8420", headers=ORIGIN) as client:
        answer = await client.post("/login", data={"token": TOKENS[name]})
        assert answer.status_code == 303, answer.text
        yield client


class _Forms(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.forms: list[tuple[str, dict[str, str]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        said = {name: value or "" for name, value in attrs}
        if tag == "form":
            self.forms.append((said.get("action", ""), {}))
        elif tag == "input" and said.get("type") == "hidden" and self.forms:
            self.forms[-1][1][said["name"]] = said.get("value", "")


def form_of(text: str, action: str) -> dict[str, str]:
    """What the first form of a document that leads to `action` carries along."""
    parser = _Forms()
    parser.feed(text)
    found = next((fields for to, fields in parser.forms if to == action), None)
    assert found is not None, f"no form leads to {action}: {[to for to, _ in parser.forms]}"
    return found


class _Elements(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def elements_of(text: str) -> list[tuple[str, dict[str, str | None]]]:
    """The elements of a document, as a browser would find them, with their attributes."""
    parser = _Elements()
    parser.feed(text)
    return parser.elements


def text_of(text: str) -> str:
    """All text of a document."""
    parser = _Elements()
    parser.feed(text)
    return "".join(parser.text)


def only_ours(text: str) -> None:
    """What a document has of scripts and pictures is ours, and no element has a handler."""
    for tag, said in elements_of(text):
        assert tag not in ("img", "iframe", "object", "embed", "style", "base")
        assert not [name for name in said if name.startswith("on") or name == "style"]
        if tag == "script":
            assert (said["src"] or "").startswith("/static/")
