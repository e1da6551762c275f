"""Deletion through a host: what goes, what never comes back, and what stays whole."""

from __future__ import annotations

from typing import Any

import pytest
import trio
import trio.testing

from dataspace.log.files import DiskFull
from dataspace.records import Kind
from tests.vat.hosts import Counter, Worker, World, held, records, settled, started, store_of
from vat.errors import Deleted
from vat.host.sessions import Busy


async def test_a_deleted_id_never_comes_back(either: World) -> None:
    """Invariant 25: A deleted id never comes back: create, late message, retry, old snapshot are all refused."""

    async def nothing_brings_it_back() -> None:
        with pytest.raises(Deleted, match="never comes back"):
            await host.get("s1")
        with pytest.raises(Deleted):
            await host.spawn(Counter, "s1")
        with pytest.raises(Deleted):
            await host.spawn(Counter, "s1", request="birth")
        with pytest.raises(Deleted):
            await host.restore(snapshot)
        with pytest.raises(Deleted):
            await host.restore_latest("s1")
        with pytest.raises(Deleted):
            await host.delete("s1")
        with pytest.raises(Deleted):
            await other.fork(into="s1")
        assert host.sessions("s1") == []

    async with either.host() as host:
        s = await host.spawn(Counter, "s1", request="birth")
        other = await host.spawn(Counter, "s2")
        await s.add(request="r1")
        snapshot = await s.snapshot()
        await host.delete("s1")
        with pytest.raises(Deleted):
            await s.add()
        with pytest.raises(Deleted):
            await s.add(request="r1")
        with pytest.raises(Deleted):
            await s.count
        await nothing_brings_it_back()
    async with either.host() as host:
        other = await host.get("s2")
        await nothing_brings_it_back()


async def test_a_busy_session_is_deleted_only_by_force(either: World) -> None:
    """Invariant 25: A busy session is not deleted unless that is forced; a late effect is refused."""
    async with either.host(dies=True) as host, trio.open_nursery() as nursery:
        either.tool.open = False
        s = await host.spawn(Worker, "s1")
        caller: list[object] = []

        async def call() -> None:
            with pytest.raises(Deleted):
                await s.work("once", 1)
            caller.append("told")

        nursery.start_soon(call)
        await trio.testing.wait_all_tasks_blocked()
        with pytest.raises(Busy, match=r"is busy \(1 effect has no outcome yet\)"):
            await host.delete("s1")
        assert await s.results == []
        await host.delete("s1", force=True)
        await settled(host)
        assert caller == ["told"]
        assert either.tool.cancelled == 1
        assert host.effects() == []
    async with either.host() as host:
        await settled(host)
        assert either.tool.calls == [("once", 1)]
        with pytest.raises(Deleted):
            await host.get("s1")


async def test_a_fork_outlives_its_parent_and_the_other_way_round(either: World) -> None:
    """Invariant 26: Deleting a parent leaves its forks whole, and the other way round."""
    async with either.host() as host:
        s = await host.spawn(Counter, "s1")
        await s.add("a" * 1000)
        twin, other = await s.fork(into="twin"), await s.fork(into="other")
        await host.delete("s1")
        assert await twin.add("b") == 2
        await host.delete("twin")
        assert await other.seen == ["a" * 1000]
    async with either.host() as host:
        other = await host.get("other")
        assert await other.seen == ["a" * 1000]
        assert await (await other.fork(at=2)).seen == ["a" * 1000]


async def test_presence_is_retracted_when_its_session_is_deleted(either: World) -> None:
    async with either.host() as host:
        s = await host.spawn(Counter, "s1")
        await s.present()
        await s.state("for ever")
        assert len(host.facts("(test.here . _)")) == 1
        await host.delete("s1")
        assert host.facts("(test.here . _)") == []
        assert [event.kind for event in host.query("(test.here . _)")] == ["retract"]
        assert [event.kind for event in host.query("(test.said . _)")] == []


async def test_what_comes_behind_a_deletion_hears_of_it_when_it_is_durable(world: World) -> None:
    async with world.host() as host:
        s = await host.spawn(Counter, "s1")
        outcomes: list[str] = []

        async def attempt(what: Any) -> None:
            try:
                await what()
            except Exception as error:  # noqa: BLE001  # whatever it is, it is compared
                outcomes.append(type(error).__name__)

        async def both() -> None:
            async with trio.open_nursery() as nursery:
                with held(host):
                    nursery.start_soon(attempt, lambda: host.delete("s1"))
                    await trio.testing.wait_all_tasks_blocked()
                    nursery.start_soon(attempt, s.add)
                    await trio.testing.wait_all_tasks_blocked()
                    assert outcomes == []

        store_of(host).failing.append(DiskFull("log", "no space", True))
        await both()
        assert outcomes == ["DiskFull", "DiskFull"]
        assert await s.add() == 1
        outcomes.clear()
        await both()
        assert outcomes == ["Deleted"]


async def test_deleting_while_it_is_forked_and_snapshotted_leaves_all_three_whole(either: World) -> None:
    async with either.host() as host:
        s = await host.spawn(Counter, "s1")
        await s.add("a")
        async with trio.open_nursery() as nursery:
            for what in (s.snapshot, lambda: s.fork(into="twin"), lambda: host.delete("s1")):
                nursery.start_soon(what)
                await started()
        assert await (await host.get("twin")).seen == ["a"]
        assert records(host, "twin") == [Kind.FORKED]
    async with either.host() as host:
        assert await (await host.get("twin")).seen == ["a"]
