"""What a session has many of, in pages: the messages of its conversation, and the records of its chain.

The one rule: a page costs what it gives, and the next one goes on behind it.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from itertools import islice
from typing import Any, ClassVar, Final

import trio

from dataspace.catalog.recent import SessionRow
from dataspace.drafts import read_used
from dataspace.errors import KeeveError
from dataspace.observe.events import Event, Proof
from keeve.faces import face
from keeve.looking.parts import AT_ONCE, Room, weight
from keeve.looking.reading import Reading, read_heap
from keeve.looking.records import of_record
from snapshots.lists import ListTree
from vat.heap.heap import ROOT_ACTOR, Heap
from vat.heap.restore import Lineage

FEW: Final = 16
"""Records that are read before others have a turn."""


class NoMessages(KeeveError, LookupError):
    """A session's type has no field of messages."""

    usage: ClassVar[bool] = True

    def __init__(self, session: str, type: str) -> None:
        super().__init__(
            f"session {session!r} is a {type}, which has no list of messages: see what it has with keeve state"
        )


async def messages(store: Reading, id: str, after: int, limit: int) -> dict[str, Any]:
    """The conversation behind so many messages, in OpenAI's chat form; `next` is `after` of the next page,
    `count` how many there are."""
    row = store.session(id)
    page = await read_heap(store, row, row.seq, lambda past: messages_of(past.heap, after, limit))
    if page is None:
        raise NoMessages(id, row.type)
    return page


async def messages_of(heap: Heap, after: int, limit: int) -> dict[str, Any] | None:
    """The same of a session that has this heap; None where it has no such list. Others have their turns meanwhile."""
    stored = heap.state(ROOT_ACTOR).fields.get("messages")
    part: Iterator[Any]
    if isinstance(stored, ListTree):
        count, first = stored.count, min(after, stored.count)
        part = map(heap.read, stored.iterate(first, min(after + limit, count), heap.page))
    else:
        whole = heap.read(stored)
        if not isinstance(whole, list):
            return None
        count, part = len(whole), islice(whole, after, after + limit)
    page: list[Any] = []
    room = Room(limit)
    for message in part:
        page.append(face(message))
        room.take(weight(message))
        if not room:
            break
        if len(page) % AT_ONCE == 0:
            await trio.lowlevel.checkpoint()
    following = after + len(page) if count > after + len(page) else None
    return {"messages": page, "next": following, "count": count}


async def chain(store: Reading, id: str, after: int, limit: int, words: bool) -> dict[str, Any]:
    """The records of a session behind a seq, in order: of each the bytes that its hash is over, and what it is of. See
    `chain_of`."""
    return await chain_of(store, store.session(id), after, limit, words)


async def chain_of(store: Reading, row: SessionRow, after: int, limit: int, words: bool) -> dict[str, Any]:
    """The same, its ancestors' among them; with `words`, what each has stated, as its hash covers it."""
    records: list[dict[str, Any]] = []
    room, end, lineage = Room(limit), max(after, 0), Lineage(row.uid, store.catalog, store.store.read)
    while room and end < row.seq:
        some = min(FEW, limit - len(records))
        found = [lineage.at(seq) for seq in range(end + 1, min(end + some, row.seq) + 1)]
        stated: dict[int, Event] = {}
        if words:
            first, last = found[0].header.position, found[-1].header.position
            for event in store.space.query("(_ . _)", session=row.uid, lineage=True, after=first - 1, upto=last):
                stated.setdefault(event.position, event)
        for record in found:
            header = record.header
            said = stated.get(header.position)
            told = None if said is None else words_face(store.space.proof(said))
            place = {"seq": header.seq, "position": header.position, "of": of_record(record)}
            records.append({**place, "header": b64encode(header.hashed).decode(), "words": told})
            room.take(weight(records[-1]))
            end = header.seq
            if not room:
                break
        await trio.lowlevel.checkpoint()
    return {"records": records, "next": end if end < row.seq else None}


def words_face(proof: Proof) -> dict[str, Any] | None:
    """What a record has stated, as its hash covers it."""
    opened = proof.opened
    if opened is None:
        return None
    used = set(read_used(opened.facts)[0])
    cells = [{"number": n, "data": b64encode(data).decode()} for n, data in sorted(opened.cells.items()) if n in used]
    digests = {"deeds": proof.deeds, "salt": opened.salt, "facts": opened.facts}
    return {**{name: b64encode(data).decode() for name, data in digests.items()}, "cells": cells}
