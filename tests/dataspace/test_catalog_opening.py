"""What it costs to open a catalog and to keep it up to date, and what recovery asks of its file."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest
import trio
import trio.testing
from worlds import World, busy_world, emptied, everything, in_memory, other_bytes, places, removed, whole_log

from dataspace.catalog import catalog as catalogs
from dataspace.catalog import tables
from dataspace.catalog.catalog import Catalog
from dataspace.catalog.connections import connect
from dataspace.catalog.peeking import peek
from dataspace.catalog.tables import Tables
from dataspace.drafts import Handle
from dataspace.facts import fact
from dataspace.log.marks import Damage
from dataspace.log.memory import MemoryStore


def count_scans(store: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    scanned: list[int] = []
    scan = store.scan

    def counted(start: Any = None) -> Iterator[Any]:
        for stored in scan(start):
            scanned.append(stored.header.position)
            yield stored

    monkeypatch.setattr(store, "scan", counted)
    return scanned


def test_a_catalog_that_is_up_to_date_scans_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Invariant 36: no start costs more as history grows."""
    world = busy_world(tmp_path / "catalog")
    world.catalog.close()
    scanned = count_scans(world.store, monkeypatch)
    catalog = Catalog(tmp_path / "catalog", world.store)
    assert catalog.head == world.store.head
    assert scanned == []


def test_a_catalog_that_is_behind_scans_what_it_has_not_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = busy_world(tmp_path / "catalog")
    world.catalog.close()
    known = world.catalog.head.position
    world.deaf = True
    world.say("ada", fact("turn", 9, "ada"))
    world.say("cyd", fact("turn", 9, "cyd"))
    scanned = count_scans(world.store, monkeypatch)
    catalog = Catalog(tmp_path / "catalog", world.store)
    assert scanned == [known, known + 1, known + 2]
    assert everything(catalog) == everything(in_memory(world))


def test_a_batch_that_was_noted_before_is_passed_over_and_a_gap_is_read_from_the_log() -> None:
    world = World()
    world.spawn("ada")
    world.deaf = True
    missed = world.append(world.saying("ada", fact("turn", 1, "ada")))
    later = world.append(world.saying("ada", fact("turn", 2, "ada")))
    world.catalog.note(later)
    world.catalog.note(missed)
    world.catalog.note([*missed, *later])
    assert everything(world.catalog) == everything(in_memory(world))


def test_many_records_make_several_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogs, "RUN", 7)
    world = busy_world(tmp_path / "catalog")
    assert world.catalog._tables.head().position > 0
    assert everything(world.catalog) == everything(in_memory(world))
    for _ in range(60):
        world.say("ada", fact("user.fact"))
    assert len(list(world.catalog.positions(world.uids["ada"], "user.fact"))) == 60
    assert everything(world.catalog) == everything(in_memory(world))


def test_a_reader_beside_the_owner_copies_and_writes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "catalog"
    world = busy_world(path)
    world.catalog.flush()
    world.say("ada", fact("turn", 9, "ada"))
    reader = Catalog(path, MemoryStore(world.log, readonly=True))
    assert everything(reader) == everything(world.catalog)
    reader.flush()
    assert world.catalog._tables.head().position == world.catalog.head.position - 1
    reader.close()


def test_a_flush_may_be_written_by_another_thread(tmp_path: Path) -> None:
    world = busy_world(tmp_path / "catalog")
    before = everything(world.catalog)
    flush = world.catalog.begin()
    assert flush is not None
    assert flush.threadsafe
    thread = threading.Thread(target=flush.write)
    thread.start()
    during = everything(world.catalog)
    thread.join()
    between = everything(world.catalog)
    assert world.catalog.finish(flush)
    assert before == during == between == everything(world.catalog)


@pytest.mark.parametrize("written", [True, False])
def test_a_flush_that_ends_after_the_catalog_was_made_anew_is_passed_over(tmp_path: Path, written: bool) -> None:
    world = busy_world(tmp_path / "catalog")
    before = everything(world.catalog)
    old = world.catalog.begin()
    assert old is not None
    if written:
        old.write()
    world.catalog.rebuild()
    new = world.catalog.begin()
    assert new is not None
    if not written:
        old.write()
    assert world.catalog.finish(old)
    assert everything(world.catalog) == before
    new.write()
    assert world.catalog.finish(new)
    assert everything(world.catalog) == before


async def test_the_catalog_is_written_behind_by_a_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogs, "RUN", 10)
    main_thread = threading.get_ident()
    writers: set[int] = set()
    write = Tables.write
    monkeypatch.setattr(Tables, "write", lambda *args: (writers.add(threading.get_ident()), write(*args)))
    world = World(tmp_path / "catalog")
    world.spawn("ada")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(world.space.run)
        await trio.testing.wait_all_tasks_blocked()
        for turn in range(50):
            world.say("ada", fact("turn", turn, "ada"))
            await trio.lowlevel.checkpoint()
        with trio.fail_after(10):
            while world.catalog.due:  # noqa: ASYNC110  what is waited for is a thread
                await trio.sleep(0.001)
        nursery.cancel_scope.cancel()
    assert main_thread not in writers
    assert world.catalog._tables.head().position >= 40
    assert places(list(world.space.query("(turn . _)"))) == whole_log(world, "turn")
    world.catalog.close()
    assert Catalog(tmp_path / "catalog", world.store)._tables.head() == world.store.head


def test_a_batch_during_which_the_catalog_is_made_anew_is_noted_whole(tmp_path: Path) -> None:
    world = World(tmp_path / "catalog")
    world.spawn("ada", "bob")
    order = world.say("ada", fact("shop.order", 1))
    world.catalog.flush()
    other_bytes(tmp_path / "catalog")
    world.append(world.saying("bob", fact("turn", 1, "bob")), world.saying("ada", retract=(Handle(order.seq, 0),)))
    assert everything(world.catalog) == everything(in_memory(world))
    assert world.catalog.head == world.store.head


# What recovery asks.


def test_opening_makes_no_connection_to_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = busy_world(tmp_path / "catalog")
    world.catalog.close()
    opened: list[Path | None] = []

    def counted(path: Path | None, *options: Any) -> apsw.Connection:
        opened.append(path)
        return connect(path, *options)

    monkeypatch.setattr(tables, "connect", counted)
    world = world.reopen()
    assert len(opened) == 1
    world.say("ada", fact("turn", 9, "ada"))
    world.catalog.flush()
    world.say("ada", fact("turn", 10, "ada"))
    world.catalog.flush()
    assert len(opened) == 2


@pytest.mark.parametrize("older", [False, True])
def test_a_file_that_is_not_the_one_that_is_read_is_not_written_to(tmp_path: Path, older: bool) -> None:
    world = busy_world(tmp_path / "catalog")
    world.catalog.flush()
    shutil.copy(tmp_path / "catalog", tmp_path / "old")
    world.say("ada", fact("turn", 9, "ada"))
    world.catalog.close()
    world = world.reopen()
    (tmp_path / "catalog").unlink()
    if older:
        (tmp_path / "old").rename(tmp_path / "catalog")
    world.say("ada", fact("turn", 10, "ada"))
    world.catalog.flush()
    assert everything(world.catalog) == everything(in_memory(world))
    world.catalog.close()
    assert everything(world.reopen().catalog) == everything(in_memory(world))


def test_a_peek_gives_the_mark_and_the_heads_there(tmp_path: Path) -> None:
    world = busy_world(tmp_path / "catalog")
    world.catalog.close()
    found = peek(tmp_path / "catalog")
    assert found is not None
    assert (found.log_id, found.mark) == (world.store.log_id, world.store.mark)
    assert all(found.heads(uid) == world.heads[uid] for uid in world.uids.values())
    assert found.heads(bytes(15) + b"?") is None
    found.close()


def test_while_a_session_is_damaged_recovery_is_given_no_place_to_begin_at(tmp_path: Path) -> None:
    world = busy_world(tmp_path / "catalog")
    world.log.damaged[world.uids["cyd"]] = Damage(1, 5, 5, "its body is not its own")
    world.say("ada", fact("turn", 9, "ada"))
    world.catalog.close()
    assert peek(tmp_path / "catalog") is None


@pytest.mark.parametrize("damage", [other_bytes, emptied, removed])
def test_a_peek_at_a_damaged_file_gives_nothing(tmp_path: Path, damage: Callable[[Path], None]) -> None:
    world = busy_world(tmp_path / "catalog")
    world.catalog.close()
    damage(tmp_path / "catalog")
    assert peek(tmp_path / "catalog") is None
