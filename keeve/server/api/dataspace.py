"""The dataspace: what was stated, past and live, and what holds.

    GET /api/v1/dataspace?pattern=(turn . _)       a page of events, and the cursor behind it
        Accept: application/x-ndjson               a line for each, and on with what comes
        Accept: text/event-stream                  the same as events, whose ids are cursors (Last-Event-ID)

Who is not `admin` sees what the sessions state that they reach, and nothing else: events of others are left out after
they have matched, so that no pattern finds out anything about them.

The one rule: reading on from a cursor leaves no gap and repeats nothing, from the past into what is live.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import trio
from starlette.responses import Response

from dataspace.observe.events import Away, CaughtUp, Event, Held, Unreadable
from dataspace.observe.holding import Place
from dataspace.observe.observation import Item, Observation
from dataspace.observe.places import place_of
from keeve.faces import event_face
from keeve.looking import Room, held_face, part_of, weight
from keeve.server.api.places import cursor_of
from keeve.server.api.previews import Previews
from keeve.server.api.table import Asked, Document
from keeve.server.errors import Refusal
from keeve.server.streams import EventStream, Lines, Put, Sent
from vat.host.within import dataspace_of


async def query_dataspace(asked: Asked) -> Document:
    """A page of events, or a stream of them."""
    query = asked.query
    whose, after, until = _where(asked)
    sees = Seeing(asked)
    observation = asked.serving.host.observe(
        query.pattern, after=after, until="head" if until is None else until, marks=query.marks, **whose
    )
    events: list[Document] = []
    unreadable: list[Document] = []
    room, more = Room(query.limit), False
    cursor = observation.cursor
    async for item in observation:
        if not isinstance(item, CaughtUp) and sees(item):
            if not room:
                more = True
                break
            room.take(weight(item.value.fields) + weight(item.value.keywords) if isinstance(item, Event) else 0)
            if isinstance(item, Event):
                events.append(event_face(item))
            else:
                unreadable.append(_unreadable(item, str(item.cursor)))
        cursor = item.cursor
        if not room.looks():
            more = True
            break
    else:
        cursor = observation.cursor
    return {"events": events, "unreadable": unreadable, "cursor": str(cursor), "more": more}


async def stream_dataspace(asked: Asked) -> Response:
    """Those that are there, and on with what comes."""
    whose, after, until = _where(asked)
    items = asked.serving.host.observe(asked.query.pattern, after=after, until=until, marks=True, **whose)
    if not asked.accepts("text/event-stream"):
        return Lines(asked.serving, Telling(asked, items, marks=False).run)
    query = asked.query
    for name, wanted in (("pieces", query.pieces), ("head", query.head)):
        if wanted and query.session is None:
            raise Refusal(422, "bad_query", f"{name} is told of one session", "name it: session=ID", name)
    moving = whose["session"] if query.head else None
    return EventStream(asked.serving, Telling(asked, items, marks=True, pieces=query.pieces, moving=moving).run)


def _where(asked: Asked) -> tuple[Any, Any, Any]:
    """Whose events a query is after, behind which place, and up to which."""
    query, whose = asked.query, whose_of(asked)
    after = cursor_of(asked, place_of(query.after))
    return whose, after, None if query.until is None else place_of(query.until)


async def list_facts(asked: Asked) -> Document:
    """What was asserted and not taken back: a part of it, and where it goes on."""
    query = asked.query
    space = dataspace_of(asked.serving.host)
    holding = space.holding(query.pattern, at=query.at, after=Place.parse(query.after), **whose_of(asked))
    facts, behind = await part_of(holding, held_face, query.limit, Seeing(asked))
    following = None if behind is None else str(behind)
    return {"facts": facts, "more": following is not None, "at": holding.at, "next": following}


def whose_of(asked: Asked) -> Any:
    """The session that a query names, which who asks has to reach. Raises `NoSuchSession`."""
    query, serving = asked.query, asked.serving
    if query.session is None:
        return {}
    row = serving.auth.row(serving.principal(asked.request), query.session, "read")
    return {"session": row.uid, "lineage": query.lineage}


class Seeing:
    """Whether somebody sees an event."""

    def __init__(self, asked: Asked) -> None:
        serving = asked.serving
        self._auth = serving.auth
        self._principal = serving.principal(asked.request)
        self._named = asked.query.session is not None
        self._known: dict[bytes, bool] = {}

    def __call__(self, item: Event | Held | Unreadable) -> bool:
        if self._named:
            return True  # it was looked at before anything was read
        seen = self._known.get(item.uid)
        if seen is None:
            seen = self._known[item.uid] = self._auth.sees(self._principal, item.session, item.uid)
            if len(self._known) > 10_000:
                self._known.clear()
        return seen


class Telling:
    """An observation, told as it comes; `pieces`: with what models say of its session, between the facts; `moving`: the
    uid of a session of which it is told how far it is."""

    def __init__(
        self,
        asked: Asked,
        items: Observation[Item],
        *,
        marks: bool,
        pieces: bool = False,
        moving: bytes | None = None,
    ) -> None:
        self._items = items
        self._sees = Seeing(asked)
        self._marks = marks
        self._serving = asked.serving
        self._of = asked.query.session if pieces else None
        self._moving = moving
        self._previews: Previews | None = None
        self._telling = trio.Lock()
        self._next: int | None = None
        """The position of what is about to be told."""

    async def run(self, put: Put) -> None:
        """To its end, if it has one."""
        with ExitStack() as closing:
            if self._of is not None:
                self._previews = Previews(self._serving, self._of)  # not before: who is never run closes nothing
                closing.callback(self._previews.close)
            async with trio.open_nursery() as nursery:
                if self._previews is not None:
                    nursery.start_soon(self._live, self._previews, put)
                if self._moving is not None:
                    nursery.start_soon(self._heads, self._moving, put)
                await self._facts(put)
                nursery.cancel_scope.cancel()

    async def _facts(self, put: Put) -> None:
        """The facts, each behind the pieces that were told before it.

        An observation is caught up again after each record of the log, whatever that has stated. Here that is told
        once, and again after something was.
        """
        told = False
        caught_up = False
        async for item in self._items:
            cursor, self._next = str(item.cursor), item.cursor.position
            async with self._telling:
                if isinstance(item, CaughtUp):
                    self._next = None
                    await self._pieces(put)
                    if self._marks and (told or not caught_up):
                        told, caught_up = False, True
                        await put(Sent({"cursor": cursor}, "caught-up", cursor))
                elif self._sees(item):
                    await self._pieces(put)
                    told = True
                    if isinstance(item, Event):
                        await put(Sent(event_face(item), "", cursor))
                    else:
                        await put(Sent(_unreadable(item, cursor), "unreadable", cursor))
                self._next = None

    async def _live(self, previews: Previews, put: Put) -> None:
        """Pieces as they come."""
        while True:
            previews.came = trio.Event()
            async with self._telling:
                await self._pieces(put)
            await previews.came.wait()

    async def _heads(self, uid: bytes, put: Put) -> None:
        """How far the session is, at first and whenever that changes, behind the pieces that were told before. Who is
        slow is told the newest alone."""
        space = dataspace_of(self._serving.host)
        told = 0
        while (row := space.catalog.by_uid(uid)) is not None:
            if row.seq == told:
                await space.waiting.appended(uid)
                continue
            told = row.seq
            async with self._telling:
                await self._pieces(put)
                await put(Sent({"seq": told, "hash": row.hash.hex()}, "head"))

    async def _pieces(self, put: Put) -> None:
        """Those that were told before what comes next, or by now."""
        if self._previews is not None:
            for piece in self._previews.upto(self._items.cursor.position if self._next is None else self._next - 1):
                await put(piece)


def _unreadable(item: Unreadable, cursor: str) -> dict[str, Any]:
    said = {"position": item.position, "session": item.session, "seq": item.seq, "kind": "unreadable"}
    return {**said, "what": item.what, "away": isinstance(item, Away), "cursor": cursor}
