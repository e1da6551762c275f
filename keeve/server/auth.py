"""Authentication and authorization: who asks, and what they may do.

A request brings a bearer token, or the cookie of the page, which has one. Each of the `ways` is asked in turn which
principal a token stands for; the first that knows it counts. So another kind of token is one function more.

Sessions belong to who had them made. A principal that is not `admin` reaches its own, and for any other gets the answer
that it would get if there were no such session.

The one rule: a token is compared by its digest, is in no log and in no answer, and stands for one principal.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from hashlib import sha256
from typing import Any, Final

import attrs
from starlette.requests import HTTPConnection

from dataspace.catalog.recent import SessionRow
from dataspace.errors import KeeveError
from dataspace.observe.dataspace import NoSuchSession
from keeve.principals import OWNER
from keeve.server.errors import Refusal
from keeve.settings import VERBS
from keeve.wire.tokens import Allowance
from vat.errors import Deleted
from vat.host.host import Host
from vat.host.outside import HostRef
from vat.host.within import dataspace_of

COOKIE: Final = "keeve_token"
"""The cookie of the page: HttpOnly, SameSite=Strict."""

OWNERS_TOKEN: Final = "the owner's token alone may, which stands in the file named token in the folder of the store"

WORDS: Final[Mapping[str, str]] = {
    "read": "look",
    "turn": "say anything",
    "manage": "make, fork, change or delete sessions",
    "admin": "do what is for those alone who may everything",
}
"""What a verb stands for."""

OWNERS_KEPT: Final = 100_000
"""Sessions whose owner is kept in memory."""


@attrs.frozen
class Principal:
    """Who asks.

    name: what the records and facts of its requests say (`#:by`).
    verbs: what it may do at all.
    sessions: the ids of the only sessions that it may reach; None: it is not limited so.
    until: when it ends (µs since 1970); None: never.
    everyone: whether it reaches sessions whoever had them made, without being `admin`.
    allowance: what a token that was narrowed allows of each method, where methods are called by name.
    """

    name: str
    verbs: frozenset[str] = frozenset(VERBS) - {"admin"}
    sessions: frozenset[str] | None = None
    until: int | None = None
    everyone: bool = False
    allowance: Allowance | None = None

    @property
    def token(self) -> str | None:
        """Names the token from which this one was narrowed, under whatever name; None for one that is known by itself.

        Whoever holds a token can narrow it to any name: what is counted by name is counted by this as well.
        """
        return None if self.allowance is None or not self.allowance.ids else f"\n{self.allowance.ids[0]}"

    def may(self, verb: str, session: str | None = None) -> bool:
        """Whether it may do that at all, and with the session of that id as far as its limits go."""
        return verb in self.verbs and (session is None or self.sessions is None or session in self.sessions)

    def must(self, verb: str) -> None:
        """Raise a `Refusal` (403) unless it may do that."""
        if verb not in self.verbs:
            raise Refusal(403, "not_allowed", *self.may_not(verb))

    @property
    def owns(self) -> bool:
        """Whether it asks with the owner's own token, and not with one that was made of it."""
        return self.name == OWNER and self.allowance is None and "admin" in self.verbs

    def must_own(self, what: str) -> None:
        """Raise a `Refusal` (403) unless it `owns`."""
        if not self.owns:
            raise Refusal(403, "not_allowed", f"{self.name} may not {what}", OWNERS_TOKEN)

    def may_not(self, verb: str, what: str = "") -> tuple[str, str]:
        """That it may not do that (`what` says of what), and which token would, and how that is made."""
        left = self.allowance
        narrowed = left is not None and (left.read_only or left.methods is not None or left.sessions is not None)
        why = ", since this token was narrowed" if narrowed else ""
        if verb == "admin":
            remedy = (
                "the owner's token may, which stands in the file named token in the folder of the store; so may a "
                "principal with the verb admin in the server's settings"
            )
        else:
            made = "keeve token make" + ("" if self.name == OWNER else f" --as {self.name}")
            remedy = (
                f"ask whoever keeps the server for a token that may: {made} makes one; or a principal has the verb "
                f"{verb} in the server's settings"
            )
        return f"{self.name} may not {WORDS[verb]} ({verb}){what}{why}", remedy


Way = Callable[[str], "Principal | None"]
"""What a token stands for, if it is of this kind. A token of this kind that is refused raises a `Refusal`."""


class Tokens:
    """Tokens that are known one by one: a way."""

    def __init__(self) -> None:
        self._known: dict[bytes, Principal] = {}

    def add(self, token: str, principal: Principal) -> None:
        """From now on `token` stands for `principal`."""
        self._known[_digest(token)] = principal

    def __call__(self, token: str) -> Principal | None:
        return self._known.get(_digest(token))


def _digest(token: str) -> bytes:
    return sha256(token.encode("utf-8", "surrogateescape")).digest()


class Auth:
    """Turns requests into principals, and ids into the sessions that these may reach."""

    def __init__(self, host: Host, clock: Callable[[], int], ways: list[Way]) -> None:
        self.ways = ways
        """Asked in this order."""
        self._host = host
        self._clock = clock
        self._owners: OrderedDict[bytes, str] = OrderedDict()
        """Of sessions that are there, those that were asked for last."""
        host.on_session(self._changed)

    def _changed(self, row: SessionRow, by: str) -> None:
        if row.deleted:
            self._owners.pop(row.uid, None)

    # Who asks.

    def asking(self, request: HTTPConnection) -> Principal:
        """Who asks. Raises a `Refusal` (401) for nobody who is known."""
        token = token_of(request.headers, request.cookies)
        if token is None:
            raise unknown("no token was given", "send the header Authorization: Bearer TOKEN")
        return self.principal(token)

    def principal(self, token: str) -> Principal:
        """What a token stands for. Raises a `Refusal` (401)."""
        for way in self.ways:
            found = way(token)
            if found is not None:
                if found.until is not None and found.until <= self._clock():
                    raise unknown("the token has ended", "ask for a new one")
                return found
        raise unknown("the token is not known here", "use the one in the file named token, in the folder of the store")

    # Which sessions.

    def owner(self, row: SessionRow) -> str:
        """Who had a session made, that is there; "" if that cannot be read. About 50 µs the first time."""
        owner = self._owners.get(row.uid)
        if owner is not None:
            self._owners.move_to_end(row.uid)
            return owner
        try:
            owner = self._host.made_by(row.id)[0]
        except KeeveError:
            return ""
        self._owners[row.uid] = owner
        if len(self._owners) > OWNERS_KEPT:
            self._owners.popitem(last=False)
        return owner

    def reaches(self, principal: Principal, row: SessionRow) -> bool:
        """Whether a session is there, for this principal. A deleted one is for `admin` alone."""
        if "admin" in principal.verbs and principal.sessions is None:
            return True
        if row.deleted or (principal.sessions is not None and row.id not in principal.sessions):
            return False
        return principal.everyone or self.owner(row) == principal.name

    def listed(self, principal: Principal) -> Callable[..., list[SessionRow]]:
        """A list of sessions, as `Host.sessions` is one, that has all that a principal reaches, and few others."""
        if principal.sessions is not None:
            return partial(self._named, sorted(principal.sessions))
        if principal.everyone or "admin" in principal.verbs:
            return self._host.sessions
        return partial(dataspace_of(self._host).catalog.sessions, by=principal.name)

    def _named(
        self, ids: list[str], prefix: str = "", *, after: str = "", limit: int = 100, deleted: bool = False
    ) -> list[SessionRow]:
        """Those of these ids that are there."""
        found: list[SessionRow] = []
        for id in ids[bisect_right(ids, after) :]:
            if len(found) == limit:
                break
            if id.startswith(prefix):
                with suppress(KeeveError):
                    found.append(self._host.row(id))
        return found

    def sees(self, principal: Principal, session: str, uid: bytes) -> bool:
        """Whether a principal may see what a session has stated, which is so where it `reaches` that.

        What the store states of itself, and what was deleted, is for `admin`.
        """
        if "admin" in principal.verbs and principal.sessions is None:
            return True
        if not session or (principal.sessions is not None and session not in principal.sessions):
            return False
        if (owner := self._owners.get(uid)) is not None:  # it is there
            return principal.everyone or owner == principal.name
        try:
            row = self._host.row(session)
        except KeeveError:
            return False
        return row.uid == uid and self.reaches(principal, row)

    def row(self, principal: Principal, id: str, verb: str) -> SessionRow:
        """What the catalog knows of a session with which this principal may do that.

        Raises a `Refusal` (403) for what it may do with none, `NoSuchSession`, and `Deleted` to `admin` alone.
        """
        principal.must(verb)
        return self.found(principal, id)

    def found(self, principal: Principal, id: str) -> SessionRow:
        """What the catalog knows of a session that is there for this principal. Raises what `row` does after that."""
        try:
            row = self._host.row(id)
        except Deleted:
            if "admin" in principal.verbs and principal.sessions is None:
                raise
            raise NoSuchSession(str(id)) from None
        if not self.reaches(principal, row):
            raise NoSuchSession(str(id))
        return row

    async def session(self, principal: Principal, id: str, verb: str, via: str = "http") -> HostRef[Any]:
        """A ref to a session for this principal, who does that with it. Raises what `row` does."""
        self.row(principal, id, verb)
        return await self._host.asking(principal.name, via).get(id)


def token_of(headers: Mapping[str, str], cookies: Mapping[str, str]) -> str | None:
    """The token of a request: that of its header, or else that of its cookie."""
    scheme, _, token = headers.get("authorization", "").partition(" ")
    if scheme:
        return token.strip() if scheme.lower() == "bearer" and token.strip() else None
    return cookies.get(COOKIE) or None


def unknown(what: str, remedy: str) -> Refusal:
    """Nobody who is known."""
    return Refusal(401, "not_authenticated", what, remedy, headers={"www-authenticate": 'Bearer realm="keeve"'})
