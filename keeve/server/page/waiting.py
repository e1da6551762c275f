"""What waits, in all sessions that who asks can reach: calls for a person's word, and effects without an outcome, each
with what is to be done about it.

The one rule: nothing is settled but what somebody has looked at: a form settles one effect.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from starlette.responses import Response

from keeve.errors import SessionDamaged
from keeve.server.api import in_path
from keeve.server.errors import Refusal
from keeve.server.page.visits import Visit, ours

LISTED: Final = 5_000
"""Sessions that are gone through for one page."""
LOOKED_AT: Final = 200
"""Those of them that are asked what waits in them."""

TO_DO: Final = {
    "running": "Nothing: it is being carried out.",
    "wanted": "Nothing, if it is about to be carried out. If it stays: the server has no device of this name, and one "
    "that has takes it up.",
    "started": "Nothing here: another process has begun it.",
    "unknown": "It had begun when a server ended, and nobody knows what came of it. Find out where it was to take "
    "effect, and say it here; or have it run once more, if twice does no harm.",
}
"""By the state of an effect, what is to be done."""


async def show_waiting(visit: Visit) -> Response:
    """All that waits."""
    rows: dict[str, dict[str, Any]] = {}
    following: str | None = ""
    while following is not None and len(rows) < LISTED:
        page = await visit.given("list_sessions", {"after": following, "limit": 1000})
        rows |= {row["id"]: row for row in page["sessions"] if not row["deleted"]}
        following = page["next"]
    asking = await _asking(visit)
    may_wait = [row for row in rows.values() if row["pending"] or any(id in asking for id in _lineage(row, rows))]
    found: list[dict[str, Any]] = []
    for row in may_wait[:LOOKED_AT]:
        try:
            effects = (await visit.given("list_effects", id=row["id"]))["effects"]
            approvals = (await visit.given("list_approvals", id=row["id"]))["approvals"]
        except SessionDamaged as damage:
            found.append({"id": row["id"], "effects": [], "approvals": [], "damage": str(damage)})
            continue
        if effects or approvals:
            found.append({"id": row["id"], "effects": effects, "approvals": approvals, "damage": ""})
    all_seen = following is None and len(may_wait) <= LOOKED_AT
    return visit.shows("waiting.html", found=found, to_do=TO_DO, all_seen=all_seen)


async def _asking(visit: Visit) -> set[str]:
    """The sessions that have ever asked for a person's word."""
    found: set[str] = set()
    after, more = "start", True
    while more:
        asked = {"pattern": "(approval-wanted . _)", "after": after, "until": "head", "limit": 1000, "marks": True}
        page = await visit.given("query_dataspace", asked)
        found |= {event["session"] for event in page["events"]}
        after, more = page["cursor"], page["more"]
    return found


def _lineage(row: dict[str, Any], rows: dict[str, dict[str, Any]]) -> Iterator[str]:
    """The ids of a session and of those that it comes from: a fork waits for what its parent waited for."""
    at: dict[str, Any] | None = row
    while at is not None:
        yield at["id"]
        parent = at["forked_from"] and at["forked_from"]["session"]
        if parent is not None and parent not in rows:
            yield parent
        at = rows.get(parent) if parent else None


async def settle(visit: Visit) -> Response:
    """Give an effect its outcome."""
    how, text = visit.form.get("how"), visit.form.get("text", "")
    if how == "again":
        body: dict[str, Any] = {"again": True}
    elif how == "error":
        body = {"error": text}
    elif how == "json":
        try:
            body = {"value": json.loads(text)}
        except (ValueError, RecursionError) as error:
            raise Refusal(422, "not_json", f"what it gave is no JSON: {error}", "give it as text, or mend it") from None
    else:
        body = {"value": text}
    await visit.given("resolve_effect", body=body)
    return visit.goes(ours(visit.form.get("next", f"/sessions/{in_path(visit.id)}")))
