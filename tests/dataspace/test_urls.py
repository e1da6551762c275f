"""URLs of services: which can be used, and what of one is shown."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataspace.urls import HIDDEN, flaw_in, host_of, shown


@pytest.mark.parametrize(
    "url",
    ["https://a.example", "http://localhost:80/v1?x=y#z", "HTTP://[::1]:8/", "http://a/@scope/b", "http://münchen"],
)
def test_what_names_a_host_over_http_can_be_used(url: str) -> None:
    assert flaw_in(url) is None


@pytest.mark.parametrize(
    "url", ["", "a", "http://", "http:///x", "ftp://a", "http://[a", "http://a:9x", "http://a b", "http://a\n", "//a"]
)
def test_what_names_no_host_over_http_is_none(url: str) -> None:
    flaw = flaw_in(url)
    assert flaw is not None
    assert str(flaw) == "is no URL that begins with http:// or https:// and names a host"


@pytest.mark.parametrize("url", ["http://u:pw@a", "https://u@a/x", "http://:pw@a", "http://@a", "http://u:p@w@a"])
def test_a_url_with_a_user_or_a_password_is_refused(url: str) -> None:
    assert str(flaw_in(url)) == "holds a user or a password; put that into the vault"


@pytest.mark.parametrize("text", ["127.0.0.1:8919/v1", "localhost:80", "api.example.com/v1", "ftp://a.example/x"])
def test_an_address_that_is_no_url_is_shown_and_what_may_be_a_key_is_not(text: str) -> None:
    assert str(flaw_in(text)).startswith(f"{text} is no URL")
    for secret in ("sk-proj.canary-1_x", f"{text}?canary", f"canary@{text}", f"{text}#canary"):
        assert "canary" not in str(flaw_in(secret))


@pytest.mark.parametrize(
    ("url", "seen"),
    [
        ("https://u:canary@a.example:8/x/@y?canary=1#canary", "https://a.example:8/x/@y"),
        ("http://canary@[::1]/", "http://[::1]/"),
        ("http://a:9x/mcp?token=canary", "http://a:9x/mcp"),
        ("/v2/x?canary", "/v2/x"),
        ("http://u:can/ary@a", HIDDEN),
        ("http://u:can#ary@a", HIDDEN),
        ("//u:canary@a/x", HIDDEN),
        ("u:canary@a", HIDDEN),
        ("see http://u:canary@a", HIDDEN),
        ("./data", "./data"),
    ],
)
def test_what_may_be_a_secret_is_not_shown(url: str, seen: str) -> None:
    assert shown(url) == seen


_TEXT = st.text(st.characters(codec="ascii"), max_size=5)
_WORD = st.text(st.characters(codec="ascii", exclude_characters="/"), max_size=5)  # behind one, a path may begin


@given(_WORD, _WORD, _TEXT)
def test_whatever_stands_around_a_secret_it_is_not_shown(before: str, inside: str, after: str) -> None:
    assert "canary" not in shown(f"http://{before}:{inside}canary@a.example{after}")
    assert "canary" not in shown(f"http://a.example/{before}?canary{after}")
    assert "canary" not in shown(f"http://a.example/{before}#{inside}canary{after}")


def test_the_host_of_a_url_is_that_of_the_machine() -> None:
    assert [host_of(url) for url in ("http://u:p@LOCALHOST:1/x", "http://[::1]:1", "http://[::1", "a/b")] == [
        "localhost",
        "::1",
        None,
        None,
    ]
