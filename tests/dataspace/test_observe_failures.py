"""Observers that come to what cannot be read, or that fail."""

from __future__ import annotations

import pytest
from worlds import World, damage_from, read, talkative_world

from dataspace.drafts import Handle
from dataspace.facts import fact
from dataspace.observe.events import CaughtUp, Event, Unreadable


async def test_a_retraction_of_what_cannot_be_read_is_marked_and_passed(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    world.spawn("ada")
    said = world.say("ada", fact("turn", 1))
    gone = world.say("ada", retract=(Handle(said.seq, 0),))
    world.say("ada", fact("turn", 2))
    damage_from(monkeypatch, world.uids["ada"], said.seq, said.seq)
    world.catalog.recall.forget()
    found = await read(world.space.observe("(turn . _)", until="head", marks=True))
    assert [type(item) for item in found] == [Unreadable, Unreadable, Event, CaughtUp]
    assert [item.position for item in found[:2]] == [said.position, gone.position]


async def test_an_observation_that_failed_never_says_that_it_came_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Invariant 22: whatever the failure was, an end of the log is another thing."""
    world = talkative_world()
    observation = world.space.observe("(turn . _)", until="head")
    await anext(observation)
    monkeypatch.setattr(world.catalog.recall, "said", lambda address: 1 // 0)
    for _ in range(3):
        with pytest.raises(ZeroDivisionError):
            await anext(observation)
