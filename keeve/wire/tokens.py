"""Capability tokens: chains of narrowings that only the holder of the secret can begin, and everybody can go on with.

    token = mint(secret, os.urandom(16))                    # may do all that the secret's owner may
    guest = token.narrow(named("ann"), sessions("s1"))      # offline: no secret is needed
    check(secret, Token.parse(str(guest)), frozenset())     # what it allows; raises `TokenRefused`

Each link is an HMAC-SHA256, whose key is the link before and whose message is a *caveat*, so that a caveat can be added
and never taken away (the construction is that of macaroons: Birgisson et al., NDSS 2014). Each link has an id, which
says nothing of the link; revoking it revokes the token there and all that were narrowed from it.

The one rule: **a caveat only takes away.** One that is not known, or not as it should be, takes away everything. No
clock, no randomness, no file here: they are passed in.
"""

from __future__ import annotations

import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as BadBase64
from collections.abc import Collection, Iterable
from hashlib import sha256
from typing import Any, ClassVar, Final, TypeAlias

import attrs

from dataspace.errors import KeeveError
from dataspace.values.encoding import BadEncoding, decode_strict, encode

PREFIX: Final = "keeve1."
LONGEST: Final = 4096
"""Characters of a token; more does not fit the headers that everybody takes."""
MOST: Final = 32
"""Caveats of a token."""
NONCE: Final = 16
_TAG: Final = 32
_NAMES: Final = 256
"""Names in one caveat, and characters of one name."""

Caveat: TypeAlias = tuple[str, Any]
"""What is taken away: a name, and a value that says more."""


class BadToken(KeeveError, ValueError):
    """A text that is no token."""

    usage: ClassVar[bool] = True

    def __init__(self, what: str) -> None:
        self.what = what
        super().__init__(f"this is no token: {what}; copy it whole, or ask who gave it for another")


class TokenRefused(KeeveError, PermissionError):
    """A token that allows nothing; `what` says why, as far as its holder may know."""

    usage: ClassVar[bool] = True

    def __init__(self, what: str) -> None:
        self.what = what
        super().__init__(f"the token is refused: {what}")


class BadCaveat(KeeveError, ValueError):
    """A narrowing that no token can carry."""

    usage: ClassVar[bool] = True

    def __init__(self, what: str) -> None:
        super().__init__(f"this cannot be a narrowing: {what}")


# Caveats.


def sessions(*ids: str) -> Caveat:
    """Only these sessions."""
    return "sessions", _names("session", ids)


def methods(*names: str) -> Caveat:
    """Only these methods and fields; over HTTP, these verbs (`read`, `turn`, `manage`)."""
    return "methods", _names("method", names)


def read_only() -> Caveat:
    """Only what changes nothing."""
    return "read", None


def until(time: int) -> Caveat:
    """Only before that time, in µs since 1970."""
    if type(time) is not int or not 0 <= time < 1 << 63:
        raise BadCaveat(f"until({time!r}): a time is a number of µs since 1970")
    return "until", time


def named(name: str) -> Caveat:
    """In the name of that principal; if no sessions were named before, only its own."""
    if not _is_name(name):
        raise BadCaveat(f"named({name!r:.60}): a name is printable text of at most {_NAMES} characters")
    return "as", name


def _names(what: str, names: Iterable[str]) -> list[str]:
    found = sorted(set(names))
    if not 0 < len(found) <= _NAMES or not all(map(_is_name, found)):
        raise BadCaveat(f"{found!r:.60}: give 1 to {_NAMES} {what} names, each printable text of as many characters")
    return found


def _is_name(name: object) -> bool:
    return isinstance(name, str) and 0 < len(name) <= _NAMES and name.isprintable()


@attrs.frozen
class Allowance:
    """What a token allows, to whoever holds it. Without anything: all.

    name: the principal in whose name it is; None: the owner of the secret. own: only this principal's own sessions.
    sessions, methods: only these; None: any. ids: those of the token and of all that it was narrowed from.
    """

    name: str | None = None
    own: bool = False
    sessions: frozenset[str] | None = None
    methods: frozenset[str] | None = None
    read_only: bool = False
    until: int | None = None
    ids: tuple[str, ...] = ()

    def narrowed(self, caveat: Caveat) -> Allowance:
        """What is left under that caveat. Raises `TokenRefused` where nothing can be."""
        name, said = caveat
        if name == "sessions" and _is_list(said):
            return attrs.evolve(self, sessions=_both(self.sessions, said))
        if name == "methods" and _is_list(said):
            return attrs.evolve(self, methods=_both(self.methods, said))
        if name == "read" and said is None:
            return attrs.evolve(self, read_only=True)
        if name == "until" and type(said) is int:
            return attrs.evolve(self, until=said if self.until is None else min(self.until, said))
        if name == "as" and _is_name(said):
            if self.name not in (None, said):
                raise TokenRefused(f"it is {self.name!r}'s, and was narrowed to be {said!r}'s: use one name")
            return attrs.evolve(self, name=said, own=self.own or self.sessions is None)
        known = name in ("sessions", "methods", "read", "until", "as")
        what = "is not as it should be" if known else "is not known to this version"
        raise TokenRefused(f"its narrowing {name!r:.60} {what}, so it allows nothing: ask for another")

    def holds_at(self, now: int) -> bool:
        """Whether its time is not over, at `now` in µs since 1970."""
        return self.until is None or now < self.until

    def allows(self, session: str | None, method: str, *, reads: bool) -> bool:
        """Whether a method may be called, as far as its caveats go: of that session; None: of some session at all.

        `reads` says that the method changes nothing. Whose the session is, where `own` is set, is for the caller to
        know.
        """
        if self.read_only and not reads:
            return False
        if self.methods is not None and method not in self.methods:
            return False
        return self.sessions is None or session is None or session in self.sessions


def _is_list(said: object) -> bool:
    return isinstance(said, list) and 0 < len(said) <= _NAMES and all(map(_is_name, said))


def _both(before: frozenset[str] | None, said: Iterable[str]) -> frozenset[str]:
    return frozenset(said) if before is None else before & frozenset(said)


# Tokens.


@attrs.frozen(repr=False)
class Token:
    """A token: a nonce, its caveats in order, and the newest link of the chain, which is what must be kept secret."""

    nonce: bytes
    caveats: tuple[Caveat, ...]
    tag: bytes

    @classmethod
    def parse(cls, text: str) -> Token:
        """The token of that text. Raises `BadToken`; says nothing of whether anybody takes it."""
        if not is_token(text):
            raise BadToken(f"it does not begin with {PREFIX!r}")
        if len(text) > LONGEST:
            raise BadToken(f"it has more than {LONGEST} characters")
        try:
            body = urlsafe_b64decode(text[len(PREFIX) :] + "=" * (-(len(text) - len(PREFIX)) % 4))
            nonce, caveats, tag = decode_strict(body)
            token = cls(nonce, tuple([(name, said) for name, said in caveats]), tag)
        except (BadBase64, BadEncoding, TypeError, ValueError):
            raise BadToken("it is cut off, or altered") from None
        fits = type(nonce) is bytes and len(nonce) == NONCE and type(tag) is bytes and len(tag) == _TAG
        if not fits or not all(type(name) is str for name, _ in token.caveats) or str(token) != text:
            raise BadToken("it is cut off, or altered")
        return token

    def narrow(self, *caveats: Caveat) -> Token:
        """A token that allows what this one does and all `caveats` leave of it. Raises `BadCaveat` for too many."""
        tag = self.tag
        for caveat in caveats:
            tag = _link(tag, caveat)
        narrowed = Token(self.nonce, (*self.caveats, *caveats), tag)
        if len(narrowed.caveats) > MOST or len(str(narrowed)) > LONGEST:
            raise BadCaveat(f"a token carries at most {MOST} of them, in {LONGEST} characters: mint another")
        return narrowed

    @property
    def id(self) -> str:
        """Names this token, and gives nothing of it away: 32 hex digits."""
        return _id(self.tag)

    def __str__(self) -> str:
        body = encode([self.nonce, [list(caveat) for caveat in self.caveats], self.tag])
        return PREFIX + urlsafe_b64encode(body).rstrip(b"=").decode()

    def __repr__(self) -> str:
        return f"<token {self.id}>"


def is_token(text: object) -> bool:
    """Whether a text means to be a token, and not a secret."""
    return isinstance(text, str) and text.startswith(PREFIX) and text.isascii()


def mint(secret: str, nonce: bytes) -> Token:
    """A token that allows everything, of the holder of the secret. `nonce` is 16 random bytes, of this token alone."""
    if len(nonce) != NONCE:
        raise ValueError(f"a nonce is {NONCE} random bytes, not {len(nonce)}")
    return Token(nonce, (), _first(secret, nonce))


def narrowed(text: str, nonce: bytes, *caveats: Caveat) -> Token:
    """The token of that text, narrowed; if the text is the secret itself, one that is minted with it.

    `nonce` is 16 random bytes. Raises `BadToken` or `BadCaveat`.
    """
    return (Token.parse(text) if is_token(text) else mint(text, nonce)).narrow(*caveats)


def check(secret: str, token: Token, revoked: Collection[str]) -> Allowance:
    """What a token allows. Raises `TokenRefused` unless it was narrowed from one that was minted with this secret.

    `revoked` are the ids of those that were revoked. Whether its time is over is for `Allowance.holds_at`. Costs a few
    microseconds for each caveat.
    """
    tag = _first(secret, token.nonce)
    ids = [_id(tag)]
    for caveat in token.caveats:
        tag = _link(tag, caveat)
        ids.append(_id(tag))
    if not hmac.compare_digest(tag, token.tag):
        raise TokenRefused("nobody here has given it: ask the owner of the server for one")
    if not frozenset(ids).isdisjoint(revoked):
        raise TokenRefused("it was revoked: ask who gave it for another")
    allowance = Allowance(ids=tuple(ids))
    if len(token.caveats) > MOST:
        raise TokenRefused(f"it has more than {MOST} narrowings, so it allows nothing: ask for another")
    for caveat in token.caveats:
        allowance = allowance.narrowed(caveat)
    return allowance


def derived_key(secret: str, use: str) -> bytes:
    """A key that follows from the secret, for that use alone."""
    return hmac.digest(secret.encode(), f"keeve {use} 1\n".encode(), "sha256")


def _first(secret: str, nonce: bytes) -> bytes:
    return hmac.digest(derived_key(secret, "token"), nonce, "sha256")


def _link(tag: bytes, caveat: Caveat) -> bytes:
    return hmac.digest(tag, encode(list(caveat)), "sha256")


def _id(tag: bytes) -> str:
    return sha256(b"keeve token id 1\n" + tag).hexdigest()[:32]
