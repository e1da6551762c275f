"""The Idempotency-Key of a request, with which it may be repeated until it is answered.

The one rule: wherever a request takes one, it is read here, so that what it may be is the same everywhere.
"""

from __future__ import annotations

from typing import Final

from starlette.requests import Request

from keeve.server.errors import Refusal
from vat.heap.messages import LONGEST_REQUEST

KEY: Final = "Idempotency-Key"


def key_of(request: Request) -> str | None:
    """The key of a request. Raises a `Refusal`."""
    given = request.headers.getlist(KEY)
    if not given:
        return None
    remedy = f"send one {KEY}, of 1 to {LONGEST_REQUEST:,} characters, or none"
    if len(given) > 1:
        raise Refusal(422, "bad_request_id", f"there are {len(given)} headers {KEY}", remedy, KEY)
    if not 0 < len(given[0]) <= LONGEST_REQUEST:
        what = f"the header {KEY} has {len(given[0]):,} characters"
        raise Refusal(422, "bad_request_id", what, remedy, KEY)
    return given[0]
