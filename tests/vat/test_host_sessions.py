"""Sessions of a host: spawned, found, restored, forked and deleted; and ids that are used once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
import pytest
import trio
import trio.testing

from dataspace.log.files import DiskFull
from dataspace.observe.dataspace import NoSuchSession
from dataspace.records import Kind
from dataspace.values import NotAValue
from tests.vat.hosts import Caller, Counter, World, heap_of, records, resident_of, settled, started, store_of
from vat.crank.vat import RequestConflict
from vat.errors import Deleted, NoSuchMethod
from vat.heap.checking import fingerprint
from vat.heap.refs import Ref
from vat.host.births import BadSessionId, IdInUse
from vat.host.sessions import SnapshotMismatch
from vat.objects.actor import Actor, actor
from vat.objects.types import UnknownActorType

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
        store_of(host).failing.append(DiskFull("log", "no space", True))
        with pytest.raises(DiskFull):
            await host.spawn(Counter, "s1")
        s = await host.spawn(Counter, "s1")
        store_of(host).failing.append(DiskFull("log", "no space", True))
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


@actor("sessions.stranger", version=1)
class Stranger(Actor):
    """A type that no host here is given."""


async def test_a_class_that_the_host_was_not_given_is_refused_at_spawn_and_takes_no_id(world: World) -> None:
    async with world.host() as host:
        with pytest.raises(UnknownActorType, match=r"'sessions\.stranger'.*open_host\(\.\.\., actors=\[\.\.\.\]\)"):
            await host.spawn(Stranger, "s1")
        assert host.sessions() == []
        assert await (await host.spawn(Counter, "s1", count=3)).count == 3


async def test_the_list_is_given_in_pages_by_id(world: World) -> None:
    async with world.host() as host:
        for name in ("b", "a", "c", "ab"):
            await host.spawn(Counter, name)
        assert [row.id for row in host.sessions(limit=2)] == ["a", "ab"]
        assert [row.id for row in host.sessions(after="ab")] == ["b", "c"]
        assert [row["id"] for row in await host.directory.list("a")] == ["a", "ab"]


async def test_the_directory_does_for_code_outside_what_it_does_for_actors(either: World) -> None:
    """Invariant 30: a request id makes a repeated spawn safe there too."""
    async with either.host() as host:
        directory = host.directory
        s = await directory.spawn("test.counter", "s1", {"count": 2}, request="r1")
        again = await directory.spawn("test.counter", "s1", {"count": 2}, request="r1")
        assert again == s == await directory.get("s1")
        assert await s.count == 2
        with pytest.raises(RequestConflict):
            await directory.spawn("test.counter", "s1", {"count": 3}, request="r1")
        [listed] = await directory.list(limit=5)
        assert (listed["id"], listed["ref"]) == ("s1", s)
        await directory.delete("s1", force=True)
        with pytest.raises(Deleted):
            await directory.delete("s1")
        with pytest.raises(NoSuchMethod, match="the directory has no method or public field 'find'; it has delete, ge"):
            await directory.find("s1")
        with pytest.raises(NotAValue, match="limit"):
            await directory.list(limit=object())


async def test_refs_to_one_actor_are_equal_whoever_asks(world: World) -> None:
    async with world.host() as host:
        s = await host.spawn(Counter, "s1")
        assert await host.asking("ann").get("s1") == s


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
        head = store_of(host).head
        await (await host.get("s1")).count
        assert store_of(host).head == head


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
        assert await c.send(s, "fork", "x") == "BadCall"
        assert await c.send(s, "snapshot", 1) == "BadCall"
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
    async with either.host(first_snapshot=4, snapshot_records=9) as host:
        s = await host.spawn(Counter, "s1")
        for number in range(50):
            await s.add("x" * number * 10)
            if number % 7 == 0:
                with pytest.raises(ValueError, match="no"):
                    await s.fail()
        resident = resident_of(host, s._uid)
        assert resident is not None
        assert resident.vat is not None
        assert heap_of(host, "s1") == fingerprint(resident.vat.heap)


async def test_what_a_type_makes_of_what_it_is_given_is_what_it_begins_with(either: World) -> None:
    either.actors = [*either.actors, Picky]
    async with either.host() as host:
        assert await (await host.spawn(Picky, "p", size="7")).size == 7
        with pytest.raises(ValueError, match="no number"):
            await host.spawn(Picky, "q", size="large")
        with pytest.raises(TypeError, match=r"it has size, inner$"):
            await host.spawn(Picky, "q", other=1)
        p = await host.get("p")
        assert await (await p.make("8")).size == 8
        with pytest.raises(ValueError, match="no number"):
            await p.make("large")
        assert [row.id for row in host.sessions()] == ["p"]


@actor("test.picky", version=1)
class Picky(Actor):
    """Takes whole numbers, however they are written."""

    size: int
    inner: Any = None
    _own: int = 0

    @classmethod
    def given(cls, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        if not str(fields.get("size", 0)).isdecimal():
            raise ValueError("that is no number")
        return {**fields, "size": int(fields.get("size", 0))}

    def make(self, size: str) -> Ref:
        return self.spawn(Picky, size=size)


async def test_a_row_of_the_list_reads_as_people_write_uids(either: World) -> None:
    async with either.host() as host:
        await host.spawn(Counter, "s1")
        (row,) = host.sessions()
        assert repr(row).startswith(f"SessionRow(uid={row.uid.hex()!r}, id='s1', type='test.counter', seq=1, ")
