"""Who only counts facts: told in line, once they are durable."""

from __future__ import annotations

from typing import Any

import pytest
from worlds import World, places, whole_log

from dataspace.facts import fact


def test_who_counts_is_told_each_fact_of_its_labels_once_it_is_noted() -> None:
    world = World()
    world.spawn("ada")
    world.say("ada", fact("turn", 1))
    heard: list[Any] = []
    end = world.space.on_fact(("turn", "turn-done"), heard.append)
    world.say("ada", fact("turn", 2), fact("other", 2), fact("turn-done", 2))
    end()
    world.say("ada", fact("turn", 3))
    assert heard == [fact("turn", 2), fact("turn-done", 2)]


def test_who_counts_and_fails_keeps_nothing_from_the_others(caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    world.spawn("ada")
    heard: list[Any] = []
    world.space.on_fact(["turn"], lambda fact: 1 / 0)
    world.space.on_fact(["turn"], heard.append)
    world.say("ada", fact("turn", 1))
    assert heard == [fact("turn", 1)]
    assert places(list(world.space.query("(turn . _)"))) == whole_log(world, "turn")
    assert "turn has failed" in caplog.text
