"""Tokens: narrowing takes away and never gives, and what was altered allows nothing."""

from __future__ import annotations

from base64 import urlsafe_b64decode
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keeve.wire.tokens import (
    LONGEST,
    MOST,
    PREFIX,
    Allowance,
    BadCaveat,
    BadToken,
    Caveat,
    Token,
    TokenRefused,
    check,
    methods,
    mint,
    named,
    read_only,
    sessions,
    until,
)

SECRET = "the secret of this server"
NONCE = bytes(range(16))
SESSIONS = ("s1", "s2", "s3")
METHODS = ("turn", "history", "fork")
TIMES = (0, 10, 20)

caveats = st.one_of(
    st.lists(st.sampled_from(SESSIONS), min_size=1).map(lambda ids: sessions(*ids)),
    st.lists(st.sampled_from(METHODS), min_size=1).map(lambda names: methods(*names)),
    st.just(read_only()),
    st.sampled_from(TIMES).map(until),
    st.sampled_from(["ann", "bob"]).map(named),
)
OWNERS = {"s1": "ann", "s2": "bob", "s3": None}
"""Whose each session is; None: the owner's of the secret."""


def allowed(token: Token) -> set[tuple[str, str, bool, int]]:
    """Everything that a token allows, of all that can be asked here."""
    try:
        allowance = check(SECRET, token, frozenset())
    except TokenRefused:
        return set()
    return {
        (session, method, reads, now)
        for session in SESSIONS
        for method in METHODS
        for reads in (True, False)
        for now in TIMES
        if allowance.holds_at(now) and allowance.allows(session, method, reads=reads)
        if not allowance.own or OWNERS[session] == allowance.name
    }


@given(st.lists(caveats, max_size=6), st.lists(caveats, max_size=3))
def test_no_narrowing_allows_what_the_token_before_refused(before: list[Caveat], then: list[Caveat]) -> None:
    token = mint(SECRET, NONCE).narrow(*before)
    assert allowed(token.narrow(*then)) <= allowed(token)


@given(st.lists(caveats, max_size=6))
def test_the_text_of_a_token_comes_back_as_the_token(added: list[Caveat]) -> None:
    token = mint(SECRET, NONCE).narrow(*added)
    assert Token.parse(str(token)) == token
    assert allowed(Token.parse(str(token))) == allowed(token)
    assert str(token).isascii()


@given(st.lists(caveats, max_size=3), st.data())
def test_altered_bytes_are_refused(added: list[Caveat], data: st.DataObject) -> None:
    text = str(mint(SECRET, NONCE).narrow(*added))
    at = data.draw(st.integers(0, len(text) - 1))
    letter = data.draw(st.characters(min_codepoint=33, max_codepoint=126).filter(lambda each: each != text[at]))
    with pytest.raises((BadToken, TokenRefused)):
        check(SECRET, Token.parse(text[:at] + letter + text[at + 1 :]), frozenset())


@pytest.mark.parametrize("length", range(1, 5))
def test_a_token_has_one_text(length: int) -> None:
    """The last letter of base64 may have bits that stand for nothing."""
    text = str(mint(SECRET, NONCE).narrow(named("n" * length)))
    body = text.removeprefix(PREFIX)
    padding = "=" * (-len(body) % 4)
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    same = [x for x in letters if urlsafe_b64decode(body[:-1] + x + padding) == urlsafe_b64decode(body + padding)]
    assert len(same) == {0: 1, 1: 4, 2: 16}[len(padding)]
    for letter in {*same} - {body[-1]}:
        with pytest.raises(BadToken):
            Token.parse(PREFIX + body[:-1] + letter)


@given(st.lists(caveats, min_size=1, max_size=4), st.data())
def test_a_caveat_cannot_be_left_out_put_elsewhere_or_changed(added: list[Caveat], data: st.DataObject) -> None:
    token = mint(SECRET, NONCE).narrow(*added)
    at = data.draw(st.integers(0, len(added) - 1))
    other = data.draw(caveats)
    for changed in (
        (*added[:at], *added[at + 1 :]),
        (*added[:at], other, *added[at + 1 :]),
        (other, *added),
    ):
        if changed != tuple(added):
            with pytest.raises(TokenRefused, match="nobody here has given it"):
                check(SECRET, Token(token.nonce, changed, token.tag), frozenset())


@given(st.binary(max_size=200))
def test_bytes_that_are_no_token_are_refused_as_such(data: bytes) -> None:
    with pytest.raises(BadToken):
        Token.parse(PREFIX + data.hex())


@pytest.mark.parametrize(
    "caveat",
    [
        ("colour", "red"),
        ("read", True),
        ("sessions", "s1"),
        ("sessions", []),
        ("sessions", ["s1", 2]),
        ("methods", None),
        ("until", "tomorrow"),
        ("until", 1.5),
        ("as", ""),
        ("as", "a\nb"),
        ("as", ["ann"]),
    ],
)
def test_a_caveat_that_is_not_understood_refuses_everything(caveat: Caveat) -> None:
    token = Token.parse(str(mint(SECRET, NONCE).narrow(caveat)))
    with pytest.raises(TokenRefused):
        check(SECRET, token, frozenset())
    with pytest.raises(TokenRefused):
        check(SECRET, token.narrow(read_only()), frozenset())


def test_a_token_of_another_secret_is_refused() -> None:
    with pytest.raises(TokenRefused, match="nobody here has given it"):
        check("another secret", mint(SECRET, NONCE), frozenset())


def test_revoking_a_token_revokes_those_narrowed_from_it_and_no_other() -> None:
    token = mint(SECRET, NONCE).narrow(named("ann"))
    narrowed, beside = token.narrow(read_only()), mint(SECRET, NONCE).narrow(named("bob"))
    for each in (token, narrowed):
        with pytest.raises(TokenRefused, match="revoked"):
            check(SECRET, each, {token.id})
    check(SECRET, beside, {token.id})
    check(SECRET, token, {narrowed.id})


def test_the_id_of_a_token_is_not_what_makes_others_of_it() -> None:
    token = mint(SECRET, NONCE)
    assert token.id not in str(token)
    assert token.id == sha256(b"keeve token id 1\n" + token.tag).hexdigest()[:32]
    assert check(SECRET, token.narrow(read_only()), frozenset()).ids[0] == token.id
    assert repr(token) == f"<token {token.id}>"


def test_a_name_is_given_once() -> None:
    token = mint(SECRET, NONCE).narrow(named("ann"))
    assert check(SECRET, token.narrow(named("ann")), frozenset()).name == "ann"
    with pytest.raises(TokenRefused, match="use one name"):
        check(SECRET, token.narrow(named("bob")), frozenset())


def test_a_name_reaches_its_own_sessions_unless_others_were_named_before_it() -> None:
    master = mint(SECRET, NONCE)
    assert check(SECRET, master.narrow(named("ann")), frozenset()).own
    assert not check(SECRET, master.narrow(sessions("s1"), named("ann")), frozenset()).own
    assert check(SECRET, master.narrow(named("ann"), sessions("s1")), frozenset()).own


def test_a_time_is_over_when_it_has_come() -> None:
    allowance = Allowance(until=10)
    assert (allowance.holds_at(9), allowance.holds_at(10)) == (True, False)


def test_a_narrowed_token_allows_what_all_its_caveats_leave() -> None:
    token = mint(SECRET, NONCE).narrow(sessions("s1", "s2"), methods("turn", "history"))
    allowance = check(SECRET, token.narrow(sessions("s2", "s3"), methods("turn")), frozenset())
    assert allowance.allows("s2", "turn", reads=False)
    assert not allowance.allows("s1", "turn", reads=False)
    assert not allowance.allows("s2", "history", reads=True)
    assert not allowance.allows("", "turn", reads=False)
    assert allowance.allows(None, "turn", reads=False)


def test_a_token_fits_a_header() -> None:
    token = mint(SECRET, NONCE)
    with pytest.raises(BadCaveat, match="at most"):
        token.narrow(*[read_only()] * (MOST + 1))
    with pytest.raises(BadCaveat, match="at most"):
        token.narrow(sessions(*[f"{number:0200}" for number in range(200)]))
    with pytest.raises(BadToken, match="more than"):
        Token.parse(PREFIX + "A" * LONGEST)


@pytest.mark.parametrize("make", [lambda: sessions(), lambda: methods("a\n"), lambda: named(""), lambda: until(-1)])
def test_what_cannot_be_a_caveat_is_refused_where_it_is_made(make: object) -> None:
    with pytest.raises(BadCaveat):
        make()  # type: ignore[operator]  # a lambda of the list above
