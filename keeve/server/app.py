"""`application`: the ASGI application, of the middleware that every request passes and the routes of all parts.

A part is a module with `routes(serving)`, and `OPEN`: the paths of it that need no token (one that ends in `*` stands
for all that begin so). It is one line in `PARTS`.

    BrowserHeaders   what every answer says to browsers
    ErrorBoundary    a request id; whatever goes wrong inside is answered in the one shape, and logged
    Origins          which Host and which Origin may ask
    BodyLimit        how large a body may be, and how slow
    Authentication   who asks
    RateLimit        how often they may, and how much at once
    Draining         a server that stops begins nothing new

The one rule: the order above. What refuses everybody comes before what costs something.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final, NamedTuple

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from keeve.server import api, health, openai, page, wire
from keeve.server.limits import BodyLimit, Draining, RateLimit
from keeve.server.middleware import Authentication, BrowserHeaders, ErrorBoundary, http_exception
from keeve.server.origins import Origins
from keeve.server.serving import Serving


class Part(NamedTuple):
    """A part of the server."""

    routes: Callable[[Serving], list[BaseRoute]]
    open: tuple[str, ...] = ()


PARTS: Final = (
    Part(health.routes, health.OPEN),
    Part(api.routes, api.OPEN),
    Part(openai.routes),
    Part(wire.routes, wire.OPEN),
    Part(page.routes, page.OPEN),
)
"""All parts, in the order in which their routes are looked through."""


def application(serving: Serving) -> Starlette:
    """The application of a server."""

    async def refused(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        there = page.nothing_there(serving, request, error) if error.status_code in (404, 405) else None
        return await http_exception(request, error) if there is None else there

    free = tuple(path for part in PARTS for path in part.open)
    return Starlette(
        routes=[route for part in PARTS for route in part.routes(serving)],
        middleware=[
            Middleware(BrowserHeaders),
            Middleware(ErrorBoundary, serving=serving),
            Middleware(Origins, serving=serving),
            Middleware(BodyLimit, serving=serving),
            Middleware(Authentication, serving=serving, free=free, entrance=partial(page.for_strangers, serving)),
            Middleware(RateLimit, serving=serving),
            Middleware(Draining, serving=serving),
        ],
        exception_handlers={HTTPException: refused},
    )
