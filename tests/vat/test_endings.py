"""Sessions that end while somebody waits for something of them: whoever waits is told why, and waits no more."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import trio
import trio.testing

from dataspace.errors import KeeveError
from dataspace.log.files import SyncFailed
from dataspace.log.marks import Damage
from dataspace.log.store import StoreFailed
from dataspace.log.verdicts import SessionDamaged
from dataspace.observe.events import CaughtUp, Event
from tests.vat.hosts import Counter, Worker, World, settled, store_of
from vat.errors import Deleted
from vat.host.asking import NotRunning
from vat.host.host import Host


async def never() -> None:
    """What no waiter comes to."""
    raise AssertionError("it ended without a reason")


async def iterates(host: Host) -> None:
    async for _ in host.observe('(test.said "s1" _)', session="s1", after="head"):
        pass
    await never()


async def iterates_with_marks(host: Host) -> None:
    async for _ in host.observe("(_ . _)", session="s1", lineage=True, marks=True):
        pass
    await never()


async def handles(host: Host) -> None:
    await host.observe("(nothing)", lambda _: None, session="s1").wait()
    await never()


async def narrowed(host: Host) -> None:
    async for _ in host.reader().narrow(session="s1").observe("(nothing)"):
        pass
    await never()


async def watches(host: Host) -> None:
    with host.watch("s1") as pieces:
        async for _ in pieces:
            pass
    await never()


async def calls(host: Host) -> None:
    await (await host.get("s1")).ask("once", 1)
    await never()


WAITERS = [iterates, iterates_with_marks, handles, narrowed, watches, calls]


async def deletes(host: Host) -> None:
    await host.delete("s1", force=True)


async def damages(host: Host) -> None:
    """The session is found to be damaged by who has it loaded again."""
    row = host.row("s1")
    store_of(host)._log.damaged[row.uid] = Damage(row.seq, row.position, 0, "its bytes are others")
    host._engine.residents.get(row.uid).let_go()
    await (await host.get("s1")).results


async def fails(host: Host) -> None:
    store_of(host).failing.append(SyncFailed("log", "I/O error"))
    with pytest.raises(StoreFailed):
        await (await host.get("other")).add()


@pytest.mark.parametrize(
    ("end", "why"), [(deletes, Deleted), (damages, SessionDamaged), (fails, StoreFailed)], ids=["del", "dam", "fail"]
)
async def test_whoever_waits_for_something_of_a_session_that_ends_is_told_why(
    world: World, end: Callable[[Host], Awaitable[None]], why: type[KeeveError], autojump_clock: trio.testing.MockClock
) -> None:
    """Invariant 15: No promise is pending with nobody to settle it; nor does anybody else wait for what never comes."""
    told: list[str] = []
    world.tool.open = False
    async with world.host() as host:
        await host.spawn(Worker, "s1")
        await host.spawn(Counter, "other")

        async def waits(waiter: Callable[[Host], Awaitable[None]]) -> None:
            with pytest.raises(why):
                await waiter(host)
            told.append(waiter.__name__)

        async def goes_on() -> None:
            async for _ in host.observe('(test.said "other" _)', session="other"):
                return

        with trio.fail_after(0.5):
            async with trio.open_nursery() as nursery:
                for waiter in WAITERS:
                    nursery.start_soon(waits, waiter)
                await settled(host)
                assert told == []
                if why is not StoreFailed:
                    nursery.start_soon(goes_on)
                await end(host)
                if why is not StoreFailed:
                    await (await host.get("other")).state("I go on")
        # And whoever comes later, too.
        with trio.fail_after(0.5), pytest.raises(why):
            await iterates_with_marks(host)
    assert sorted(told) == sorted(waiter.__name__ for waiter in WAITERS)


async def test_an_observation_tells_all_that_was_stated_and_then_that_the_session_is_deleted(world: World) -> None:
    async with world.host() as host, trio.open_nursery() as nursery:
        s = await host.spawn(Counter, "s1")
        observation: Any = host.observe("(_ . _)", session="s1", after="head", marks=True)
        told: list[Any] = []

        async def hear() -> None:
            async for item in observation:
                told.append(item)

        async def listen() -> None:
            with pytest.raises(Deleted):
                await hear()
            with pytest.raises(Deleted):  # an end is an end
                await anext(observation)

        nursery.start_soon(listen)
        await settled(host)
        await s.present()
        await host.delete("s1")
    events = [item for item in told if isinstance(item, Event)]
    assert [(event.kind, event.value.label) for event in events][-2:] == [
        ("retract", "test.here"),
        ("assert", "deleted"),
    ]
    assert isinstance(told[-1], CaughtUp)


async def test_those_who_wait_are_told_when_the_host_ends(world: World) -> None:
    told = []
    async with trio.open_nursery() as nursery, world.host() as host:
        await host.spawn(Counter, "s1")

        async def listen(**whose: Any) -> None:
            with pytest.raises(NotRunning):
                async for _ in host.observe("(nothing)", **whose):
                    pass
            told.append(whose)

        nursery.start_soon(lambda: listen(session="s1"))
        nursery.start_soon(listen)
        await settled(host)
    assert len(told) == 2


async def test_who_waits_for_one_session_costs_another_one_that_ends_nothing(world: World) -> None:
    async with world.host() as host, trio.open_nursery() as nursery:
        for name in ("s1", "s2"):
            await host.spawn(Counter, name)
        endings = host._engine.dataspace.endings
        woken: list[bytes | None] = []

        async def listen() -> None:
            async for _ in host.observe("(nothing)", session="s1"):
                pass

        nursery.start_soon(listen)
        await settled(host)
        with endings.told(host.row("s1").uid, lambda: woken.append(b"s1")):
            await host.delete("s2")
        assert woken == []
        nursery.cancel_scope.cancel()
    assert not endings
