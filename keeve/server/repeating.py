"""The Idempotency-Key of a request, with which it may be repeated until it is answered.

What is asked of a session is known by its key for as long as that has content. What is asked of the store itself (its
files are made smaller, or moved) has no session to keep it: `Answers` does, while the server runs. After that to do it
again is to do what is left to do.

The one rule: wherever a request takes one, it is read here, so that what it may be is the same everywhere.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

import attrs
import trio
from starlette.requests import Request

from keeve.server.errors import Refusal
from vat.crank.vat import RequestConflict
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


MOST_ANSWERS: Final = 1000
"""Answers that are kept."""


@attrs.define
class _Answer:
    content: Any
    over: trio.Event = attrs.field(factory=trio.Event)
    given: Any = None


class Answers:
    """What was answered to requests with a key that belong to no session. A failure is not kept: asked again, what is
    left to do is tried again."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], _Answer] = {}

    async def once(self, by: str, key: str | None, content: Any, do: Callable[[], Awaitable[Any]]) -> Any:
        """What `do` gives, or has given to the same request of this principal, which may be under way.

        content: what was asked, to tell the same from another. Raises `RequestConflict` (409) for another one.
        """
        if key is None:
            return await do()
        while (known := self._known.get((by, key))) is not None:
            if known.content != content:
                raise RequestConflict(key, "the store")
            if known.over.is_set():
                return known.given
            await known.over.wait()
        answer = self._known[by, key] = _Answer(content)
        try:
            answer.given = await do()
        except BaseException:
            del self._known[by, key]
            raise
        finally:
            answer.over.set()
        if len(self._known) > MOST_ANSWERS:
            self._known.pop(next(at for at, each in self._known.items() if each.over.is_set()))
        return answer.given
