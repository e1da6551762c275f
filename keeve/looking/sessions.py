"""Which sessions there are, what one of them holds, and what all of them wait for: in JSON.

The one rule: read, never loaded. A session whose actor type is not known here is told of like any other.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from itertools import islice
from typing import Any, Final

import trio

from actors.responding import Responding
from actors.session import Session
from dataspace.errors import KeeveError
from dataspace.log.archives import Archived
from dataspace.log.verdicts import SessionDamaged
from dataspace.observe.events import Event
from keeve.faces import TELLING, Turn, event_face, fork_face, session_face, tell, turns_of, utc_time
from keeve.looking.fields import fields_in_words
from keeve.looking.parts import LOOKED_AT, PAGE, ROOM, Room, rows_of, weight
from keeve.looking.reading import CACHE, Reading, read_heap
from keeve.looking.refs import refs_in_words
from keeve.looking.state import FieldPlace, FieldsPage, fields_of
from keeve.looking.waiting import Waits, waits_in, waits_of
from keeve.looking.waitlist import KINDS, in_order, order_in, page_in_order
from snapshots.cache import PageCache
from vat.heap.heap import ROOT_ACTOR
from vat.heap.restore import Lineage, NoSuchPoint, Restored
from vat.heap.settled import of_log, settled_in
from vat.objects.types import type_of

NEWEST: Final = 10
"""Facts of a type's own that are shown."""

CONVERSATION: Final = type_of(Session).name
"""The type of a session unless another one is named."""

CONVERSATIONS: Final = frozenset((CONVERSATION, type_of(Responding).name))
"""The types whose fields people are shown as turns."""


async def list_sessions(store: Reading, prefix: str, after: str, limit: int, deleted: bool) -> dict[str, Any]:
    """At most `limit` sessions whose ids begin with `prefix` and follow `after`, of those that are looked at for it.
    `next` is what `after` is for the next part, if there may be more."""
    rows, following = await rows_of(store.listed, store.reaches, prefix, after, limit, deleted)
    return {"sessions": [session_face(row, store.row(row.parent)) for row in rows], "next": following}


async def row(store: Reading, id: str) -> dict[str, Any]:
    """What the catalog knows of a session."""
    found = store.session(id)
    return session_face(found, store.row(found.parent))


class NewestTurns:
    """The newest turns of a session for which one answer has room, put together from what it has stated."""

    def __init__(self) -> None:
        self._turns: dict[int, Turn] = {}
        self._weights: dict[int, int] = {}
        self._weight = 0
        self.before = 0
        """How many turns before them were left out."""

    def __iter__(self) -> Iterator[Turn]:
        return iter(self._turns.values())

    def hear(self, event: Event) -> None:
        """It has stated this."""
        fact = event.value
        number = fact.fields[0] if fact.fields else None
        if type(number) is not int:  # whatever its label is, it is about no turn
            return
        if fact.label == "turn":
            self._turns |= {turn.number: turn for turn in turns_of([event])}
        elif number in self._turns and fact.label in TELLING and event.kind == "assert":
            tell(self._turns[number], event)
        if number not in self._turns or fact.label == "model-output":  # of which a turn has nothing but that it was
            return
        more = weight(fact.keywords)
        self._weights[number] = self._weights.get(number, 0) + more
        self._weight += more
        while len(self._turns) > 1 and (len(self._turns) > PAGE or self._weight > ROOM):
            first = next(iter(self._turns))
            del self._turns[first]
            self._weight -= self._weights.pop(first, 0)
            self.before += 1


async def show(store: Reading, id: str, whole: bool) -> dict[str, Any]:
    """All that is shown of a session; `whole`: with its fields in JSON, else each in words, on one line.

    `damage` is why not all of it could be read, `away` whether that is only archived, and not here. Of turns, facts and
    snapshots it has the newest, of what else is much as much as there is room for: `turns_before`, `fields_next` (see
    `state`) and `truncated` say what there is besides. Costs a reading of its records, and a restore.
    """
    row = store.session(id)
    damages: list[KeeveError] = []
    facts: deque[Event] = deque(maxlen=NEWEST)
    turns = NewestTurns()
    async for event in _readable(store, "(_ . _)", row.uid, damages, lineage=True):
        if "." in event.value.label or event.value.label == "fiber-failed":
            facts.append(event)
        turns.hear(event)
    forks: list[dict[str, Any]] = []
    truncated: list[str] = []
    async with aclosing(_readable(store, "(fork ? . _)", row.uid, damages)) as events:
        async for event in events:
            if len(forks) == PAGE:
                truncated.append("forks")
                break
            said = event.value.keywords
            into = str(said.get("into"))
            forks.append(fork_face(into, said.get("at"), store.catalog.session(into)))
    waits, fields = Waits(), FieldsPage({}, {}, None)

    async def look(now: Restored) -> tuple[Waits, FieldsPage]:
        waits = waits_in(row, now.heap, Lineage(row.uid, store.catalog, store.store.read))
        if whole:
            return waits, await fields_of(now.heap, FieldPlace())
        words = {} if row.type in CONVERSATIONS else dict(fields_in_words(now.heap, store))
        return waits, FieldsPage(words, {}, None)

    try:
        waits, fields = await read_heap(store, row, row.seq, look)
    except KeeveError as error:
        damages.append(error)
    damage = min(damages, key=lambda each: isinstance(each, Archived), default=None)
    told = ("effects", "approvals", "fibers", "promises")
    page = await page_in_order(store, [((row.id,), waits)], kinds=told)
    return {
        **session_face(row, store.row(row.parent)),
        "turns": [turn.face for turn in turns],
        "turns_before": turns.before,
        "fields": fields.fields,
        "parts": fields.parts,
        "fields_next": fields.next,
        "facts": [event_face(event) for event in _newest(facts)],
        "forks": forks,
        "snapshots": [snapshot.seq for snapshot in islice(store.catalog.snapshots(row.uid), PAGE)],
        **{kind: page[kind] for kind in told},
        "truncated": [*truncated, *page["truncated"]],
        "damage": None if damage is None else str(damage),
        "away": isinstance(damage, Archived),
        "owner": store.owner,
    }


async def state(store: Reading, id: str, at: int | None, after: str = "", words: bool = False) -> dict[str, Any]:
    """The public fields of a session as they were after the record `at` (None: now), or those behind a place, with what
    the actors have that they lead to (`parts`); `next` is what `after` is for the next page, with `seq` as `at`. With
    `words`, `refs` has some for each ref in them."""
    row = store.session(id)
    seq = row.seq if at is None else at
    if not 1 <= seq <= row.seq:
        raise NoSuchPoint(id, seq, 1, row.seq)

    async def look(past: Restored) -> dict[str, Any]:
        said = {"session": row.id, "type": past.heap.state(ROOT_ACTOR).type, "seq": past.seq, "hash": past.hash.hex()}
        page = await fields_of(past.heap, FieldPlace.parse(after))
        refs = {"refs": refs_in_words([page.fields, page.parts], past.heap, store)} if words else {}
        told = {"fields": page.fields, "parts": page.parts, "next": page.next}
        return {**said, "time": utc_time(past.heap.time), **told, **refs}

    return await read_heap(store, row, seq, look)


async def waits(store: Reading, id: str, after: str = "", limit: int = LOOKED_AT, kinds: Any = KINDS) -> dict[str, Any]:
    """What one session waits for, a page of it. Costs a restore."""
    row = store.session(id)
    found = ((row.id,), waits_of(store, row, PageCache(CACHE)))
    return {"owner": store.owner, **await page_in_order(store, [found], order_in(after), limit, kinds)}


async def waiting(
    store: Reading, effect: str = "", after: str = "", limit: int = LOOKED_AT, kinds: Any = KINDS
) -> dict[str, Any]:
    """What all sessions wait for, and which could not be read, a page of it; of effects those whose ids begin so.

    Of which kinds there is more on further pages is not known: `truncated` names those that were asked for.
    """
    place = order_in(after)
    page = await page_in_order(store, in_order(store, place), place, limit, kinds, effect)
    more = [kind for kind in KINDS if kind in kinds and kind != "unreadable" and page["next"] is not None]
    return {"owner": store.owner, **page, "truncated": more}


async def settled(store: Reading, effect: str) -> dict[str, Any]:
    """What became of the newest effect that has an outcome and whose id begins so, by the newest records of the log:
    its `id`, its `session`, and `became`, in words; nothing where there is none."""
    records = of_log(store.catalog.head.position, store.catalog.at, store.store.read)
    for each in settled_in(records, effect):
        if each is not None and (row := store.catalog.by_uid(each.uid)) is not None and store.reaches(row):
            return {"id": each.id, "session": row.id, "became": each.words}
        await trio.lowlevel.checkpoint()
    return {}


async def lacking(store: Reading) -> dict[str, Any]:
    """The devices that work waits for, and that the host which has the store has not."""
    return {"devices": sorted(store.lacking())}


def _newest(facts: Sequence[Event]) -> list[Event]:
    """The last of these for which there is room, in their order."""
    found: deque[Event] = deque()
    room = Room(NEWEST)
    for event in reversed(facts):
        if not room:
            break
        found.appendleft(event)
        room.take(weight(event.value.fields) + weight(event.value.keywords))
    return list(found)


async def _readable(
    store: Reading, pattern: str, uid: bytes, damages: list[KeeveError], *, lineage: bool = False
) -> AsyncGenerator[Event, None]:
    """The events up to the first record that is damaged. Those are left out whose content is archived and not here.

    Others have their turns meanwhile.
    """
    after: Any = "start"
    while True:
        try:
            async for event in store.space.observe(pattern, after=after, session=uid, lineage=lineage, until="head"):
                yield event
        except SessionDamaged as error:
            damages.append(error)
        except Archived as error:
            damages.append(error)
            after = error.position
            continue
        return
