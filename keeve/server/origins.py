"""Under which name a request came, and from which page.

A browser sends requests for pages that are not ours. So `Host` has to be a name that this server is reached by, or a
page elsewhere could have its own name lead here (DNS rebinding); and where an `Origin` is said it has to be ours, or
that of a page that was allowed, or a page elsewhere could use the cookie of ours (CSRF).

The one rule: refused before anything is read of the body.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final

from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Receive, Scope, Send

from keeve.server.auth import COOKIE
from keeve.server.errors import Refusal
from keeve.server.serving import Serving

SAFE_METHODS: Final = frozenset(("GET", "HEAD", "OPTIONS"))


def wrong_origin(what: str) -> Refusal:
    """What comes from a page that may not ask."""
    return Refusal(403, "wrong_origin", what, "send the token as a bearer token, or start the server with --origins")


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
