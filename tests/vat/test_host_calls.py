"""Calls through a host: methods, fields, errors, request ids, and callers who do not wait."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from dataspace.log.files import DiskFull
from dataspace.values import FrozenList, NotAValue
from tests.vat.hosts import Caller, Counter, Worker, World, records, started, store_of
from vat.crank.vat import RequestConflict
from vat.errors import NoSuchMethod, OtherParameters, Refused, Revoked
from vat.host.host import Host
from vat.host.outside import HostRef
from vat.host.residents import Job


async def test_a_method_is_called_and_a_field_is_read(either: World) -> None:
    async with either.host() as host:
        s = await host.spawn(Counter, "s1", count=5)
        assert await s.add("ada") == 6
        assert await s.count == 6
        assert await s.seen == ["ada"]
        assert await s.total() == 6


async def test_what_was_answered_is_there_after_a_death(either: World) -> None:
    """Invariant 6: An accepted input is durable before it is acknowledged."""
    async with either.host(dies=True) as host:
        s = await host.spawn(Counter, "s1")
        for number in range(40):
            await s.add(str(number))
    async with either.host() as host:
        s = await host.get("s1")
        assert await s.seen == [str(number) for number in range(40)]


async def test_arguments_and_results_are_frozen(world: World) -> None:
    async with world.host() as host:
        s = await host.spawn(Counter, "s1")
        assert type(await s.seen) is FrozenList
        with pytest.raises(NotAValue, match=r"add\(\): argument 1"):
            await s.add(object())
        assert await s.count == 0


async def test_an_error_names_its_class_the_session_the_seq_and_the_line(either: World) -> None:
    async with either.host() as host:
        s = await host.spawn(Counter, "s1")
        await s.add()
        with pytest.raises(ValueError, match="not today") as caught:
            await s.fail("not today")
        (note,) = caught.value.__notes__
        assert "session 's1' at seq 3" in note
        assert "hosts.py" in note
        assert "in fail" in note
        assert await s.count == 1


async def test_an_error_of_a_read_names_where_it_was_raised(world: World) -> None:
    async with world.host() as host:
        s = await host.spawn(Counter, "s1")
        with pytest.raises(LookupError, match="not here") as caught:
            await s.refuse()
        assert "session 's1' at seq 1" in caught.value.__notes__[0]


async def test_a_call_that_cannot_be_made_names_the_session_and_leaves_no_record(world: World) -> None:
    """Invariant 43: Every refusal names what was wrong and leaves nothing behind."""
    async with world.host() as host:
        s = await host.spawn(Counter, "s1")
        with pytest.raises(NoSuchMethod, match="no method or public field 'nothing'") as caught:
            await s.nothing()
        assert caught.value.__notes__ == ["in session 's1'"]
        with pytest.raises(NoSuchMethod):
            await s.secret
        with pytest.raises(AttributeError, match="only public"):
            await s._secret
        with pytest.raises(OtherParameters, match=r"has add\(") as caught:
            await s.add(1, 2, 3)
        assert isinstance(caught.value, TypeError)
        assert len(records(host, "s1")) == 1


async def test_refs_in_answers_are_bound_and_can_be_passed_on(world: World) -> None:
    async with world.host() as host:
        counter = await host.spawn(Counter, "counter")
        caller = await host.spawn(Caller, "caller")
        me = await counter.me()
        assert isinstance(me, HostRef)
        assert me == counter
        assert await caller.send(me, "add", "from afar") == 1
        assert await caller.send(caller, "keep", "mine") == "mine"
        assert await counter.seen == ["from afar"]


async def test_calls_of_one_session_run_in_the_order_in_which_they_came(world: World) -> None:
    async with world.host() as host, trio.open_nursery() as nursery:
        s = await host.spawn(Counter, "s1")
        for number in range(50):
            nursery.start_soon(s.add, str(number))
            await started()
        await trio.testing.wait_all_tasks_blocked()
        assert await s.seen == [str(number) for number in range(50)]


async def test_a_crank_without_end_fails_whole_and_others_go_on(world: World) -> None:
    async with world.host() as host:
        s, other = await host.spawn(Counter, "s1"), await host.spawn(Counter, "s2")
        with pytest.raises(RuntimeError, match="more than"):
            await s.loop()
        assert await other.add() == 1
        assert await s.add() == 1


async def test_principals_are_recorded_and_have_request_ids_of_their_own(world: World) -> None:
    async with world.host() as host:
        ada, bob = host.asking("ada", "http"), host.asking("bob")
        s = await ada.spawn(Counter, "s1")
        (event,) = [event async for event in host.observe('(spawn "s1" . _)', until="head")]
        assert event.value.keywords["by"] == "ada"
        assert event.value.keywords["via"] == "http"
        assert await s.add("a", request="1") == 1
        assert await (await bob.get("s1")).add("b", request="1") == 2
        assert await (await bob.get("s1")).me() == await bob.get("s1")


# Request ids


async def test_the_same_request_is_done_once_and_answered_the_same(either: World) -> None:
    """Invariant 30: The same request with the same content answers the same, also after a restart."""
    async with either.host(dies=True) as host:
        s = await host.spawn(Counter, "s1")
        assert await s.add("x", request="r1") == 1
        assert await s.add("x", request="r1") == 1
        await s.add("y")
    async with either.host() as host:
        s = await host.get("s1")
        assert await s.add("x", request="r1") == 1
        assert await s.count == 2


async def test_a_failure_is_an_answer_too(either: World) -> None:
    async with either.host(dies=True) as host:
        s = await host.spawn(Counter, "s1")
        with pytest.raises(ValueError, match="once") as first:
            await s.fail("once", request="r1")
        seq = len(records(host, "s1"))
    async with either.host() as host:
        s = await host.get("s1")
        with pytest.raises(ValueError, match="once") as again:
            await s.fail("once", request="r1")
        assert again.value.__notes__ == first.value.__notes__
        assert len(records(host, "s1")) == seq


async def test_twenty_requests_at_once_make_one(either: World) -> None:
    """Invariant 30: Twenty at once make one."""
    async with either.host() as host:
        s = await host.spawn(Counter, "s1")
        answers: list[int] = []

        async def ask() -> None:
            answers.append(await s.add("x", request="r1"))

        async with trio.open_nursery() as nursery:
            for _ in range(20):
                nursery.start_soon(ask)
        assert answers == [1] * 20
        assert await s.count == 1


async def test_a_request_with_other_content_is_refused(world: World) -> None:
    """Invariant 30: With other content it is refused."""
    async with world.host() as host:
        s = await host.spawn(Counter, "s1")
        await s.add("x", request="r1")
        with pytest.raises(RequestConflict, match="'r1'"):
            await s.add("y", request="r1")
        with pytest.raises(RequestConflict):
            await s.state("x", request="r1")
        with pytest.raises(RequestConflict):
            await s.fork(request="r1")
        with pytest.raises(RequestConflict):
            await s.snapshot(request="r1")
        assert await s.count == 1


async def test_a_request_that_still_runs_is_joined(world: World) -> None:
    async with world.host() as host:
        world.tool.open = False
        s = await host.spawn(Worker, "s1")
        answers: list[str] = []

        async def ask() -> None:
            answers.append(await s.work("again", 1, request="r1"))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask)
            await trio.testing.wait_all_tasks_blocked()
            nursery.start_soon(ask)
            await trio.testing.wait_all_tasks_blocked()
            world.tool.gate.set()
        assert answers == ["again 1", "again 1"]
        assert world.tool.calls == [("again", 1)]


async def test_a_request_that_was_running_at_a_death_is_answered_by_the_next_host(either: World) -> None:
    either.tool.open = False
    async with either.host(dies=True) as host, trio.open_nursery() as nursery:
        s = await host.spawn(Worker, "s1")

        async def ask() -> None:
            await s.work("again", 1, request="r1")

        nursery.start_soon(ask)
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    either.tool.open = True
    async with either.host() as host:
        s = await host.get("s1")
        assert await s.work("again", 1, request="r1") == "again 1"
        assert await s.results == ["again 1"]


async def test_requests_to_spawn_snapshot_and_fork_make_one_each(either: World) -> None:
    async with either.host(dies=True) as host:
        made: list[HostRef[Counter]] = []

        async def spawn(host: Host) -> None:
            made.append(await host.spawn(Counter, "s1", request="birth", count=3))

        async with trio.open_nursery() as nursery:
            for _ in range(20):
                nursery.start_soon(spawn, host)
        assert len(set(made)) == 1
        s = made[0]
        await s.add()
        child = await s.fork(request="fork")
        assert await s.fork(request="fork") == child
        snapshot = await s.snapshot(request="snap")
        assert await s.snapshot(request="snap") == snapshot
    async with either.host() as host:
        await spawn(host)
        assert len({ref._uid for ref in made}) == 1
        s = await host.get("s1")
        assert (await s.fork(request="fork"))._uid == child._uid
        assert await s.snapshot(request="snap") == snapshot
        assert len(host.sessions()) == 2
        with pytest.raises(RequestConflict):
            await host.spawn(Counter, "s1", request="birth", count=4)
        with pytest.raises(RequestConflict):
            await s.fork(at=1, request="fork")


# Callers


async def test_cancelling_a_caller_abandons_the_wait_and_never_the_call(world: World) -> None:
    async with world.host() as host:
        s = await host.spawn(Counter, "s1")
        for number in range(3):  # before the crank, after it, while its record is on its way
            async with trio.open_nursery() as nursery:
                nursery.start_soon(s.add, str(number))
                for _ in range(number):
                    await trio.lowlevel.checkpoint()
                nursery.cancel_scope.cancel()
        await trio.testing.wait_all_tasks_blocked()
        assert await s.add("last") == len(await s.seen)


async def test_a_call_in_a_scope_that_is_cancelled_already_is_not_made(world: World) -> None:
    async with world.host() as host:
        s = await host.spawn(Counter, "s1")
        with trio.CancelScope() as scope:
            scope.cancel()
            await s.add()
        assert await s.count == 0


async def test_a_caller_is_told_why_its_call_is_not_durable(world: World) -> None:
    async with world.host() as host:
        s = await host.spawn(Counter, "s1")
        store_of(host).failing.append(DiskFull("log", "no space", True))
        with pytest.raises(DiskFull, match="make space"):
            await s.add()
        assert await s.add() == 1


async def test_a_ref_that_was_narrowed_reaches_no_further_from_outside(world: World) -> None:
    async with world.host() as host:
        s = await host.spawn(Counter, "s1")
        adder, reader = await s.narrow("add"), await s.narrow(read_only=True)
        assert await adder.add() == 1
        assert await reader.total() == 1
        for attempt in (adder.total, adder.fork, adder.snapshot, reader.add, reader.fork, reader.snapshot):
            with pytest.raises(Refused):
                await attempt()
        await s.revoke(adder)
        for attempt in (adder.add, adder.fork):
            with pytest.raises(Revoked):
                await attempt()
        assert len(host.sessions()) == 1


async def test_ctrl_c_does_not_come_between_a_call_and_its_wait(world: World) -> None:
    """It would be in the mailbox, and its answer go to a task that waits for something else."""
    async with world.host() as host:
        s = await host.spawn(Counter, "s")
        post, protected = host._engine.turns.post, []

        def noted(uid: bytes, job: Job) -> None:
            protected.append(trio.lowlevel.currently_ki_protected())
            post(uid, job)

        host._engine.turns.post = noted
        await s.add()
        await s.snapshot()
        assert protected == [True, True]


async def test_a_ref_shows_which_session_it_leads_to(world: World) -> None:
    async with world.host() as host:
        s = await host.spawn(Counter, "s1")
        assert repr(s) == "<ref to actor 1 of session 's1'>"
        assert repr(s.add) == "<ref to actor 1 of session 's1'>.add"
        assert repr(host.directory) == "<ref to the directory>"
    assert repr(s) == f"<ref to actor 1 of session {s._uid.hex()!r}>"
