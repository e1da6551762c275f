"""Rate limits: how often a principal may ask, and how much at once, whatever it asks by.

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

from keeve.principals import OWNER
from keeve.server.auth import Principal
from keeve.server.errors import Refusal

MANY: Final = 10_000
"""So many that are counted are not looked through for those that can be forgotten."""


@attrs.define
class Bucket:
    """What a principal has used: tokens of a bucket that fills again in a minute, and requests under way."""

    left: float
    at: float
    under_way: int = 0


class RateLimits:
    """All that ask. Of each `requests` in a minute, and `streams` at once."""

    def __init__(self, requests: int, streams: int, now: Callable[[], float] = trio.current_time) -> None:
        self._requests = requests
        self._streams = streams
        self._now = now
        self._buckets: dict[str, Bucket] = {}
        self._many = MANY

    def begin(self, principal: Principal) -> list[Bucket]:
        """A request begins: what is to `end` with it. Raises a `Refusal` (429) where it is too much."""
        begun: list[Bucket] = []
        for key, name in _counted(principal):
            bucket = self._bucket(key)
            if bucket.left < 1:
                wait = math.ceil((1 - bucket.left) * 60 / self._requests)
                raise too_many(f"{name} has asked {self._requests} times within a minute", wait, "too_many_requests")
            if bucket.under_way >= self._streams:
                raise too_many(f"{self._streams} requests of {name} are under way", 1, "too_many_at_once")
            begun.append(bucket)
        for bucket in begun:
            bucket.left -= 1
            bucket.under_way += 1
        return begun

    def end(self, begun: list[Bucket]) -> None:
        """It is over."""
        for bucket in begun:
            bucket.under_way -= 1

    async def wait(self, principal: Principal) -> None:
        """Something is asked over a connection: wait until that is not too much. Those who wait have their turn.

        Who comes with the owner's token itself waits for nothing: that is who set the limits.
        """
        if principal.name == OWNER and principal.token is None:
            return
        least = 0.0
        for key, _ in _counted(principal):
            bucket = self._bucket(key)
            bucket.left -= 1
            least = min(least, bucket.left)
        if least < 0:
            await trio.sleep(-least * 60 / self._requests)

    def _bucket(self, key: str) -> Bucket:
        """What is counted under a key, as of now."""
        now = self._now()
        bucket = self._buckets.get(key)
        if bucket is None:
            if len(self._buckets) >= self._many:
                self._forget(now - 60)
            bucket = self._buckets[key] = Bucket(self._requests, now)
        bucket.left = min(self._requests, bucket.left + (now - bucket.at) * self._requests / 60)
        bucket.at = now
        return bucket

    def _forget(self, before: float) -> None:
        """Forget those who have not asked since: their buckets are full. Costs a look at each, now and then."""
        self._buckets = {key: bucket for key, bucket in self._buckets.items() if bucket.under_way or bucket.at > before}
        self._many = max(MANY, 2 * len(self._buckets))


def _counted(principal: Principal) -> Iterator[tuple[str, str]]:
    """Under which keys a principal is counted, and what it is called there."""
    if principal.token is not None:
        yield principal.token, "what was narrowed from this token"
    yield principal.name, principal.name


def too_many(what: str, wait: int, code: str) -> Refusal:
    """Too much is asked; after `wait` seconds it may be asked again."""
    return Refusal(429, code, what, f"ask again after {wait} s", headers={"retry-after": str(wait)})
