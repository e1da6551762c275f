"""Who comes in to the page, and what every document of it tells the browser."""

from __future__ import annotations

import re
from importlib.resources import files

import httpx2
import pytest

from keeve import Session
from keeve.server.auth import COOKIE
from keeve.server.errors import ANSWERS, Refusal, code_named
from keeve.server.page.wording import told
from tests.page_visits import ORIGIN, browser, form_of, only_ours, text_of
from tests.server_worlds import TOKENS, world


def policy_of(answer: httpx2.Response) -> str:
    return answer.headers["content-security-policy"]


async def test_without_a_token_a_page_says_how_to_log_in() -> None:
    async with world() as w:
        answer = await w.nobody.get("/")
    assert (answer.status_code, answer.headers["content-type"]) == (401, "text/html; charset=utf-8")
    assert "keeve serve" in answer.text
    assert 'action="/login"' in answer.text


async def test_a_token_becomes_a_cookie_that_scripts_and_other_sites_cannot_have() -> None:
    async with world() as w:
        answer = await w.nobody.post("/login", data={"token": TOKENS["ann"]}, headers=ORIGIN)
        assert (answer.status_code, answer.headers["location"]) == (303, "/")
        flags = {flag.strip().lower() for flag in answer.headers["set-cookie"].split(";")[1:]}
        assert {"httponly", "samesite=strict", "path=/"} <= flags
        assert "secure" not in flags
        assert TOKENS["ann"] not in answer.text
        assert "ann" in (await w.nobody.get("/")).text


async def test_under_tls_the_cookie_goes_nowhere_else() -> None:
    async with world() as w:
        answer = await w.nobody.post("https://127.0.0.1:8420/login", data={"token": TOKENS["ann"]}, headers=ORIGIN)
        assert "secure" in answer.headers["set-cookie"].lower()
        behind = {"origin": "https://127.0.0.1:8420"}  # a proxy that speaks TLS
        answer = await w.nobody.post("/login", data={"token": TOKENS["ann"]}, headers=behind)
        assert "secure" in answer.headers["set-cookie"].lower()


@pytest.mark.parametrize("token", ["", "wrong-token-0123456789", "a b", "x" * 5000, "a;b=c", "\u2603" * 20])
async def test_what_is_no_token_here_lets_nobody_in(token: str) -> None:
    async with world() as w:
        answer = await w.nobody.post("/login", data={"token": token}, headers=ORIGIN)
        assert answer.status_code == 401
        assert "set-cookie" not in answer.headers
        assert 'class="wrong"></p>' not in answer.text


async def test_a_cookie_that_is_not_known_any_more_goes() -> None:
    async with world() as w:
        answer = await w.nobody.get("/", headers={"cookie": f"{COOKIE}=wrong-token-0123456789"})
        assert answer.status_code == 401
        assert f'{COOKIE}=""' in answer.headers["set-cookie"]
        assert "not known here any more" in answer.text


@pytest.mark.parametrize("next", ["https://evil.example/", "//evil.example", "/\\evil.example", "x", "/login", "/\t/e"])
async def test_after_the_log_in_nobody_is_led_elsewhere(next: str) -> None:
    async with world() as w:
        answer = await w.nobody.post("/login", data={"token": TOKENS["ann"], "next": next}, headers=ORIGIN)
        assert answer.headers["location"] == "/"


async def test_after_the_log_in_one_is_where_one_wanted_to_be() -> None:
    async with world() as w:
        asked = await w.nobody.get("/?q=a%2Fb")
        form = form_of(asked.text, "/login")
        answer = await w.nobody.post("/login", data={**form, "token": TOKENS["ann"]}, headers=ORIGIN)
        assert answer.headers["location"] == "/?q=a%2Fb"


async def test_logging_out_takes_the_cookie_away() -> None:
    async with world() as w, browser(w, "ann") as ann:
        form = form_of((await ann.get("/")).text, "/logout")
        assert (await ann.post("/logout", data=form)).status_code == 303
        assert (await ann.get("/")).status_code == 401


async def test_every_document_forbids_scripts_and_frames_that_are_not_ours() -> None:
    async with world() as w:
        for answer in (await w.nobody.get("/"), await w.ann.get("/"), await w.ann.post("/sessions")):
            policy = dict(each.strip().partition(" ")[::2] for each in policy_of(answer).split(";"))
            assert policy["default-src"] == "'self'"
            assert policy["frame-ancestors"] == policy["object-src"] == policy["base-uri"] == "'none'"
            assert policy["require-trusted-types-for"] == "'script'"
            assert "unsafe" not in policy_of(answer)
            assert (answer.headers["x-frame-options"], answer.headers["cache-control"]) == ("DENY", "no-store")
            # With no-referrer browsers would say `Origin: null` with every form.
            assert answer.headers["referrer-policy"] == "same-origin"


async def test_a_form_of_another_page_is_refused() -> None:
    async with world() as w, browser(w, "ann") as ann:
        form = {**form_of((await ann.get("/")).text, "/sessions"), "id": "made"}
        for headers in (
            {"origin": "http://evil.example"},
            {"origin": "null"},
            {"origin": "http://127.0.0.1:9000"},
            {"sec-fetch-site": "cross-site", "origin": ""},
        ):
            assert (await ann.post("/sessions", data=form, headers=headers)).status_code == 403
        del ann.headers["origin"]
        assert (await ann.post("/sessions", data=form)).status_code == 403
        assert w.host.sessions() == []


async def test_a_form_without_the_token_of_this_log_in_is_refused() -> None:
    async with world() as w, browser(w, "ann") as ann, browser(w, "bob") as bob:
        theirs = form_of((await bob.get("/")).text, "/sessions")
        for form in ({}, {"form": ""}, {"form": "0" * 64}, theirs):
            answer = await ann.post("/sessions", data={**form, "id": "made"})
            assert (answer.status_code, "wrong_form" in answer.text) == (403, True)
        assert w.host.sessions() == []


async def test_the_log_in_says_where_it_comes_from() -> None:
    async with world() as w:
        assert (await w.nobody.post("/login", data={"token": TOKENS["ann"]})).status_code == 403


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        (b"{}", "application/json", 415),
        (b"id=%FF", "application/x-www-form-urlencoded", 422),
        (b"\xff", "application/x-www-form-urlencoded", 422),
        (b"a=1&" * 200, "application/x-www-form-urlencoded", 422),
    ],
)
async def test_what_is_no_form_is_refused(body: bytes, kind: str, status: int) -> None:
    async with world() as w, browser(w, "ann") as ann:
        answer = await ann.post("/sessions", content=body, headers={"content-type": kind})
        assert answer.status_code == status


async def test_the_files_are_for_anyone_and_asked_for_again_only_when_they_change() -> None:
    async with world() as w:
        answer = await w.nobody.get("/static/page.css")
        assert (answer.status_code, answer.headers["content-type"]) == (200, "text/css; charset=utf-8")
        again = await w.nobody.get("/static/page.css", headers={"if-none-match": answer.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")
        assert (await w.nobody.get("/static/page.js")).headers["content-type"].startswith("text/javascript")


@pytest.mark.parametrize(
    "name", ["none.css", "..%2F__init__.py", "%2e%2e/__init__.py", "..%2Ftemplates%2Fbase.html", ""]
)
async def test_no_other_file_can_be_had(name: str) -> None:
    async with world() as w:
        assert (await w.nobody.get(f"/static/{name}")).status_code in (401, 404)


def test_no_template_has_anything_inline_or_unescaped() -> None:
    for each in files("keeve.server.page").joinpath("templates").iterdir():
        text = each.read_text()
        assert not re.search(r"\|\s*safe|autoescape|Markup|<style|style=|\son[a-z]+=|javascript:", text), each.name
        assert all("src=" in tag for tag in re.findall(r"<script[^>]*>", text)), each.name
        # Where a value stands in an attribute, it is quoted.
        assert "={{" not in re.sub(r'"[^"]*"', '""', text), each.name


def test_no_module_makes_parts_of_the_document_from_text() -> None:
    for each in files("keeve.server.page").joinpath("static").iterdir():
        if each.name.endswith(".js"):
            text = each.read_text()
            assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|eval\(", text)


def test_what_is_to_be_done_is_said_in_words_of_the_page() -> None:
    for kind, answer in ANSWERS.items():
        refusal = told(Refusal(answer.status, code_named(kind.__name__), "it is wrong", answer.remedy))
        assert refusal is not None
        assert not re.search(r"GET |POST |Idempotency-Key|/api/|force=", refusal.remedy), refusal
        assert refusal.remedy.strip(" ,;") == refusal.remedy


async def test_a_browser_at_a_path_of_nobodys_is_shown_a_page_and_a_program_is_not() -> None:
    html = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
    async with world() as w, browser(w, "ann") as ann:
        answer = await ann.get("/sesions/<b>s1</b>", headers=html)
        assert (answer.status_code, answer.headers["content-type"].split(";")[0]) == (404, "text/html")
        assert "there is nothing at /sesions/<b>s1</b>" in text_of(answer.text)
        assert 'href="/waiting"' in answer.text
        only_ours(answer.text)
        for path, asked in (("/api/v1/sesions", html), ("/v1/sesions", html), ("/sesions", {"accept": "*/*"})):
            answer = await ann.get(path, headers=asked)
            assert (answer.status_code, answer.json()["error"]["code"]) == (404, "no_such_path")
        reloaded = await ann.get("/sessions/s1/say", headers=html)
        assert (reloaded.status_code, reloaded.headers["allow"]) == (405, "POST")
        assert "there is nothing at /sessions/s1/say to be read" in text_of(reloaded.text)
        assert "405 no_such_method" in text_of(reloaded.text)


async def test_a_browser_that_is_not_logged_in_is_shown_the_same_whether_there_is_something_or_not() -> None:
    html = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
    async with world() as w:
        await w.host.spawn(Session, "s1")
        shown = set()
        for path in (
            "/log",
            "/sesions",
            "/metrics",
            "/sessions/s1",
            "/sessions/s2",
            "/sessions/s1/say",
            "/sessions/a/b",
        ):
            answer = await w.nobody.get(path, headers=html)
            assert (answer.status_code, answer.headers["content-type"].split(";")[0]) == (401, "text/html")
            shown.add(answer.text.replace(f'value="{path}"', ""))
            for asked in ({"accept": "*/*"}, {"accept": "application/json"}):
                if not path.startswith(("/sessions", "/log")):  # whose places are pages for everybody
                    assert (await w.nobody.get(path, headers=asked)).json()["error"]["code"] == "not_authenticated"
        assert len(shown) == 1
        for path in ("/api/v1/sessions", "/api/v1/sesions", "/v1/models"):
            assert (await w.nobody.get(path, headers=html)).json()["error"]["code"] == "not_authenticated"
