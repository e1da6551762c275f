"""Keeve's own HTTP API, under `/api/v1`: sessions, turns, the dataspace, proofs. All of it is in one table, of
which the `routes` are made, and the document at `/api/v1/openapi.json`, which needs no token (`OPEN`).
"""

from functools import cache
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from keeve.server.api.faces import row_face
from keeve.server.api.openapi import document
from keeve.server.api.operations import TABLE
from keeve.server.api.paths import in_path
from keeve.server.api.table import PREFIX, Asked, EncodedRoute, routes_of
from keeve.server.serving import Serving

__all__ = ["OPEN", "OPERATIONS", "Asked", "EncodedRoute", "in_path", "routes", "row_face"]

DOCUMENT = f"{PREFIX}/openapi.json"

OPEN = (DOCUMENT,)
"""Paths that need no token."""

OPERATIONS = {operation.name: operation for operation in TABLE}
"""Every operation by its name, for other parts that have them do something."""


def routes(serving: Serving) -> list[BaseRoute]:
    """The document, and every operation."""
    return [Route(DOCUMENT, _openapi), *routes_of(TABLE, serving)]


async def _openapi(_: Request) -> Response:
    return JSONResponse(_document())


@cache
def _document() -> dict[str, Any]:
    return document(TABLE)  # most of what making an application would cost, and few ask for it
