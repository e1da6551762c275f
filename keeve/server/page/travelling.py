"""Time travel: the forks of sessions in a picture, and a session as it was after any of its records.

The one rule: the past is looked at and never changed. Who wants to go on from there forks.
"""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any, Final

from starlette.responses import Response

from dataspace.catalog.recent import SessionRow
from dataspace.observe.cursor import number_in
from dataspace.patterns import parse
from keeve.errors import Archived, Deleted, NoSuchSession, SessionDamaged
from keeve.faces import ENDS, utc_time
from keeve.server.api import row_face
from keeve.server.errors import Refusal
from keeve.server.finding import before_last
from keeve.server.page.forks import MOST, Picture, newest_in, picture, trees_of, walked
from keeve.server.page.past import past_of
from keeve.server.page.talking import address
from keeve.server.page.visits import Visit

LISTED: Final = 5_000
"""Sessions that are gone through for the page of all trees."""
TREES: Final = 10
"""Trees on one page."""
DOTTED: Final = 40
"""Sessions of a tree whose turns are points in the picture."""
DOTS: Final = 100
"""The newest turns of each that are; they are looked for in four times as many records."""
SNAPSHOTS: Final = 20
"""Snapshots on one page, the newest; they are looked for in the newest `SNAPSHOTS_IN` records."""
SNAPSHOTS_IN: Final = 20_000
FORKS: Final = parse("(fork _ #:into ?into #:at _)")
UNREAD: Final = (SessionDamaged, Archived)
"""What of a session cannot be read: what comes before is shown."""


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
    host, auth = visit.serving.host, visit.serving.auth
    principal = visit.serving.principal(visit.request)
    family = await _family(visit, auth.row(principal, current, "read"))
    rows = {row.id: row for row in family if auth.reaches(principal, row)}
    for tree in trees_of([row_face(host, row) for row in rows.values()]):
        ids = [node.id for node, _ in walked(tree) if node.known]
        if current in ids:
            near = [current, *(id for id in ids if id != current)][:DOTTED]
            return picture(tree, {id: await _ends(visit, rows[id]) for id in near}, current, here)
    raise NoSuchSession(current)  # a session is in the tree that it is in


async def _family(visit: Visit, row: SessionRow) -> list[SessionRow]:
    """The sessions of its tree that are there, its own line first, whoever has them; not many more than are drawn."""
    host = visit.serving.host
    line = [row]
    while line[-1].parent is not None and len(line) <= MOST:
        with suppress(NoSuchSession, Deleted):
            line.append(host.row(line[-1].parent))
            continue
        break
    found = {each.uid: each for each in line}
    stack = line[::-1]
    while stack and len(found) <= 2 * MOST:
        for event in await _forks_of(visit, stack.pop()):
            with suppress(NoSuchSession, Deleted):
                child = host.row(event.captures["into"])
                if child.uid not in found:
                    found[child.uid] = child
                    stack.append(child)
    return list(found.values())


async def _forks_of(visit: Visit, row: SessionRow) -> list[Any]:
    """The forks of one session, not many more than are drawn."""
    found: list[Any] = []
    with suppress(*UNREAD):
        async for event in visit.serving.host.observe(FORKS, session=row.uid, until="head"):
            found.append(event)
            if len(found) > 2 * MOST:
                break
    return found


async def _ends(visit: Visit, row: SessionRow) -> list[int]:
    """The seqs at which the newest turns of a session itself were over."""
    host = visit.serving.host
    found: list[int] = []
    for label in ENDS:
        with suppress(*UNREAD):
            after = before_last(host, row, 4 * DOTS)
            async for event in host.observe(f"({label} . _)", session=row.uid, after=after, until="head"):
                found.append(event.seq)
    return sorted(found)[-DOTS:]


# The past of one session.


async def go_to(visit: Visit) -> Response:
    """On to the seq that was asked for."""
    return visit.goes(f"{address(visit)}/at/{visit.number('seq', 1)}")


async def show_past(visit: Visit) -> Response:
    """A session as it was."""
    at = number_in(text := str(visit.request.path_params["seq"]))
    if not at:
        raise Refusal(404, "no_such_point", f"{text!r:.40} is no seq", "a seq is a number from 1")
    serving = visit.serving
    row = serving.auth.row(serving.principal(visit.request), visit.id, "read")
    past = serving.host.look(visit.id, past_of(visit.reading, visit.number("before")), at)
    return visit.shows(
        "past.html",
        past=past,
        signs=visit.signs,
        time=utc_time(past.time),
        id=visit.id,
        head=row.seq,
        drawn=await _picture(visit, visit.id, at),
        snapshots=await _snapshots(visit, row),
    )


async def _snapshots(visit: Visit, row: SessionRow) -> list[dict[str, Any]]:
    """The newest of a session, its ancestors' among them; as values, from which each can be restored."""
    host = visit.serving.host
    found: list[dict[str, Any]] = []
    with suppress(*UNREAD):
        after = before_last(host, row, SNAPSHOTS_IN)
        async for event in host.observe("(snapshot . _)", session=row.uid, lineage=True, after=after, until="head"):
            said = {"session": event.session, "seq": event.seq, "root": event.value.keywords.get("root")}
            text = json.dumps({**said, "hash": event.hash.hex()})
            found.append({"seq": event.seq, "time": utc_time(event.time), "text": text})
    return found[-SNAPSHOTS:]


async def take_snapshot(visit: Visit) -> Response:
    """A snapshot of the session as it is now."""
    named = await visit.given("snapshot_session")
    return visit.goes(f"{address(visit)}/at/{named['seq']}#snapshots")
