"""The sessions: those that who asks can reach, the newest first, found by their ids and by what was said in them first.

The one rule: of a session on the list nothing is loaded. Its row and one fact are read.
"""

from __future__ import annotations

from typing import Any, Final

import trio
from starlette.responses import Response

from dataspace.errors import KeeveError
from keeve.faces import face
from keeve.server.api import in_path
from keeve.server.page.said import in_line
from keeve.server.page.visits import Visit

SCANNED: Final = 5_000
"""Sessions that are looked at for one page of the list."""
SHOWN: Final = 50


async def show_sessions(visit: Visit) -> Response:
    """A page of the list."""
    wanted, after, skip = visit.asked("q").strip(), visit.asked("after"), visit.number("skip")
    rows: list[dict[str, Any]] = []
    following: str | None = after
    while following is not None and len(rows) < SCANNED:
        page = await visit.given("list_sessions", {"after": following, "limit": 1000})
        rows += page["sessions"]
        following = page["next"]
    if wanted:
        rows = [row for row in rows if await _matches(visit, row, wanted.casefold())]
    rows.sort(key=lambda row: row["updated"], reverse=True)
    shown = rows[skip : skip + SHOWN]
    for row in shown:
        row["words"] = first_words(visit, row["id"])
    return visit.shows(
        "sessions.html",
        q=wanted,
        after=after,
        rows=shown,
        count=len(rows),
        skip=skip,
        step=SHOWN,
        following=following,
        scanned=SCANNED,
        models=tuple(visit.serving.named),
    )


async def _matches(visit: Visit, row: dict[str, Any], wanted: str) -> bool:
    await trio.lowlevel.checkpoint()
    return wanted in row["id"].casefold() or wanted in first_words(visit, row["id"]).casefold()


def first_words(visit: Visit, id: str) -> str:
    """What was said first in a session, on one line; "" where nothing was, and where it cannot be read (any more)."""
    host = visit.serving.host
    try:
        event = next(host.query("(turn . _)", session=host.row(id).uid, lineage=True), None)
    except KeeveError:
        return ""
    return "" if event is None else in_line(face(event.value.keywords.get("input")))


async def make_session(visit: Visit) -> Response:
    """A new one, by the form below the list."""
    said = {name: visit.form[name].strip() for name in ("system", "model") if visit.form.get(name, "").strip()}
    made = await visit.given("create_session", body={"id": visit.form.get("id", "").strip() or None, "fields": said})
    return visit.goes(f"/sessions/{in_path(made['id'])}")
