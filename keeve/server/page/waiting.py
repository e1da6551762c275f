"""What waits, in all sessions that who asks can reach: calls for a person's word, and effects without an outcome, each
with what is to be done about it.

The one rule: nothing is settled but what somebody has looked at: a form settles one effect.
"""

from __future__ import annotations

import json
from typing import Any, Final

from starlette.responses import Response

from keeve.server.errors import Refusal
from keeve.server.page.drawing import in_path
from keeve.server.page.visits import Visit, ours

LOOKED_AT: Final = 200
"""Sessions with work under way that are looked at for one page."""

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
    found: list[dict[str, Any]] = []
    looked = 0
    following: str | None = ""
    while following is not None and looked < LOOKED_AT:
        page = await visit.given("list_sessions", {"after": following, "limit": 1000})
        following = page["next"]
        for row in page["sessions"]:
            if row["pending"] and not row["deleted"] and looked < LOOKED_AT:
                looked += 1
                effects = (await visit.given("list_effects", id=row["id"]))["effects"]
                approvals = (await visit.given("list_approvals", id=row["id"]))["approvals"]
                if effects or approvals:
                    found.append({"id": row["id"], "effects": effects, "approvals": approvals})
    return visit.shows("waiting.html", found=found, to_do=TO_DO, all_seen=following is None and looked < LOOKED_AT)


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
