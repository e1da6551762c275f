"""Visits: a request for a place of the page, by somebody who is known; and how the API is asked for them.

A place reads (GET), takes a form (POST), or both. What it does with a session, it has an operation of the API do, as
the same principal, `via="page"`: who may not do it there may not do it here.

The one rule: what changes something comes from a page of ours. Its Origin is ours, which `Origins` has looked at and
which has to be said here, and the form carries a token that only a page for this very log-in has.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from hashlib import sha256
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode, urlsplit

import attrs
import msgspec
import trio
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute

from dataspace.errors import KeeveError
from dataspace.observe.cursor import number_in
from keeve.looking import Reading, reading_of
from keeve.server.api import OPERATIONS, Asked, EncodedRoute
from keeve.server.auth import COOKIE, Principal, token_of
from keeve.server.errors import Refusal, set_up_of
from keeve.server.middleware import ROUTED
from keeve.server.page.drawing import HEADERS, drawn
from keeve.server.page.wording import told
from keeve.server.serving import Serving
from vat.devices.outcomes import alone

FIELDS: Final = 100
"""Fields of a form, at the most."""

OF_PROGRAMS: Final = ("/api/", "/v1/")
"""What paths begin with at which there are no pages."""

Given = Mapping[str, Any]
NONE: Final[Given] = {}


@attrs.frozen
class ByForm(Asked):
    """An operation that is asked for by the page: what the path and the form say stands for path and headers."""

    names: Mapping[str, str] = attrs.field(factory=dict)
    form_key: str | None = None

    def path(self, name: str) -> str:
        return self.names[name]

    @property
    def key(self) -> str | None:
        return self.form_key


@attrs.frozen
class Visit:
    """A request for a place. `form` is what was filled in; `principal` is None only where nobody need be known."""

    serving: Serving
    request: Request
    principal: Principal | None = None
    form: Mapping[str, str] = attrs.field(factory=dict)

    @property
    def id(self) -> str:
        """The session's id in the path."""
        return str(self.request.path_params["id"])

    def asked(self, name: str, otherwise: str = "") -> str:
        """What the query says under a name."""
        return self.request.query_params.get(name, otherwise)

    def number(self, name: str, otherwise: int = 0) -> int:
        """The number that the query says under a name; `otherwise` for what is none."""
        found = number_in(self.asked(name))
        return otherwise if found is None else found

    def may(self, verb: str) -> bool:
        """Whether who asks may do that at all."""
        return self.principal is not None and self.principal.may(verb)

    async def given(self, name: str, query: Given = NONE, body: Given = NONE, **names: str) -> Any:
        """What the operation of the API of that name gives to who asks; `names` stand for parts of its path.

        Raises what it does, and a `Refusal` (422) for what it does not take.
        """
        await trio.lowlevel.checkpoint()  # a page asks for many, which may each be long and wait for nothing
        operation = OPERATIONS[name]
        self.serving.principal(self.request).must(operation.verb)
        asked = ByForm(
            self.serving,
            self.request,
            _taken_as(operation.query, query),
            _taken_as(operation.takes, body),
            "page",
            {**self.request.path_params, **names},
            self.form.get("key") or None,
        )
        return await operation.does(asked)

    def shows(self, template: str, status: int = 200, /, **context: Any) -> Response:
        """A document: what every one has, and `context`."""
        token = token_of(self.request.headers, self.request.cookies)
        always = {
            "who": self.principal,
            "form_token": "" if token is None else form_token(self.serving.secret, token),
            "new_key": lambda: f"page-{secrets.token_hex(12)}",
            "here": self.request.url.path,
        }
        return drawn(template, {**always, **context}, status)

    @property
    def reading(self) -> Reading:
        """The store, as far as who asks reaches it. Raises a `Refusal` for who is not known."""
        principal, auth = self.serving.principal(self.request), self.serving.auth
        return reading_of(self.serving.host, partial(auth.reaches, principal), exact=True)

    @property
    def signs(self) -> bool:
        """Whether there is a signed checkpoint to be had."""
        try:
            return bool(self.serving.host.log_keys())
        except KeeveError:
            return False

    def goes(self, to: str, **query: str) -> Response:
        """On to another place, which is read."""
        return RedirectResponse(f"{to}?{urlencode(query)}" if query else to, 303, HEADERS)


Does = Callable[[Visit], Awaitable[Response]]


@attrs.frozen
class Place:
    """A place of the page. free: a form is taken there of who is not known, and so without its token."""

    path: str
    reads: Does | None = None
    takes: Does | None = None
    free: bool = False


def routes_of(places: tuple[Place, ...], serving: Serving) -> list[BaseRoute]:
    """The routes of places."""
    return [_route(place, serving) for place in places]


def _route(place: Place, serving: Serving) -> BaseRoute:
    async def endpoint(request: Request) -> Response:
        principal: Principal | None = getattr(request.state, "principal", None)
        visit = Visit(serving, request, principal)
        try:
            does = place.takes if request.method == "POST" else place.reads
            assert does is not None, "the route has no other methods"
            if request.method == "POST":
                visit = attrs.evolve(visit, form=await form_of(request))
                must_be_ours(visit, free=place.free)
            if principal is None and not place.free:
                return entrance(visit)
            return await does(visit)
        except Exception as raised:  # whatever is ours is told on a page; the rest is for the outermost bound
            error = alone(raised)
            refusal = told(error)
            if refusal is None:
                raise
            if (why := set_up_of(error)) is not None:
                serving.log.error("not set up", request=request.state.request_id, why=why)
            return visit.shows("refused.html", refusal.status, refusal=refusal)

    endpoint.__name__ = "page:" + place.path
    methods = [*(["GET"] if place.reads else []), *(["POST"] if place.takes else [])]
    return EncodedRoute(place.path, endpoint, methods=methods)


def for_strangers(serving: Serving, request: Request) -> Response | None:
    """What a browser that is not logged in is shown at any path that is not free, whether there is something or not:
    how one logs in. None for who asks for JSON, or by the API."""
    return entrance(Visit(serving, request)) if _browses(request) else None


def nothing_there(serving: Serving, request: Request, error: HTTPException) -> Response | None:
    """What a browser is shown where there is nothing for it to read; None for who asks for JSON, or by the API."""
    path, principal = request.url.path, getattr(request.state, "principal", None)
    if principal is None or not _browses(request):
        return for_strangers(serving, request)
    said = f"there is nothing at {path:.200}" + ("" if error.status_code == 404 else " to be read")
    code, _ = ROUTED[error.status_code]
    refusal = Refusal(error.status_code, code, said, "go on from one of the places above")
    answer = Visit(serving, request, principal).shows("refused.html", error.status_code, refusal=refusal)
    answer.headers.update(error.headers or {})
    return answer


def _browses(request: Request) -> bool:
    """Whether it is a browser that asks, where people look at pages."""
    return not request.url.path.startswith(OF_PROGRAMS) and "text/html" in request.headers.get("accept", "")


def entrance(visit: Visit, wrong: str = "") -> Response:
    """The page that says how one logs in; a cookie whose token is not known any more goes."""
    if not wrong and COOKIE in visit.request.cookies:
        wrong = "The token of this browser is not known here any more."
    back = visit.form.get("next", "/") if visit.request.method == "POST" else address_of(visit.request)
    answer = visit.shows("enter.html", 401, wrong=wrong, next=back)
    if COOKIE in visit.request.cookies:
        answer.delete_cookie(COOKIE, path="/", httponly=True, samesite="strict")
    return answer


def address_of(request: Request) -> str:
    """The path and the query of a request, as they were sent."""
    path = request.scope.get("raw_path", b"").decode("latin-1") or request.url.path
    return f"{path}?{request.url.query}" if request.url.query else path


def ours(address: str) -> str:
    """A place of this server; `/` for what is none.

    >>> ours("/sessions/a%2Fb?before=3"), ours("//evil.example/"), ours("/\\\\evil.example"), ours("https://evil.example")
    ('/sessions/a%2Fb?before=3', '/', '/', '/')
    """
    if not address.startswith("/") or address.startswith("//") or "\\" in address or not address.isprintable():
        return "/"
    parts = urlsplit(address)
    return "/" if parts.scheme or parts.netloc or parts.path in ("/login", "/logout") else address


# What changes something.


async def form_of(request: Request) -> dict[str, str]:
    """What was filled in. Raises a `Refusal`: 415 for what is no form, 422 for what cannot be read."""
    said = request.headers.get("content-type", "").split(";")[0].strip().lower()
    if said != "application/x-www-form-urlencoded":
        raise Refusal(415, "not_a_form", f"the body is said to be {said!r:.80}", "send a form of the page")
    try:
        text = (await request.body()).decode("ascii")
        given = parse_qsl(text, keep_blank_values=True, max_num_fields=FIELDS, errors="strict")
    except ValueError:
        raise Refusal(422, "bad_form", "the form cannot be read", "send a form of the page") from None
    # Browsers send lines with both characters that end them.
    return {name: value.replace("\r\n", "\n") for name, value in given}


def form_token(secret: str, token: str) -> str:
    """What a form carries of who is logged in with `token`: nobody else can have made it."""
    return hmac.new(secret.encode(), f"keeve form 1\n{token}".encode(), sha256).hexdigest()


def must_be_ours(visit: Visit, *, free: bool) -> None:
    """Raise a `Refusal` (403) unless a form comes from a page of ours, for who is logged in (or `free`, for anyone)."""
    headers = visit.request.headers
    if "origin" not in headers and headers.get("sec-fetch-site") != "same-origin":
        raise Refusal(
            403, "wrong_origin", "the form does not say which page it is from", "send it from the page itself"
        )
    token = token_of(headers, visit.request.cookies)
    if free or visit.principal is None or token is None:
        return
    if not hmac.compare_digest(form_token(visit.serving.secret, token), visit.form.get("form", "")):
        raise Refusal(403, "wrong_form", "the form is not from a page of this log-in", "load the page again")


def _taken_as(kind: Any, given: Given) -> Any:
    if kind is None:
        return None
    try:
        return msgspec.convert(given, kind)
    except msgspec.ValidationError as error:
        raise Refusal(422, "bad_form", str(error), "go back, and change it") from None
