"""A small world for tests of the catalog and of observers: a log in memory, and sessions that state facts."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import pytest

from dataspace.catalog.catalog import Catalog
from dataspace.catalog.recall import noted
from dataspace.drafts import Assertion, Draft, Handle
from dataspace.facts import Fact, fact
from dataspace.log.marks import Damage
from dataspace.log.memory import MemoryLog, MemoryStore, MemoryStored
from dataspace.log.verdicts import SessionDamaged
from dataspace.observe.dataspace import Dataspace
from dataspace.observe.events import Event
from dataspace.observe.observation import Observation
from dataspace.records import STORE_UID, ZERO_HASH, Body, Kind, Record
from dataspace.values import FrozenDict, freeze


class World:
    """Sessions over one store. What is said is durable at once, and noted unless `deaf`."""

    def __init__(self, path: Path | None = None, log: MemoryLog | None = None, secret: bytes | None = None) -> None:
        self.log = MemoryLog(b"log of the tests") if log is None else log
        self.path = path
        self.random = random.Random(7)
        self.store = MemoryStore(self.log)
        self.store.secret = secret
        self.catalog = Catalog(path, self.store)
        self.space = Dataspace(self.store, self.catalog)
        self.uids: dict[str, bytes] = {}
        self.heads: dict[bytes, tuple[int, bytes]] = {}
        self.deaf = False

    def reopen(self, path: Path | None = None) -> World:
        """The same log, opened afresh, with the catalog file at `path`."""
        self.catalog.close()
        self.store.close()
        world = World(self.path if path is None else path, self.log, self.store.secret)
        world.uids, world.heads, world.random = self.uids, self.heads, self.random
        return world

    def draft(self, uid: bytes, kind: Kind, message: Any = None, pending: int = 0) -> Draft:
        seq, _ = self.heads.get(uid, (0, ZERO_HASH))
        draft = Draft(uid, seq + 1, kind, 1_000 * self.store.head.position)
        draft.message = freeze(message, draft)
        draft.pending = pending
        return draft

    def seal(self, draft: Draft) -> Record:
        record = draft.seal(self.heads.get(draft.uid, (0, ZERO_HASH))[1], self.random.randbytes)
        self.heads[draft.uid] = (record.seq, record.hash)
        return record

    def append(self, *drafts: Draft | Record) -> list[Record]:
        """Append one batch: drafts of different sessions, or records that were sealed one after the other."""
        records = [self.seal(draft) if isinstance(draft, Draft) else draft for draft in drafts]
        self.store.append(records)
        if not self.deaf:
            self.space.note(records)
        return records

    def spawn(self, *ids: str, type: str = "chat.session", by: str = "ada") -> None:
        drafts = []
        for id in ids:
            self.uids[id] = self.random.randbytes(16)
            drafts.append(self.draft(self.uids[id], Kind.SPAWN, {"id": id, "type": type, "by": by, "via": "test"}))
            state(drafts[-1], Fact("spawn", (id,), FrozenDict({"type": type})))
        self.append(*drafts)

    def saying(self, id: str, *facts: Fact, retract: tuple[Handle, ...] = (), pending: int = 0) -> Draft:
        """A crank of session `id` that states facts and takes others back."""
        draft = self.draft(self.uids[id], Kind.CRANK, {"method": "say"}, pending)
        for said in facts:
            state(draft, said)
        for handle in retract:
            draft.retracted(draft.operation(), handle)
        return draft

    def say(self, id: str, *facts: Fact, retract: tuple[Handle, ...] = (), pending: int = 0) -> Record:
        return self.append(self.saying(id, *facts, retract=retract, pending=pending))[0]

    def fork(self, id: str, into: str, at: int | None = None) -> None:
        """Fork session `id` at a seq (default: its head)."""
        parent = self.uids[id]
        seq, digest = self.heads[parent]
        if at is not None and at != seq:
            address = self.catalog.locate(parent, at)
            assert address is not None
            seq, digest = at, self.store.read(address).header.hash
        child = self.uids[into] = self.random.randbytes(16)
        here = self.draft(parent, Kind.FORK, {"into": into, "child": child, "at": seq})
        state(here, Fact("fork", (id,), FrozenDict({"into": into, "at": seq})))
        self.heads[child] = (seq, digest)
        message = {"id": into, "type": "chat.session", "parent": parent, "seq": seq, "hash": digest, "by": "eve"}
        there = self.draft(child, Kind.FORKED, message)
        state(there, Fact("forked", (into,), FrozenDict({"from": id, "at": seq})))
        self.append(here, there)

    def delete(self, id: str) -> None:
        draft = self.draft(self.uids[id], Kind.DELETE, {"id": id})
        state(draft, Fact("deleted", (id,), FrozenDict({})))
        self.append(draft)

    def snapshot(self, id: str) -> Record:
        uid = self.uids[id]
        draft = self.draft(uid, Kind.SNAPSHOT, {"root": [0, bytes(32)], "seq": self.heads[uid][0]})
        state(draft, Fact("snapshot", (id,), FrozenDict({})))
        return self.append(draft)[0]


def state(draft: Draft, fact: Fact) -> None:
    draft.stated(
        draft.operation(),
        fact.label,
        [freeze(field, draft) for field in fact.fields],
        FrozenDict({name: freeze(value, draft) for name, value in fact.keywords.items()}),
    )


# Worlds, and what to compare.


def busy_world(path: Path | None = None, secret: bytes | None = None) -> World:
    """A world in which a little of everything has happened."""
    world = World(path, secret=secret)
    world.spawn("ada", "bob", "cyd", "dan")
    for turn in range(1, 6):
        for id in ("ada", "bob", "cyd"):
            world.say(id, fact("turn", turn, id, input="x" * 300), pending=turn % 2)
            order = world.say(id, fact("shop.order", turn), fact("shop.order", turn, late=True), fact("shop.note"))
            if turn % 2:
                world.say(id, retract=(Handle(order.seq, 0), Handle(order.seq, 2)))
        world.snapshot("ada")
    world.fork("ada", "ada.1")
    world.fork("ada", "ada.2", at=4)
    world.fork("ada.1", "ada.1.1")
    world.say("ada.1.1", fact("turn", 6, "ada.1.1"), pending=3)
    world.delete("bob")
    return world


def everything(catalog: Catalog) -> dict[str, Any]:
    """All that can be asked of a catalog."""
    head = catalog.head.position
    rows = catalog.sessions(limit=1000, deleted=True)
    uids = [row.uid for row in rows] + [STORE_UID]
    labels = ("turn", "shop.order", "shop.note", "spawn", "fork", "forked", "deleted", "never.said", None)
    return {
        "head": catalog.head,
        "rows": rows,
        "living": [row.id for row in catalog.sessions(limit=1000)],
        "owned": [[row.id for row in catalog.sessions(limit=1000, by=by)] for by in ("ada", "eve", "bob", "")],
        "named": [catalog.session(row.id) for row in rows] + [catalog.session("nobody"), catalog.session("")],
        "by uid": [catalog.by_uid(uid) for uid in uids],
        "pending": sorted(catalog.with_pending()),
        "lineage": [catalog.lineage(uid) for uid in uids],
        "at": [catalog.at(position) for position in range(head + 3)],
        "located": [catalog.locate(uid, seq) for uid in uids for seq in range(40)],
        "snapshots": [catalog.snapshots(uid, upto, limit=3) for uid in uids for upto in (1, 5, 1000)],
        "positions": [
            list(catalog.positions(uid, label, after, upto))
            for uid in [*uids, None]
            for label in labels
            for after, upto in ((0, None), (7, head - 3), (head, None))
        ],
        "standing": [list(catalog.standing(label, at)) for label in labels if label for at in range(head + 1)],
        "taken": [sorted(catalog.taken(1, head, at)) for at in range(head + 1)],
    }


def in_memory(world: World) -> Catalog:
    return Catalog(None, world.store)


def talkative_world(path: Path | None = None) -> World:
    world = World(path)
    world.spawn("ada", "bob")
    for turn in range(1, 4):
        for id in ("ada", "bob"):
            world.say(id, fact("turn", turn, id, input="x" * 300), fact("turn-done", turn, id, output="y"))
    return world


def whole_log(world: World, label: str | None = None) -> list[tuple[int, int]]:
    """The position and operation of every assertion in the log."""
    return [
        (stored.header.position, statement.at)
        for stored in world.store.scan()
        for statement in noted(stored).statements
        if isinstance(statement, Assertion) and label in (None, statement.fact.label)
    ]


def places(items: list[Any]) -> list[tuple[int, int]]:
    return [(item.position, item.operation) for item in items if isinstance(item, Event)]


async def read(observation: Observation) -> list[Any]:
    return [item async for item in observation]


def counting(calls: list[int], function: Any) -> Any:
    def counted(stored: Any) -> Any:
        calls.append(stored.address)
        return function(stored)

    return counted


def damage_from(monkeypatch: pytest.MonkeyPatch, uid: bytes, seq: int, upto: int = 1 << 60) -> None:
    """Make the bodies of a session unreadable, from a seq on, up to and with another."""
    body = MemoryStored.body

    def read(self: MemoryStored) -> Body:
        if self.header.uid == uid and seq <= self.header.seq <= upto:
            raise SessionDamaged.of(uid, Damage(seq, self.address, self.address, "its body is not its own"))
        return body(self)

    monkeypatch.setattr(MemoryStored, "body", read)


# What may become of a file.


def other_bytes(path: Path) -> None:
    path.write_bytes(b"this is no database, and never was\n" * 500)


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def halved(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def removed(path: Path) -> None:
    path.unlink()


def made_a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()
