"""A table of operations: each says how it is asked, what it takes and what it gives; routes and document follow.

What a query or a body may be is a `msgspec.Struct`; it is read strictly, and what it is described by is made of it.

The one rule: what is not in the table is neither served nor described.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeVar

import attrs
import msgspec
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Match, Route
from starlette.types import Scope

from keeve.server.api.paths import in_path, of_path
from keeve.server.errors import Refusal
from keeve.server.repeating import key_of
from keeve.server.serving import Serving
from vat.host.host import Host

PREFIX: Final = "/api/v1"

T = TypeVar("T")


@attrs.frozen
class Asked:
    """A request, as operations are given it: what was asked with, read and checked."""

    serving: Serving
    request: Request
    query: Any = None
    body: Any = None
    via: str = "http"
    """In which way it was asked for: what records and facts say of it."""

    @property
    def host(self) -> Host:
        """The host, asked by who makes this request."""
        return self.serving.asked(self.request, self.via)

    def path(self, name: str) -> str:
        """A part of the path, decoded."""
        return str(self.request.path_params[name])

    @property
    def id(self) -> str:
        """The session's id in the path."""
        return self.path("id")

    @property
    def key(self) -> str | None:
        """The Idempotency-Key. Raises a `Refusal` (422)."""
        return key_of(self.request)

    def accepts(self, media_type: str) -> bool:
        """Whether the client has asked for a kind of answer by name."""
        accepted = (each.split(";")[0].strip().lower() for each in self.request.headers.get("accept", "").split(","))
        return media_type in accepted


Document = dict[str, Any]
"""What an operation gives: JSON, of the fields that its `gives` has."""

Does = Callable[[Asked], Awaitable[Document]]
Tells = Callable[[Asked], Awaitable[Response]]


@attrs.frozen
class Operation:
    """An operation: what it is asked by, what it takes, what it gives.

    takes: what its body may be. query: what its query may be. gives: what a success has, a Struct; `status` is its
    status. streams: the other kinds that it may be asked for by Accept, in which `tells` answers. located: where what
    it has made is, with {} for its id. verb: what who asks has to be allowed.
    """

    method: str
    path: str
    does: Does
    summary: str
    tag: str
    gives: Any
    takes: type[msgspec.Struct] | None = None
    query: type[msgspec.Struct] | None = None
    status: int = 200
    streams: tuple[str, ...] = ()
    tells: Tells | None = None
    located: str = ""
    keyed: bool = False
    """Whether it takes an Idempotency-Key."""
    verb: str = "read"

    @property
    def name(self) -> str:
        """Its name, which is that of its function."""
        return self.does.__name__

    async def answer(self, asked: Asked) -> Response:
        """Have it done; the answer over HTTP."""
        if self.tells is not None and any(map(asked.accepts, self.streams)):
            return await self.tells(asked)
        given = await self.does(asked)
        made = {"location": PREFIX + self.located.format(in_path(given["id"]))} if self.located else None
        return JSONResponse(given, self.status, made)


class EncodedRoute(Route):
    """A route that is found by the path as it was sent, so that what is encoded in an id (`%2F`) belongs to the id."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        raw = scope.get("raw_path")
        if scope["type"] != "http" or raw is None:
            return super().matches(scope)
        match, child = super().matches({**scope, "path": raw.decode("latin-1")})
        if match is Match.NONE:
            return match, child
        try:
            named = {name: of_path(value) for name, value in child["path_params"].items()}
        except UnicodeDecodeError:
            return Match.NONE, {}
        child["path_params"] = named
        return match, child


def routes_of(table: tuple[Operation, ...], serving: Serving) -> list[EncodedRoute]:
    """The routes of operations; those of one path are one, so that for another method it is said which there are."""
    paths: dict[str, dict[str, Operation]] = {}
    for operation in table:
        paths.setdefault(operation.path, {})[operation.method] = operation
    return [_route(path, methods, serving) for path, methods in paths.items()]


def _route(path: str, methods: Mapping[str, Operation], serving: Serving) -> EncodedRoute:
    async def endpoint(request: Request) -> Response:
        operation = methods["GET" if request.method == "HEAD" else request.method]
        if operation.verb:
            serving.principal(request).must(operation.verb)
        query = None if operation.query is None else query_of(request, operation.query)
        body = None if operation.takes is None else await body_of(request, operation.takes)
        return await operation.answer(Asked(serving, request, query, body))

    endpoint.__name__ = "api:" + path
    return EncodedRoute(PREFIX + path, endpoint, methods=list(methods))


def query_of(request: Request, kind: type[T]) -> T:
    """The query of a request. Raises a `Refusal` (422) for what it may not be."""
    given: dict[str, Any] = {}
    for name, value in request.query_params.multi_items():
        if name in given:
            raise Refusal(422, "bad_query", f"{name} stands twice in the query", "give it once", name)
        given[name] = value
    try:
        return msgspec.convert(given, kind, strict=False)
    except msgspec.ValidationError as error:
        raise _bad("bad_query", "the query", error) from None


async def body_of(request: Request, kind: type[T]) -> T:
    """The body of a request. Raises a `Refusal`: 415 for what is no JSON by its name, 400 or 422 for what is none."""
    said = request.headers.get("content-type", "application/json").split(";")[0].strip().lower()
    if said != "application/json":
        raise Refusal(415, "not_json", f"the body is said to be {said!r:.80}", "send application/json", "content-type")
    data = await request.body() or b"{}"
    try:
        return msgspec.json.decode(data, type=kind)
    except msgspec.ValidationError as error:
        raise _bad("bad_body", "the body", error) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Refusal(400, "not_json", f"the body is not JSON ({error})", "send JSON, as UTF-8") from None


def _bad(code: str, where: str, error: Exception) -> Refusal:
    text = str(error)
    place = re.search(r" - at `\$\.?([^`]*)`$", text)
    param = place[1] or None if place else None
    named = re.search(r"field `([^`]+)`", text)
    if param is None and named:
        param = named[1]
    what = text[: place.start()] if place else text
    remedy = "GET /api/v1/openapi.json says what it may be"
    return Refusal(422, code, f"{where}: {what}" + (f" ({param})" if param else ""), remedy, param)
