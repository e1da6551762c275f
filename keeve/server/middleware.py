"""What every request passes: it gets an id, is logged and counted, whatever goes wrong in it is answered; who asks is
found out; and what every answer says to browsers.

The one rule: no error leaves `ErrorBoundary`. What is ours is answered as `keeve.server.errors` says; anything else is
logged whole under the id of the request, and answered with that id alone.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable
from typing import Any, Final

import trio
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dataspace.in_logs import traced
from keeve.server.auth import token_of
from keeve.server.errors import OPENAI, Refusal, internal, refusal_of, set_up_of
from keeve.server.serving import Serving
from vat.devices.outcomes import alone

HEADERS: Final = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"cache-control", b"no-store"),
)
"""What is said to browsers, unless the answer says something else itself."""

ON_KNOWN: Final = "keeve.known"
"""In the state of a request's connection: what is to be called when who asks on it is known."""

_ID: Final = re.compile(r"[A-Za-z0-9_.-]{1,64}", re.ASCII)

ENDPOINTS: Final = "docs/openai.md says which of OpenAI's endpoints there are, and how each is asked"
THEIRS: Final = frozenset(("chat", "completions", "conversations", "embeddings", "models", "responses"))
"""What OpenAI's paths begin with, behind `/v1/`."""
AT_V1: Final = "give a client of OpenAI's API a base_url that ends in /v1"

ROUTED: Final = {
    400: ("bad_request", "look at the message: the request could not be read"),
    404: ("no_such_path", "GET /api/v1/openapi.json has all paths"),
    405: ("no_such_method", "the header Allow has the methods of this path"),
}
"""What the router refuses: the code, and what to do."""


class ErrorBoundary:
    """Middleware: a request has an id under which it is logged and counted, and any error in it has an answer."""

    def __init__(self, app: ASGIApp, serving: Serving) -> None:
        self._app = app
        self._serving = serving

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        given = next((value for name, value in scope["headers"] if name == b"x-request-id"), b"").decode("latin-1")
        request_id = given if _ID.fullmatch(given) else secrets.token_hex(8)
        scope.setdefault("state", {})["request_id"] = request_id
        began = trio.current_time()
        status = 0

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] in ("http.response.start", "websocket.http.response.start"):
                status = message["status"]
                message["headers"] = [*message.get("headers", ()), (b"x-request-id", request_id.encode())]
            elif message["type"] == "websocket.accept":
                status = 101
            await send(message)

        serving = self._serving
        method = scope.get("method", "WEBSOCKET")
        with serving.metrics.under_way(scope["type"]), serving.tracing.request(scope) as span:
            try:
                await self._app(scope, receive, sending)
            except Exception as raised:  # whatever it is, it is answered here
                error = alone(raised)
                refusal = refusal_of(error)
                if refusal is None:
                    serving.log.error("failed", request=request_id, exc_info=traced(error))
                    refusal = internal()
                elif (why := set_up_of(error)) is not None:
                    serving.log.error("not set up", request=request_id, why=why)
                if not status:
                    await refuse(scope, receive, sending, refusal, request_id)
            finally:
                route = getattr(scope.get("endpoint"), "__name__", "none")
                seconds = trio.current_time() - began
                serving.tracing.answered(span, method, route, status)
                serving.metrics.answered(route, method, status, seconds)
                principal = scope["state"].get("principal")
                serving.log.info(
                    "request",
                    request=request_id,
                    method=method,
                    path=scope["path"],
                    status=status,
                    ms=round(seconds * 1000, 1),
                    by=None if principal is None else principal.name,
                )


class Authentication:
    """Middleware: who asks, in `request.state.principal`. Where a path is free, nobody need be known.

    entrance: what who is not known is answered at any other path; None has them refused.
    """

    def __init__(
        self, app: ASGIApp, serving: Serving, free: tuple[str, ...], entrance: Callable[[Request], Response | None]
    ) -> None:
        self._app = app
        self._entrance = entrance
        self._auth = serving.auth
        self._standing = serving.standing
        self._free = {path for path in free if not path.endswith("*")}
        self._beginnings = tuple(path[:-1] for path in free if path.endswith("*"))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        state, request = scope["state"], HTTPConnection(scope)
        try:
            state["principal"] = self._auth.asking(request)
        except Refusal:
            path, app = scope["path"], self._app
            if path not in self._free and not (self._beginnings and path.startswith(self._beginnings)):
                page = self._entrance(Request(scope)) if scope["type"] == "http" else None
                if page is None:
                    raise
                app = page
            await app(scope, receive, send)
            return
        if ON_KNOWN in state:
            state[ON_KNOWN]()
        token = token_of(request.headers, request.cookies)
        if token is None or scope["type"] == "websocket":  # over which each message is asked for by itself
            await self._app(scope, receive, send)
        else:
            await self._standing.answer(token, self._app, scope, receive, send)


class BrowserHeaders:
    """Middleware: the answers' headers for browsers."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = list(message.get("headers", ()))
                said = {bytes(name).lower() for name, _ in headers}
                message["headers"] = [*headers, *(each for each in HEADERS if each[0] not in said)]
            await send(message)

        await self._app(scope, receive, sending if scope["type"] == "http" else send)


async def refuse(scope: Scope, receive: Receive, send: Send, refusal: Refusal, request_id: str | None) -> None:
    """Answer with a refusal, where nothing was answered yet."""
    response = refusal.at(scope["path"]).response(request_id)
    if scope["type"] == "http":
        await response(scope, receive, send)
    elif "websocket.http.response" in scope.get("extensions", {}):
        headers = response.raw_headers
        await send({"type": "websocket.http.response.start", "status": refusal.status, "headers": headers})
        await send({"type": "websocket.http.response.body", "body": bytes(response.body)})
    else:
        await send({"type": "websocket.close", "code": 1008, "reason": refusal.code})


async def http_exception(request: Request, error: Exception) -> Response:
    """What the router and Starlette itself refuse, in our shape."""
    assert isinstance(error, HTTPException)
    code, remedy = ROUTED.get(error.status_code, ("refused", "look at the status: what it stands for is what is wrong"))
    headers: dict[str, Any] = dict(error.headers or {})
    path = request.url.path
    if path.startswith(OPENAI):
        remedy = ENDPOINTS
    elif error.status_code == 404 and path.split("/")[1] in THEIRS:
        remedy, path = AT_V1, OPENAI  # its client shows nothing but a message there as well
    refusal = Refusal(error.status_code, code, f"{request.url.path}: {error.detail}", remedy, headers=headers)
    return refusal.at(path).response(request.state.request_id)
