"""The log, read by a pattern: the newest events that match, or those behind a position; and on with what comes.

The one rule: one pattern means the same here, over the API and in a program. One that is wrong is told beside its box.
"""

from __future__ import annotations

from typing import Any, Final

from starlette.responses import Response

from dataspace.errors import KeeveError
from keeve.server.errors import Refusal
from keeve.server.page.visits import Visit
from keeve.server.page.wording import told

SHOWN: Final = 100
"""Events on one page."""
WINDOW: Final = 400
"""Records before the head that are looked at first; then more of them, for as long as too few match."""
FARTHEST: Final = 20_000
"""Records that are looked at for one page."""


async def show_log(visit: Visit) -> Response:
    """The newest events that match; with `before`, those before a position."""
    pattern, session = visit.asked("pattern", "(_ . _)"), visit.asked("session").strip()
    head = visit.serving.host.observe("(_ . _)", after="head").cursor
    before = visit.number("before")
    upto = min(before - 1, head.position) if before else head.position
    asked = {"pattern": pattern, "session": session or None, "limit": 1000, "marks": True}
    wrong: Refusal | None = None
    events: list[dict[str, Any]] = []
    start = upto
    try:
        for width in (WINDOW, 8 * WINDOW, FARTHEST):
            start = max(0, upto - width)
            events = await _between(visit, asked, start, upto)
            if len(events) >= SHOWN or not start:
                break
    except (Refusal, KeeveError) as error:
        wrong = told(error)
    shown, earlier = events, start + 1
    if len(events) > SHOWN:  # what one record states stays together, if there is room
        shown = [event for event in events if event["position"] > events[0]["position"]] or events
        earlier = shown[0]["position"]
    return visit.shows(
        "log.html",
        200 if wrong is None else wrong.status,
        pattern=pattern,
        session=session,
        events=shown,
        earlier=earlier if wrong is None and earlier > 1 else None,
        cursor="" if before or wrong is not None else str(head),
        wrong=wrong,
        before=before,
    )


def _lost(each: dict[str, Any]) -> dict[str, Any]:
    return {**each, "text": f"cannot be read: {each['what']}", "time": ""}


async def _between(visit: Visit, asked: dict[str, Any], start: int, upto: int) -> list[dict[str, Any]]:
    """The newest that match of those behind a position, up to another; a little more than are shown."""
    events: list[dict[str, Any]] = []
    after, more = str(start), upto > start
    while more:
        page = await visit.given("query_dataspace", {**asked, "after": after, "until": str(upto)})
        found = sorted(page["events"] + [_lost(each) for each in page["unreadable"]], key=lambda each: each["position"])
        events = (events + found)[-SHOWN - 1 :]
        after, more = page["cursor"], page["more"]
    return events
