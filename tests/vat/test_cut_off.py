"""What cuts the runtime off in the middle (the recursion limit, a lack of memory, Ctrl-C) fails the delivery."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import Any

import pytest
from vatmaker import World, assert_restores

from vat.heap.opcodes import Op
from vat.heap.operations import APPLY
from vat.heap.refs import near
from vat.objects.actor import Actor, actor
from vat.objects.collections import List, Map, Set

ACTS = {
    "append": lambda me: me.items.append("content " * 60),
    "put": lambda me: me.named.__setitem__("key", ["content " * 60]),
    "add": lambda me: me.tags.add("tag"),
    "set": lambda me: setattr(me, "count", 1),
    "spawn": lambda me: me.spawn(Deep),
    "send": lambda me: me.ref.nothing("content " * 60),
    "hold": lambda me: me.items.append(me.ref.nothing()),
    "react": lambda me: me.ref.nothing().then(me.nothing, "more"),
    "far": lambda me: me.directory.list(),
    "effect": lambda me: me.device("d").go("content " * 60),
    "state": lambda me: me.assert_fact("cut.fact", "content " * 60),
    "retract": lambda me: me.retract(me.assert_fact("cut.fact", 1)),
    "narrow": lambda me: me.items.append(me.narrow("nothing")),
    "near": lambda me: near(me.ref).nothing("content " * 60),
    "observe": lambda me: me.observe("(cut.fact . _)", me.nothing),
    "chance": lambda me: me.random.random(),
}


def depth() -> int:
    """How many calls within calls there are, with that of who asks: counted, as to say where each is takes long."""
    calls, frame = 0, sys._getframe(1)
    while frame is not None:
        calls, frame = calls + 1, frame.f_back  # type: ignore[assignment]  # that of the first call has none
    return calls


@actor("cut.deep", version=1)
class Deep(Actor):
    count: int = 0
    items: List[Any]
    named: Map[str, Any]
    tags: Set[str]

    def nothing(self, *given: Any) -> None:
        self.count += 1

    def near_the_limit(self, what: str, left: int) -> None:
        """Do something where only so many calls within calls are left, and pass over what comes of it."""

        def down(levels: int) -> None:
            if levels:
                down(levels - 1)
            else:
                ACTS[what](self)

        with suppress(RecursionError):
            down(sys.getrecursionlimit() - depth() - left)

    def swallow(self) -> str:
        try:
            self.count += 1
        except BaseException:  # noqa: BLE001  # that is what the actor is for
            self.items.append("swallowed")
        return "done"

    def endless(self) -> None:
        self.items.append("lost")
        self.endless()

    def catch(self) -> int:
        with suppress(RecursionError):
            near(self.ref).endless()
        return len(self.items)


@pytest.fixture
def world() -> World:
    return World(Deep)


@pytest.mark.parametrize("what", ACTS)
def test_nothing_is_half_done_at_the_recursion_limit(world: World, what: str) -> None:
    failed = set()
    for left in range(4, 44):
        deep = world.spawn(Deep)
        outcome = world.tell(deep, "near_the_limit", what, left)
        failed.add(outcome.succeeded)
        pending = [entry for _, entry in deep.heap.entries("promises") if entry[0] == 0]
        assert len(pending) == deep.heap.system["effects"].count, "every promise has somebody to settle it"
        assert_restores(world, deep)
    assert True in failed


@pytest.mark.parametrize("error", [MemoryError, RecursionError])
def test_an_operation_that_was_cut_off_fails_its_delivery_though_it_was_caught(
    world: World, error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = world.spawn(Deep)

    def half(heap: Any, actor: int, field: str, value: Any) -> None:
        heap.touch(heap.state(actor), field, value)
        raise error

    with monkeypatch.context() as patch:
        patch.setitem(APPLY, Op.SET, half)
        outcome = world.tell(deep, "swallow")
    assert not outcome.succeeded
    assert world.ask(deep, "count") == 0
    assert world.tell(deep, "swallow").payload == "done"
    assert_restores(world, deep)


def test_ctrl_c_in_the_middle_of_an_operation_ends_the_crank_though_it_was_caught(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = world.spawn(Deep)

    def interrupted(heap: Any, actor: int, field: str, value: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setitem(APPLY, Op.SET, interrupted)
        with pytest.raises(KeyboardInterrupt):
            world.tell(deep, "swallow")
    assert world.tell(deep, "swallow").payload == "done"
    assert_restores(world, deep)


def test_a_near_call_that_came_to_the_limit_is_undone_and_may_be_caught(world: World) -> None:
    deep = world.spawn(Deep)
    assert world.ask(deep, "catch") == 0
    assert_restores(world, deep)
