"""Whether the process lives, and whether it takes requests.

The one rule: these are for who has no token, and so they say nothing else.
"""

from __future__ import annotations

from typing import Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from keeve.server.serving import Serving

OPEN: Final = ("/healthz", "/readyz")
"""Paths that need no token."""


def routes(serving: Serving) -> list[BaseRoute]:
    """`/healthz` and `/readyz`."""

    async def healthz(_: Request) -> Response:
        return JSONResponse({"status": "alive"})

    async def readyz(_: Request) -> Response:
        if serving.stopping.is_set():
            return JSONResponse({"status": "stopping"}, 503)
        return JSONResponse({"status": "ready"})

    return [Route("/healthz", healthz), Route("/readyz", readyz)]
