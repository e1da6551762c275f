"""Pacing: how often a principal may ask, and how much at once, whatever it asks by.

A request over HTTP that is too much is refused, and says when to ask again. What comes over a connection waits instead,
and nothing more is read from it meanwhile.

The one rule: what is narrowed from one token is counted together as well, and first, so that a name that somebody makes
up is not even noted where the token has had enough.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Final

import attrs
import trio

from keeve.server.errors import Refusal
from keeve.server.gate import OWNER, Principal

MANY: Final = 10_000
"""So many that are counted are not looked through for those that can be forgotten."""


@attrs.define
class Pace:
    """What a principal has used: tokens of a bucket that fills again in a minute, and requests under way."""

    left: float
    at: float
    under_way: int = 0


class Pacing:
    """All that ask. Of each `requests` in a minute, and `streams` at once."""

    def __init__(self, requests: int, streams: int, now: Callable[[], float] = trio.current_time) -> None:
        self._requests = requests
        self._streams = streams
        self._now = now
        self._paces: dict[str, Pace] = {}
        self._many = MANY

    def begin(self, principal: Principal) -> list[Pace]:
        """A request begins: what is to `end` with it. Raises a `Refusal` (429) where it is too much."""
        begun: list[Pace] = []
        for key, name in _counted(principal):
            pace = self._pace(key)
            if pace.left < 1:
                wait = math.ceil((1 - pace.left) * 60 / self._requests)
                raise too_many(f"{name} has asked {self._requests} times within a minute", wait, "too_many_requests")
            if pace.under_way >= self._streams:
                raise too_many(f"{self._streams} requests of {name} are under way", 1, "too_many_at_once")
            begun.append(pace)
        for pace in begun:
            pace.left -= 1
            pace.under_way += 1
        return begun

    def end(self, begun: list[Pace]) -> None:
        """It is over."""
        for pace in begun:
            pace.under_way -= 1

    async def wait(self, principal: Principal) -> None:
        """Something is asked over a connection: wait until that is not too much. Those who wait have their turn.

        Who comes with the owner's token itself waits for nothing: that is who set the limits.
        """
        if principal.name == OWNER and principal.token is None:
            return
        least = 0.0
        for key, _ in _counted(principal):
            pace = self._pace(key)
            pace.left -= 1
            least = min(least, pace.left)
        if least < 0:
            await trio.sleep(-least * 60 / self._requests)

    def _pace(self, key: str) -> Pace:
        """What is counted under a key, as of now."""
        now = self._now()
        pace = self._paces.get(key)
        if pace is None:
            if len(self._paces) >= self._many:
                self._forget(now - 60)
            pace = self._paces[key] = Pace(self._requests, now)
        pace.left = min(self._requests, pace.left + (now - pace.at) * self._requests / 60)
        pace.at = now
        return pace

    def _forget(self, before: float) -> None:
        """Forget those who have not asked since: their buckets are full. Costs a look at each, now and then."""
        self._paces = {key: pace for key, pace in self._paces.items() if pace.under_way or pace.at > before}
        self._many = max(MANY, 2 * len(self._paces))


def _counted(principal: Principal) -> Iterator[tuple[str, str]]:
    """Under which keys a principal is counted, and what it is called there."""
    if principal.token is not None:
        yield principal.token, "what was narrowed from this token"
    yield principal.name, principal.name


def too_many(what: str, wait: int, code: str) -> Refusal:
    """Too much is asked; after `wait` seconds it may be asked again."""
    return Refusal(429, code, what, f"ask again after {wait} s", headers={"retry-after": str(wait)})
