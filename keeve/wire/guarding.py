"""Who is behind a connection, what they may, and how much of it.

The one rule: a connection asks its guard at each call, since a token may end, or be revoked, while it is open.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, ClassVar, Protocol

import attrs

from dataspace.catalog.recent import SessionRow
from dataspace.errors import KeeveError
from vat.host.outside import HostRef


class TooMany(KeeveError):
    """A connection has as much of something as one may have; nothing was done."""

    usage: ClassVar[bool] = True

    def __init__(self, what: str, limit: int, remedy: str) -> None:
        super().__init__(f"this connection has {limit} {what}, and more it may not have: {remedy}")


class TooLarge(KeeveError):
    """An answer, or an item, of more bytes than a message may have."""

    def __init__(self, size: int, limit: int) -> None:
        super().__init__(f"it has {size} bytes, and a message may have {limit}: ask for less of it at once")


class Untaken(KeeveError):
    """An answer was not kept, since others wait to be taken that have as many bytes as may wait."""

    def __init__(self, size: int, waits: int) -> None:
        super().__init__(
            f"the answer has {size} bytes, and {waits} of others wait to be taken: take these, and ask again (what has "
            "a request id is not done twice)"
        )


@attrs.frozen
class Limits:
    """What one connection may cost in memory: a `frame` that came, and `answer` bytes of calls that have no answer;
    `answer` bytes that wait to be taken, `calls` × `kept` of answers that may be named, and a message for each stream.

    hello, frame: bytes of its first message, and of each later one. answer: bytes of what it is sent in one, of all
    answers that wait to be taken, and of all calls that have none. calls: those that have no answer yet, stopped ones
    among them, and answers that it did not forget. streams: observations and watches.
    refs: refs that it was given and did not release. unsent: bytes of answers that it has not taken, from which on
    nothing more is read from it. kept: bytes of an answer that can be an argument by its promise.
    greeting: seconds for its first message. idle: seconds after which it is asked whether it is there, and again until
    it is given up.
    """

    hello: int = 8192
    frame: int = 16_000_000
    answer: int = 64_000_000
    calls: int = 256
    streams: int = 64
    refs: int = 10_000
    unsent: int = 1 << 20
    kept: int = 1 << 16
    greeting: float = 10.0
    idle: float = 60.0


class Guard(Protocol):
    """Says what a principal may. What it may not raises, and so does everything once the token is over, or revoked."""

    @property
    def name(self) -> str:
        """The principal's name."""

    @property
    def unlimited(self) -> bool:
        """Whether it may do everything with every session. Raises as all do."""

    @property
    def owns(self) -> bool:
        """Whether it asks with the owner's own token."""

    def must(self, verb: str, method: str, session: str | None = None) -> None:
        """Raise unless the token goes so far: to this method at all, and of the session of that id.

        Whose the session is does not count here: who was given a ref may use it. "" is one that is not there yet.
        """

    def must_own(self, method: str) -> None:
        """Raise unless it is the owner of the store, who may have its files changed."""

    def row(self, id: str, verb: str, method: str) -> SessionRow:
        """The row of a session that it names, for this. Raises `NoSuchSession` for one that it may not reach."""

    def reaches(self, row: SessionRow) -> bool:
        """Whether a session is there, for this principal."""

    def listed(self) -> Callable[..., list[SessionRow]]:
        """A list of sessions, as `Host.sessions` is one, that has all that this principal reaches, and few others."""

    def sees(self, session: str, uid: bytes) -> bool:
        """Whether what a session (its id and uid; "" for the store itself) has stated is there, for this principal."""

    async def begins(
        self, type: str, fields: Mapping[str, Any], there: HostRef[Any] | None = None
    ) -> Mapping[str, Any]:
        """What a session of that type begins with here, where these fields are given. Raises for what it cannot.

        there: the session that was made for the same request; then what that began with.
        """

    def may_be_same(self, type: str, id: str | None, fields: Mapping[str, Any], there: HostRef[Any]) -> bool:
        """Whether that session, made for a request with the same id, may have been made for this, where nobody can tell
        that any more."""

    async def paced(self) -> None:
        """Wait until one thing more may be asked."""

    def room(self, *, made: bool = False) -> AbstractAsyncContextManager[None]:
        """The block makes a session, or finds one that was `made`. Raises `Refused` where it would be one too many."""
