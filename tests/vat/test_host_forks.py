"""Forks through a host: at any seq, of anything, and what each of the two keeps."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from dataspace.records import Kind
from tests.vat.hosts import Counter, Worker, World, held, records, settled, started
from vat.heap.restore import NoSuchPoint
from vat.host.host import BadSessionId


async def test_a_fork_shares_the_past_and_nothing_after_it(either: World) -> None:
    """Invariant 27: A fork shares no mutable state."""
    async with either.host() as host:
        s = await host.spawn(Counter, "s1")
        await s.add("both")
        twin = await s.fork(into="twin")
        await s.add("parent")
        await twin.add("child")
        assert await s.seen == ["both", "parent"]
        assert await twin.seen == ["both", "child"]
        await s.snapshot()  # lets go of what is written, in the parent alone
        await twin.snapshot()
        assert await twin.seen == ["both", "child"]
    async with either.host() as host:
        assert await (await host.get("s1")).seen == ["both", "parent"]
        assert await (await host.get("twin")).seen == ["both", "child"]


async def test_a_fork_at_any_seq_holds_what_was_before_it(either: World) -> None:
    """Invariant 28: A fork at a point holds exactly what was before it."""
    async with either.host(first_snapshot=5, snapshot_records=7) as host:
        s = await host.spawn(Counter, "s1")
        for number in range(30):
            await s.add(str(number))
        row = host.sessions()[0]
        kinds = records(host, "s1")
        for seq in range(1, row.seq + 1):
            fork = await s.fork(at=seq, into=f"at {seq}")
            cranks = sum(kind == Kind.CRANK for kind in kinds[:seq])
            assert await fork.seen == [str(number) for number in range(cranks)]
            assert await fork.add("more") == cranks + 1


async def test_a_fork_of_a_fork_reaches_back_to_every_ancestor(either: World) -> None:
    async with either.host() as host:
        s = await host.spawn(Counter, "0")
        await s.add("0")
        for depth in range(1, 6):
            s = await s.fork(into=str(depth))
            await s.add(str(depth))
        assert await s.seen == ["0", "1", "2", "3", "4", "5"]
        early = await s.fork(at=2, into="early")
        assert await early.seen == ["0"]
    async with either.host() as host:
        assert await (await host.get("5")).seen == ["0", "1", "2", "3", "4", "5"]
        assert await (await host.get("early")).seen == ["0"]


@pytest.mark.parametrize("at", [0, -1, 99])
async def test_a_point_that_is_not_there_is_refused(world: World, at: int) -> None:
    async with world.host() as host:
        s = await host.spawn(Counter, "s1")
        with pytest.raises(NoSuchPoint, match=f"no seq {at}"):
            await s.fork(at=at)
        assert len(host.sessions()) == 1


async def test_a_fork_at_what_is_on_its_way_waits_for_it(world: World) -> None:
    async with world.host() as host, trio.open_nursery() as nursery:
        s = await host.spawn(Counter, "s1")
        forks: list[object] = []

        async def fork() -> None:
            forks.append(await s.fork(at=2, into="t"))

        with held(host):
            nursery.start_soon(s.add, "a")
            await started()
            nursery.start_soon(s.add, "b")
            await trio.testing.wait_all_tasks_blocked()
            nursery.start_soon(fork)
            await trio.testing.wait_all_tasks_blocked()
            assert not forks
        await settled(host)
        assert await (await host.get("t")).seen == ["a"]


async def test_what_waits_for_the_outside_breaks_in_a_fork(either: World) -> None:
    async with either.host(dies=True) as host, trio.open_nursery() as nursery:
        either.tool.open = False
        s = await host.spawn(Worker, "s1")
        nursery.start_soon(s.work, "once", 1)
        await trio.testing.wait_all_tasks_blocked()
        twin = await s.fork(into="twin")
        await settled(host)
        assert await twin.results == ["Forked"]
        assert await s.results == []
        assert host.sessions("twin")[0].pending == 0
        either.tool.gate.set()
        await settled(host)
        assert await s.results == ["once 1"]
        assert either.tool.calls == [("once", 1)]


async def test_a_fork_that_died_before_its_first_crank_is_woken_for_it(either: World) -> None:
    async with either.host(dies=True) as host, trio.open_nursery() as nursery:
        either.tool.open = False
        s = await host.spawn(Worker, "s1")
        nursery.start_soon(s.work, "once", 1)
        await trio.testing.wait_all_tasks_blocked()
        post = host._engine.turns.post
        host._engine.turns.post = lambda uid, job: post(uid, job) if uid == s._uid else None
        await s.fork(into="twin")
        nursery.cancel_scope.cancel()
    async with either.host() as host:
        await settled(host)
        assert await (await host.get("twin")).results == ["Forked"]


async def test_a_fork_inherits_no_request_ids(world: World) -> None:
    async with world.host() as host:
        s = await host.spawn(Counter, "s1")
        await s.add("x", request="r1")
        twin = await s.fork()
        assert await twin.add("x", request="r1") == 2


@pytest.mark.parametrize("id", ["", "a\x00b", "x" * 201, "a\ud800b", "a" + chr(0xFFFD)])
async def test_an_id_that_no_session_can_have_is_refused(world: World, id: str) -> None:
    """What is no character becomes U+FFFD on its way, and then two ids would be one."""
    async with world.host() as host:
        s = await host.spawn(Counter, "s1")
        with pytest.raises(BadSessionId):
            await s.fork(into=id)
        with pytest.raises(BadSessionId):
            await host.spawn(Counter, id)
        assert [row.id for row in host.sessions()] == ["s1"]
