"""What happens while a page is open: a server that goes away and comes back, a session that is deleted, a log-in that
ends, pages of others; and a fork made in the picture."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from tests.page.browsing import visiting
from tests.page.model import Model
from tests.server_process import Server, server


def spoken(running: Server, id: str, *inputs: str) -> None:
    with running.client() as client:
        assert client.post("/api/v1/sessions", json={"id": id}).status_code == 201
        for words in inputs:
            assert client.post(f"/api/v1/sessions/{id}/turn", json={"input": words}).status_code == 200


def test_a_fork_is_made_in_the_picture_and_the_past_is_looked_at(chrome: Any, served: Server) -> None:
    spoken(served, "trunk", "one", "two", "three")
    with visiting(chrome, served) as visitor:
        page = visitor.page
        visitor.go("/sessions/trunk")
        page.get_by_role("link", name="Forks", exact=True).last.click()
        page.get_by_role("link", name=re.compile("^trunk at seq 5, the end of a turn")).click()
        page.get_by_role("heading", name="trunk as it was at seq 5").wait_for()
        assert page.locator(".entry.user .text").all_text_contents() == ["one", "two"]
        visitor.badge("chain", "good")
        page.get_by_label("Id of the fork").fill("branch")
        page.get_by_role("button", name="Fork from seq 5").click()
        visitor.say("another way")
        visitor.sees("You said: another way")
        page.get_by_role("link", name="Forks", exact=True).last.click()
        page.get_by_role("link", name=re.compile("^trunk at seq 5, where branch parted")).wait_for()
        visitor.picture("forked")
        page.locator("svg").get_by_role("link", name="trunk", exact=True).click()
        page.get_by_role("heading", name="trunk", exact=True).wait_for()
        assert page.get_by_text("another way").count() == 0
        page.get_by_role("link", name="The past").click()
        page.get_by_role("button", name="Take a snapshot now").click()
        page.get_by_text('"root"').wait_for()


def test_a_tail_and_a_conversation_outlive_the_server(chrome: Any, small: Model, tmp_path: Path) -> None:
    store = tmp_path / "store"
    with server(store, env=small.environment) as first:
        spoken(first, "s", "one")
        with visiting(chrome, first) as tail, visiting(chrome, first) as talk:
            for visitor in (tail, talk):
                visitor.expected += ["Failed to load resource", "net::ERR"]
            tail.go("/log?pattern=(turn . _)")
            tail.sees('"one"')
            talk.go("/sessions/s")
            talk.sees("You said: one")
            assert first.stop() == 0
            tail.sees("The server is away")
            talk.sees("The server is away")
            with server(store, env=small.environment, port=first.port) as second:
                with second.client() as client:
                    client.post("/api/v1/sessions/s/turn", json={"input": "two"})
                tail.sees('"two"')
                talk.sees("You said: two")
                talk.say("three")
                talk.sees("You said: three")
                tail.sees('"three"')
                assert tail.page.locator("#tail > li").count() == 3
                assert talk.page.locator("#turns .entry.user").count() == 3
                assert "what is shown was said" in talk.badge("chain", "good", "bad")


def test_what_is_held_comes_when_the_tail_goes_on(chrome: Any, served: Server) -> None:
    spoken(served, "held", "before")
    with visiting(chrome, served) as visitor:
        page = visitor.page
        visitor.go('/log?pattern=(turn _ "held" . _)')
        page.get_by_role("button", name="Hold").click()
        with served.client() as client:
            client.post("/api/v1/sessions/held/turn", json={"input": "meanwhile"})
        visitor.sees("1 are held")
        assert page.get_by_text('"meanwhile"').count() == 0
        page.get_by_role("button", name="Hold").click()
        visitor.sees('"meanwhile"')


def test_a_session_that_is_deleted_while_it_is_open_says_so(chrome: Any, served: Server) -> None:
    spoken(served, "gone", "one")
    with visiting(chrome, served) as visitor:
        visitor.expected += ["410", "404", "409"]
        page = visitor.page
        visitor.go("/sessions/gone")
        visitor.badge("checkpoint", "good")
        with served.client() as client:
            assert client.delete("/api/v1/sessions/gone").status_code == 200
        visitor.sees("deleted")
        page.get_by_label("Say something").fill("is anybody there")
        page.locator("button[value='turn']:disabled").wait_for()
        page.reload()
        visitor.sees("That did not go")
        visitor.sees("deleted")


def test_a_log_in_that_has_ended_is_said_and_nothing_is_lost(chrome: Any, served: Server) -> None:
    spoken(served, "ended", "one")
    with visiting(chrome, served) as visitor:
        visitor.expected.append("401")
        page = visitor.page
        visitor.go("/sessions/ended")
        page.context.clear_cookies()
        visitor.say("not lost")
        visitor.sees("log in again")
        assert page.get_by_label("Say something").input_value() == "not lost"
        page.get_by_role("link", name="log in again").click()
        page.get_by_label("Token").fill(served.token)
        page.get_by_role("button", name="Log in").click()
        page.wait_for_url("**/sessions/ended")


def test_pages_of_others_can_do_nothing_with_the_cookie(chrome: Any, served: Server, small: Model) -> None:
    spoken(served, "mine", "one")
    with visiting(chrome, served) as visitor:
        visitor.expected += ["403", "CORS", "ERR_", "frame", "Content Security Policy"]
        page = visitor.page
        elsewhere = served.address.replace("127.0.0.1", "localhost").rstrip("/")  # another site, for a browser
        page.route(
            f"{elsewhere}/evil", lambda route: route.fulfill(content_type="text/html", body=evil(served.address))
        )
        page.goto(f"{elsewhere}/evil")
        page.wait_for_timeout(500)
        assert page.frames[1].url != served.address
        assert page.evaluate("document.title") == "blocked"
        page.locator("button").click()
        page.get_by_text("wrong_origin").wait_for()
    with served.client() as client:
        assert client.get("/api/v1/sessions/mine").json()["status"]["accepted"] == 1


def evil(address: str) -> str:
    """A page of another site, which has what ours has: a frame of it, a request, a form."""
    return f"""<!doctype html><title>evil</title><iframe src="{address}"></iframe>
    <form method="post" action="{address}sessions/mine/say"><input name="input" value="evil"><button>Go</button></form>
    <script>fetch("{address}api/v1/sessions", {{credentials: "include"}}).then(
      () => {{ document.title = "read"; }}, () => {{ document.title = "blocked"; }})</script>"""


def test_a_session_of_somebody_else_is_not_there(chrome: Any, small: Model, tmp_path: Path) -> None:
    (tmp_path / "ann.token").write_text("ann-token-0123456789")
    (tmp_path / "ann.token").chmod(0o600)
    settings = tmp_path / "settings.toml"
    settings.write_text(f'[principals.ann]\ntoken_file = "{tmp_path}/ann.token"\n')
    with server(tmp_path / "s", "--config", settings, env=small.environment) as running:
        spoken(running, "owners", "a secret")
        with visiting(chrome, running, token="ann-token-0123456789") as ann:
            ann.expected.append("404")
            for place in ("/sessions/owners", "/sessions/owners/at/2", "/forks?of=owners"):
                ann.go(place)
                ann.sees("That did not go")
            for place in ("/", "/?q=secret", "/log", "/forks", "/waiting"):
                ann.go(place)
                assert ann.page.get_by_text("owners").count() + ann.page.get_by_text("a secret").count() == 0
