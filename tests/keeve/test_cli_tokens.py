"""`keeve token`: made of the owner's, narrowed by anybody, shown, revoked."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from keeve.wire.revocations import Revocations
from keeve.wire.tokens import Token, check
from tests.cli_runner import Said, keeve

SECRET = "the-token-of-the-owner"


@pytest.fixture
def store(store_folder: Path) -> Path:
    folder = store_folder / "data"
    folder.mkdir()
    (folder / "token").write_text(f"{SECRET}\n")
    (folder / "token").chmod(0o600)
    return folder


def said(store: Path, *words: str, token: str = "", **options: Any) -> Said:
    return keeve("token", *words, "--store", store, env={"KEEVE_TOKEN": token} if token else {}, **options)


def made(store: Path, *words: str) -> str:
    result = said(store, "make", *words)
    assert result.code == 0, result.err
    return result.out.strip()


def test_a_token_is_made_as_it_is_asked_for(store: Path) -> None:
    token = made(
        store, "--as", "ann", "--session", "s1", "--session", "s2", "--method", "turn", "--read", "--until", "8h"
    )
    allowance = check(SECRET, Token.parse(token), frozenset())
    assert (allowance.name, allowance.own, allowance.sessions) == ("ann", False, {"s1", "s2"})
    assert (allowance.methods, allowance.read_only) == ({"turn"}, True)
    assert allowance.until is not None


def test_two_that_are_made_alike_are_two(store: Path) -> None:
    assert made(store, "--as", "ann") != made(store, "--as", "ann")


def test_a_token_is_narrowed_without_a_store(store: Path, tmp_path: Path) -> None:
    token = made(store, "--as", "ann")
    narrowed = said(tmp_path / "nowhere", "narrow", "--read", token=token)
    assert check(SECRET, Token.parse(narrowed.out.strip()), frozenset()).read_only
    from_input = keeve("token", "narrow", "--read", input=token)
    assert from_input.out == narrowed.out


def test_a_token_is_shown_and_not_told(store: Path) -> None:
    token = made(store, "--as", "ann", "--session", "s1", "--until", "2999-01-01T00:00Z")
    shown = said(store, "show", token=token)
    assert shown.code == 0
    for part in ("ann", "s1", "2999-01-01", Token.parse(token).id, "taken    yes"):
        assert part in shown.out
    assert token not in shown.out
    assert said(store, "show", "--json", token=token).json == {
        "id": Token.parse(token).id,
        "caveats": [
            {"caveat": "sessions", "says": ["s1"]},
            {"caveat": "as", "says": "ann"},
            {"caveat": "until", "says": "2999-01-01T00:00:00.000000Z"},
        ],
        "taken": True,
        "refused": None,
    }


def test_a_revoked_token_is_refused_with_all_that_were_narrowed_from_it(store: Path) -> None:
    token = made(store, "--as", "ann")
    narrowed = said(store, "narrow", "--read", token=token).out.strip()
    assert said(store, "revoke", Token.parse(token).id).code == 0
    for each in (token, narrowed):
        shown = said(store, "show", token=each)
        assert (shown.code, "revoked" in shown.out) == (1, True)
    assert Revocations(store).ids == {Token.parse(token).id}
    again = said(store, "revoke", "--json", token=token)
    assert again.json == {"revoked": Token.parse(token).id, "new": False}


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("make", "--until", "yesterday"), "is no time to come"),
        (("make", "--until", "2001-01-01T00:00Z"), "is no time to come"),
        (("make", "--as", ""), "printable"),
        (("revoke", "no-id"), "is no id of a token"),
        (("show",), "no token was given"),
        (("narrow", "--read"), "no token was given"),
    ],
)
def test_what_cannot_be_is_refused_in_words(store: Path, words: tuple[str, ...], why: str) -> None:
    result = said(store, *words)
    assert (result.code, why in result.err) == (2, True), result.err


def test_a_secret_is_no_token_and_is_not_shown(store: Path) -> None:
    result = said(store, "show", token=SECRET)
    assert result.code == 2
    assert "does not begin with" in result.err
    assert SECRET not in result.err + result.out


def test_a_store_without_a_server_has_no_token_to_make_others_of(tmp_path: Path) -> None:
    result = keeve("token", "make", "--store", tmp_path)
    assert (result.code, "keeve serve makes it" in result.err) == (2, True)


def test_a_token_file_that_others_can_read_is_refused(store: Path) -> None:
    (store / "token").chmod(0o644)
    assert "chmod 600" in said(store, "make").err


def test_a_method_that_nothing_has_is_refused_with_the_nearest_ones(store: Path) -> None:
    for words, near in ((("--method", "trun"), "turn"), (("--method", "turn", "--method", "fokr"), "fork")):
        result = said(store, "make", *words)
        assert result.code == 2
        assert near in result.err.partition("did you mean")[2]
        assert result.out == ""
    for name in ("turn", "history", "get", "observe", "describe", "snapshot", "manage"):
        assert made(store, "--method", name)


def test_methods_of_an_actor_type_of_ones_own_are_named_with_its_module(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(store.parent)
    monkeypatch.setattr("sys.path", [*sys.path])
    assert said(store, "make", "--method", "rename").code == 2
    (store.parent / "library_of_tokens.py").write_text(
        "from keeve import Actor, actor\n\n\n@actor('test.library', version=1)\nclass Library(Actor):\n"
        "    def rename(self, name: str) -> None:\n        pass\n"
    )
    made = said(store, "make", "--method", "rename", "--actors", "library_of_tokens")
    assert check(SECRET, Token.parse(made.out.strip()), frozenset()).methods == {"rename"}
