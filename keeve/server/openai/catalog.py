"""`/v1/models`: the models that the host has as devices, alone and with its tools.

The one rule: what is listed here is what `model` may be in a request.
"""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from keeve.server.errors import no_model
from keeve.server.openai.asking import Model, models
from keeve.server.serving import Serving


def routes(serving: Serving) -> list[BaseRoute]:
    """The routes of this part."""

    async def list_models(request: Request) -> Response:
        serving.principal(request).must("read")
        return JSONResponse({"object": "list", "data": [_face(model) for model in models(serving).values()]})

    async def one_model(request: Request) -> Response:
        serving.principal(request).must("read")
        known, name = models(serving), request.path_params["name"]
        if name not in known:
            raise no_model(name, known)
        return JSONResponse(_face(known[name]))

    return [Route("/v1/models", list_models), Route("/v1/models/{name:path}", one_model)]


def _face(model: Model) -> dict[str, Any]:
    return {"id": model.name, "object": "model", "created": 0, "owned_by": "keeve"}
