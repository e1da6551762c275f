"""What every request passes before it is looked at: under which name it came, from which page, and who asks.

A browser sends requests for pages that are not ours. So `Host` has to be a name that this server is reached by, or a
page elsewhere could have its own name lead here (DNS rebinding); and where an `Origin` is said it has to be ours, or
that of a page that was allowed, or a page elsewhere could use the cookie of ours (CSRF).

The one rule: refused before anything is read of the body.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final

from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from keeve.server.errors import Refusal
from keeve.server.gate import COOKIE, token_of
from keeve.server.serving import Serving

KNOWN: Final = "keeve.known"
"""In the state of a request's connection: what is to be called when who asks on it is known."""

SAFE_METHODS: Final = frozenset(("GET", "HEAD", "OPTIONS"))

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


def wrong_origin(what: str) -> Refusal:
    """What comes from a page that may not ask."""
    return Refusal(403, "wrong_origin", what, "send the token as a bearer token, or start the server with --origins")


class Headers:
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


class Origins:
    """Middleware: under which name a request came, and from which page."""

    def __init__(self, app: ASGIApp, serving: Serving) -> None:
        self._app = app
        settings = serving.settings
        self._names = {name.lower() for name in settings.hosts}
        self._origins = {origin.lower().rstrip("/") for origin in settings.origins}
        self._loopback = is_loopback(settings.host)
        if not self._loopback and _address(settings.host) is None:
            self._names.add(settings.host.lower())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] in ("http", "websocket"):
            self._check(HTTPConnection(scope))
        await self._app(scope, receive, send)

    def _check(self, request: HTTPConnection) -> None:
        hosts = request.headers.getlist("host")
        if len(hosts) != 1 or not self._is_ours(name_of(hosts[0])):
            raise Refusal(
                421,
                "wrong_host",
                f"the Host of this request ({', '.join(hosts)!r:.100}) is not a name of this server",
                "use the address that it printed, or start it with --hosts NAME",
            )
        headers = request.headers
        origins = headers.getlist("origin")
        if origins:
            if len(origins) != 1 or not self._may(origins[0].lower(), hosts[0].lower()):
                raise wrong_origin(f"a page of {', '.join(origins)!r:.100} may not ask this server")
        elif request.scope.get("method", "") not in SAFE_METHODS:  # a WebSocket has none
            site = headers.get("sec-fetch-site")
            if site not in (None, "none", "same-origin"):
                raise wrong_origin("a page of another origin may not ask this server")
            if site is None and "authorization" not in headers and COOKIE in request.cookies:
                raise wrong_origin("with a cookie, what changes something says its Origin")

    def _is_ours(self, name: str) -> bool:
        if name in self._names:
            return True
        # Whoever has the name of an address has that address: only names can be made to lead elsewhere.
        return is_loopback(name) or (not self._loopback and _address(name) is not None)

    def _may(self, origin: str, host: str) -> bool:
        scheme, _, rest = origin.partition("://")
        return origin in self._origins or (scheme in ("http", "https") and rest == host)


class Asking:
    """Middleware: who asks, in `request.state.principal`. Where a path is free, nobody need be known."""

    def __init__(self, app: ASGIApp, serving: Serving, free: tuple[str, ...]) -> None:
        self._app = app
        self._gate = serving.gate
        self._standing = serving.standing
        self._free = {path for path in free if not path.endswith("*")}
        self._beginnings = tuple(path[:-1] for path in free if path.endswith("*"))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        state, request = scope["state"], HTTPConnection(scope)
        try:
            state["principal"] = self._gate.asking(request)
        except Refusal:
            path = scope["path"]
            if path not in self._free and not (self._beginnings and path.startswith(self._beginnings)):
                raise
            await self._app(scope, receive, send)
            return
        if KNOWN in state:
            state[KNOWN]()
        token = token_of(request.headers, request.cookies)
        if token is None or scope["type"] == "websocket":  # over which each message is asked for by itself
            await self._app(scope, receive, send)
        else:
            await self._standing.answer(token, self._app, scope, receive, send)


def name_of(host: str) -> str:
    """The name in a Host, without the port, in small letters; "" for what is none.

    >>> name_of("LOCALHOST:8420"), name_of("[::1]:8420"), name_of("a:b:c")
    ('localhost', '::1', '')
    """
    host = host.strip().lower()
    if host.startswith("["):
        name, _, port = host[1:].partition("]")
        port = port.removeprefix(":")
    else:
        name, _, port = host.partition(":")
    return name if not port or port.isdecimal() else ""


def is_loopback(name: str) -> bool:
    """Whether a name, or an address, is this machine's own."""
    address = _address(name)
    return name == "localhost" or (address is not None and address.is_loopback)


def _address(name: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(name)
    except ValueError:
        return None
