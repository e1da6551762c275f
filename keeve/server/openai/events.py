"""Streams and pages as OpenAI's clients read them.

The one rule: a stream that ends before it is over says so, as an error with what to do.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack

import attrs
from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from keeve.server.errors import Refusal, refusal_of
from keeve.server.openai.items import Json, refused
from keeve.server.openai.objects import listing
from keeve.server.serving import Serving
from keeve.server.streams import EventStream, Produce, Put, Sent
from vat.devices.outcomes import alone

STOPPING = Refusal(
    503,
    "stopping",
    "the server is stopping",
    "take the stream up again with starting_after, or ask again with your key",
)


class Events(EventStream):
    """Server-sent events, their errors in the form that clients raise. `ending` is what is to be done at their end."""

    def __init__(
        self, serving: Serving, produce: Produce, headers: dict[str, str], ending: AsyncExitStack | None = None
    ) -> None:
        self._ending = AsyncExitStack() if ending is None else ending

        async def produce_all(put: Put) -> None:
            try:
                await produce(put)
            except Exception as raised:
                refusal = refusal_of(alone(raised))
                if refusal is None:
                    raise
                raise refusal.whole() from raised
            await self._ending.aclose()

        super().__init__(serving, produce_all, headers)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with self._ending:
            await super().__call__(scope, receive, send)

    def framed(self, item: Sent) -> bytes:
        """An item as it is sent."""
        if item.event == "stopping":
            return super().framed(attrs.evolve(item, data=STOPPING.whole().document(), event="error"))
        return super().framed(item)


@attrs.frozen
class Page:
    """What of a list is asked for: at most `limit` items, from after the item `after`, the newest first or last."""

    limit: int
    after: str | None
    newest_first: bool


def page_of(request: Request) -> Page:
    """The page that a request asks for. Raises a `Refusal`."""
    query = request.query_params
    limit, order = query.get("limit", "20"), query.get("order", "desc")
    if not (limit.isdecimal() and limit.isascii() and len(limit) < 5 and 1 <= int(limit) <= 100):
        raise refused("it has to be a number from 1 to 100", "limit")
    if order not in ("asc", "desc"):
        raise refused("it has to be 'asc' or 'desc'", "order")
    return Page(int(limit), query.get("after"), order == "desc")


def paged(page: Page, items: Sequence[Json], more: bool = False) -> Json:
    """That page of items, which are given oldest first. `more`: there are others beyond them."""
    ordered = list(reversed(items)) if page.newest_first else list(items)
    if page.after is not None:
        place = next((at for at, item in enumerate(ordered) if item["id"] == page.after), None)
        if place is None:
            raise refused(f"there is no item {page.after!r:.120} here", "after", "use the last_id of a page")
        ordered = ordered[place + 1 :]
    return listing(ordered[: page.limit], more or len(ordered) > page.limit)
