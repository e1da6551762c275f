"""An actor is changed by its own crank, and by nobody else: not when that is over, and not from another thread."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from vatmaker import World, assert_restores

from vat.errors import OutsideCrank
from vat.objects.actor import Actor, actor
from vat.objects.collections import List, Map, Set

kept: list[Any] = []

CHANGES = {
    "assign": lambda me: setattr(me, "count", 7),
    "append": lambda me: me.items.append(7),
    "put": lambda me: me.named.__setitem__("key", 7),
    "add": lambda me: me.tags.add("tag"),
    "spawn": lambda me: me.spawn(Shared),
    "fact": lambda me: me.assert_fact("shared.fact", 7),
    "narrow": lambda me: me.narrow("count"),
    "observe": lambda me: me.observe("(shared.fact . _)", me.add),
    "effect": lambda me: me.device("d").go(7),
    "send": lambda me: me.ref.add(),
}


@actor("shared.shared", version=1)
class Shared(Actor):
    count: int = 0
    items: List[Any]
    named: Map[str, Any]
    tags: Set[str]

    def add(self, *given: Any) -> int:
        kept.append(self)
        self.count += 1
        return self.count

    def lend(self, what: str) -> str:
        """Have another thread do something while this crank runs."""
        refused = []

        def change() -> None:
            try:
                CHANGES[what](self)
            except OutsideCrank as error:
                refused.append(str(error))

        thread = threading.Thread(target=change)
        thread.start()
        thread.join()
        return refused[0]


@pytest.fixture
def world() -> World:
    return World(Shared)


@pytest.mark.parametrize("what", CHANGES)
def test_another_thread_changes_nothing(world: World, what: str) -> None:
    shared = world.spawn(Shared)
    assert "here is no crank" in world.ask(shared, "lend", what)
    assert world.ask(shared, "add") == 1
    assert_restores(world, shared)


@pytest.mark.parametrize("what", CHANGES)
def test_nothing_is_changed_when_the_crank_is_over(world: World, what: str) -> None:
    shared = world.spawn(Shared)
    world.ask(shared, "add")
    with pytest.raises(OutsideCrank):
        CHANGES[what](kept.pop())
    assert world.ask(shared, "add") == 2
    assert_restores(world, shared)
