"""Timers that are taken before what comes: they keep nobody waiting for long, fail with nobody else, and leave nothing
behind; and a call that they have held up is made once."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.lowlevel

import vat.heap.memory as memory
from dataspace.log.files import DiskFull, ReadFailed
from dataspace.log.marks import Damage
from dataspace.log.memory import MemoryStore
from dataspace.records import Kind, Record
from keeve import Actor, Host, actor, effect, within
from keeve.errors import KeeveError
from keeve.testing import FakeClock, MemoryLog, memory_host
from tests.vat.hosts import World, settled
from vat.host.resolving import NoSuchEffect
from vat.host.settings import Settings

MANY = 300
SECOND = 1_000_000


@actor("timers.beats", version=1)
class Beats(Actor):
    n: int = 0

    async def beat(self, first: float, pause: float) -> None:
        at = first
        for _ in range(MANY):
            await self.device("timer").until(at)
            self.n += 1
            at += pause

    def many(self) -> None:
        for k in range(MANY):
            self.sleep(10 + k).then(self.tick)

    def tick(self, _: None) -> None:
        self.n += 1

    def hello(self) -> int:
        self.n += 0
        return self.n


async def asked(what: Any, *given: Any) -> None:
    """Ask for something, whatever becomes of it."""
    with suppress(KeeveError):
        await what(*given)


async def begun(host: Host, what: Any, *given: Any) -> None:
    """Ask for something and go on as soon as it waits for what does not come by itself."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(asked, what, *given)
        await settled(host)
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("pause", [0, 1], ids=["for no time", "with a rhythm"])
async def test_whoever_calls_waits_for_what_was_due_then_and_not_for_what_comes_of_it(pause: float) -> None:
    log, clock = MemoryLog(), FakeClock()
    async with memory_host(log, actors=[Beats], clock=clock) as host:
        s = await host.spawn(Beats, "s")
        await begun(host, s.beat, clock() / SECOND + 1, pause)
    clock.move(2 * MANY)
    async with memory_host(log, actors=[Beats], clock=clock) as host:
        s = await host.get("s")
        assert 1 <= await s.hello() < 10
        await s.snapshot()
        assert await s.n < 30
        await (await s.fork()).hello()
        await host.delete("s", force=True)


async def test_a_read_that_fails_as_one_is_due_ends_no_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any) -> Any:
        raise ReadFailed("00000001.seg", "Input/output error")

    world = World(tmp_path)
    world.actors = (Beats,)
    async with world.host() as host:
        s = await host.spawn(Beats, "s")
        await s.many()
        await s.snapshot()
        await host.spawn(Beats, "other")
    async with world.host(cache=1) as host:
        s, other = await host.get("s"), await host.get("other")
        assert (await s.hello(), await other.hello()) == (0, 0)
        with monkeypatch.context() as patch:
            patch.setattr(memory, "read_page", fails)
            world.clock.time += 11 * SECOND  # nobody is told: what calls comes first
            with pytest.raises(ReadFailed):
                await s.hello()
        assert await other.hello() == 0
        assert await s.hello() == 2


async def test_a_host_keeps_nothing_of_timers_that_have_come() -> None:
    clock = FakeClock()
    async with memory_host(actors=[Beats], clock=clock) as host:
        s = await host.spawn(Beats, "s")
        await s.beat(clock() / SECOND, 0)
        [resident] = host._engine.residents
        assert len(resident.due) < MANY / 10


class Bank:
    def __init__(self) -> None:
        self.paid: list[int] = []
        self.called = trio.Event()
        self.open = trio.Event()

    @effect
    async def pay(self, effect: Any, n: int) -> str:
        self.paid.append(n)
        self.called.set()
        return "paid"

    @effect(on_crash="retry", concurrency=1)
    async def ask(self, effect: Any, n: int) -> int:
        self.paid.append(n)
        self.called.set()
        await self.open.wait()
        return n


@actor("timers.pays", version=1)
class Pays(Actor):
    n: int = 0
    came: str = ""

    async def limited(self, n: int) -> int:
        return await within(10, self.device("bank").ask(n))

    async def asks(self, n: int) -> int:
        return await self.device("bank").ask(n)

    async def other_limit(self) -> None:
        await within(5, self.sleep(1000))

    async def naps(self) -> None:
        await self.sleep(5)

    async def pays(self) -> None:
        self.came = await self.device("bank").pay(1)

    def hello(self) -> int:
        self.n += 1
        return self.n


async def test_a_call_that_has_started_and_is_not_made_yet_is_made_when_its_session_can_go_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock, bank, full = FakeClock(), Bank(), []
    appended = MemoryStore.append

    def append(store: MemoryStore, records: list[Record]) -> None:
        if full and full.pop():
            raise DiskFull("log", "No space left on device", True)
        appended(store, records)
        if any(record.kind == Kind.STARTED for record in records) and not bank.paid and not stopped:
            stopped.append(True)
            clock.time += 6 * SECOND  # this write took so long: a limit that has nothing to do with it is due
            full.append(True)

    stopped: list[bool] = []
    monkeypatch.setattr(MemoryStore, "append", append)
    async with memory_host(actors=[Pays], devices={"bank": bank}, clock=clock) as host:
        s = await host.spawn(Pays, "s")
        await begun(host, s.other_limit)
        with suppress(KeeveError):
            await s.pays()
        await bank.called.wait()
        await settled(host)
        assert stopped
        assert bank.paid == [1]
        assert await s.came == "paid"


@pytest.mark.parametrize("deleted", [False, True])
async def test_a_call_that_is_held_up_is_told_of_as_one_that_is_to_run_and_is_not_settled_by_hand(
    monkeypatch: pytest.MonkeyPatch, deleted: bool
) -> None:
    clock, bank, disk = FakeClock(), Bank(), ["new"]
    appended = MemoryStore.append

    def append(store: MemoryStore, records: list[Record]) -> None:
        if disk[-1] == "full" and all(record.kind != Kind.DELETE for record in records):
            raise DiskFull("log", "No space left on device", True)
        appended(store, records)
        if disk == ["new"] and any(record.kind == Kind.STARTED for record in records):
            clock.time += 6 * SECOND  # a timer is due, and that cannot be recorded
            disk.append("full")

    monkeypatch.setattr(MemoryStore, "append", append)
    async with memory_host(actors=[Pays], devices={"bank": bank}, clock=clock) as host:
        s = await host.spawn(Pays, "s")
        await begun(host, s.other_limit)
        with suppress(KeeveError):
            await s.pays()
        await settled(host)
        assert disk[-1] == "full"
        [call] = [each for each in host.effects("s") if each.device == "bank"]
        assert call.state == "running"
        with pytest.raises(NoSuchEffect, match="it is running"):
            await host.resolve(call.id, value="by hand")
        if deleted:
            await host.delete("s", force=True)
            await settled(host)
            assert host.effects() == []
        disk.append("has room")
        if not deleted:
            await bank.called.wait()
            await settled(host)
            assert await s.came == "paid"
            assert [each.device for each in host.effects()] == ["timer"]
    assert bank.paid == ([] if deleted else [1])


async def test_nothing_is_asked_again_and_again_of_a_session_that_is_damaged() -> None:
    clock, bank = FakeClock(), Bank()
    async with memory_host(actors=[Pays], devices={"bank": bank}, clock=clock) as host:
        s, other = await host.spawn(Pays, "s"), await host.spawn(Pays, "other")
        engine = host._engine
        async with trio.open_nursery() as nursery:
            nursery.start_soon(asked, other.asks, 0)
            await bank.called.wait()
            nursery.start_soon(asked, s.limited, 1)
            await settled(host)
            await s.hello()
            [resident] = [each for each in engine.residents if each.uid == s._uid]
            engine.store.damaged[s._uid] = Damage(resident.durable, resident.durable, 0, "test")
            clock.time += 11 * SECOND
            await s.n
            assert resident.damage is not None
            rounds, done = 0, engine.errands._done

            async def counted(*given: Any) -> None:
                nonlocal rounds
                rounds += 1
                if rounds > 5:  # or it would go on for ever
                    raise KeeveError
                await done(*given)

            engine.errands._done = counted
            bank.open.set()
            await settled(host)
            assert rounds < 5
            assert bank.paid == [0]
            nursery.cancel_scope.cancel()


async def test_a_limit_that_comes_while_others_are_written_counts_though_the_session_has_left_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock, bank, slow = FakeClock(), Bank(), []
    appended = MemoryStore.append

    def append(store: MemoryStore, records: list[Record]) -> None:
        if slow and any(record.uid == slow[0] for record in records):
            slow.clear()
            clock.time += 6 * SECOND
        appended(store, records)

    settings = Settings(vats=1)
    async with memory_host(actors=[Pays], devices={"bank": bank}, clock=clock, settings=settings) as host:
        s, other = await host.spawn(Pays, "s"), await host.spawn(Pays, "other")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(asked, other.asks, 0)
            await bank.called.wait()
            await begun(host, s.naps)
            await begun(host, s.limited, 1)
            while (found := host._engine.residents.get(s._uid)) is not None and found.vat is not None:
                await other.hello()
            clock.time += 6 * SECOND  # the nap is over; the limit of the call is not
            monkeypatch.setattr(MemoryStore, "append", append)
            slow.append(s._uid)
            bank.open.set()
            await settled(host)
            assert not slow
            assert bank.paid == [0]
            nursery.cancel_scope.cancel()
