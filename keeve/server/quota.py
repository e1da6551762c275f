"""How many sessions a principal may have.

The one rule: nobody is refused before all of theirs were counted. What is kept in between is never less than they have,
as far as sessions are made through here, so that a count is needed only when it comes to the limit.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import trio

from keeve.server.errors import Refusal
from keeve.server.gate import Gate, Principal
from vat.host.host import Host

PAGE: Final = 200


class Quota:
    """Counts the sessions of principals. Who is `admin` is not limited."""

    def __init__(self, host: Host, gate: Gate, most: int) -> None:
        self._host = host
        self._gate = gate
        self._most = most
        self._counts: dict[str, int] = {}

    @asynccontextmanager
    async def room(self, principal: Principal) -> AsyncIterator[None]:
        """The block makes a session. Raises a `Refusal` (403) where it would be one too many, or may be none.

        Costs a look at every session of the store the first time, and when it comes to the limit.
        """
        if principal.sessions is not None:
            what = f"this token of {principal.name} reaches {len(principal.sessions)} sessions, and makes none"
            raise Refusal(403, "not_allowed", what, "use a token that is not narrowed to some sessions")
        if "admin" in principal.verbs:
            yield
            return
        name = principal.name
        if self._counts.get(name, self._most) >= self._most:
            self._counts[name] = await self._counted(name)
        if self._counts[name] >= self._most:
            what = f"{name} has {self._most} sessions, and may have no more"
            raise Refusal(403, "too_many_sessions", what, "delete some that are not needed")
        self._counts[name] += 1
        try:
            yield
        except BaseException:
            self._counts[name] -= 1
            raise

    async def _counted(self, name: str) -> int:
        count, after = 0, ""
        while page := self._host.sessions(after=after, limit=PAGE):
            count += sum(self._gate.owner(row) == name for row in page)
            after = page[-1].id
            await trio.lowlevel.checkpoint()
        return count
