"""Time travel: the forks of sessions in a picture, and a session as it was after any of its records.

The one rule: the past is looked at and never changed. Who wants to go on from there forks.
"""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any, Final

from starlette.responses import Response

from keeve.errors import SessionDamaged
from keeve.server.errors import Refusal
from keeve.server.page.forks import Picture, newest_in, picture, trees_of, walked
from keeve.server.page.said import in_words
from keeve.server.page.talking import address
from keeve.server.page.visits import Visit

LISTED: Final = 5_000
"""Sessions that are gone through for one page."""
TREES: Final = 10
"""Trees on one page."""
DOTTED: Final = 40
"""Sessions of a tree whose turns are points in the picture."""
DOTS: Final = 100
"""The newest turns of each that are."""
MESSAGES: Final = 60
"""Messages on one page."""


async def show_forks(visit: Visit) -> Response:
    """The tree that one session is in; or all that have forks, the newest first."""
    current = visit.asked("of") or None
    if current is not None:
        drawn = await _picture(visit, current)
        return visit.shows("forks.html", pictures=[drawn], current=current, more=0, whole=True)
    rows, whole = await _rows(visit)
    trees = sorted((tree for tree in trees_of(rows) if tree.children), key=newest_in, reverse=True)
    pictures = [picture(tree, {}) for tree in trees[:TREES]]
    return visit.shows("forks.html", pictures=pictures, current=None, more=max(0, len(trees) - TREES), whole=whole)


async def _rows(visit: Visit) -> tuple[list[dict[str, Any]], bool]:
    rows: list[dict[str, Any]] = []
    following: str | None = ""
    while following is not None and len(rows) < LISTED:
        page = await visit.given("list_sessions", {"after": following, "limit": 1000})
        rows += page["sessions"]
        following = page["next"]
    return rows, following is None


async def _picture(visit: Visit, current: str, here: int | None = None) -> Picture:
    """The tree that a session is in. Raises `NoSuchSession`."""
    visit.serving.gate.row(visit.serving.principal(visit.request), current, "read")
    rows, _ = await _rows(visit)
    for tree in trees_of(rows):
        ids = [node.id for node, _ in walked(tree) if node.known]
        if current in ids:
            near = [current, *(id for id in ids if id != current)][:DOTTED]
            ends = {id: await _ends(visit, id) for id in near}
            return picture(tree, ends, current, here)
    raise Refusal(404, "not_listed", f"session {current!r} is beyond those that were gone through", "use the API")


async def _ends(visit: Visit, id: str) -> list[int]:
    """The seqs at which the newest turns of a session itself were over."""
    found: list[int] = []
    for label in ("turn-done", "turn-failed", "turn-interrupted"):
        with suppress(SessionDamaged):  # what comes before the damage is drawn
            for event in visit.serving.host.query(f"({label} . _)", session=visit.serving.host.row(id).uid):
                found.append(event.seq)
    return sorted(found)[-DOTS:]


# The past of one session.


async def go_to(visit: Visit) -> Response:
    """On to the seq that was asked for."""
    return visit.goes(f"{address(visit)}/at/{visit.number('seq', 1)}")


async def show_past(visit: Visit) -> Response:
    """A session as it was."""
    at = int(text) if (text := str(visit.request.path_params["seq"])).isdecimal() and len(text) < 19 else 0
    if not at:
        raise Refusal(404, "no_such_point", f"{text!r:.40} is no seq", "a seq is a number from 1")
    state = await visit.given("show_state", {"at": at})
    fields = state["fields"]
    messages = fields.pop("messages", None)
    messages = messages if isinstance(messages, list) else []
    last = min(visit.number("before", len(messages) + 1) - 1, len(messages))
    first = max(0, last - MESSAGES)
    snapshots = await visit.given("query_dataspace", {"session": visit.id, "pattern": "(snapshot . _)", "limit": 1000})
    return visit.shows(
        "past.html",
        state=state,
        id=visit.id,
        messages=[_message(message) for message in messages[first:last]],
        first=first,
        count=len(messages),
        fields={name: json.dumps(value, ensure_ascii=False, indent=1) for name, value in fields.items()},
        head=visit.serving.host.row(visit.id).seq,
        drawn=await _picture(visit, visit.id, at),
        snapshots=[_snapshot(visit.id, event) for event in snapshots["events"]],
    )


def _message(message: Any) -> dict[str, Any]:
    if not isinstance(message, dict):
        return {"kind": "note", "title": "", "text": in_words(message), "calls": []}
    role = str(message.get("role", ""))
    calls = message.get("tool_calls")
    found = []
    for call in calls if isinstance(calls, list) else []:
        function = call.get("function") if isinstance(call, dict) else None
        named = function if isinstance(function, dict) else {"arguments": call}
        found.append({"name": in_words(named.get("name")), "arguments": in_words(named.get("arguments"))})
    kind = {"user": "user", "assistant": "model", "tool": "tool"}.get(role, "note")
    return {"kind": kind, "title": role, "text": in_words(message.get("content")), "calls": found}


def _snapshot(id: str, event: dict[str, Any]) -> dict[str, Any]:
    said = {"session": id, "seq": event["seq"], "root": event["keywords"].get("root"), "hash": event["hash"]}
    return {"seq": event["seq"], "time": event["time"], "text": json.dumps(said)}


async def take_snapshot(visit: Visit) -> Response:
    """A snapshot of the session as it is now."""
    named = await visit.given("snapshot_session")
    return visit.goes(f"{address(visit)}/at/{named['seq']}#snapshots")
