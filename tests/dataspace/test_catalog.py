"""The catalog answers as a reading of the whole log would, whatever becomes of its file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from worlds import World, busy_world, damage_from, everything, in_memory

from dataspace.catalog.checking import Right, check_catalog
from dataspace.catalog.recall import noted
from dataspace.drafts import Assertion, Handle, Retraction
from dataspace.facts import Fact, fact
from dataspace.records import STORE_UID, Kind


def test_a_catalog_says_what_a_reading_of_the_whole_log_says() -> None:
    world = busy_world()
    catalog = world.catalog
    records = [noted(stored) for stored in world.store.scan()]
    for uid in [*world.uids.values(), STORE_UID, None]:
        own = [record for record in records if uid in (record.uid, None)]
        for label in ("turn", "shop.order", "spawn"):
            expected = [record.position for record in own if label in mentioned(records, record)]
            assert list(catalog.positions(uid, label)) == expected
        for record in own:
            assert catalog.locate(record.uid, record.seq) == record.address == catalog.at(record.position)
    for at in range(len(records) + 1):
        assert list(catalog.standing("shop.order", at)) == standing(records[:at], "shop.order")


def mentioned(records: list[Any], record: Any) -> set[str]:
    return {
        statement.fact.label if isinstance(statement, Assertion) else stated_by(records, record, statement).label
        for statement in record.statements
    }


def stated_by(records: list[Any], record: Any, statement: Retraction) -> Fact:
    (found,) = [
        assertion.fact
        for other in records
        if (other.uid, other.seq) == (record.uid, statement.handle.seq)
        for assertion in other.statements
        if assertion.at == statement.handle.operation
    ]
    return found


def standing(records: list[Any], label: str) -> list[int]:
    stated: dict[tuple[bytes, int, int], int] = {}
    for record in records:
        for statement in record.statements:
            if isinstance(statement, Retraction):
                stated.pop((record.uid, *statement.handle), None)
            elif statement.fact.label == label:
                stated[record.uid, record.seq, statement.at] = record.position
    return sorted(set(stated.values()))


def test_a_file_answers_as_the_memory_does(tmp_path: Path) -> None:
    world = busy_world(tmp_path / "catalog")
    before = everything(world.catalog)
    assert before == everything(in_memory(world))
    world.catalog.flush()
    assert before == everything(world.catalog)
    assert before == everything(world.reopen().catalog)


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_flushes_and_new_starts_at_any_moment_change_no_answer(data: st.DataObject, tmp_path: Path) -> None:
    path = tmp_path / "catalog"
    world = World(path)
    ids = ["a", "b"]
    handles: dict[str, list[Handle]] = {"a": [], "b": []}
    world.spawn(*ids)
    flushing = None
    steps = st.sampled_from(
        ["say", "say", "retract", "fork", "delete", "snapshot", "flush", "begin", "finish", "reopen"]
    )
    for step in data.draw(st.lists(steps, min_size=5, max_size=30)):
        id = data.draw(st.sampled_from(ids))
        deleted = (row := world.catalog.session(id)) is not None and row.deleted
        if step == "flush" and flushing is None:
            world.catalog.flush()
        elif step == "begin" and flushing is None:
            flushing = world.catalog.begin()
            if flushing is not None:
                flushing.write()
        elif step == "finish" and flushing is not None:
            world.catalog.finish(flushing)
            flushing = None
        elif step == "reopen" and flushing is None:
            world = world.reopen()
        elif deleted:
            continue
        elif step == "say":
            record = world.say(id, fact("user.fact", len(handles[id])), fact("other"))
            handles[id].append(Handle(record.seq, 0))
        elif step == "retract" and handles[id]:
            world.say(id, retract=(handles[id].pop(),))
        elif step == "fork":
            ids.append(f"{id}.{len(ids)}")
            world.fork(id, ids[-1])
            handles[ids[-1]] = list(handles[id])
        elif step == "delete":
            world.delete(id)
        elif step == "snapshot":
            world.snapshot(id)
    assert everything(world.catalog) == everything(in_memory(world))
    if flushing is not None:
        world.catalog.finish(flushing)
    world.catalog.close()


# Sessions.


def test_sessions_are_listed_by_id_in_pages() -> None:
    world = World()
    ids = [f"s{number:03}" for number in range(50)] + ["other", "ü", "z\x00"]
    world.spawn(*ids[:20])
    world.catalog.flush()
    world.spawn(*ids[20:])
    found: list[str] = []
    while page := world.catalog.sessions(after=found[-1] if found else "", limit=7):
        found += [row.id for row in page]
    assert found == sorted(ids)
    assert [row.id for row in world.catalog.sessions("s01", limit=20)] == ids[10:20]
    assert [row.id for row in world.catalog.sessions("s01", after="s013", limit=3)] == ids[14:17]
    assert world.catalog.sessions("nothing") == []


def test_the_sessions_of_an_owner_are_listed_without_those_of_others(tmp_path: Path) -> None:
    for secret in (None, bytes(32)):
        world = World(tmp_path / f"catalog-{secret is None}", secret=secret)
        ids = [f"s{number:03}" for number in range(30)]
        world.spawn(*ids[:20:2], by="ann")
        world.spawn(*ids[1:20:2], by="bob")
        world.catalog.flush()
        world.spawn(*ids[20:], by="ann")
        world.fork("s001", "s001.1")  # which is eve's
        mine = [*ids[:20:2], *ids[20:]]
        for flushed in (False, True):
            if flushed:
                world.catalog.flush()
            found: list[str] = []
            while page := world.catalog.sessions(after=found[-1] if found else "", limit=7, by="ann"):
                found += [row.id for row in page]
            assert found == mine
            assert [row.id for row in world.catalog.sessions("s00", by="eve")] == ["s001.1"]
            assert world.catalog.sessions(by="nobody") == world.catalog.sessions(by="") == []
        right = Right(world.store)
        assert not [what for step in check_catalog(world.catalog, right) for what in step]
        world.catalog._tables._writer.execute("UPDATE sessions SET owner = NULL WHERE n = 3")
        [wrong] = [what for step in check_catalog(world.catalog, right) for what in step]
        assert "among those that ann had made" in wrong
        right.catalog.close()
        world.catalog.close()


def test_a_deleted_session_keeps_its_id_for_ever(tmp_path: Path) -> None:
    """Invariant 25: a deleted id never comes back."""
    world = busy_world(tmp_path / "catalog")
    for catalog in (world.catalog, world.reopen().catalog):
        row = catalog.session("bob")
        assert row is not None
        assert row.deleted == row.position
        assert row.pending == 0
        assert "bob" not in [one.id for one in catalog.sessions()]


def test_an_id_so_long_that_it_is_kept_apart_is_found() -> None:
    world = World()
    world.spawn("long " * 100)
    assert everything(world.catalog) == everything(in_memory(world))
    assert world.catalog.session("long " * 100) is not None


def test_a_seq_at_or_below_a_fork_is_the_ancestors(tmp_path: Path) -> None:
    world = busy_world(tmp_path / "catalog")
    ada, child = world.uids["ada"], world.uids["ada.2"]
    assert world.catalog.locate(child, 4) == world.catalog.locate(ada, 4)
    assert world.catalog.locate(child, 5) != world.catalog.locate(ada, 5)
    assert world.catalog.locate(child, 6) is None


def test_the_sessions_with_pending_work_are_known_at_a_start(tmp_path: Path) -> None:
    world = World(tmp_path / "catalog")
    world.spawn("ada", "bob", "cyd")
    world.say("ada", fact("turn", 1, "ada"), pending=2)
    world.say("bob", fact("turn", 1, "bob"), pending=1)
    world.catalog.flush()
    world.say("bob", fact("turn-done", 1, "bob"))
    world.say("cyd", fact("turn", 1, "cyd"), pending=1)
    expected = {world.uids["ada"], world.uids["cyd"]}
    assert set(world.catalog.with_pending()) == expected
    assert set(world.reopen().catalog.with_pending()) == expected


def test_a_session_whose_records_cannot_be_read_is_still_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Invariant 23: a damaged session never stops another from being listed."""
    world = busy_world()
    cyd = world.uids["cyd"]
    damage_from(monkeypatch, cyd, 1)
    catalog = in_memory(world)
    ids = {row.id for row in world.catalog.sessions()} - {"cyd"}
    assert {row.id for row in catalog.sessions()} == ids | {cyd.hex()}
    row = catalog.session(cyd.hex())
    assert row is not None
    assert (row.seq, row.hash) == world.heads[cyd]


def test_the_stores_own_chain_is_no_session() -> None:
    world = World()
    assert world.catalog.sessions(deleted=True) == []
    assert world.catalog.session("") is None
    row = world.catalog.by_uid(STORE_UID)
    assert row is not None
    assert row.seq == 1
    assert noted(next(iter(world.store.scan()))).kind == Kind.CREATED


# What it costs.


def test_runs_in_which_everything_was_taken_back_are_passed_over(tmp_path: Path) -> None:
    world = World(tmp_path / "catalog")
    world.spawn("ada")
    here = [world.say("ada", fact("here.now", visit)) for visit in range(3)]
    world.catalog.flush()
    head = world.catalog.head.position
    assert world.catalog._tables.mentions("here.now", 0, head, held=True)
    world.say("ada", retract=tuple(Handle(record.seq, 0) for record in here))
    world.catalog.flush()
    assert world.catalog._tables.mentions("here.now", 0, head, held=True) == []
    assert list(world.catalog.standing("here.now", head)) == [record.position for record in here]


def test_a_record_takes_less_than_sixty_bytes(tmp_path: Path) -> None:
    world = World(tmp_path / "catalog")
    ids = [f"session {number}" for number in range(16)]
    world.spawn(*ids)
    drafts = 0
    for turn in range(1, 130):
        world.append(*[world.saying(id, fact("turn", turn, id), fact("turn-done", turn, id)) for id in ids])
        drafts += len(ids)
    world.catalog.close()
    assert (tmp_path / "catalog").stat().st_size / drafts < 60


def test_questions_cost_the_same_however_long_the_history(tmp_path: Path) -> None:
    """Invariant 36: counted in the instructions of SQLite's machine."""
    steps = {turns: questions_after(tmp_path / str(turns), turns) for turns in (200, 2000)}
    assert steps[2000] <= 2 * steps[200]


def questions_after(path: Path, turns: int) -> int:
    world = World(path)
    world.spawn("ada", "bob")
    for turn in range(turns):
        world.say("ada", fact("turn", turn, "ada"))
        if turn % 20 == 19:
            world.catalog.flush()
    count = 0

    def step() -> bool:
        nonlocal count
        count += 1
        return False

    world.catalog._tables._reader.set_progress_handler(step, 1)
    ada = world.uids["ada"]
    world.catalog.session("ada")
    world.catalog.locate(ada, turns // 2)
    world.catalog.sessions(limit=2)
    world.catalog.with_pending()
    world.catalog.snapshots(ada)
    last = world.catalog.head.position
    list(world.catalog.positions(ada, "turn", last - 5))
    list(world.catalog.positions(None, "turn", last - 5))
    world.catalog._tables._reader.set_progress_handler(None)
    return count


def test_what_was_taken_back_costs_whoever_asks_what_holds_nothing(tmp_path: Path) -> None:
    """Invariant 36: counted in the instructions of SQLite's machine."""

    def steps_after(path: Path, turns: int) -> int:
        world = World(path)
        world.spawn("ada")
        world.say("ada", fact("here"))
        for turn in range(turns):
            came = world.say("ada", fact("here", turn))
            world.say("ada", retract=(Handle(came.seq, 0),))
            if turn % 5 == 4:
                world.catalog.flush()
        count = 0

        def step() -> bool:
            nonlocal count
            count += 1
            return False

        world.catalog._tables._reader.set_progress_handler(step, 1)
        assert len(world.space.facts("(here . _)")) == 1
        world.catalog._tables._reader.set_progress_handler(None)
        return count

    assert steps_after(tmp_path / "many", 1000) <= steps_after(tmp_path / "few", 20) + 50


def test_of_each_snapshot_it_is_known_whether_it_is_a_base(tmp_path: Path) -> None:
    world = World(tmp_path / "catalog")
    world.spawn("ada")
    ada = world.uids["ada"]
    seqs = [
        world.append(world.draft(ada, kind, {"root": [0, bytes(32)]}))[0].seq for kind in (Kind.BASE, Kind.SNAPSHOT)
    ]
    world.catalog.catch_up()
    for _ in range(2):  # as it is remembered, and as it stands in the file
        assert [(each.seq, each.base) for each in world.catalog.snapshots(ada)] == [(seqs[1], False), (seqs[0], True)]
        world.catalog.flush()


@pytest.mark.parametrize("harm", ["UPDATE snapshots SET base = 0", "DELETE FROM snapshots WHERE base", ""])
def test_what_the_catalog_says_of_snapshots_and_bases_is_held_against_the_log(tmp_path: Path, harm: str) -> None:
    world = World(tmp_path / "catalog")
    world.spawn("ada")
    for kind in (*[Kind.SNAPSHOT] * 9, Kind.BASE, *[Kind.SNAPSHOT] * 9):
        world.append(world.draft(world.uids["ada"], kind, {"root": [0, bytes(32)]}))
    world.fork("ada", "twin")
    world.snapshot("twin")
    world.catalog.flush()
    right = Right(world.store)
    world.catalog._tables._writer.execute(harm)
    wrong = [what for step in check_catalog(world.catalog, right) for what in step]
    assert wrong == (["the catalog has other snapshots, or bases, for session 'ada' than the log"] if harm else [])
    right.catalog.close()
    world.catalog.close()
