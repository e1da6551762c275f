"""Catalog files that others have written, or write while the catalog is used."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest
from worlds import World, busy_world, everything

from dataspace.catalog import tables
from dataspace.catalog.connections import connect
from dataspace.catalog.peeking import peek
from dataspace.catalog.tables import Tables
from dataspace.facts import fact

ENDLESS = "WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM r) SELECT x, x, x, x, x, x, x FROM r"


def by_hand(path: Path, *statements: str) -> None:
    """Change the file as whoever knows its format would: its pages are sound."""
    db = connect(path, 100)
    for statement in statements:
        db.execute(statement)
    db.close()


def an_endless_view(path: Path) -> None:
    by_hand(path, "DROP TABLE about", f"CREATE VIEW about AS {ENDLESS}")


def a_trigger(path: Path) -> None:
    by_hand(path, "CREATE TRIGGER t BEFORE UPDATE ON about BEGIN SELECT RAISE(ROLLBACK, 'x'); END")


def a_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def a_journal_that_is_a_pipe(path: Path) -> None:
    path.with_name(path.name + "-journal").unlink(missing_ok=True)
    os.mkfifo(path.with_name(path.name + "-journal"))


def a_journal_that_is_a_folder(path: Path) -> None:
    path.with_name(path.name + "-journal").unlink(missing_ok=True)
    path.with_name(path.name + "-journal").mkdir()


@pytest.mark.parametrize(
    "change", [an_endless_view, a_trigger, a_pipe, a_journal_that_is_a_pipe, a_journal_that_is_a_folder]
)
def test_what_is_no_file_of_ours_is_not_run_and_not_waited_for(tmp_path: Path, change: Callable[[Path], None]) -> None:
    """Invariant 42: bounded time, and nothing is called by what was read."""
    path = tmp_path / "catalog"
    world = busy_world(path)
    right = everything(world.catalog)
    world.catalog.close()
    change(path)
    assert peek(path) is None
    assert everything(world.reopen().catalog) == right


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE about SET position = 'text'",
        "UPDATE about SET hash = 5",
        "UPDATE OR REPLACE spans SET addresses = x''",
        "UPDATE OR REPLACE spans SET addresses = x'0f01'",
        "UPDATE OR REPLACE spans SET addresses = 'text'",
        "UPDATE OR REPLACE threads SET positions = x'03'",
        "UPDATE OR REPLACE threads SET shapes = NULL",
        "UPDATE OR REPLACE postings SET postings = x'8001'",
        "UPDATE OR REPLACE sessions SET seq = 'text', pending = 'text'",
        "DELETE FROM about",
    ],
)
def test_rows_that_are_none_of_ours_raise_no_error_of_python(tmp_path: Path, statement: str) -> None:
    path = tmp_path / "catalog"
    world = busy_world(path)
    world.catalog.close()
    by_hand(path, statement)
    again = world.reopen()
    everything(again.catalog)
    again.say("ada", fact("turn", 9, "ada"))
    again.catalog.flush()
    assert [event.value.fields[0] for event in again.space.query("(turn 9 . _)")] == [9]
    again.catalog.close()


def test_a_file_that_fails_again_and_again_is_left_for_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Invariant 21: somebody damages the file faster than it can be made."""
    world = busy_world(tmp_path / "catalog")
    world.catalog.flush()
    right = everything(world.catalog)

    def broken(method: Any) -> Any:
        def ask(self: Tables, *arguments: Any) -> Any:
            if self.path is not None:
                raise apsw.CorruptError("as the test says")
            return method(self, *arguments)

        return ask

    for name in ("session", "named", "listed", "thread", "mentions", "write"):
        monkeypatch.setattr(Tables, name, broken(getattr(Tables, name)))
    assert everything(world.catalog) == right
    world.say("ada", fact("turn", 9, "ada"))
    world.catalog.flush()


def test_a_file_that_somebody_else_holds_is_waited_for_but_not_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "READING", 10)
    world = busy_world(tmp_path / "catalog")
    world.catalog.flush()
    right = everything(world.catalog)
    holder = connect(tmp_path / "catalog", 100)
    holder.execute("BEGIN EXCLUSIVE")
    assert everything(world.catalog) == right
    holder.close()


def test_the_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    """As the log is: it names sessions and what they state."""
    before = os.umask(0)
    try:
        world = World(tmp_path / "catalog")
        world.spawn("ada")
        world.catalog.flush()
    finally:
        os.umask(before)
    assert {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()} == {0o600}
    world.catalog.close()
