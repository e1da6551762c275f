"""How much may be asked: how large a body may be and how slow, how often a principal may ask, and how much at once.

The one rule: a limit is refused before the work that it is there to prevent, and costs two look-ups.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import attrs
import trio
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from keeve.server.errors import Refusal
from keeve.server.serving import Serving

MANY: Final = 10_000
"""So many that are counted are not looked through for those that can be forgotten."""


class Bodies:
    """Middleware: how large a body may be, and how long it may take to come."""

    def __init__(self, app: ASGIApp, serving: Serving) -> None:
        self._app = app
        self._most = serving.settings.body_bytes
        self._seconds = serving.settings.body_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        for name, value in scope["headers"]:
            if name == b"content-length" and (not value.isdigit() or len(value) > 18 or int(value) > self._most):
                raise self._too_large()
        deadline = trio.current_time() + self._seconds
        came, whole = 0, False

        async def receiving() -> Message:
            nonlocal came, whole
            if whole:
                return await receive()
            with trio.move_on_at(deadline):
                message = await receive()
                came += len(message.get("body", b""))
                whole = not message.get("more_body", False)
                if came > self._most:
                    raise self._too_large()
                return message
            raise Refusal(
                408,
                "body_too_slow",
                f"the body of the request had not come after {self._seconds:g} seconds",
                "send it at once",
                headers={"connection": "close"},
            )

        await self._app(scope, receiving, send)

    def _too_large(self) -> Refusal:
        return Refusal(
            413,
            "body_too_large",
            f"the body of the request has more than {self._most} bytes",
            "send less at once, or start the server with --body-bytes",
            headers={"connection": "close"},
        )


@attrs.define
class Pace:
    """What a principal has used: tokens of a bucket that fills again in a minute, and requests under way."""

    left: float
    at: float
    under_way: int = 0


class Paces:
    """Middleware: how often a principal may ask, and how much at once. Who is nobody is not counted."""

    def __init__(self, app: ASGIApp, serving: Serving, now: Callable[[], float] = trio.current_time) -> None:
        self._app = app
        self._requests = serving.settings.requests
        self._streams = serving.settings.streams
        self._now = now
        self._paces: dict[str, Pace] = {}
        self._many = MANY

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        principal = scope["state"].get("principal") if scope["type"] in ("http", "websocket") else None
        if principal is None:
            await self._app(scope, receive, send)
            return
        paces = [self._pace(principal.name, principal.name)]
        if principal.allowance is not None and principal.allowance.ids:
            # Who holds a token can narrow it to any name: that gives nobody more than the token has.
            paces.append(self._pace(f"\n{principal.allowance.ids[0]}", "what was narrowed from this token"))
        for pace in paces:
            pace.left -= 1
            pace.under_way += 1
        try:
            await self._app(scope, receive, send)
        finally:
            for pace in paces:
                pace.under_way -= 1
            if len(self._paces) > self._many:
                self._forget()

    def _pace(self, key: str, name: str) -> Pace:
        """What is counted under a key, which is `name`'s. Raises a `Refusal` (429) if there is no room."""
        now = self._now()
        pace = self._paces.get(key)
        if pace is None:
            pace = self._paces[key] = Pace(self._requests, now)
        pace.left = min(self._requests, pace.left + (now - pace.at) * self._requests / 60)
        pace.at = now
        if pace.left < 1:
            wait = math.ceil((1 - pace.left) * 60 / self._requests)
            raise too_many(f"{name} has asked {self._requests} times within a minute", wait, "too_many_requests")
        if pace.under_way >= self._streams:
            raise too_many(f"{self._streams} requests of {name} are under way", 1, "too_many_at_once")
        return pace

    def _forget(self) -> None:
        """Forget those who have not asked for a minute: their buckets are full. Costs a look at each, now and then."""
        before = self._now() - 60
        self._paces = {name: pace for name, pace in self._paces.items() if pace.under_way or pace.at > before}
        self._many = max(MANY, 2 * len(self._paces))


def too_many(what: str, wait: int, code: str) -> Refusal:
    """Too much is asked; after `wait` seconds it may be asked again."""
    return Refusal(429, code, what, f"ask again after {wait} s", headers={"retry-after": str(wait)})


class Stopping:
    """Middleware: a server that stops begins nothing new, but for paths that are free."""

    def __init__(self, app: ASGIApp, serving: Serving) -> None:
        self._app = app
        self._stopping = serving.stopping

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._stopping.is_set() and scope["type"] in ("http", "websocket") and "principal" in scope["state"]:
            raise Refusal(
                503,
                "stopping",
                "the server is stopping",
                "ask again in a moment, with the same Idempotency-Key",
                headers={"retry-after": "1", "connection": "close"},
            )
        await self._app(scope, receive, send)
