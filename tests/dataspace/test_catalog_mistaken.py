"""Rows of the catalog that look sound and are wrong: they lead to other records, which do not fit what was asked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest
from worlds import World, busy_world, read

from dataspace.catalog.connections import connect, rows
from dataspace.catalog.packing import pack, unpack
from dataspace.drafts import Handle
from dataspace.observe.cursor import Cursor

PATTERNS = ["(turn . _)", "(shop.order . _)", "(_ . _)", "(spawn . _)", "(forked . _)"]

Change = Callable[[list[int]], list[int]]


def turned(numbers: list[int]) -> list[int]:
    """Each number in another's place."""
    return numbers[1:] + numbers[:1]


def repeated(numbers: list[int]) -> list[int]:
    """All of them the last one: always a record, and a wrong one."""
    return [numbers[-1]] * len(numbers)


def shifted(numbers: list[int]) -> list[int]:
    return [max(number + 2 * (-1) ** at, 1) for at, number in enumerate(numbers)]


def change(path: Path, table: str, column: str, how: Change) -> None:
    """Change a packed column of a table, as somebody would who knows the file."""
    db = connect(path, 100, apsw.SQLITE_OPEN_READWRITE)
    key = {"spans": "start", "threads": "session, first", "postings": "label, first"}[table]
    for *place, packed in rows(db, f"SELECT {key}, {column} FROM {table}"):
        where = " AND ".join(f"{name} = ?" for name in key.split(", "))
        db.execute(f"UPDATE {table} SET {column} = ? WHERE {where}", (pack(how(unpack(packed))), *place))
    db.close()


QUESTIONS: dict[str, Callable[[World], Any]] = {
    "events": lambda world: [list(world.space.query(pattern)) for pattern in PATTERNS],
    "events of sessions": lambda world: [
        list(world.space.query(pattern, session=id, lineage=lineage))
        for pattern in PATTERNS[:3]
        for id in ("ada", "cyd", "ada.1.1")
        for lineage in (False, True)
    ],
    "what holds": lambda world: [world.space.facts(pattern, at=at) for pattern in PATTERNS for at in (12, None)],
    "handles": lambda world: [world.catalog.asserted(uid, Handle(seq, 0)) for uid, seq in places(world)],
    "proofs": lambda world: [world.space.proof(event) for event in world.space.query("(shop.order . _)")],
    "headers": lambda world: [
        world.catalog.stored(position).header for position in range(1, world.catalog.head.position + 1)
    ],
    "cursors": lambda world: [world.space.places.at(position) for position in range(world.catalog.head.position)],
    "heads": lambda world: [world.catalog.headed(uid) for uid in world.uids.values()],
}
"""What comes of the records that the catalog leads to."""


def places(world: World) -> list[tuple[bytes, int]]:
    return [(stored.header.uid, stored.header.seq) for stored in world.store.scan()]


@pytest.mark.parametrize("how", [turned, repeated, shifted])
@pytest.mark.parametrize(
    ("table", "column"), [("spans", "addresses"), ("threads", "positions"), ("postings", "postings")]
)
def test_whoever_comes_to_another_record_makes_the_catalog_anew(
    tmp_path: Path, table: str, column: str, how: Change
) -> None:
    """Invariant 21: rows that are wrong and whose pages are sound change no answer that a record can tell."""
    world = busy_world(tmp_path / "catalog")
    right = {name: ask(world) for name, ask in QUESTIONS.items()}
    for name, ask in QUESTIONS.items():
        world.catalog.rebuild()
        world.catalog.close()
        change(tmp_path / "catalog", table, column, how)
        world = world.reopen()
        assert ask(world) == right[name]


async def test_an_observer_goes_on_where_the_catalog_had_led_astray(tmp_path: Path) -> None:
    world = busy_world(tmp_path / "catalog")
    right = {id: list(world.space.query("(_ . _)", session=id)) for id in ("ada", "cyd")}
    world.catalog.close()
    change(tmp_path / "catalog", "threads", "positions", lambda numbers: numbers[:2] + [n + 1 for n in numbers[2:]])
    again = world.reopen()
    for id, events in right.items():
        assert await read(again.space.observe("(_ . _)", session=id, until="head")) == events
    middle = right["ada"][5].cursor
    assert isinstance(middle, Cursor)
    assert await read(again.space.observe("(_ . _)", session="ada", after=middle, until="head")) == right["ada"][6:]


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE sessions SET seq = seq - 1 WHERE id = 'ada'",
        "UPDATE sessions SET position = position - 1 WHERE id = 'ada'",
        "UPDATE sessions SET hash = zeroblob(32) WHERE id = 'ada'",
        "UPDATE sessions SET deleted = 3 WHERE id = 'ada'",
    ],
)
def test_a_session_whose_head_is_another_is_looked_up_again(tmp_path: Path, statement: str) -> None:
    """Invariant 21: nobody goes on from a head that the log does not have."""
    world = busy_world(tmp_path / "catalog")
    right = world.catalog.headed(world.uids["ada"])
    world.catalog.close()
    db = connect(tmp_path / "catalog", 100, apsw.SQLITE_OPEN_READWRITE)
    db.execute(statement)
    db.close()
    again = world.reopen()
    assert again.catalog.headed(world.uids["ada"]) == right


def test_an_older_head_is_not_taken_for_the_newest(tmp_path: Path) -> None:
    """Invariant 21: a head that was one, and is not the newest any more."""
    world = busy_world(tmp_path / "catalog")
    uid = world.uids["ada"]
    right = world.catalog.headed(uid)
    assert right is not None
    position = world.catalog.position(uid, right.seq - 1)
    assert position is not None
    older = world.catalog.stored(position).header
    world.catalog.close()
    db = connect(tmp_path / "catalog", 100, apsw.SQLITE_OPEN_READWRITE)
    head = (older.seq, older.position, older.hash, uid)
    db.execute("UPDATE sessions SET seq = ?, position = ?, hash = ? WHERE uid = ?", head)
    db.close()
    assert world.reopen().catalog.headed(uid) == right
