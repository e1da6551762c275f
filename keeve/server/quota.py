"""How many sessions a principal may have.

The sessions of somebody who is limited are counted once, when they make one for the first time, by what the catalog has
of who had which made; from then on each that is made or deleted in their name, in whatever way, is counted when it is
durable. What is narrowed from one token is counted together as well: the sessions of all names under which it has made
some since the server began.

The one rule: what is being made counts until it is there, or was refused. So neither who goes away meanwhile nor who
asks for many at once comes past the limit, and at the limit nothing is looked through.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import trio

from dataspace.catalog.recent import SessionRow
from keeve.server.auth import Principal
from keeve.server.errors import Refusal
from vat.host.host import Host
from vat.host.within import dataspace_of

PAGE: Final = 200


class Quota:
    """Counts the sessions of principals. Who is `admin` is not limited."""

    def __init__(self, host: Host, most: int) -> None:
        self._space = dataspace_of(host)
        self._most = most
        self._there: Counter[str] = Counter()
        """By name, and by token: how many there are."""
        self._coming: Counter[str] = Counter()
        self._tokens: dict[str, set[str]] = {}
        """By name: the tokens that have made sessions under it."""
        self._upto: dict[str, str | None] = {}
        """By name, the id up to which their sessions were counted; None: all."""
        self._counting = trio.Lock()
        host.on_session(self._changed)

    @asynccontextmanager
    async def room(self, principal: Principal, *, made: bool = False) -> AsyncIterator[None]:
        """The block makes a session, and is not cancelled. Raises a `Refusal` (403) where that may not be.

        made: it was made before, and is found again, for which no room is needed.

        Costs a list of their sessions the first time, of which no record is read.
        """
        if principal.sessions is not None:
            what = f"this token of {principal.name} reaches {len(principal.sessions)} sessions, and makes none"
            raise Refusal(403, "not_allowed", what, "use a token that is not narrowed to some sessions")
        if made or "admin" in principal.verbs:
            yield
            return
        name, token = principal.name, principal.token
        await self._count(name)
        self._must_have_room(name, name)
        if token is not None:
            if token not in self._tokens.get(name, ()):
                self._must_have_room(token, "what was narrowed from this token", self._there[name])
                self._tokens.setdefault(name, set()).add(token)
                self._there[token] += self._there[name]
            else:
                self._must_have_room(token, "what was narrowed from this token")
        keys = [name] if token is None else [name, token]
        self._coming.update(keys)
        try:
            # Half of it would be a session that nobody has counted.
            with trio.CancelScope(shield=True):
                yield
        finally:
            self._coming.subtract(keys)
            self._forget(name)

    def _must_have_room(self, key: str, who: str, more: int = 0) -> None:
        if self._there[key] + self._coming[key] + more >= self._most:
            what = f"{who} has {self._most} sessions, and may have no more"
            raise Refusal(403, "too_many_sessions", what, "delete some that are not needed")

    async def _count(self, name: str) -> None:
        """Count those that were there before. Who is cancelled meanwhile has counted for the next one."""
        if self._upto.get(name, "") is None:
            return
        async with self._counting:
            while (after := self._upto.setdefault(name, "")) is not None:
                page = self._space.catalog.sessions(after=after, limit=PAGE, by=name)
                self._there[name] += len(page)
                self._upto[name] = page[-1].id if page else None
                await trio.lowlevel.checkpoint()

    def _changed(self, row: SessionRow, by: str) -> None:
        """A session was made, or deleted. Those that are counted later are let be."""
        upto = self._upto.get(by, "")
        if upto is not None and row.id > upto:
            return
        for key in (by, *self._tokens.get(by, ())):
            self._there[key] += -1 if row.deleted else 1
        if row.deleted:
            self._forget(by)

    def _forget(self, name: str) -> None:
        """Keep nothing of who has nothing."""
        if not self._there[name] and not self._coming[name] and self._upto.get(name) is None:
            self._upto.pop(name, None)
            for key in (name, *self._tokens.pop(name, ())):
                if not self._there[key] and not self._coming[key]:
                    del self._there[key], self._coming[key]
