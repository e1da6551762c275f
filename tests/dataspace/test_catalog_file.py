"""Whatever becomes of the catalog's file, the answers are those of the log; and what it costs to open it."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest
from worlds import (
    World,
    busy_world,
    emptied,
    everything,
    halved,
    in_memory,
    made_a_folder,
    other_bytes,
    removed,
)

from dataspace.catalog import catalog as catalogs
from dataspace.catalog.catalog import Catalog
from dataspace.catalog.peeking import peek
from dataspace.facts import fact
from dataspace.log.memory import MemoryLog, MemoryStore

# What becomes of the file.


@pytest.mark.parametrize("damage", [other_bytes, emptied, halved, removed, made_a_folder])
def test_a_file_damaged_before_the_start_changes_no_answer(tmp_path: Path, damage: Callable[[Path], None]) -> None:
    """Invariant 21: delete or damage every derived file, the same answers."""
    world = busy_world(tmp_path / "catalog")
    before = everything(world.catalog)
    world.catalog.close()
    damage(tmp_path / "catalog")
    assert everything(world.reopen().catalog) == before


@pytest.mark.parametrize("damage", [other_bytes, emptied, halved, removed])
def test_a_file_damaged_while_it_is_used_changes_no_answer(tmp_path: Path, damage: Callable[[Path], None]) -> None:
    """Invariant 21: and while it runs."""
    world = busy_world(tmp_path / "catalog")
    world.catalog.flush()
    before = everything(world.catalog)
    for file in tmp_path.iterdir():
        damage(file)
    assert everything(world.catalog) == before
    world.say("ada", fact("turn", 9, "ada"))
    world.catalog.flush()
    after = everything(world.catalog)
    assert after == everything(in_memory(world))
    assert everything(world.reopen().catalog) == after


def test_one_wrong_bit_anywhere_changes_no_answer(tmp_path: Path) -> None:
    """Invariant 21. Without the checksums of the pages some of these would go unseen."""
    path = tmp_path / "catalog"
    world = busy_world(path)
    before = everything(world.catalog)
    world.catalog.close()
    whole = path.read_bytes()
    places = random.Random(1)
    for _ in range(12):
        damaged = bytearray(whole)
        damaged[places.randrange(len(whole))] ^= 1 << places.randrange(8)
        path.write_bytes(damaged)
        found = Catalog(path, world.store)
        assert everything(found) == before
        found.close()


def test_a_wrong_bit_is_noticed_and_the_file_made_anew(tmp_path: Path) -> None:
    path = tmp_path / "catalog"
    world = busy_world(path)
    world.catalog.close()
    whole = path.read_bytes()
    text = whole.index(b"chat.session")
    path.write_bytes(whole[:text] + b"chat.mission" + whole[text + 12 :])
    assert {row.type for row in Catalog(path, world.store).sessions(deleted=True)} == {"chat.session"}


def test_a_file_of_another_log_is_made_anew(tmp_path: Path) -> None:
    other = World(tmp_path / "catalog", MemoryLog(b"another log of t"))
    other.spawn("stranger")
    other.catalog.close()
    world = World(tmp_path / "catalog")
    assert world.catalog.session("stranger") is None
    world.spawn("ada")
    world.catalog.close()
    assert World(tmp_path / "catalog", MemoryLog(b"another log of t")).catalog.session("ada") is None


def test_a_file_of_another_version_is_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = busy_world(tmp_path / "catalog")
    before = everything(world.catalog)
    world.catalog.close()
    db = apsw.Connection(str(tmp_path / "catalog"))
    db.execute("UPDATE about SET format = 'keeve catalog 0'; DELETE FROM sessions")
    db.close()
    assert peek(tmp_path / "catalog") is None
    assert everything(world.reopen().catalog) == before


def test_a_file_ahead_of_the_log_is_made_anew(tmp_path: Path) -> None:
    world = busy_world(tmp_path / "catalog")
    world.catalog.close()
    del world.log.records[-2:], world.log.marks[-2:]
    catalog = world.reopen().catalog
    assert everything(catalog) == everything(Catalog(None, world.store))
    assert catalog.head.position == len(world.log.records)


def test_a_file_of_another_history_of_the_same_log_is_made_anew(tmp_path: Path) -> None:
    world = World(tmp_path / "catalog")
    world.spawn("ada")
    records, marks = list(world.log.records), list(world.log.marks)
    world.spawn("bob")
    world.catalog.close()
    world.log.records, world.log.marks = records, marks
    world.reopen(tmp_path / "other").spawn("eve")
    catalog = Catalog(tmp_path / "catalog", MemoryStore(world.log, readonly=True))
    assert [row.id for row in catalog.sessions()] == ["ada", "eve"]


def test_an_old_journal_is_not_taken_for_a_new_files(tmp_path: Path) -> None:
    world = busy_world(tmp_path / "catalog")
    world.catalog.flush()
    world.say("ada", fact("turn", 9, "ada"))
    world.catalog._tables._writer.execute("BEGIN IMMEDIATE; DELETE FROM sessions")
    world.catalog._tables._writer.cache_flush()
    left = (tmp_path / "catalog-journal").read_bytes()
    assert left.strip(b"\0")
    world.catalog._tables._writer.execute("ROLLBACK")
    world.catalog.close()
    (tmp_path / "catalog").unlink()
    (tmp_path / "catalog-journal").write_bytes(left)
    assert everything(world.reopen().catalog) == everything(in_memory(world))


def test_a_catalog_goes_on_in_memory_where_no_file_can_be(tmp_path: Path) -> None:
    world = busy_world(tmp_path / "no such folder" / "catalog")
    world.catalog.flush()
    assert everything(world.catalog) == everything(in_memory(world))


def full(*_: object) -> None:
    raise apsw.FullError("database or disk is full")


def test_a_full_disk_loses_nothing_and_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = busy_world(tmp_path / "catalog")
    before = everything(world.catalog)
    with monkeypatch.context() as patch:
        patch.setattr(world.catalog._tables, "write", full)
        patch.setattr(catalogs, "RUN", 3)
        world.catalog.flush()
        assert everything(world.catalog) == before
        for turn in range(10):
            assert world.catalog.due is False  # noted in line, and tried again after each run
            world.say("cyd", fact("turn", 10 + turn, "cyd"))
        assert everything(world.catalog) == everything(in_memory(world))
    world.say("ada", fact("turn", 9, "ada"))
    world.catalog.flush()
    assert world.catalog._tables.head() == world.catalog.head
    assert everything(world.catalog) == everything(in_memory(world))


def test_a_transaction_that_fails_half_way_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = busy_world(tmp_path / "catalog")
    with monkeypatch.context() as patch:
        patch.setattr(world.catalog._tables, "_put_taken", full)
        world.catalog.flush()
    assert world.catalog._tables.head().position == 0
    world.catalog.flush()
    assert everything(world.reopen().catalog) == everything(world.catalog)
