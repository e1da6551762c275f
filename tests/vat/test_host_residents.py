"""Which sessions are in memory: as many as are active, and a few more; and what leaving costs nobody."""

from __future__ import annotations

from collections import Counter as Tally
from typing import Any

import pytest
import trio
import trio.testing

from dataspace.log.files import ReadFailed
from dataspace.records import Kind
from tests.vat.hosts import Caller, Counter, Worker, World, held, records, resident_of, residents_of, settled
from vat.crank.vat import Vat
from vat.host.residents import GLANCES, Job, Resident, Residents

# Which ones leave


def named(number: int) -> bytes:
    return number.to_bytes(16, "big")


def test_the_least_recently_used_leave_first() -> None:
    residents = Residents(3)
    for number in (1, 2, 3, 1, 4):
        residents.use(named(number))
    assert [resident.uid for resident in residents.superfluous()] == [named(2)]


def test_who_is_not_idle_stays_and_is_not_looked_at_again_and_again() -> None:
    residents = Residents(1)
    for number in range(10 * GLANCES):
        residents.use(named(number)).mailbox.append(Job(None))
    looks = 0

    class Looked(Resident):
        __slots__ = ()

        @property
        def idle(self) -> bool:
            nonlocal looks
            looks += 1
            return False

    for resident in residents:
        resident.__class__ = Looked
    assert residents.superfluous() == []
    assert looks == GLANCES


def test_no_more_leave_than_there_are_too_many() -> None:
    residents = Residents(5)
    for number in range(8):
        residents.use(named(number))
    assert len(residents.superfluous()) == 3


# Memory


async def test_memory_is_bounded_by_what_is_active(world: World) -> None:
    """Invariant 39: 10,000 sessions used in turn, a fixed ceiling."""
    async with world.host(vats=50, cache=200_000) as host:
        residents, cache = residents_of(host), host._engine.loader.cache
        refs = [await host.spawn(Counter, str(number)) for number in range(10_000)]
        most = 0
        for number, ref in enumerate(refs):
            await ref.add("x" * 300)
            most = max(most, len(residents))
            assert number % 1000 or cache.statistics().size <= 200_000
        assert most <= 51
        assert not host._engine.commits.busy
        assert len(host._engine.mail._stuck) == len(host._engine.errands._running) == 0
        for number in range(0, 10_000, 999):
            assert await refs[number].count == 1


async def test_ten_thousand_at_once_are_served_and_leave(world: World) -> None:
    async with world.host(vats=50) as host:
        refs = [await host.spawn(Counter, str(number)) for number in range(1000)]
        answers: Tally[int] = Tally()

        async def use(ref: Any) -> None:
            for _ in range(3):
                answers[await ref.add()] += 1

        async with trio.open_nursery() as nursery:
            for ref in refs:
                nursery.start_soon(use, ref)
        assert answers == {1: 1000, 2: 1000, 3: 1000}
        for _ in range(10):  # somebody is used, and those that are too many leave
            await refs[0].count
        assert len(residents_of(host)) <= 51


async def test_a_session_leaves_and_comes_back_as_it_was(either: World) -> None:
    """Invariant 8: The same run with evictions and reloads ends with the same answers as without."""
    async with either.host(vats=1, first_snapshot=4, snapshot_records=6) as host:
        a, b = await host.spawn(Counter, "a"), await host.spawn(Counter, "b")
        for number in range(1, 31):
            assert await a.add(f"a{number}") == number
            assert await b.add(f"b{number}") == number
        assert await a.seen == [f"a{number}" for number in range(1, 31)]
        assert Kind.RESTORE not in records(host, "a")


async def test_who_waits_for_a_promise_keeps_the_session_in_memory(world: World) -> None:
    world.tool.open = False
    async with world.host(vats=1) as host:
        w = await host.spawn(Worker, "w")
        answers: list[Any] = []

        async def ask() -> None:
            answers.append(await w.work("again", 1))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask)
            await settled(host)
            for number in range(5):
                await host.spawn(Counter, str(number))
            world.tool.gate.set()
        assert answers == ["again 1"]


@pytest.mark.parametrize("taken", [True, False], ids=["that waits", "not taken yet"])
async def test_who_was_cancelled_keeps_no_session_in_memory(
    world: World, taken: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Invariant 39: memory is bounded by what is active, and not by who has been there."""
    world.tool.open = False
    async with world.host(vats=1) as host:
        w = await host.spawn(Worker, "w")

        async def ask() -> None:
            await w.work("again", 1)

        async with trio.open_nursery() as nursery:
            if not taken:
                post = host._engine.turns.post

                def at_once(uid: bytes, job: Job) -> None:
                    post(uid, job)
                    nursery.cancel_scope.cancel()

                monkeypatch.setattr(host._engine.turns, "post", at_once)
            nursery.start_soon(ask)
            await settled(host)
            nursery.cancel_scope.cancel()
        monkeypatch.undo()
        await settled(host)
        for number in range(5):
            await host.spawn(Counter, str(number))
        assert resident_of(host, w._uid) is None
        world.tool.gate.set()
        await settled(host)
        assert await w.results == ["again 1"]


async def test_others_who_wait_for_the_same_are_answered(world: World) -> None:
    world.tool.open = False
    async with world.host() as host:
        w = await host.spawn(Worker, "w")
        answers: list[Any] = []

        async def ask(scope: trio.CancelScope) -> None:
            with scope:
                answers.append(await w.work("again", 1, request="r"))

        async with trio.open_nursery() as nursery:
            scopes = [trio.CancelScope() for _ in range(3)]
            for scope in scopes:
                nursery.start_soon(ask, scope)
            await settled(host)
            scopes[1].cancel()
            await settled(host)
            world.tool.gate.set()
        assert answers == ["again 1", "again 1"]


async def test_what_is_on_its_way_keeps_the_session_in_memory(world: World) -> None:
    async with world.host(vats=0) as host, trio.open_nursery() as nursery:
        s = await host.spawn(Counter, "s")
        with held(host):
            nursery.start_soon(s.add)
            await trio.testing.wait_all_tasks_blocked()
            assert [resident.uid for resident in residents_of(host)] == [s._uid]
            host._engine.turns.post(s._uid, Job(None))
            await trio.testing.wait_all_tasks_blocked()
            assert resident_of(host, s._uid) is not None
        await settled(host)
        assert await s.count == 1


async def test_a_sender_that_leaves_takes_what_was_received_out_of_its_outbox(world: World) -> None:
    async with world.host(vats=1) as host:
        s, c = await host.spawn(Counter, "s"), await host.spawn(Caller, "c")
        await c.burst(s, "add", 5)
        await settled(host)
        for number in range(3):
            await host.spawn(Counter, str(number))
        await settled(host)
        assert [row.id for row in host.sessions() if row.pending] == []
        assert records(host, "s").count(Kind.ACKED) == 1  # the answers; what came after them has trimmed the rest


@pytest.mark.parametrize("limit", [0, 1, 3])
async def test_any_limit_works(world: World, limit: int) -> None:
    async with world.host(vats=limit) as host:
        s, c = await host.spawn(Counter, "s"), await host.spawn(Caller, "c")
        await c.burst(s, "add", 4)
        await settled(host)
        assert await c.answers == [1, 2, 3, 4]


async def test_what_follows_a_job_is_told_whose_it_is_and_may_be_interrupted(world: World) -> None:
    """It may run user code: fibers are run again, and reactions run."""
    async with world.host() as host:
        s = await host.spawn(Counter, "s")
        seen: list[Any] = []

        def after(resident: Any, vat: Any) -> Any:
            seen.append((host._engine.turns.doing(), trio.lowlevel.currently_ki_protected()))
            return ()

        host._engine.turns._after = after
        await s.add()
        assert seen == [("session 's' (between two calls)", False)]
        assert host._engine.turns.doing() is None


async def test_a_session_in_which_garbage_cannot_be_looked_for_is_snapshotted(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreadable(vat: Vat) -> Any:
        raise ReadFailed("log", "I/O error")

    monkeypatch.setattr(Vat, "worth_collecting", True)
    monkeypatch.setattr(Vat, "collect", unreadable)
    async with world.host(first_snapshot=4) as host:
        s = await host.spawn(Counter, "s")
        for _ in range(4):
            await s.add()
        assert Kind.SNAPSHOT in records(host, "s")
