"""Sessions of a host: spawned, found, restored, forked and deleted; and ids that are used once."""

from __future__ import annotations

from typing import Any

import attrs
import pytest
import trio
import trio.testing

from dataspace.log.files import DiskFull
from dataspace.observe import NoSuchSession
from dataspace.records import Kind
from tests.vat.hosts import Caller, Counter, Worker, World, heap_of, held, records, settled, started
from vat.births import BadSessionId, IdInUse
from vat.checking import fingerprint
from vat.errors import Deleted
from vat.host import Busy, SnapshotMismatch
from vat.restore import NoSuchPoint
from vat.types import UnknownActorType

# Spawning and finding


async def test_a_session_is_found_by_its_id(either: World) -> None:
    async with either.host() as host:
        s = await host.spawn(Counter, "s1", count=3)
        assert await host.get("s1") == s
    async with either.host() as host:
        assert await (await host.get("s1")).count == 3


async def test_a_session_without_an_id_gets_one(world: World) -> None:
    async with world.host() as host:
        s = await host.spawn(Counter)
        (row,) = host.sessions()
        assert await host.get(row.id) == s


@pytest.mark.parametrize("id", ["", "a\nb", "x" * 201, "a\x7fb", 7])
async def test_an_id_that_no_session_can_have_is_refused(world: World, id: str) -> None:
    async with world.host() as host:
        with pytest.raises(BadSessionId, match="1 to 200 characters"):
            await host.spawn(Counter, id)
        assert host.sessions() == []


async def test_an_id_in_use_is_refused(either: World) -> None:
    async with either.host() as host:
        await host.spawn(Counter, "s1")
        with pytest.raises(IdInUse, match="'s1'"):
            await host.spawn(Counter, "s1")
    async with either.host() as host:
        with pytest.raises(IdInUse):
            await host.spawn(Counter, "s1")


async def test_of_twenty_spawns_with_one_id_one_succeeds(either: World) -> None:
    async with either.host() as host:
        outcomes: list[object] = []

        async def spawn() -> None:
            try:
                outcomes.append(await host.spawn(Counter, "s1"))
            except IdInUse as error:
                outcomes.append(type(error))

        async with trio.open_nursery() as nursery:
            for _ in range(20):
                nursery.start_soon(spawn)
        assert outcomes.count(IdInUse) == 19
        assert len(host.sessions()) == 1


async def test_fields_that_do_not_fit_leave_no_id_behind(world: World) -> None:
    """Invariant 43: Every refusal leaves nothing behind: no id."""
    async with world.host() as host:
        with pytest.raises(TypeError, match="nothing"):
            await host.spawn(Counter, "s1", nothing=1)
        await host.spawn(Counter, "s1")


async def test_an_id_whose_birth_did_not_become_durable_is_free_again(world: World) -> None:
    async with world.host() as host:
        host._engine.store.failing.append(DiskFull("log", "no space", True))
        with pytest.raises(DiskFull):
            await host.spawn(Counter, "s1")
        s = await host.spawn(Counter, "s1")
        host._engine.store.failing.append(DiskFull("log", "no space", True))
        with pytest.raises(DiskFull):
            await s.fork(into="t")
        await s.fork(into="t")


async def test_an_id_stays_claimed_when_who_asked_for_it_is_cancelled(world: World) -> None:
    async with world.host() as host:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(host.spawn, Counter, "s1")
            await started()
            nursery.cancel_scope.cancel()
        with pytest.raises(IdInUse):
            await host.spawn(Counter, "s1")
        await settled(host)
        assert len(host.sessions()) == 1


async def test_an_unknown_session_and_an_unknown_type_are_named(world: World) -> None:
    async with world.host() as host:
        for find in (host.get, host.restore_latest, host.delete):
            with pytest.raises(NoSuchSession, match="'nobody'"):
                await find("nobody")
        with pytest.raises(UnknownActorType, match=r"no\.such"):
            await host.directory.spawn("no.such", "s1")
        assert host.sessions() == []


async def test_the_list_is_given_in_pages_by_id(world: World) -> None:
    async with world.host() as host:
        for name in ("b", "a", "c", "ab"):
            await host.spawn(Counter, name)
        assert [row.id for row in host.sessions(limit=2)] == ["a", "ab"]
        assert [row.id for row in host.sessions(after="ab")] == ["b", "c"]
        assert [row["id"] for row in await host.directory.list("a")] == ["a", "ab"]


# Restoring


async def test_restoring_gives_the_same_session_from_what_is_stored(either: World) -> None:
    async with either.host() as host:
        s = await host.spawn(Counter, "s1")
        await s.add("a")
        snapshot = await s.snapshot()
        await s.add("b")
        assert await (await host.restore(snapshot)).seen == ["a", "b"]
    async with either.host() as host:
        assert await (await host.restore(attrs.asdict(snapshot))).seen == ["a", "b"]
        assert await (await host.restore_latest("s1")).seen == ["a", "b"]
        assert records(host, "s1")[-2:] == [Kind.RESTORE, Kind.RESTORE]


async def test_a_snapshot_of_something_else_is_refused(world: World) -> None:
    async with world.host() as host:
        s = await host.spawn(Counter, "s1")
        snapshot = await s.snapshot()
        with pytest.raises(SnapshotMismatch, match="no such record"):
            await host.restore(attrs.evolve(snapshot, seq=99))
        with pytest.raises(SnapshotMismatch, match="another one"):
            await host.restore(attrs.evolve(snapshot, hash="00" * 32))


async def test_loading_a_session_writes_nothing(either: World) -> None:
    async with either.host() as host:
        s = await host.spawn(Counter, "s1")
        await s.add()
    async with either.host() as host:
        head = host._engine.store.head
        await (await host.get("s1")).count
        assert host._engine.store.head == head


# Forking


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
    async with either.host(first_snapshot=5, snapshot_cranks=7) as host:
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
        host._engine.turns.post = lambda uid, job: post(uid, job) if uid == s._uid else None  # type: ignore[method-assign]
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


# Deleting


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
        with pytest.raises(Busy, match="effects have no outcome"):
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

        host._engine.store.failing.append(DiskFull("log", "no space", True))
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


# By messages


async def test_a_vat_spawns_finds_forks_and_deletes_sessions_by_messages(either: World) -> None:
    async with either.host() as host:
        c = await host.spawn(Caller, "c")
        made = await c.spawn_session("test.counter", "s1")
        assert await made.add("x") == 1
        assert await c.get_session("s1") == made
        twin = await c.send(made, "fork")
        assert await twin.seen == ["x"]
        snapshot = await c.send(made, "snapshot")
        assert await (await host.restore(snapshot)).count == 1
        assert (await c.send(made, "describe"))["id"] == "s1"
        assert await c.delete_session("s1") is None
        assert await c.send(made, "add") == "Deleted"
    async with either.host() as host:
        assert await (await host.get("c")).send(twin, "total") == 1


async def test_a_fork_by_message_that_cannot_be_is_an_answer(world: World) -> None:
    async with world.host() as host:
        c, s = await host.spawn(Caller, "c"), await host.spawn(Counter, "s1")
        assert await c.send(s, "fork", 99) == "NoSuchPoint"
        assert await c.send(s, "fork", None, "c") == "IdInUse"
        assert await c.send(s, "fork", "x") == "TypeError"
        assert await c.send(s, "snapshot", 1) == "TypeError"
        assert len(host.sessions()) == 2


async def test_a_session_can_ask_for_its_own_deletion_and_for_a_fork_of_itself(world: World) -> None:
    async with world.host() as host:
        c = await host.spawn(Caller, "c")
        twin = await c.send(c, "fork", None, "twin")
        assert await twin.answers == ["Forked"]
        with pytest.raises(Deleted):
            await c.delete_session("c", True)
        assert [row.id for row in host.sessions()] == ["twin"]


async def test_a_restored_heap_is_the_live_one(either: World) -> None:
    async with either.host(first_snapshot=4, snapshot_cranks=9) as host:
        s = await host.spawn(Counter, "s1")
        for number in range(50):
            await s.add("x" * number * 10)
            if number % 7 == 0:
                with pytest.raises(ValueError, match="no"):
                    await s.fail()
        resident = host._engine.residents.get(s._uid)
        assert resident is not None
        assert resident.vat is not None
        assert heap_of(host, "s1") == fingerprint(resident.vat.heap)
