"""How much may be asked: how large a body may be and how slow, how often a principal may ask, and how much at once.

The one rule: a limit is refused before the work that it is there to prevent, and costs two look-ups.
"""

from __future__ import annotations

import trio
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from keeve.server.errors import Refusal
from keeve.server.origins import SAFE_METHODS
from keeve.server.serving import Serving


class BodyLimit:
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


class RateLimit:
    """Middleware: how often a principal may ask, and how much at once. Who is nobody is not counted."""

    def __init__(self, app: ASGIApp, serving: Serving) -> None:
        self._app = app
        self._rates = serving.rates

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        principal = scope["state"].get("principal") if scope["type"] in ("http", "websocket") else None
        if principal is None:
            await self._app(scope, receive, send)
            return
        begun = self._rates.begin(principal)
        try:
            await self._app(scope, receive, send)
        finally:
            self._rates.end(begun)


class Draining:
    """Middleware: a server that stops begins nothing new, and tells who waits yet when its grace is over.

    What waits is cancelled then, as for a client that is gone: its turn goes on, or is left to the next start.
    """

    def __init__(self, app: ASGIApp, serving: Serving) -> None:
        self._app = app
        self._stopping = serving.stopping
        self._waiting = serving.waiting

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket") or "principal" not in scope["state"]:
            await self._app(scope, receive, send)
            return
        if self._stopping.is_set():
            raise stopping("the server is stopping", "ask again in a moment, with the same Idempotency-Key")
        if scope["type"] == "websocket":
            await self._app(scope, receive, send)
            return
        waits = trio.CancelScope()

        async def sending(message: Message) -> None:
            self._waiting.discard(waits)  # what has begun to be answered is answered whole
            await send(message)

        self._waiting.add(waits)
        try:
            with waits:
                await self._app(scope, receive, sending)
        finally:
            self._waiting.discard(waits)
        if waits.cancelled_caught:
            raise unanswered(scope)


def stopping(message: str, remedy: str, **headers: str) -> Refusal:
    """The server stops."""
    known = {"retry-after": "1", "connection": "close"}
    return Refusal(503, "stopping", message, remedy, headers={**known, **headers})


def unanswered(scope: Scope) -> Refusal:
    """A request was begun, and the server stops before there is an answer."""
    message = "the server is stopping, and this was not over"
    if scope["method"] in SAFE_METHODS:
        return stopping(message, "ask again in a moment")
    if any(name == b"idempotency-key" for name, _ in scope["headers"]):
        remedy = "ask again in a moment, with the same Idempotency-Key: what was begun goes on, and is answered once"
        return stopping(message, remedy)
    remedy = (
        "what was begun goes on after the next start: GET the session, or its turns, before you ask again; with an "
        "Idempotency-Key one can ask again at once"
    )
    return stopping(message, remedy, **{"x-should-retry": "false"})  # OpenAI's clients would ask for another one
