"""What waits, in all sessions that who asks can reach: calls for a person's word, and effects without an outcome, each
with what is to be done about it.

The one rule: nothing is settled but what somebody has looked at: a form settles one effect.
"""

from __future__ import annotations

import json
from typing import Any, Final

import trio
from starlette.responses import Response

from keeve.looking import BEHIND, Room, UnreadSession, approval_face, effect_face, in_order, order_in, some_of, written
from keeve.server.api import in_path
from keeve.server.errors import Refusal
from keeve.server.page.visits import Visit, ours
from keeve.server.page.wording import told

PASSED: Final = 50_000
"""Records and sessions that are passed by for one page, to find those that may wait."""
LOOKED_AT: Final = 200
"""Sessions of which it is read what waits in them."""
SHOWN: Final = 500
"""Calls and effects on one page."""

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
    """All that waits, of as many sessions as are looked at for one page; with `after`, of those that follow."""
    visit.serving.principal(visit.request).must("read")
    store = visit.reading
    state_of = store.state_of()
    found: list[dict[str, Any]] = []
    after = behind = order_in(visit.asked("after"))
    looked, all_seen, room = 0, True, Room(SHOWN)
    for number, each in enumerate(in_order(store, after)):
        if (looked >= LOOKED_AT and behind > after) or number == PASSED or not room:
            all_seen = False
            break
        await trio.lowlevel.checkpoint()
        if each is None:
            continue
        path, waits = each
        shown: dict[str, Any] = {"id": path[-1], "effects": [], "approvals": [], "damage": "", "more": False}
        if isinstance(waits, UnreadSession):
            found.append({**shown, "damage": said_of(waits.error)})
        elif waits.effects or waits.approvals:
            effects, more = await some_of((effect_face(one, state_of(one)) for one in waits.effects), room)
            approvals, more_calls = await some_of(map(approval_face, waits.approvals), room)
            found.append({**shown, "effects": effects, "approvals": approvals, "more": more or more_calls})
        behind, looked = max(behind, (path, BEHIND)), looked + 1
    following = written(behind) if not all_seen and behind > after else None
    return visit.shows("waiting.html", found=found, to_do=TO_DO, all_seen=all_seen, following=following)


def said_of(error: Exception) -> str:
    """What is wrong with a session, in words of the page."""
    refusal = told(error)
    return str(error) if refusal is None else refusal.message


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
