"""What a client names by itself: a session of its own, with its bounds; and the request ids that are made of its key.

The one rule: what is refused is said in the words of what was sent.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Final
from urllib.parse import unquote

from starlette.requests import Request

from keeve.server.errors import Refusal
from vat.heap.messages import LONGEST_REQUEST
from vat.host.births import may_be_called

SESSIONS: Final = ("X-Keeve-Session", "X-Hermes-Session-Id")
"""Headers that name a session, the one that counts first."""

ROOM: Final = 100
"""Characters that may come before a key in the request ids that are made of it."""


def made_of(key: str, before: str = "", after: str = "") -> str:
    """A request id of ours for a step of a request with that key, however long the key is.

    >>> made_of("k1", "openai response"), len(made_of("k" * 1000, after="fork"))
    ('openai response k1', 76)
    """
    if len(key) > LONGEST_REQUEST - ROOM:
        key = f"sha256 {sha256(key.encode()).hexdigest()}"
    return " ".join(word for word in (before, key, after) if word)


def session_of(request: Request) -> str | None:
    """The session that a client names as its own. Raises a `Refusal`."""
    for header in SESSIONS:
        given = request.headers.get(header)
        if given:
            name = unquote(given)
            if not may_be_called(name):
                shown = f"is {name!r}" if len(name) <= 200 else f"has {len(name):,} characters"
                remedy = (
                    "it names a session: send 1 to 200 characters, percent-encoded, none of them control characters"
                )
                raise Refusal(422, "bad_session_id", f"the header {header} {shown}", remedy, header)
            return name
    return None
