"""Entering and leaving: a token becomes a cookie, and goes again.

The link that the server prints has the token behind its #, which no browser sends. A module takes it from there, out of
the address, and sends it here; without JavaScript it is typed into a form.

The one rule: scripts cannot read the cookie, other sites cannot have it sent, and under TLS it goes nowhere else.
"""

from __future__ import annotations

from typing import Final

from starlette.responses import Response

from keeve.server.auth import COOKIE
from keeve.server.errors import Refusal
from keeve.server.page.visits import Visit, entrance, ours

LONGEST: Final = 3_500
"""Characters of a token that browsers keep in a cookie."""


async def log_in(visit: Visit) -> Response:
    """The token of the form, if it is known, becomes the cookie."""
    token = visit.form.get("token", "").strip()
    if not token:
        return entrance(visit, "Give the token.")
    if len(token) > LONGEST or not (token.isascii() and token.isprintable()) or any(c in token for c in ' ",;\\'):
        return entrance(visit, "That is no token, or none that a browser can keep.")
    try:
        visit.serving.auth.principal(token)
    except Refusal as refusal:
        return entrance(visit, f"{refusal.message[:1].upper()}{refusal.message[1:]}.")
    answer = visit.goes(ours(visit.form.get("next", "/")))
    headers = visit.request.headers
    secure = visit.request.url.scheme == "https" or headers.get("origin", "").lower().startswith("https:")
    answer.set_cookie(COOKIE, token, path="/", httponly=True, samesite="strict", secure=secure)
    return answer


async def log_out(visit: Visit) -> Response:
    """The cookie goes."""
    answer = visit.goes("/")
    answer.delete_cookie(COOKIE, path="/", httponly=True, samesite="strict")
    return answer
