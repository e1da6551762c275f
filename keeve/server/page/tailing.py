"""The log, read by a pattern: the newest events that match, or those behind a position; and on with what comes.

The one rule: one pattern means the same here, over the API and in a program. One that is wrong is told beside its box.
"""

from __future__ import annotations

from typing import Any, Final

from starlette.responses import Response

from dataspace.errors import KeeveError
from keeve.server.errors import Refusal
from keeve.server.page.cutting import FEW, Newest
from keeve.server.page.visits import Visit
from keeve.server.page.wording import told

SHOWN: Final = 100
"""Events on one page."""
WIDTHS: Final = (FEW, 400, 3_200, 20_000)
"""Records before the head that are looked at; more of them for as long as too few match, and there is room."""


async def show_log(visit: Visit) -> Response:
    """The newest events that match; with `before`, those before a position."""
    pattern, session = visit.asked("pattern", "(_ . _)"), visit.asked("session").strip()
    head = visit.serving.host.observe("(_ . _)", after="head").cursor
    before = visit.number("before")
    upto = min(before - 1, head.position) if before else head.position
    asked = {"pattern": pattern, "session": session or None, "limit": 1000, "marks": True}
    wrong: Refusal | None = None
    newest = Newest(SHOWN)
    start = upto
    try:
        for width in WIDTHS:
            start = max(0, upto - width)
            newest = await _between(visit, asked, start, upto)
            if newest.full or len(newest.events) == SHOWN or not start:
                break
    except (Refusal, KeeveError) as error:
        wrong = told(error)
    earlier = newest.events[0]["position"] if newest.full else start + 1
    return visit.shows(
        "log.html",
        200 if wrong is None else wrong.status,
        pattern=pattern,
        session=session,
        events=newest.events,
        left=newest.left,
        earlier=earlier if wrong is None and earlier > 1 else None,
        cursor="" if before or wrong is not None else str(head),
        wrong=wrong,
        before=before,
    )


def _lost(each: dict[str, Any]) -> dict[str, Any]:
    return {**each, "text": f"cannot be read: {each['what']}", "time": ""}


async def _between(visit: Visit, asked: dict[str, Any], start: int, upto: int) -> Newest:
    """The newest that match of those behind a position, up to another."""
    newest = Newest(SHOWN)
    after, more = str(start), upto > start
    while more:
        page = await visit.given("query_dataspace", {**asked, "after": after, "until": str(upto)})
        found = sorted(page["events"] + [_lost(each) for each in page["unreadable"]], key=lambda each: each["position"])
        for each in found:
            newest.add(each)
        after, more = page["cursor"], page["more"]
    return newest
