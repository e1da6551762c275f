"""Sturdy refs: nobody makes one but the server, and each is good for one principal."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keeve.wire.sturdy import BadRef, SturdyRefs

REFS = SturdyRefs("a secret")
UID = bytes(range(16))
TEXT = REFS.sturdy("ann", UID, 7)


@given(st.text(max_size=20), st.binary(min_size=16, max_size=16), st.integers(0, (1 << 64) - 1))
def test_a_sturdy_ref_comes_back_as_the_ref(by: str, uid: bytes, actor: int) -> None:
    assert REFS.opened(by, REFS.sturdy(by, uid, actor)) == (uid, actor)


@given(st.integers(0, len(TEXT) - 1), st.characters(min_codepoint=33, max_codepoint=126))
def test_an_altered_one_is_refused(at: int, letter: str) -> None:
    altered = TEXT[:at] + letter + TEXT[at + 1 :]
    if altered != TEXT:
        with pytest.raises(BadRef):
            REFS.opened("ann", altered)


@given(st.one_of(st.text(), st.binary(), st.none(), st.integers()))
def test_what_is_none_is_refused(text: object) -> None:
    with pytest.raises(BadRef):
        REFS.opened("ann", text)


def test_it_is_of_no_use_under_another_name() -> None:
    with pytest.raises(BadRef, match="not given to 'bob'"):
        REFS.opened("bob", TEXT)


def test_it_is_of_no_use_with_another_secret() -> None:
    with pytest.raises(BadRef):
        SturdyRefs("another secret").opened("ann", TEXT)
    assert SturdyRefs("a secret").opened("ann", TEXT) == (UID, 7)
