"""Which sessions there are, what one of them holds, and what all of them wait for: in JSON.

The one rule: read, never loaded. A session whose actor type is not known here is told of like any other.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator
from typing import Any, Final

import trio

from actors.responding import Responding
from actors.session import Session
from dataspace.errors import KeeveError
from dataspace.log.archives import Archived
from dataspace.log.verdicts import SessionDamaged
from dataspace.observe.events import Event
from keeve.faces import event_face, fields_face, session_face, turns_of, utc_time
from keeve.looking.fields import fields_in_words
from keeve.looking.parts import rows_of
from keeve.looking.reading import Reading
from keeve.looking.waiting import (
    CACHE,
    UnreadSession,
    Waits,
    all_waits,
    approval_face,
    effect_face,
    fiber_face,
    waits_in,
    waits_of,
)
from snapshots.cache import PageCache
from vat.heap.heap import ROOT_ACTOR
from vat.heap.pending import stored_heap
from vat.heap.restore import Lineage, NoSuchPoint, restore
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
    rows, following = await rows_of(store.catalog.sessions, store.reaches, prefix, after, limit, deleted)
    return {"sessions": [session_face(row, store.name(row.parent)) for row in rows], "next": following}


async def row(store: Reading, id: str) -> dict[str, Any]:
    """What the catalog knows of a session."""
    found = store.session(id)
    return session_face(found, store.name(found.parent))


async def show(store: Reading, id: str, whole: bool) -> dict[str, Any]:
    """All that is shown of a session; `whole`: with its fields in JSON, else each in words, on one line.

    `damage` is why not all of it could be read, `away` whether that is only archived, and not here. Costs a reading of
    its records, and a restore.
    """
    row = store.session(id)
    damages: list[KeeveError] = []
    facts: deque[Event] = deque(maxlen=NEWEST)
    told: list[Event] = []
    async for event in _readable(store, "(_ . _)", row.uid, damages, lineage=True):
        if "." in event.value.label or event.value.label == "fiber-failed":
            facts.append(event)
        told.append(event)
    forks = [
        {"session": str(event.value.keywords.get("into")), "at": _number(event.value.keywords.get("at"))}
        async for event in _readable(store, "(fork ? . _)", row.uid, damages)
    ]
    waits = Waits()
    fields: dict[str, Any] = {}
    try:
        heap, lineage = stored_heap(row, store.catalog, store.store.read, PageCache(CACHE))
        waits = waits_in(row, heap, lineage)
        fields = fields_face(heap) if whole else {} if row.type in CONVERSATIONS else dict(fields_in_words(heap))
    except KeeveError as error:
        damages.append(error)
    damage = min(damages, key=lambda each: isinstance(each, Archived), default=None)
    return {
        **session_face(row, store.name(row.parent)),
        "turns": [turn.face for turn in turns_of(told)],
        "fields": fields,
        "facts": [event_face(event) for event in facts],
        "forks": forks,
        "snapshots": [snapshot.seq for snapshot in store.catalog.snapshots(row.uid)],
        **_faces(store, [waits]),
        "damage": None if damage is None else str(damage),
        "away": isinstance(damage, Archived),
        "owner": store.owner,
    }


async def state(store: Reading, id: str, at: int | None) -> dict[str, Any]:
    """The public fields of a session as they were after the record `at` (None: now)."""
    row = store.session(id)
    seq = row.seq if at is None else at
    if not 1 <= seq <= row.seq:
        raise NoSuchPoint(id, seq, 1, row.seq)
    past = restore(Lineage(row.uid, store.catalog, store.store.read), store.catalog, PageCache(CACHE), seq)
    said = {"session": row.id, "type": past.heap.state(ROOT_ACTOR).type, "seq": past.seq, "hash": past.hash.hex()}
    return {**said, "time": utc_time(past.heap.time), "fields": fields_face(past.heap)}


async def waits(store: Reading, id: str) -> dict[str, Any]:
    """What one session waits for. Costs a restore."""
    return _faces(store, [waits_of(store, store.session(id), PageCache(CACHE))])


async def waiting(store: Reading) -> dict[str, Any]:
    """What all sessions wait for, and which of them could not be read."""
    found: list[Waits] = []
    unread: list[UnreadSession] = []
    for each in all_waits(store):
        if isinstance(each, UnreadSession):
            unread.append(each)
        elif each is not None:
            found.append(each)
        await trio.lowlevel.checkpoint()
    return {
        "owner": store.owner,
        **_faces(store, found),
        "unreadable": [{"session": each.session, "what": str(each.error)} for each in unread],
    }


async def lacking(store: Reading) -> dict[str, Any]:
    """The devices that work waits for, and that the host which has the store has not."""
    return {"devices": sorted(store.lacking())}


def _faces(store: Reading, found: list[Waits]) -> dict[str, Any]:
    state_of = store.state_of()
    return {
        "effects": [effect_face(effect, state_of(effect)) for waits in found for effect in waits.effects],
        "approvals": [approval_face(call) for waits in found for call in waits.approvals],
        "fibers": [fiber_face(fiber, waits, store) for waits in found for fiber in waits.fibers],
    }


async def _readable(
    store: Reading, pattern: str, uid: bytes, damages: list[KeeveError], *, lineage: bool = False
) -> AsyncIterator[Event]:
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


def _number(value: Any) -> int:
    return value if type(value) is int else 0
