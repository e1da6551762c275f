"""Between sessions, and between them and the rest of a host: who is busy holds nobody up for long."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import trio
import trio.testing

from tests.vat.hosts import Counter, World
from vat.crank.vat import Step, Vat
from vat.heap.past import NotYet
from vat.host.residents import Job
from vat.host.scheduling import IN_TURN, SLICE
from vat.objects.actor import Actor, actor
from vat.objects.types import read


class Now:
    """What the plodders of a test have done, and the clock that they let go on."""

    clock: trio.testing.MockClock
    ran = 0


@actor("test.plodder", version=1)
class Plodder(Actor):
    """Computes for a while."""

    def plod(self, seconds: float) -> None:
        Now.ran += 1
        Now.clock.jump(seconds)

    @read
    def seen(self) -> int:
        """How much has been done by all of them when it is the turn of this one."""
        return Now.ran


async def waits(seconds: float, count: int, clock: trio.testing.MockClock) -> tuple[int, int]:
    """While one session has that many cranks before it, which take so long each: how many of them another task waits
    for at the most, and how many run until it is the turn of another session.

    Tasks take turns in any order, so that two turns of the host may come between two of another task."""
    Now.clock, Now.ran = clock, 0
    world = World()
    world.actors = (*world.actors, Plodder)
    longest = 0
    async with world.host() as host, trio.open_nursery() as nursery:
        busy, other = await host.spawn(Plodder), await host.spawn(Plodder)

        async def look() -> None:
            nonlocal longest
            while Now.ran < count:
                before = Now.ran
                await trio.lowlevel.checkpoint()
                longest = max(longest, Now.ran - before)

        for _ in range(count):
            nursery.start_soon(busy.plod, seconds)
        nursery.start_soon(look)
        while not Now.ran:
            await trio.lowlevel.checkpoint()
        before = Now.ran
        begun = await other.seen() - before
    return longest, begun


async def test_a_session_of_long_cranks_holds_others_up_for_a_slice(mock_clock: trio.testing.MockClock) -> None:
    longest, begun = await waits(SLICE / 2, 200, mock_clock)
    assert longest <= 2 * 3
    assert begun <= 2 * 3


async def test_a_session_of_very_long_cranks_holds_others_up_for_one(mock_clock: trio.testing.MockClock) -> None:
    longest, _ = await waits(10 * SLICE, 50, mock_clock)
    assert longest <= 2


async def test_short_cranks_are_done_many_at_a_time(mock_clock: trio.testing.MockClock) -> None:
    longest, _ = await waits(0, 200, mock_clock)
    assert IN_TURN <= longest <= 2 * IN_TURN


async def test_what_a_vat_does_first_keeps_its_order_when_it_has_to_wait(world: World) -> None:
    done: list[str] = []

    def first(vat: Vat) -> Sequence[Step]:
        done.append("first")
        if len(done) == 1:
            raise NotYet
        return ()

    def second(vat: Vat) -> Sequence[Step]:
        done.append("second")
        return ()

    async with world.host() as host:
        s = await host.spawn(Counter, "s")
        host._engine.care.first = lambda resident, vat: [Job(None, None, first), Job(None, None, second)]
        assert host._engine.turns.unload(s._uid)
        assert await s.add() == 1
        assert done == ["first", "first", "second"]


async def test_a_vat_that_is_spent_is_loaded_again_as_soon_as_what_it_recorded_is_durable(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with world.host() as host:
        s = await host.spawn(Counter, "s")
        engine = host._engine
        resident = engine.residents.get(s._uid)
        assert resident is not None
        before = resident.vat
        assert before is not None
        async with trio.open_nursery() as nursery:
            with monkeypatch.context() as patch:
                patch.setattr(engine.commits, "go", lambda *, lone: None)
                before.spent = True
                nursery.start_soon(s.add)
                await trio.testing.wait_all_tasks_blocked(0.05)
                assert not engine.turns.unload(s._uid)
                nursery.start_soon(s.add)
                await trio.testing.wait_all_tasks_blocked(0.05)
                assert (resident.vat, len(resident.mailbox)) == (before, 1)
            engine.commits.go(lone=True)
        assert resident.vat not in (None, before)
        assert await s.add() == 3
