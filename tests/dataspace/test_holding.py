"""What holds, read in parts: at any place it can be left and gone on with, and nobody waits for it meanwhile."""

from __future__ import annotations

from typing import Any

import pytest
from worlds import World, busy_world, damage_from

from dataspace.facts import fact
from dataspace.log.memory import MemoryStore
from dataspace.log.verdicts import SessionDamaged
from dataspace.observe.cursor import BadCursor
from dataspace.observe.events import Held
from dataspace.observe.holding import Place
from tests.giving_way import beside_others

ASKED: Any = [
    {"pattern": "(_ . _)"},
    {"pattern": "(turn . _)"},
    {"pattern": "(_ . _)", "session": "ada"},
    {"pattern": "(turn . _)", "session": "ada", "lineage": True},
]


async def in_parts(world: World, how: Any, at: int, size: int, said: Any = lambda: None) -> list[Held]:
    """All that holds, read by parts of that many, each behind the place of the one before, given as a text."""
    found: list[Held] = []
    after = "0"
    while True:
        holding = world.space.holding(**how, at=at, after=Place.parse(after))
        before = len(found)
        async for held in holding:
            found.append(held)
            if len(found) - before == size:
                break
        else:
            return found
        after = str(holding.place)
        said()


@pytest.mark.parametrize("how", ASKED)
async def test_parts_are_what_is_read_at_once_however_they_are_cut(how: Any) -> None:
    world = busy_world()
    head = world.catalog.head.position
    for at in {head // 2, head - 1, head}:
        whole = world.space.facts(**how, at=at)
        for size in (1, 2, 5):
            assert await in_parts(world, how, at, size) == whole


async def test_parts_at_one_position_are_of_one_moment_whatever_is_said_between_them() -> None:
    world = World()
    world.spawn("ada")
    records = [world.say("ada", fact("here", n), fact("here", n, "too")) for n in range(6)]
    at = world.catalog.head.position
    how = {"pattern": "(here . _)"}
    whole = world.space.facts(**how)
    handles = [held.handle for held in whole]

    def said() -> None:
        world.say("ada", fact("here", "new"), retract=(handles.pop(),))

    assert len(records) * 2 == len(whole)
    assert await in_parts(world, how, at, 1, said) == whole


async def test_others_have_their_turns_while_much_is_read_for_little(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    world.spawn("ada")
    for n in range(200):
        world.say("ada", fact("here", n))
    async with beside_others() as reads:
        reads.count(monkeypatch, MemoryStore, "read")
        assert [held async for held in world.space.holding("(here _ missing)")] == []
    assert 0 < reads.longest <= 50


async def test_what_cannot_be_read_raises_and_what_is_no_place_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    world = busy_world()
    for text in ("", "one", "1.2.3", "-1", "1.", "٣", "1" * 30):
        with pytest.raises(BadCursor):
            Place.parse(text)
    damage_from(monkeypatch, world.uids["ada"], 2)
    world.catalog.rebuild()
    with pytest.raises(SessionDamaged):
        assert [held async for held in world.space.holding("(_ . _)", session="ada")]
