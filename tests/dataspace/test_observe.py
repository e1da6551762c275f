"""Observers: the past and what comes, in order, without gap or duplicate."""

from __future__ import annotations

import gc
import random
import sys
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing
from worlds import World, counting, damage_from, places, read, talkative_world, whole_log

from dataspace.catalog.catalog import Catalog
from dataspace.drafts import Handle
from dataspace.facts import fact
from dataspace.log.memory import MemoryStore
from dataspace.observe.cursor import Cursor
from dataspace.observe.dataspace import Dataspace, ObserverFailed
from dataspace.observe.events import CaughtUp, Event, Unreadable
from dataspace.patterns import parse

# One loop for the past and for what comes.


async def test_an_observer_reads_the_past_then_what_comes() -> None:
    world = talkative_world()
    found: list[Any] = []

    async def listen() -> None:
        async for item in world.space.observe("(turn . _)", marks=True):
            found.append(item)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(listen)
        await trio.testing.wait_all_tasks_blocked()
        assert places(found[:-1]) == whole_log(world, "turn")
        assert found[-1] == CaughtUp(world.space.cursor)
        world.say("ada", fact("shop.order", 1))
        world.say("ada", fact("turn", 4, "ada"))
        world.say("ada", fact("shop.order", 2))
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    assert places(found) == whole_log(world, "turn")
    assert found[-1] == CaughtUp(world.space.cursor)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("pattern", ["(_ . _)", "(turn . _)", '(turn _ "s1" . _)'])
async def test_however_it_is_interrupted_an_observer_gets_the_log(seed: int, pattern: str) -> None:
    """Invariant 31: past and live, any start, any speed, any interruption: the union is the log."""
    chance = random.Random(seed)
    world = World()
    world.spawn("s0", "s1", "s2")
    scope = trio.CancelScope()
    found: list[Any] = []
    over = False

    async def write() -> None:
        nonlocal over
        for turn in range(60):
            ids = chance.sample(["s0", "s1", "s2"], chance.randrange(1, 4))
            said = [fact("turn", turn, "x"), fact("other", turn)][: chance.randrange(3)]
            world.append(*[world.saying(id, *said, fact("turn", turn, id)) for id in ids])
            if chance.random() < 0.1:
                world.catalog.flush()
            for _ in range(chance.randrange(4)):
                await trio.lowlevel.checkpoint()
            if chance.random() < 0.3:
                scope.cancel()
        await trio.testing.wait_all_tasks_blocked()
        over = True
        scope.cancel()

    async def listen() -> None:
        nonlocal scope
        cursor: Any = "start"
        while not over:
            with trio.CancelScope() as scope:
                observation = world.space.observe(pattern, after=cursor)
                patience = chance.randrange(1, 40)
                try:
                    async for event in observation:
                        found.append(event)
                        for _ in range(chance.randrange(3)):
                            await trio.lowlevel.checkpoint()
                        patience -= 1
                        if not patience:
                            break
                finally:
                    cursor = Cursor.parse(str(observation.cursor))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(listen)
        nursery.start_soon(write)
    assert places(found) == places(list(world.space.query(pattern)))
    assert len(found) >= 60 / 4


async def test_an_observation_goes_on_after_it_was_cancelled() -> None:
    world = talkative_world()
    observation = world.space.observe("(turn . _)", after="head")
    for turn in range(3):
        with trio.move_on_after(0.01):
            await observation.__anext__()
        world.say("bob", fact("other"))
        world.say("bob", fact("turn", turn, "bob"))
        event = await observation.__anext__()
        assert isinstance(event, Event)
        assert event.value.fields[0] == turn


async def test_an_observation_can_end_at_the_head_as_it_was() -> None:
    world = talkative_world()
    observation = world.space.observe("(turn . _)", until="head", marks=True)
    world.say("ada", fact("turn", 4, "ada"))
    found = await read(observation)
    assert places(found) == whole_log(world, "turn")[:-1]
    assert isinstance(found[-1], CaughtUp)
    assert found[-1].cursor.position == world.catalog.head.position - 1
    assert await read(observation) == []


async def test_an_observation_can_end_at_a_position_that_is_still_to_come() -> None:
    world = talkative_world()
    head = world.catalog.head.position
    found: list[Any] = []

    async def listen() -> None:
        found.extend(await read(world.space.observe("(turn . _)", after="head", until=head + 3)))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(listen)
        await trio.testing.wait_all_tasks_blocked()
        world.say("ada", fact("other"))
        world.say("ada", fact("turn", 4, "ada"))
        await trio.testing.wait_all_tasks_blocked()
        assert len(nursery.child_tasks) == 1
        world.append(world.saying("bob", fact("other")), world.saying("ada", fact("turn", 5, "ada")))
    assert places(found) == [(head + 2, 0)]


async def test_a_cursor_moves_by_what_was_considered() -> None:
    world = talkative_world()
    observation = world.space.observe("(never.said)")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(observation.__anext__)
        await trio.testing.wait_all_tasks_blocked()
        assert observation.cursor == world.space.cursor
        world.say("ada", fact("turn", 4, "ada"))
        assert observation.cursor == world.space.cursor
        nursery.cancel_scope.cancel()
    assert observation.cursor == world.space.cursor


async def test_who_wakes_reads_nothing_that_lies_between(monkeypatch: pytest.MonkeyPatch) -> None:
    world = talkative_world()
    found: list[Any] = []

    async def listen() -> None:
        async for item in world.space.observe('(? _ "bob" . _)', after="head"):
            found.append(item)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(listen)
        await trio.testing.wait_all_tasks_blocked()
        addresses: list[int] = []
        monkeypatch.setattr(world.catalog.recall, "_read", counting(addresses, world.catalog.recall._read))
        for turn in range(20):
            world.say("ada", fact("turn", turn, "ada"))
        said = world.say("bob", fact("turn", 4, "bob"))
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    assert addresses == [said.position]
    assert len(found) == 1


async def test_only_what_is_noted_is_seen_and_a_query_waits_for_what_was_durable() -> None:
    world = talkative_world()
    world.deaf = True
    records = world.append(world.saying("ada", fact("turn", 4, "ada")))
    found: list[Any] = []

    async def listen() -> None:
        found.extend(await read(world.space.observe("(turn . _)", until="head", marks=True)))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(listen)
        await trio.testing.wait_all_tasks_blocked()
        assert found == []
        world.space.note(records)
    assert places(found) == whole_log(world, "turn")
    assert [type(item) for item in found[-2:]] == [Event, CaughtUp]
    assert [type(item) for item in found].count(CaughtUp) == 1


async def test_forks_and_new_starts_wake_no_observer_with_what_it_has_seen() -> None:
    """Invariant 34."""
    world = talkative_world()
    observation = world.space.observe("(_ . _)", until="head")
    await read(observation)
    world.fork("ada", "eve")
    world.snapshot("eve")
    world = world.reopen()
    found = await read(world.space.observe("(_ . _)", after=observation.cursor, until="head"))
    assert [event.value.label for event in found] == ["fork", "forked", "snapshot"]


async def test_observers_of_one_session_are_woken_by_its_records_alone() -> None:
    world = talkative_world()
    found: list[Any] = []

    async def listen() -> None:
        async for item in world.space.observe("(turn . _)", after="head", session="ada", marks=True):
            found.append(item)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(listen)
        await trio.testing.wait_all_tasks_blocked()
        world.say("bob", fact("turn", 4, "bob"))
        await trio.testing.wait_all_tasks_blocked()
        assert len(found) == 1
        world.say("ada", fact("turn", 4, "ada"))
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    assert [type(item) for item in found] == [CaughtUp, Event, CaughtUp]
    assert not world.space.waiting


async def test_a_retraction_wakes_who_waits_for_the_fact() -> None:
    world = talkative_world()
    here = world.say("ada", fact("here.now", "desk"))
    found: list[Any] = []

    async def listen() -> None:
        async for item in world.space.observe('(here.now "desk")', after="head"):
            found.append(item.kind)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(listen)
        await trio.testing.wait_all_tasks_blocked()
        world.say("ada", retract=(Handle(here.seq, 0),))
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    assert found == ["retract"]


async def test_a_long_past_without_a_match_lets_others_run_and_can_be_cancelled() -> None:
    world = World()
    world.spawn("ada")
    world.append(*[world.seal(world.saying("ada", fact("turn", turn, "ada"))) for turn in range(200)])
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(count)
        assert await read(world.space.observe('(turn _ "nobody" . _)', until="head")) == []
        nursery.cancel_scope.cancel()
    assert turns >= 10


# Observers and the writer, observers and each other.


def test_a_record_costs_the_same_with_few_who_wait_and_with_many() -> None:
    """Invariant 38: counted in calls."""
    calls = {}
    for waiting in (10, 20_000):
        world = talkative_world()
        for number in range(waiting):
            world.space.waiting.park(parse(f'(turn _ "session {number}" . _)'), None, None)
        draft = world.saying("ada", fact("turn", 4, "ada"), fact("turn-done", 4, "ada"))
        record = world.seal(draft)
        world.store.append([record])
        calls[waiting] = count_calls(world.space, record)
    assert calls[20_000] == calls[10]


def count_calls(space: Dataspace, record: Any) -> int:
    count = 0

    def called(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    gc.disable()  # what it calls when it collects is nobody's cost here
    sys.setprofile(called)
    try:
        space.note([record])
    finally:
        sys.setprofile(before)
        gc.enable()
    return count


async def test_an_observer_that_sleeps_costs_the_writer_nothing() -> None:
    """Invariant 32: it is in no index, and keeps one number."""
    world = talkative_world()
    asleep = trio.Event()
    got: list[Any] = []

    async def sleepy(event: Event) -> None:
        got.append(event)
        await asleep.wait()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(world.space.observe_with, "(turn . _)", sleepy)
        await trio.testing.wait_all_tasks_blocked()
        assert not world.space.waiting
        alone = count_calls(world.space, world.append(world.saying("ada", fact("turn", 4, "ada")))[0])
        nursery.cancel_scope.cancel()
    assert alone == count_calls(world.space, world.append(world.saying("ada", fact("turn", 5, "ada")))[0])
    assert len(got) == 1


async def test_a_handler_that_raises_stops_its_observer_alone_at_a_known_cursor() -> None:
    """Invariant 32."""
    world = talkative_world()
    good: list[Any] = []
    failures: list[ObserverFailed] = []

    def bad(event: Event) -> None:
        if event.captures["n"] == 2:
            raise ZeroDivisionError

    async def told() -> None:
        try:
            await world.space.observe_with("(turn ?n . _)", bad)
        except ObserverFailed as error:
            failures.append(error)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(told)
        nursery.start_soon(world.space.observe_with, "(turn ?n . _)", good.append)
        await trio.testing.wait_all_tasks_blocked()
        world.say("ada", fact("turn", 4, "ada"))
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    assert places(good) == whole_log(world, "turn")
    (failure,) = failures
    assert isinstance(failure.__cause__, ZeroDivisionError)
    again = next(iter(world.space.query("(turn ?n . _)", after=failure.cursor)))
    assert (again.position, again.captures["n"]) == (failure.position, 2)


# Who reads beside the owner.


async def test_a_reader_beside_the_owner_catches_up_and_wakes_its_observers(tmp_path: Path) -> None:
    world = talkative_world(tmp_path / "catalog")
    store = MemoryStore(world.log, readonly=True)
    beside = Dataspace(store, Catalog(tmp_path / "catalog", store))
    found: list[Any] = []

    async def listen() -> None:
        async for item in beside.observe("(turn . _)", after="head"):
            found.append(item)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(listen)
        await trio.testing.wait_all_tasks_blocked()
        world.say("ada", fact("turn", 4, "ada"))
        beside.catch_up()
        beside.catch_up()
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    assert places(found) == [(world.store.head.position, 0)]


async def test_a_reader_beside_the_owner_is_told_of_records_that_it_cannot_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = talkative_world(tmp_path / "catalog")
    store = MemoryStore(world.log, readonly=True)
    beside = Dataspace(store, Catalog(tmp_path / "catalog", store))
    found: list[Any] = []

    async def listen() -> None:
        async for item in beside.observe("(turn . _)", after="head", marks=True):
            found.append(item)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(listen)
        await trio.testing.wait_all_tasks_blocked()
        damage_from(monkeypatch, world.uids["bob"], 5)
        world.say("bob", fact("turn", 4, "bob"))
        world.say("ada", fact("turn", 4, "ada"))
        beside.catch_up()
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    assert [type(item) for item in found] == [CaughtUp, Unreadable, Event, CaughtUp]
