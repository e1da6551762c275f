"""The veil over derived files."""

from __future__ import annotations

import pytest

from dataspace.encryption.veil import Veil

SECRET = bytes(range(32))
VEIL = Veil(SECRET)


def test_a_text_is_looked_up_by_what_tells_nothing_of_it() -> None:
    assert VEIL.hashed("customer-17") == Veil(SECRET).hashed("customer-17")
    assert VEIL.hashed("customer-17") != VEIL.hashed("customer-18")
    assert VEIL.hashed("customer-17") != Veil(bytes(32)).hashed("customer-17")
    assert b"customer" not in VEIL.hashed("customer-17")


@pytest.mark.parametrize("text", ["", "a", "customer-17", "\ud800 alone", "\0", "x" * 10_000])
def test_a_hidden_text_comes_back(text: str) -> None:
    hidden = VEIL.hidden(text)
    assert VEIL.shown(hidden) == text
    assert len(text) < 2 or text.encode(errors="surrogatepass") not in hidden


def test_what_is_hidden_follows_from_the_text_and_the_key_alone() -> None:
    """So a file that is made anew is the same, and no nonce stands for two texts."""
    assert VEIL.hidden("a") == Veil(SECRET).hidden("a")
    assert len({VEIL.hidden(f"customer-{n}")[:12] for n in range(1000)}) == 1000
    assert VEIL.hidden("a")[:12] != Veil(bytes(32)).hidden("a")[:12]


@pytest.mark.parametrize("wrong", [b"", b"short", bytes(64), "a text", None, 7])
def test_what_was_not_hidden_here_is_not_shown(wrong: object) -> None:
    with pytest.raises((ValueError, TypeError)):
        VEIL.shown(wrong)  # type: ignore[arg-type] # what a damaged row may hold


def test_two_secrets_leave_two_marks() -> None:
    assert VEIL.mark != Veil(bytes(32)).mark
    assert SECRET.hex()[:16] not in VEIL.mark
