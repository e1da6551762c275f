"""The items of a conversation, read from its session: one by its id, and pages of them.

The one rule: of a conversation only that is read which a page needs, however long it is.
"""

from __future__ import annotations

from typing import Any, Final

from keeve.looking import Room, weight
from keeve.server.openai.events import Page, paged
from keeve.server.openai.ids import ItemId, item_of
from keeve.server.openai.items import Json, items_of, refused
from keeve.server.openai.objects import listing
from keeve.server.openai.talking import Talk, Talking

FEW: Final = 8
"""Messages that are read first for a page: where they are long, others are not read."""
MORE: Final = 20
"""Messages that are read beyond what was meant, to find what belongs together; each time twice as many."""

LABEL: Final = "tools"
"""What the tools of the host are called in items."""


async def item_named(talking: Talking, id: str) -> Json | None:
    """The item of that id, if who asks can reach it."""
    named = item_of(id)
    talk = None if named is None else await talking.reached(named.uid, "read")
    return None if named is None or talk is None else await item_in(talk, id)


async def item_in(talk: Talk, id: str) -> Json | None:
    """The item of that id, if it is in this conversation."""
    named = item_of(id)
    if named is None or named.uid != talk.uid:
        return None
    told = await _whole(talk, named.number, named.number + 1)
    return next((item for item in items_of(told, talk.uid, LABEL) if item["id"] == id), None)


async def page_in(talk: Talk, page: Page) -> Json:
    """A page of the items of a conversation, as many as there is room for. Raises a `Refusal`."""
    end = await talk.ref.extent()
    after = None if page.after is None else _after(talk, page.after)
    count = min(page.limit + 1, FEW)
    while True:
        if page.newest_first:
            stop = end if after is None else after.number + 1
            start = max(0, stop - count)
        else:
            start = 0 if after is None else after.number
            stop = min(end, start + count)
        items = items_of(await _whole(talk, start, stop), talk.uid, LABEL)
        all_of_it = start == 0 if page.newest_first else stop >= end
        found = paged(page, items)
        if fits := _for_which_there_is_room(found["data"]):
            return listing(fits, True)
        if all_of_it or len(found["data"]) == page.limit:
            return {**found, "has_more": found["has_more"] or not all_of_it}
        count *= 4


def _for_which_there_is_room(items: list[Any]) -> list[Any] | None:
    """The first of these items, one at least, that come to what one answer may have; None where all of them do."""
    room = Room(len(items))
    for number, item in enumerate(items):
        if number and not room:
            return items[:number]
        room.take(weight(item))
    return None


def _after(talk: Talk, id: str) -> ItemId:
    named = item_of(id)
    if named is None or named.uid != talk.uid:
        raise refused(f"there is no item {id!r:.120} here", "after", "use the last_id of a page")
    return named


async def _whole(talk: Talk, start: int, stop: int) -> list[dict[str, Any]]:
    """The messages from one number to before another, and those around them that belong to the first and the last."""
    told: list[dict[str, Any]] = await talk.ref.listed(start, stop)
    step = MORE
    while start > 0 and (not told or told[0]["message"]["role"] == "tool"):
        told = [*await talk.ref.listed(max(0, start - step), start), *told]
        start, step = max(0, start - step), step * 2
    step = MORE
    while told and (told[-1]["message"]["role"] == "tool" or told[-1]["message"].get("tool_calls")):
        more = await talk.ref.listed(stop, stop + step)
        if not more:
            break
        told = [*told, *more]
        stop, step = stop + step, step * 2
    return told
