"""Every page, light and dark, wide and narrow: nothing reaches over the edge, axe-core finds nothing serious."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest

from tests.page.browsing import visiting
from tests.server_process import Server

ODD = "waits/with?odd#chars…" + "x" * 80
PLACES = {
    "sessions": "/",
    "none": "/?q=nothing-has-this",
    "conversation": "/sessions/s1",
    "empty": "/sessions/empty",
    "waits": f"/sessions/{quote(ODD, safe='')}",
    "forks": "/forks",
    "forks-of-one": "/forks?of=s1",
    "log": "/log",
    "log-wrong": "/log?pattern=(turn",
    "log-nothing": "/log?pattern=(nothing.at.all . _)",
    "waiting": "/waiting",
    "past": "/sessions/s1/at/12",
    "refused": "/sessions/not-there",
}


@pytest.fixture(scope="module")
def lived(served: Server) -> Server:
    """The server, with a conversation that has all kinds of words, forks, and a call that waits."""
    with served.client() as client:
        for id in ("s1", "empty", ODD):
            assert client.post("/api/v1/sessions", json={"id": id}).status_code == 201
        for words in ("hello", "tools please", "long words", "rtl", "x" * 400 + " and so on", "tell me more"):
            assert client.post("/api/v1/sessions/s1/turn", json={"input": words}).status_code == 200
        for turn, into in ((1, "twin"), (2, "a-fork-with-a-rather-long-name-" + "y" * 60), (2, "other")):
            client.post("/api/v1/sessions/s1/fork", json={"turn": turn, "into": into})
            client.post(f"/api/v1/sessions/{into}/turn", json={"input": "elsewhere"})
        client.post("/api/v1/sessions/twin/fork", json={"into": "שלום"})
        client.post("/api/v1/sessions/s1/snapshot")
        client.post(f"/api/v1/sessions/{quote(ODD, safe='')}/queue", json={"input": "drop it"})
    return served


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 360])
def test_nothing_is_in_the_way_of_anybody(chrome: Any, lived: Server, theme: str, width: int) -> None:
    found: list[str] = []
    with visiting(chrome, lived, viewport={"width": width, "height": 800}, color_scheme=theme) as visitor:
        visitor.expected += ["404", "422"]
        for name, place in PLACES.items():
            visitor.go(place)
            if visitor.page.locator("#badge").count():
                visitor.badge("checkpoint", "good")
            visitor.picture(f"{name}-{width}-{theme}")
            if not visitor.is_narrow():
                found.append(f"{name} is wider than {width}")
            found += visitor.barriers()
        visitor.page.get_by_role("button", name="Log out").click()
        visitor.page.get_by_label("Token").wait_for()
        visitor.picture(f"entrance-{width}-{theme}")
        found += visitor.barriers()
    assert found == []


def test_what_is_open_and_what_is_long_is_no_barrier_either(chrome: Any, lived: Server) -> None:
    with visiting(chrome, lived, viewport={"width": 360, "height": 800}) as visitor:
        for place in ("/", "/sessions/s1", "/log", "/forks", "/waiting"):
            visitor.go(place)
            visitor.page.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")
            assert visitor.is_narrow(), place
            assert visitor.barriers() == []
        visitor.picture("waiting-open-360")
