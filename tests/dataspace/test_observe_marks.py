"""Marks: what an observer is told of having caught up, and what comes meanwhile."""

from __future__ import annotations

from typing import Any

import pytest
import trio
import trio.testing
from worlds import World, talkative_world

from dataspace.facts import fact
from dataspace.observe import observation, turns
from dataspace.observe.events import CaughtUp, Event
from dataspace.observe.search import Search
from tests.giving_way import beside_others


async def test_what_comes_while_a_mark_is_looked_at_is_read_at_once() -> None:
    world = talkative_world()
    found: list[Any] = []
    async with trio.open_nursery() as nursery:

        async def listen() -> None:
            async for item in world.space.observe("(turn . _)", after="head", marks=True):
                found.append(item)
                if len(found) == 1:
                    world.say("ada", fact("turn", 4, "ada"))

        nursery.start_soon(listen)
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    assert [type(item) for item in found] == [CaughtUp, Event, CaughtUp]


async def test_who_waits_for_a_session_hears_of_its_next_record_whatever_that_states_and_of_no_others() -> None:
    world = talkative_world()
    waiting, heard = world.space.waiting, []

    async def wait(name: str) -> None:
        await waiting.appended(world.uids[name])
        heard.append(name)

    async with trio.open_nursery() as nursery:
        for name in ("ada", "ada", "bob"):
            nursery.start_soon(wait, name)
        await trio.testing.wait_all_tasks_blocked()
        world.say("ada")
        await trio.testing.wait_all_tasks_blocked()
        assert heard == ["ada", "ada"]
        assert waiting
        nursery.cancel_scope.cancel()
    assert not waiting


@pytest.mark.parametrize("again", [False, True])
async def test_of_two_that_give_up_at_once_none_takes_from_others_what_they_wait_for(again: bool) -> None:
    world = talkative_world()
    waiting, heard = world.space.waiting, 0

    async def wait(until: trio.CancelScope) -> None:
        nonlocal heard
        with until:
            await waiting.appended(world.uids["ada"])
        if again:
            await waiting.appended(world.uids["ada"])
            heard += 1

    async with trio.open_nursery() as nursery:
        scopes = [trio.CancelScope() for _ in range(2)]
        for scope in scopes:
            nursery.start_soon(wait, scope)
        await trio.testing.wait_all_tasks_blocked()
        for scope in scopes:
            scope.cancel()
        await trio.testing.wait_all_tasks_blocked()
        world.say("ada")
        await trio.testing.wait_all_tasks_blocked()
        assert heard == (2 if again else 0)
        nursery.cancel_scope.cancel()
    assert not waiting


@pytest.mark.parametrize("pattern", ["(said _ _)", "(said missing _)"])
@pytest.mark.parametrize("room", [1000, 100_000])
async def test_who_reads_much_gives_way_after_each_record_that_has_much(
    pattern: str, room: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that of records that have little, a few are read before others have their turn."""
    monkeypatch.setattr(turns, "ROOM", room)
    monkeypatch.setattr(observation, "ROOM", room)
    world = World()
    world.spawn("ada")
    for number in range(40):
        world.say("ada", fact("said", number, "x" * 1500))
    for reading in (world.space.observe(pattern, until="head"), world.space.holding(pattern)):
        async with beside_others() as reads:
            reads.count(monkeypatch, Search, "said")
            async for _ in reading:
                pass
        assert (reads.longest <= 2) is (room == 1000), reads.longest
