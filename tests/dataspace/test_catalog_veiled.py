"""The catalog of an encrypted store: it answers as any other, and its file says nothing of what was said."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest
from worlds import World, busy_world, damage_from, everything

from dataspace.catalog import naming
from dataspace.catalog.catalog import Catalog
from dataspace.catalog.connections import connect, rows
from dataspace.catalog.naming import VeiledNames
from dataspace.catalog.peeking import peek
from dataspace.drafts import Handle
from dataspace.encryption.veil import Veil
from dataspace.facts import fact
from dataspace.log.memory import MemoryStore
from dataspace.records import Kind

SECRET = bytes(range(32))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "catalog"


@pytest.fixture
def world(path: Path) -> Iterator[World]:
    """A busy world, veiled, all of it in the file."""
    world = busy_world(path, SECRET)
    world.catalog.flush()
    yield world
    world.catalog.close()


def names_in(path: Path) -> set[str]:
    """Every text that stands in a row of the file."""
    db = connect(path, 0)
    try:
        tables = [row[0] for row in rows(db, "SELECT name FROM sqlite_schema WHERE type = 'table'")]
        return {
            cell for table in tables for row in rows(db, f"SELECT * FROM {table}") for cell in row if type(cell) is str
        }
    finally:
        db.close()


def test_a_veiled_catalog_gives_the_same_answers(world: World) -> None:
    answers = everything(world.catalog)
    assert answers == everything(Catalog(None, world.store))
    plain = MemoryStore(world.log, readonly=True)
    assert answers == everything(Catalog(None, plain))
    assert everything(world.reopen().catalog) == answers


def test_what_is_not_written_yet_is_found_beside_what_is(world: World) -> None:
    world.spawn("ada.0", "zoe")
    world.say("ada", fact("shop.order", 9), fact("shop.new", 1))
    assert everything(world.catalog) == everything(Catalog(None, world.store))


def test_no_id_no_type_and_no_label_stands_in_the_file(world: World, path: Path) -> None:
    world.spawn("a-canary-sings", type="canary.type", by="canary")
    order = world.say("a-canary-sings", fact("canary.label", "canary"))
    world.say("a-canary-sings", retract=(Handle(order.seq, 0),))
    world.catalog.flush()
    data = path.read_bytes() + path.with_name("catalog-journal").read_bytes()
    for canary in (b"canary", b"shop.order", b"chat.session", b"ada.1", b"turn"):
        for form in (canary, canary.hex().encode(), b64encode(canary)[:-2], canary.decode().encode("utf-16-le")):
            assert form not in data
    assert names_in(path) == {text for text in names_in(path) if text.startswith(("keeve catalog", "["))}


def test_the_plain_file_would_have_them(path: Path) -> None:
    """The control: with the veil taken off, the search above finds what it looks for."""
    world = busy_world(path)
    world.catalog.flush()
    assert {"ada.1", "chat.session", "shop.order"} <= names_in(path)
    world.catalog.close()


def test_ids_are_listed_in_order_a_page_at_a_time(world: World) -> None:
    world.spawn(*(f"s-{n:03}" for n in range(50)))
    world.catalog.flush()
    world.spawn(*(f"s-{n:03}-x" for n in range(0, 50, 7)))
    found, after = [], ""
    while page := world.catalog.sessions("s-", after=after, limit=7):
        found += [row.id for row in page]
        after = page[-1].id
    assert found == sorted(id for id in world.uids if id.startswith("s-"))
    world.catalog.flush()
    assert [row.id for row in world.catalog.sessions("s-", limit=1000)] == found
    assert [row.id for row in world.catalog.sessions("s-01", after="s-014", limit=3)] == ["s-014-x", "s-015", "s-016"]


def test_a_session_that_has_another_id_now_is_listed_by_that(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of one whose first record cannot be read, its tombstone tells the id."""
    uid = b"\xee" * 16
    damage_from(monkeypatch, uid, 1, 1)
    world.deaf = True  # so that it is read from the log
    world.append(world.draft(uid, Kind.SPAWN, {"id": "zoe", "type": "chat.session"}))
    world.catalog.catch_up()
    world.catalog.flush()
    assert uid.hex() in [row.id for row in world.catalog.sessions(limit=1000)]
    tells = {"id": "zoe", "type": "chat.session", "parent": None, "at": 0, "created": 5}
    world.append(world.draft(uid, Kind.DELETE, tells))
    world.catalog.catch_up()
    world.catalog.flush()
    listed = [row.id for row in world.catalog.sessions(limit=1000, deleted=True)]
    assert listed == sorted(listed)
    assert "zoe" in listed
    assert [row.id for row in world.catalog.sessions("z", deleted=True)] == ["zoe"]
    assert uid.hex() not in listed


@pytest.mark.parametrize("secret", [None, bytes(32)])
def test_a_file_under_another_veil_is_made_anew(world: World, path: Path, secret: bytes | None) -> None:
    answers = everything(world.catalog)
    world.catalog.close()
    world.store.secret = secret
    world = world.reopen()
    assert everything(world.catalog) == answers
    world.catalog.flush()
    assert ("ada" in names_in(path)) is (secret is None)


def test_a_plain_file_is_made_anew_under_a_veil(path: Path) -> None:
    world = busy_world(path)
    answers = everything(world.catalog)
    world.catalog.close()
    world.store.secret = SECRET
    world = world.reopen()
    assert everything(world.catalog) == answers
    world.catalog.flush()
    assert "ada" not in names_in(path)
    assert len(names_in(path)) > 1


def test_recovery_takes_its_mark_from_a_veiled_file_without_a_key(world: World, path: Path) -> None:
    peeked = peek(path)
    assert peeked is not None
    assert peeked.mark.position == world.store.head.position
    assert peeked.heads(world.uids["ada"]) == world.heads[world.uids["ada"]]
    peeked.close()


@pytest.mark.parametrize("column", ["id", "type"])
@pytest.mark.parametrize("wrong", [b"", b"not what was hidden here, at all", "ada", None, 7])
def test_a_row_that_was_not_written_here_is_found_out(world: World, path: Path, column: str, wrong: object) -> None:
    """Invariant 21: a damaged catalog changes no answer."""
    answers = everything(world.catalog)
    world.catalog.close()
    db = connect(path, 0)
    try:
        db.execute(f"UPDATE sessions SET {column} = ? WHERE n = 2", (wrong,))  # type: ignore[arg-type] # whatever it is
    except apsw.ConstraintError:
        return
    finally:
        db.close()
    world = world.reopen()
    found = world.catalog.sessions(limit=1000, deleted=True)
    if column == "type":
        assert found == answers["rows"]
        assert everything(world.catalog) == answers
    else:
        assert [row.id for row in found] == [row.id for row in answers["rows"]]


def test_a_session_that_comes_while_others_are_listed_is_noted_once(
    world: World, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    coming = ["s-1"]

    def read(db: apsw.Connection, sql: str, given: tuple[Any, ...] = ()) -> list[Any]:
        found = rows(db, sql, given)
        if "max(n)" in sql and coming:
            world.spawn(coming.pop())
            world.catalog.flush()
        return found

    monkeypatch.setattr(naming, "rows", read)
    names, db = VeiledNames(Veil(SECRET)), connect(path, 0)
    assert [row.id for row in names.listed(db, "s-", "", 10)] == ["s-1"]
    world.spawn("s-2")
    world.catalog.flush()
    assert [row.id for row in names.listed(db, "s-", "", 10)] == ["s-1", "s-2"]
    db.close()


def test_the_list_of_all_stays_in_order_however_many_owners_list_theirs(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.catalog.sessions(limit=1)
    monkeypatch.setattr(naming, "OWNERS", 2)
    for n in range(5):
        world.catalog.sessions(limit=1, by=f"owner-{n}")
    read: list[str] = []
    monkeypatch.setattr(VeiledNames, "session", lambda *_: read.append("a row"))
    assert world.catalog.sessions("nothing begins so", limit=1) == []
    assert read == []
