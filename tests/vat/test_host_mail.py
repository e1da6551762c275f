"""Messages between the vats of a store: once, in order, whatever dies and whenever."""

from __future__ import annotations

from typing import Any

import pytest
import trio
import trio.testing

from dataspace.errors import KeeveError
from dataspace.log.files import DiskFull, ReadFailed
from dataspace.log.store import RecordTooLarge
from dataspace.records import Kind
from tests.vat.hosts import (
    ACTORS,
    Caller,
    Counter,
    Worker,
    World,
    carry_no_messages,
    catalog_of,
    heap_of,
    held,
    let_go,
    records,
    resident_of,
    residents_of,
    settled,
    store_of,
)
from vat.crank.vat import Step
from vat.errors import Deleted
from vat.heap.refs import Ref
from vat.host import mail
from vat.host.commits import Commits
from vat.host.residents import Job, Resident
from vat.host.sessions import Busy
from vat.objects.actor import Actor, actor


@actor("test.relay", version=1)
class Relay(Actor):
    """Answers when somebody else has answered."""

    def ask(self, to: Ref, method: str, *args: Any) -> Any:
        return getattr(to, method)(*args)


async def test_messages_arrive_once_and_in_order(either: World) -> None:
    """Invariant 9: Messages from one vat to another arrive once and in order."""
    async with either.host() as host:
        s, c = await host.spawn(Counter, "s"), await host.spawn(Caller, "c")
        for first in range(0, 60, 20):
            await c.burst(s, "add", 20, first)
        await settled(host)
        assert await s.seen == [str(number) for number in range(60)]
        assert await c.answers == list(range(1, 61))


@pytest.mark.parametrize("deaths", range(12))
async def test_messages_arrive_once_and_in_order_whatever_dies(either: World, deaths: int) -> None:
    """Invariant 9: … whatever dies and whenever."""
    async with either.host() as host:
        await host.spawn(Counter, "s")
        await host.spawn(Caller, "c")
    sent = 0
    for life in range(4):
        async with either.host(dies=True) as host:
            s, c = await host.get("s"), await host.get("c")
            await c.burst(s, "add", 10, sent)
            sent += 10
            for _ in range(deaths * (life + 1)):
                await trio.lowlevel.checkpoint()
    async with either.host() as host:
        await settled(host)
        assert await (await host.get("s")).seen == [str(number) for number in range(sent)]
        assert await (await host.get("c")).answers == list(range(1, sent + 1))


async def test_messages_arrive_once_and_in_order_whatever_batch_fails(world: World, autojump_clock: Any) -> None:
    async with world.host() as host:
        s, c = await host.spawn(Counter, "s"), await host.spawn(Caller, "c")
        store = store_of(host)
        append, sent, calls = store.append, 0, 0

        def sometimes(batch: Any) -> None:
            nonlocal calls
            calls += 1
            if calls % 3 == 0:
                raise DiskFull("log", "no space", True)
            append(batch)

        store.append = sometimes
        for _ in range(10):
            try:
                await c.burst(s, "add", 10, sent)
            except DiskFull:
                pass
            else:
                sent += 10
            await trio.lowlevel.checkpoint()
        store.append = append
        for _ in range(10):
            await trio.sleep(1)
            await settled(host)
        assert await s.seen == [str(number) for number in range(sent)]
        assert await c.answers == list(range(1, sent + 1))


async def test_a_receiver_that_cannot_be_loaded_gets_its_messages_in_order_when_it_can(world: World) -> None:
    async with world.host() as host:
        s, c = await host.spawn(Counter, "s"), await host.spawn(Caller, "c")
        await c.burst(s, "add", 3)
        await settled(host)
    world.actors = tuple(cls for cls in ACTORS if cls is not Counter)
    async with world.host() as host:
        c = await host.get("c")
        for first in (3, 6):
            await c.burst(s_of(host), "add", 3, first)
            await settled(host)
        assert await c.answers == [1, 2, 3]
        host._engine.types.add(Counter)  # now it can
        await c.burst(s_of(host), "add", 3, 9)
        await settled(host)
        assert await (await host.get("s")).seen == [str(number) for number in range(12)]
        assert await c.answers == list(range(1, 13))


def s_of(host: Any) -> Any:
    row = catalog_of(host).session("s")
    return host._ref(row.uid)


async def test_messages_for_what_is_not_there_are_answered(either: World) -> None:
    async with either.host() as host:
        s, c = await host.spawn(Counter, "s"), await host.spawn(Caller, "c")
        await host.delete("s")
        assert await c.send(s, "add") == "Deleted"
        assert await c.send(Ref(b"nobody has this!", 1), "add") == "NoSuchSession"
        await settled(host)
        assert host.sessions("c")[0].pending == 0
    async with either.host() as host:
        assert host.sessions("c")[0].pending == 0


async def test_a_message_that_was_on_its_way_to_a_deleted_session_is_answered(either: World) -> None:
    async with either.host(dies=True) as host:
        s, c = await host.spawn(Counter, "s"), await host.spawn(Caller, "c")
        carry_no_messages(host)  # it dies before any arrives
        await c.burst(s, "add", 2)
        with pytest.raises(Busy, match="messages"):
            await host.delete("c")
        await host.delete("s")
    async with either.host() as host:
        await settled(host)
        assert await (await host.get("c")).answers == ["Deleted", "Deleted"]


async def test_what_waits_for_a_session_breaks_when_that_is_deleted(either: World) -> None:
    """Invariant 15: No promise is pending with nobody to settle it."""
    either.actors = (*ACTORS, Relay)
    either.tool.open = False
    async with either.host() as host, trio.open_nursery() as nursery:
        w, c = await host.spawn(Worker, "w"), await host.spawn(Caller, "c")
        r = await host.spawn(Relay, "r")
        nursery.start_soon(c.send, r, "ask", w, "ask", "once", 1)
        await settled(host)
        assert await c.answers == []
        await host.delete("w", force=True)
        await settled(host)
        assert await c.answers == ["Deleted"]


async def test_what_waits_for_a_deleted_session_breaks_after_a_death_too(either: World) -> None:
    """Invariant 15: … also after a restart."""
    either.tool.open = False
    async with either.host(dies=True) as host, trio.open_nursery() as nursery:
        w, c = await host.spawn(Worker, "w"), await host.spawn(Caller, "c")
        nursery.start_soon(c.send, w, "ask", "once", 1)
        await settled(host)
        await c.keep("later")  # and with this record the message has left the outbox
        host._engine.mail.bury = lambda vat: None  # it dies before anybody is told
        await host.delete("w", force=True)
        nursery.cancel_scope.cancel()
    async with either.host() as host:
        c = await host.get("c")
        await c.answers
        await settled(host)
        assert await c.answers == ["later", "Deleted"]


async def test_the_outbox_is_trimmed_by_the_records_that_come_anyway(world: World) -> None:
    async with world.host() as host:
        s, c = await host.spawn(Counter, "s"), await host.spawn(Caller, "c")
        for first in range(0, 50, 5):
            await c.burst(s, "add", 5, first)
        await settled(host)
        assert Kind.ACKED not in records(host, "c") + records(host, "s")
    async with world.host() as host:
        assert [row.pending for row in host.sessions()] == [0, 0]
        assert records(host, "c").count(Kind.ACKED) <= 1


async def test_nothing_is_pending_when_senders_left_memory(world: World) -> None:
    async with world.host(vats=2) as host:
        s = await host.spawn(Counter, "s")
        for number in range(10):
            c = await host.spawn(Caller, f"c{number}")
            await c.burst(s, "add", 2)
            await settled(host)
        assert await s.count == 20
    async with world.host() as host:
        assert [row.id for row in host.sessions() if row.pending] == []


async def test_a_sender_stays_in_memory_until_its_messages_are_recorded(world: World) -> None:
    async with world.host(vats=1) as host:
        s, c = await host.spawn(Counter, "s"), await host.spawn(Caller, "c")
        with held(host):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(c.burst, s, "add", 3)
                await trio.testing.wait_all_tasks_blocked()
                host._engine.commits.writer.commit_now()
                await trio.testing.wait_all_tasks_blocked()
                assert not resident_of(host, c._uid).idle
        await settled(host)
        assert await c.answers == [1, 2, 3]


async def test_vats_that_never_stop_sending_do_not_keep_a_host_from_stopping(world: World) -> None:
    @actor("test.pingpong", version=1)
    class PingPong(Actor):
        count: int = 0

        def play(self, other: Ref) -> None:
            self.count += 1
            other.play(self.ref)

    world.actors = (PingPong,)
    async with world.host(closing=0.05) as host:
        a, b = await host.spawn(PingPong, "a"), await host.spawn(PingPong, "b")
        await a.play(b)
    async with world.host(closing=0.05) as host:
        before = await (await host.get("a")).count
        while await (await host.get("a")).count == before:
            await trio.lowlevel.checkpoint()


async def test_a_conversation_of_vats_is_the_same_with_and_without_deaths(either: World) -> None:
    """Invariant 8: The same run with restarts ends with the same heap as without."""

    async def play(world: World, lives: int) -> tuple[bytes, bytes]:
        async with world.host() as host:
            await host.spawn(Counter, "s")
            await host.spawn(Caller, "c")
        for life in range(lives):
            async with world.host(dies=True) as host:
                s, c = await host.get("s"), await host.get("c")
                for step in range(12 // lives):
                    await c.burst(s, "add", 3, 100 * (life * (12 // lives) + step))
                    await settled(host)
        async with world.host() as host:
            await settled(host)
            s, c = await host.get("s"), await host.get("c")
            return list(await s.seen), list(await c.answers)

    assert await play(either, 4) == await play(World(), 1)


async def test_a_deleted_senders_late_messages_bring_nothing_back(world: World) -> None:
    async with world.host() as host:
        s, c = await host.spawn(Counter, "s"), await host.spawn(Caller, "c")
        with held(host):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(c.burst, s, "add", 3)
                await trio.testing.wait_all_tasks_blocked()
                nursery.start_soon(lambda: host.delete("c", force=True))
                await trio.testing.wait_all_tasks_blocked()
                let_go(host)
        await settled(host)
        assert await s.count in (0, 3)
        with pytest.raises(Deleted):
            await c.answers


async def test_a_restored_sender_and_receiver_are_as_they_were(either: World) -> None:
    async with either.host(first_snapshot=3, snapshot_records=5) as host:
        s, c = await host.spawn(Counter, "s"), await host.spawn(Caller, "c")
        for first in range(0, 30, 3):
            await c.burst(s, "add", 3, first)
        await settled(host)
        seen, answers = await s.seen, await c.answers
    async with either.host() as host:
        assert await (await host.get("s")).seen == seen
        assert await (await host.get("c")).answers == answers
        assert heap_of(host, "s") != heap_of(host, "c")


async def test_a_message_that_is_refused_holds_up_those_behind_it(world: World, monkeypatch: Any) -> None:
    async with world.host() as host:
        s, c = await host.spawn(Counter, "s"), await host.spawn(Caller, "c")
        add, refusals = Commits.add, [False, True]

        def refuse(self: Commits, resident: Resident, step: Step, job: Job) -> KeeveError | None:
            if resident.uid == s._uid and step.record is not None and refusals and refusals.pop(0):
                error = RecordTooLarge("s", 1, 1)
                self._fail(step, job, error)
                return error
            return add(self, resident, step, job)

        monkeypatch.setattr(Commits, "add", refuse)
        await c.burst(s, "add", 4)
        await settled(host)
        await s.total()  # it is in memory again, and they are brought again
        await settled(host)
        assert await s.seen == ["0", "1", "2", "3"]


async def test_what_is_brought_again_is_only_what_is_durable(world: World) -> None:
    async with world.host() as host:
        s, c = await host.spawn(Counter, "s"), await host.spawn(Caller, "c")
        mail, residents = host._engine.mail, residents_of(host)
        with held(host):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(c.burst, s, "add", 3)
                await trio.testing.wait_all_tasks_blocked()
                mail._stuck[s._uid] = {c._uid}
                residents.drop(residents.get(s._uid))
                for _ in range(3):
                    assert await s.total() == 0
                    await trio.testing.wait_all_tasks_blocked()
                let_go(host)
        await settled(host)
        assert await s.seen == ["0", "1", "2"]


async def test_what_is_acknowledged_twice_is_forgotten_once(world: World) -> None:
    async with world.host() as host:
        s, c = await host.spawn(Counter, "s"), await host.spawn(Caller, "c")
        await c.burst(s, "add", 1)
        await settled(host)
        host._engine.mail.acknowledge(c._uid, 1)
    async with world.host() as host:
        assert Kind.ACKED not in records(host, "c")


async def test_nothing_is_kept_of_sessions_that_talked_once(world: World, autojump_clock: Any) -> None:
    async with world.host(vats=4) as host:
        c = await host.spawn(Caller, "c")
        for number in range(50):
            s = await host.spawn(Counter, str(number))
            await c.send(s, "add")
        store_of(host).failing += [DiskFull("log", "no space", True)] * 2
        with pytest.raises(DiskFull):
            await c.send(s, "add")
        await trio.sleep(3)
        await settled(host)
        mail = host._engine.mail
        assert (len(mail._rounds), len(mail._stuck)) == (0, 0)


@pytest.mark.parametrize("part", ["acknowledge", "arriving"])
async def test_what_could_not_be_read_once_is_done_when_it_can(
    world: World, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    """What a step lets go is let go later, whatever of it fails, and a message is brought when it can be read."""
    failed: list[str] = []

    def unreadable(real: Any) -> Any:
        def once(*args: Any) -> Any:
            if not failed:
                failed.append(part)
                raise ReadFailed("log", "I/O error")
            return real(*args)

        return once

    async with world.host(retry=0.01) as host:
        c, w = await host.spawn(Caller, "c"), await host.spawn(Worker, "w")
        where = mail if part == "arriving" else host._engine.mail
        monkeypatch.setattr(where, part, unreadable(getattr(where, part)))
        with trio.fail_after(20):
            assert await c.send(w, "work", "once", 1) == "once 1"
        assert failed == [part]
        assert world.tool.calls == [("once", 1)]
        await settled(host)
