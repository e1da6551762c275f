"""Whether the process lives, whether it takes requests, and what it counts.

The one rule: the first two are for who has no token, and so they say nothing else.
"""

from __future__ import annotations

from typing import Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from keeve.server.metrics import TYPE
from keeve.server.serving import Serving

OPEN: Final = ("/healthz", "/readyz")
"""Paths that need no token."""


def routes(serving: Serving) -> list[BaseRoute]:
    """`/healthz`, `/readyz`, and for `admin` `/metrics`."""

    async def healthz(_: Request) -> Response:
        return JSONResponse({"status": "alive"})

    async def readyz(_: Request) -> Response:
        if serving.stopping.is_set():
            return JSONResponse({"status": "stopping"}, 503)
        return JSONResponse({"status": "ready"})

    async def metrics(request: Request) -> Response:
        serving.principal(request).must("admin")
        return Response(serving.metrics.text(), media_type=TYPE)

    return [Route("/healthz", healthz), Route("/readyz", readyz), Route("/metrics", metrics)]
