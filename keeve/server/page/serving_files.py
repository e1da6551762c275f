"""The files of the page: styles and modules, read once at the start and kept.

The one rule: only what is in the folder can be asked for, by its plain name.
"""

from __future__ import annotations

from hashlib import sha256
from importlib.resources import files
from typing import Final, NamedTuple

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

KINDS: Final = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}


class File(NamedTuple):
    """A file as it is sent."""

    content: bytes
    kind: str
    tag: str


def found_files() -> dict[str, File]:
    """All files, by name."""
    found = {}
    for each in files("keeve.server.page").joinpath("static").iterdir():
        kind = KINDS.get(each.name.rpartition(".")[2])
        if kind is not None:
            content = each.read_bytes()
            found[each.name] = File(content, kind, f'"{sha256(content).hexdigest()[:32]}"')
    return found


def files_route() -> Route:
    """The route of all files. A browser asks each time whether its copy is the one that is here."""
    known = found_files()

    async def page_file(request: Request) -> Response:
        file = known.get(request.path_params["name"])
        if file is None:
            raise HTTPException(404)
        headers = {"etag": file.tag, "cache-control": "no-cache"}
        if request.headers.get("if-none-match") == file.tag:
            return Response(status_code=304, headers=headers)
        return Response(file.content, headers=headers, media_type=file.kind)

    return Route("/static/{name}", page_file)
