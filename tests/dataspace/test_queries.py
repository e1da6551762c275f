"""Queries: what is found, what holds, and what cannot be read."""

from __future__ import annotations

from typing import Any

import pytest
from worlds import World, counting, damage_from, places, read, talkative_world, whole_log

from dataspace.catalog import catalog as catalogs
from dataspace.drafts import Handle
from dataspace.facts import fact
from dataspace.log.memory import MemoryStore, MemoryStored
from dataspace.log.verdicts import SessionDamaged
from dataspace.observe.cursor import Cursor
from dataspace.observe.dataspace import NoSuchSession
from dataspace.observe.events import CaughtUp, Event, Unreadable
from dataspace.values import ERASED

# What is found.


def test_an_event_tells_where_when_and_what() -> None:
    world = talkative_world()
    event = list(world.space.query('(turn ?n "bob" #:input ?)'))[1]
    stored = world.store.read(event.position)
    assert event.session == "bob"
    assert event.uid == world.uids["bob"]
    assert (event.seq, event.operation, event.kind) == (3, 0, "assert")
    assert event.value == fact("turn", 2, "bob", input="x" * 300)
    assert (event.captures["n"], event.captures[0]) == (2, "x" * 300)
    assert (event.time, event.hash) == (stored.header.time, stored.header.hash)
    assert event.cursor == Cursor(world.store.log_id, event.position, event.hash, 0)
    assert event.handle == Handle(3, 0)


def test_a_query_gives_all_that_matches_in_order() -> None:
    world = talkative_world()
    assert places(list(world.space.query("(_ . _)"))) == whole_log(world)
    assert places(list(world.space.query("(turn . _)"))) == whole_log(world, "turn")
    assert list(world.space.query("(never.said)")) == []


def test_a_query_is_bounded_by_positions() -> None:
    world = talkative_world()
    assert [event.position for event in world.space.query("(turn . _)", after=5, upto=7)] == [6, 7]
    assert list(world.space.query("(turn . _)", after="head")) == []


def test_a_query_of_one_session_reads_that_sessions_records_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    world = talkative_world()
    read_at: list[int] = []
    read = MemoryStore.read

    def counted(self: MemoryStore, address: int) -> MemoryStored:
        read_at.append(address)
        return read(self, address)

    monkeypatch.setattr(MemoryStore, "read", counted)
    found = list(world.space.query("(turn . _)", session="bob"))
    assert [event.value.fields[0] for event in found] == [1, 2, 3]
    assert read_at == [event.position for event in found]


def test_a_session_that_is_not_there_is_named() -> None:
    world = talkative_world()
    for ask in (world.space.query, world.space.observe, world.space.facts):
        with pytest.raises(NoSuchSession, match="nobody"):
            ask("(turn . _)", session="nobody")


def test_a_retraction_gives_the_fact_that_was_retracted() -> None:
    world = talkative_world()
    order = world.say("ada", fact("shop.order", 1), fact("shop.order", 2))
    world.say("ada", fact("shop.note"), retract=(Handle(order.seq, 1),))
    found = list(world.space.query("(shop.order ?n)"))
    assert [(event.kind, event.captures["n"]) for event in found] == [("assert", 1), ("assert", 2), ("retract", 2)]
    assert list(world.space.query("(shop.order 1)", after=order.position)) == []


def test_a_fact_can_be_retracted_by_the_crank_that_states_it() -> None:
    world = talkative_world()
    draft = world.saying("ada", fact("shop.order", 1))
    draft.retracted(draft.operation(), Handle(draft.seq, 0))
    world.append(draft)
    assert [event.kind for event in world.space.query("(shop.order . _)")] == ["assert", "retract"]
    assert world.space.facts("(shop.order . _)") == []


def test_a_fact_can_be_retracted_in_the_batch_that_brings_it() -> None:
    world = talkative_world()
    order = world.seal(world.saying("ada", fact("shop.order", 1)))
    world.append(order, world.seal(world.saying("ada", retract=(Handle(order.seq, 0),))))
    assert [event.kind for event in world.space.query("(shop.order . _)")] == ["assert", "retract"]
    assert world.space.facts("(shop.order . _)") == []


def test_a_lineage_is_read_through_and_a_fork_alone_is_its_own() -> None:
    world = talkative_world()
    world.fork("ada", "eve", at=3)
    world.say("ada", fact("turn", 4, "ada"))
    world.say("eve", fact("turn", 3, "eve"))
    world.fork("eve", "eve.1")
    world.say("eve.1", fact("turn", 4, "eve.1"))

    def turns(session: str, lineage: bool) -> list[tuple[int, str]]:
        found = world.space.query("(turn ?n ?who . _)", session=session, lineage=lineage)
        return [(event.captures["n"], event.captures["who"]) for event in found]

    assert turns("eve", False) == [(3, "eve")]
    assert turns("eve", True) == [(1, "ada"), (2, "ada"), (3, "eve")]
    assert turns("eve.1", True) == [(1, "ada"), (2, "ada"), (3, "eve"), (4, "eve.1")]
    assert [event.position for event in world.space.query("(_ . _)", session="eve.1", lineage=True)] == sorted(
        event.position for event in world.space.query("(_ . _)", session="eve.1", lineage=True)
    )


def test_a_deleted_session_says_only_that_it_is_deleted_and_its_forks_stay_whole() -> None:
    """Invariant 26: deleting a parent leaves its forks whole, and the other way round."""
    world = talkative_world()
    world.fork("ada", "eve")
    world.say("eve", fact("turn", 4, "eve"))
    world.fork("eve", "eve.1")
    world.delete("ada")
    assert [event.value.label for event in world.space.query("(_ . _)", session="ada")] == ["deleted"]
    assert world.space.facts('(turn _ "ada" . _)') == []
    assert len(list(world.space.query("(turn . _)", session="eve", lineage=True))) == 4
    assert len(world.space.facts("(turn . _)", session="eve", lineage=True)) == 4
    world.delete("eve")
    assert list(world.space.query("(turn . _)", session="eve", lineage=True)) == []
    assert len(list(world.space.query("(turn . _)", session="eve.1", lineage=True))) == 4


def test_erased_content_matches_wildcards_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    world = talkative_world()
    wanted = f'(turn 1 "ada" #:input "{"x" * 300}")'
    assert len(list(world.space.query(wanted))) == 1
    monkeypatch.setattr(MemoryStored, "cell", lambda self, number: ERASED)
    world.catalog.recall.forget()
    assert list(world.space.query(wanted)) == []
    (event,) = world.space.query('(turn 1 "ada" #:input ?)')
    assert event.captures[0] is ERASED


# What holds.


def test_what_holds_is_what_was_asserted_and_not_taken_back() -> None:
    world = talkative_world()
    before = world.catalog.head.position
    both = world.say("ada", fact("here.now", "desk"), fact("here.now", "phone"))
    other = world.say("bob", fact("here.now", "desk"))
    left = world.say("ada", retract=(Handle(both.seq, 0),))
    world.say("bob", retract=(Handle(other.seq, 0),))

    def here(at: int | None = None, **options: Any) -> list[tuple[str, str]]:
        held = world.space.facts("(here.now ?where)", at=at, **options)
        return [(one.session, one.captures["where"]) for one in held]

    assert here() == [("ada", "phone")]
    assert here(left.position) == [("ada", "phone"), ("bob", "desk")]
    assert here(other.position) == [("ada", "desk"), ("ada", "phone"), ("bob", "desk")]
    assert here(before) == []
    assert here(left.position, session="bob") == [("bob", "desk")]
    assert [held.handle for held in world.space.facts("(here.now . _)")] == [Handle(both.seq, 1)]
    world.catalog.flush()
    assert here() == [("ada", "phone")]
    assert here(other.position) == [("ada", "desk"), ("ada", "phone"), ("bob", "desk")]


def test_a_fork_takes_back_what_it_inherited_for_itself_alone() -> None:
    world = talkative_world()
    order = world.say("ada", fact("shop.order", 1), fact("shop.order", 2), fact("shop.order", 3))
    alone = world.say("ada", fact("shop.order", 4))
    world.fork("ada", "eve")
    world.say("eve", retract=(Handle(order.seq, 0), Handle(alone.seq, 0)))
    world.say("ada", retract=(Handle(order.seq, 1),))

    def orders(**options: Any) -> list[int]:
        return [held.captures["n"] for held in world.space.facts("(shop.order ?n)", **options)]

    for _ in range(2):
        assert orders() == [1, 3, 4]
        assert orders(session="eve", lineage=True) == [2, 3]
        assert orders(session="ada") == [1, 3, 4]
        world.catalog.flush()


def test_what_was_taken_back_is_not_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    world.spawn("ada")
    for visit in range(50):
        here = world.say("ada", fact("here.now", visit))
        if visit != 7:
            world.say("ada", retract=(Handle(here.seq, 0),))
        if visit % 20 == 19:
            world.catalog.flush()
    world.catalog.recall.forget()
    addresses: list[int] = []
    monkeypatch.setattr(world.catalog.recall, "_read", counting(addresses, world.catalog.recall._read))
    assert [held.fact for held in world.space.facts("(here.now . _)")] == [fact("here.now", 7)]
    assert len(addresses) == 1


# Damage.


@pytest.fixture
def hurt(monkeypatch: pytest.MonkeyPatch) -> World:
    """A world in which the record of bob's second turn cannot be read, nor anything of his after it."""
    world = talkative_world()
    damage_from(monkeypatch, world.uids["bob"], 3)
    return world


async def test_a_damaged_record_is_reported_by_name_and_never_skipped(hurt: World) -> None:
    with pytest.raises(SessionDamaged, match="session bob is damaged at seq 3"):
        list(hurt.space.query("(turn . _)"))
    observation = hurt.space.observe("(turn . _)")
    for _ in range(3):
        await observation.__anext__()
    for _ in range(2):
        with pytest.raises(SessionDamaged):
            await observation.__anext__()


async def test_who_asks_for_marks_is_told_of_damage_and_reads_on(hurt: World) -> None:
    found = await read(hurt.space.observe("(turn . _)", until="head", marks=True))
    assert [type(item) for item in found] == [Event, Event, Event, Unreadable, Event, Unreadable, CaughtUp]
    assert (found[3].session, found[3].seq, found[3].position) == ("bob", 3, 7)
    assert await read(hurt.space.observe("(turn . _)", after=found[3].cursor, until="head", marks=True)) == found[4:]


async def test_a_catalog_made_anew_hides_no_damage(hurt: World) -> None:
    """Invariant 22: a failed read is an error, never an empty history."""
    before = await read(hurt.space.observe("(turn . _)", until="head", marks=True))
    hurt.catalog.rebuild()
    assert await read(hurt.space.observe("(turn . _)", until="head", marks=True)) == before
    for ask in (hurt.space.query, hurt.space.facts):
        for session in (None, "bob"):
            with pytest.raises(SessionDamaged):
                list(ask("(turn . _)", session=session))
    hurt.catalog.flush()
    assert await read(hurt.space.observe("(turn . _)", until="head", marks=True)) == before
    with pytest.raises(SessionDamaged):
        list(hurt.space.query("(turn . _)", session="bob"))
    assert len(hurt.space.facts("(turn . _)", session="ada")) == 3


def test_records_that_cannot_be_read_are_found_in_their_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogs, "RUN", 2)
    world = World()
    world.spawn("ada", "bob")
    for turn in range(100):
        world.say("bob" if turn % 5 == 0 else "ada", fact("turn", turn, "x"))
        world.say("ada", fact("other"))
    before = list(world.catalog.positions(None, "turn"))
    damage_from(monkeypatch, world.uids["bob"], 2)
    world.catalog.rebuild()
    assert list(world.catalog.positions(None, "turn")) == before
    assert list(world.catalog.standing("turn", world.catalog.head.position)) == before
    assert len(list(world.catalog.positions(None, "never.said"))) == 20
    assert len(list(world.catalog.standing("never.said", world.catalog.head.position))) == 20


def test_a_damaged_session_troubles_nobody_who_does_not_ask_for_it(hurt: World) -> None:
    """Invariant 23."""
    assert len(list(hurt.space.query("(turn . _)", session="ada"))) == 3
    hurt.say("ada", fact("turn", 4, "ada"))
    assert len(list(hurt.space.query("(turn . _)", session="ada"))) == 4
