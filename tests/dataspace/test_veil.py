"""The veil over derived files."""

from __future__ import annotations

import os

import pytest

from dataspace.encryption.veil import PLAIN, Hiding

SECRET = bytes(range(32))


def test_a_text_is_looked_up_by_what_tells_nothing_of_it() -> None:
    veil = Hiding(SECRET, os.urandom)
    assert veil.hashed("customer-17") == Hiding(SECRET, os.urandom).hashed("customer-17")
    assert veil.hashed("customer-17") != veil.hashed("customer-18")
    assert veil.hashed("customer-17") != Hiding(bytes(32), os.urandom).hashed("customer-17")
    assert b"customer" not in veil.hashed("customer-17")


@pytest.mark.parametrize("text", ["", "a", "customer-17", "\ud800 alone", "\0", "x" * 10_000])
def test_a_hidden_text_comes_back(text: str) -> None:
    veil = Hiding(SECRET, os.urandom)
    hidden = veil.hidden(text)
    assert veil.shown(hidden) == text
    assert len(text) < 2 or text.encode(errors="surrogatepass") not in hidden
    assert hidden != veil.hidden(text)


@pytest.mark.parametrize("wrong", [b"", b"short", bytes(64), "a text", None, 7])
def test_what_was_not_hidden_here_is_not_shown(wrong: object) -> None:
    with pytest.raises((ValueError, TypeError)):
        Hiding(SECRET, os.urandom).shown(wrong)  # type: ignore[arg-type] # what a damaged row may hold


def test_two_secrets_leave_two_marks() -> None:
    assert Hiding(SECRET, os.urandom).mark != Hiding(bytes(32), os.urandom).mark
    assert SECRET.hex()[:16] not in Hiding(SECRET, os.urandom).mark


def test_without_a_veil_texts_stand_as_they_are() -> None:
    assert (PLAIN.mark, PLAIN.hashed("a"), PLAIN.hidden("a"), PLAIN.shown("a")) == ("", "a", "a", "a")
