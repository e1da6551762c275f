"""A forked child of a process that has a catalog open: it has answers, and touches nothing."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from segment_folders import content, in_a_forked_child
from worlds import World, busy_world, everything

from dataspace.catalog.tables import Tables
from dataspace.facts import fact


def test_a_forked_child_leaves_the_file_alone(tmp_path: Path) -> None:
    """Invariant 24: a catalog's file has one owner."""
    world = busy_world(tmp_path / "catalog")
    world.catalog.flush()
    id = next(iter(world.uids))
    world.say(id, fact("turn", 99, id))
    before = content(tmp_path)
    answers = everything(world.catalog)

    def act() -> int:
        same = everything(world.catalog) == answers
        world.catalog.flush()
        same &= everything(world.catalog) == answers
        world.catalog.rebuild()
        same &= everything(world.catalog) == answers
        world.catalog.close()
        return 7 if same else 8

    assert in_a_forked_child(act) == 7
    assert content(tmp_path) == before
    world.catalog.flush()
    assert everything(world.reopen().catalog) == answers


def test_a_fork_waits_for_the_end_of_a_transaction(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Invariant 24: a child that closes its copy of the connection would undo what is half written."""
    world = World(tmp_path / "catalog")
    world.spawn("ada")
    begun = threading.Event()
    forked = threading.Event()
    happened: list[str] = []
    write = Tables._write

    def slow(*args: Any) -> None:
        begun.set()
        forked.wait(0.1)
        write(*args)
        happened.append("written")

    monkeypatch.setattr(Tables, "_write", slow)
    flush = world.catalog.begin()
    assert flush is not None
    writer = threading.Thread(target=flush.write)
    writer.start()
    begun.wait()
    assert in_a_forked_child(lambda: len(happened)) == 1
    forked.set()
    writer.join()
    assert world.catalog.finish(flush)
    assert flush.error is None
