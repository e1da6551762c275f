"""What models and people say is text, whatever it says, and a session is found whatever it is called."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

import pytest

from tests.page.browsing import visiting
from tests.page.model import model
from tests.server_process import server

HOSTILE = [
    '<script>document.title = "taken"</script><img src=x onerror="document.title=`taken`">',
    '</div></template></textarea></svg></title><iframe srcdoc="<script>top.taken=1</script>"></iframe>',
    "[a link](javascript:document.title='taken') javascript:alert(1) data:text/html,<script>1</script>",
    '"><form action=/logout method=post><button>Log out</button></form><meta http-equiv=refresh content="0;url=/log">',
    "\u202egnp.exe\u202c zero\u200bwidth\ufeff nul\x00 lines\r\nof\rall\u2028kinds",
    "{{ 7 * 7 }} ${7 * 7} <!--[if]> &lt;script&gt; &#60;b&#62; ]]>",
    "\u0301" * 500 + "ก็" * 300,
    "w" * 200_000,
]
ODD = [
    "a/b",
    "a?b=c",
    "a#b",
    "../..",
    "..",
    ".",
    "%2e%2e%2f",
    "é ü ❤ שלום",
    "&quot;<b>'",
    "a\\b",
    "session:1;x",
    " a b ",
]


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A server whose model says again what it hears, and calls a tool with it."""
    folder = tmp_path_factory.mktemp("hostile")

    def says(words: str) -> str | list[tuple[str, dict[str, Any]]]:
        return [("fails", {"why": words[5:]})] if words.startswith("call ") else words

    with (
        model(says) as said,
        server(folder / "s", "--tools", "tests.page.tools:ALL", env=said.environment) as running,
    ):
        yield running


def test_what_is_said_is_text_everywhere_and_the_badge_sees_the_same(chrome: Any, places: Any) -> None:
    parts = [
        {"type": "text", "text": HOSTILE[0]},
        {"type": "image_url", "image_url": {"url": HOSTILE[2], "n": [1, 2.5]}},
    ]
    with places.client() as client:
        client.post("/api/v1/sessions", json={"id": "hostile"})
        for words in (*HOSTILE, *(f"call {words[:2000]}" for words in HOSTILE), parts):
            assert client.post("/api/v1/sessions/hostile/turn", json={"input": words}).status_code == 200
    with visiting(chrome, places) as visitor:
        page = visitor.page
        for place in ("/", "/sessions/hostile", "/log", "/sessions/hostile/at/20", "/waiting", "/forks?of=hostile"):
            visitor.go(place)
            assert "taken" not in page.title()
            assert page.evaluate("window.taken") is None
            assert page.locator("iframe, img, form[action='/logout'] ~ form, meta[http-equiv]").count() == 0
            assert {"javascript:", "data:"}.isdisjoint(
                page.evaluate("[...document.links].map((each) => each.protocol)")
            )
            assert visitor.is_narrow(), place
            if place == "/sessions/hostile":
                assert "what is shown was said" in visitor.badge("chain", "good", "bad")
        # The same as it comes.
        visitor.go("/sessions/hostile")
        for words in (*HOSTILE[:6], "call " + HOSTILE[0]):
            done = page.locator("[data-slot='end']", has_text="done").count()
            visitor.say(words)
            page.locator("[data-slot='end']", has_text="done").nth(done).wait_for()
            assert page.evaluate("window.taken") is None
        page.wait_for_timeout(1500)
        assert "what is shown was said" in visitor.badge("chain", "good", "bad")
        assert page.locator("#turns iframe, #turns img, #turns script, #turns a:not([href*='/at/'])[href]").count() == 0


def test_a_session_is_there_whatever_it_is_called(chrome: Any, places: Any) -> None:
    with visiting(chrome, places) as visitor, places.client() as client:
        page = visitor.page
        for id in ODD:
            made = client.post("/api/v1/sessions", json={"id": id})
            assert made.status_code == 201, made.text
            visitor.go("/?" + "q=" + quote(id.strip(), safe=""))
            page.locator("main ul.list a").first.click()
            page.get_by_label("Say something").wait_for()
            assert page.locator("h1 bdi").text_content() == id
            visitor.say("are you there")
            visitor.sees("done")
            assert "what is shown was said" in visitor.badge("chain", "good", "bad")
            page.get_by_role("link", name="The past").click()
            visitor.sees("as it was at seq")
            page.locator("h1 a").click()
            page.get_by_role("link", name="Forks", exact=True).last.click()
            page.locator("svg text").first.wait_for()


def test_nothing_else_can_be_run_on_a_page(chrome: Any, places: Any) -> None:
    with visiting(chrome, places) as visitor:
        visitor.expected += ["Content Security Policy", "TrustedHTML", "TrustedScript"]
        page = visitor.page
        tried = """() => {
          const found = [];
          document.addEventListener("securitypolicyviolation", (event) => found.push(event.effectiveDirective));
          const script = document.createElement("script");
          try { script.textContent = "window.taken = 1"; document.body.append(script); } catch { found.push("text"); }
          try { document.body.innerHTML += "<b>1</b>"; } catch { found.push("html"); }
          try { document.body.setAttribute("onclick", "window.taken = 2"); } catch { found.push("handler"); }
          document.body.click();
          const image = document.createElement("img");
          image.src = "http://127.0.0.1:1/x.png";
          document.body.append(image);
          const style = document.createElement("style");
          style.textContent = "body { color: red }";
          document.body.append(style);
          return new Promise((done) => setTimeout(() => done([found, window.taken ?? null]), 300));
        }"""
        found, taken = page.evaluate(tried)
        assert taken is None
        assert {"html", "handler", "img-src", "style-src-elem"} <= set(found), json.dumps(found)
