"""The indexes of a heap: they say what the collections say, whatever is undone, and are made once."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from typing import Any

import pytest
from vatmaker import ROOT, Log, World, assert_restores
from waits import Agent, Fiberworld, cancel, near, script, within

from vat.heap.heap import Heap
from vat.heap.indexes import effect_of, owned_by
from vat.heap.opcodes import Op
from vat.heap.operations import APPLY
from vat.objects.actor import Actor, actor


@pytest.fixture
def looked(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each collection of a heap was looked through, by name."""
    counts: Counter[str] = Counter()
    entries = Heap.entries

    def counted(self: Heap, name: str) -> list[tuple[Any, Any]]:
        counts[name] += 1
        return entries(self, name)

    monkeypatch.setattr(Heap, "entries", counted)
    return counts


def tools(world: Fiberworld, value: Any) -> list[int]:
    """The open effects of the tool that were asked for with a value."""
    heap = world.agent.heap
    return [n for n, entry in heap.system["effects"].items(loader=heap.page) if list(entry[3]) == [value]]


@script
async def many_limits(me: Agent, times: int) -> None:
    for number in range(times):
        await within(60, me.want(f"limited {number}"))


def test_giving_up_effects_looks_through_the_open_ones_once(looked: Counter[str]) -> None:
    world = Fiberworld()
    for number in range(50):
        world.tell(world.agent, "want", number)
    world.go("many_limits", 10)
    for number in range(10):
        world.give(effect=tools(world, f"limited {number}")[0])
    assert looked["effects"] == 1
    assert len(world.wanted_now) == 50, "each time limit is given up with its wait"
    assert_restores(world, world.agent)


@script
async def owning(me: Agent) -> None:
    first, second = me.want("first"), me.want("second")
    await first
    raise ValueError(second)


def test_fibers_that_fail_look_through_what_is_kept_for_all_of_them_once(looked: Counter[str]) -> None:
    world = Fiberworld()
    for _ in range(10):
        world.go("owning")
    for _ in range(10):
        world.give(effect=tools(world, "first")[0])
    assert looked["owned"] == 1
    assert not world.agent.heap.system["owned"].count
    assert_restores(world, world.agent)


@actor("indexes.gives_up", version=1)
class GivesUp(Actor):
    kept: Any = None

    def want(self) -> None:
        self.kept = self.device("tool").use()

    def fail(self) -> None:
        self.device("tool").use()
        cancel(self.kept, ValueError())
        cancel(self.device("tool").use(), ValueError())
        self.device("tool").use()
        raise LookupError

    def go(self, first: bool) -> list[bool]:
        if first:
            assert cancel(self.device("tool").use(), ValueError())
        with suppress(LookupError):
            near(self.ref).fail()
        return [cancel(self.kept, ValueError()), cancel(self.kept, ValueError())]


@pytest.mark.parametrize("first", [True, False], ids=["known before", "made by what is undone"])
def test_what_is_undone_is_undone_in_the_indexes(first: bool) -> None:
    world = World(GivesUp)
    session = world.spawn(GivesUp)
    world.ask(session, "want")
    assert world.ask(session, "go", first) == [True, False]
    assert not session.heap.system["effects"].count
    assert_restores(world, session)


def test_a_fork_that_lets_go_of_effects_does_so_in_the_index() -> None:
    world = World(GivesUp)
    session = world.spawn(GivesUp)
    world.ask(session, "want")
    heap = session.heap
    promise = heap.state(ROOT).fields["kept"].id
    assert effect_of(heap, promise) == 1
    APPLY[Op.DETACHED](heap, session.vat.seq)
    assert effect_of(heap, promise) is None
    heap.abandon()
    assert effect_of(heap, promise) == 1


def test_an_index_that_was_made_since_a_savepoint_goes_with_what_is_undone() -> None:
    heap = Heap(Log())
    savepoint = heap.mark()
    heap.put_entry("owned", 7, 1)
    assert owned_by(heap, 1) == [7]
    heap.rollback(savepoint)
    assert owned_by(heap, 1) == []
