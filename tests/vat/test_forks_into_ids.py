"""A fork into an id that a session is to have which is being made: nobody is refused for what never becomes durable.

Invariant 7.
"""

from __future__ import annotations

from typing import Any

import pytest
import trio
import trio.testing

from dataspace.log.files import DiskFull
from tests.vat.hosts import Caller, Counter, World, held, settled, store_of

MAKING: dict[str, Any] = {
    "a spawn": lambda host, s, c: host.spawn(Counter, "new"),
    "a fork": lambda host, s, c: s.fork(into="new"),
    "a fork of another": lambda host, s, c: c.fork(into="new"),
}


async def heard(hear: list[Any], what: Any) -> None:
    try:
        hear.append(await what())
    except Exception as error:  # noqa: BLE001  # whatever it is is looked at
        hear.append(type(error).__name__)


@pytest.mark.parametrize("fails", [True, False])
@pytest.mark.parametrize("first", MAKING)
async def test_a_fork_waits_for_what_becomes_of_the_session_that_is_to_have_its_id(
    world: World, first: str, fails: bool
) -> None:
    async with world.host() as host, trio.open_nursery() as nursery:
        s, c = await host.spawn(Counter, "s"), await host.spawn(Counter, "c")
        made: list[Any] = []
        forked: list[Any] = []
        counted: list[Any] = []
        if fails:
            store_of(host).failing.append(DiskFull("log", "no space", True))
        with held(host):
            nursery.start_soon(heard, made, lambda: MAKING[first](host, s, c))
            await trio.testing.wait_all_tasks_blocked()
            nursery.start_soon(heard, forked, lambda: s.fork(into="new"))
            await trio.testing.wait_all_tasks_blocked()
            nursery.start_soon(heard, counted, s.add)
            await trio.testing.wait_all_tasks_blocked()
            assert (made, forked, counted) == ([], [], [])
            assert host._engine.turns.busy is False  # and nothing asks again and again meanwhile
        await settled(host)
        await trio.testing.wait_all_tasks_blocked()
        assert (made[0] == "DiskFull") is fails
        if fails and first == "a fork":  # who waits behind what a session has lost is told so as well
            assert forked == counted == ["DiskFull"]
            assert [row.id for row in host.sessions()] == ["c", "s"]
        else:
            assert (forked == ["IdInUse"]) is not fails
            assert counted == [1]
            assert [row.id for row in host.sessions()] == ["c", "new", "s"]
        assert await s.add() == (1 if counted == ["DiskFull"] else 2)


@pytest.mark.parametrize("fails", [True, False])
async def test_an_actor_that_forks_another_waits_for_that_too(world: World, fails: bool) -> None:
    async with world.host() as host, trio.open_nursery() as nursery:
        s, c = await host.spawn(Counter, "s"), await host.spawn(Caller, "c")
        made: list[Any] = []
        forked: list[Any] = []
        turns = host._engine.turns
        turns.hold([s._uid])
        nursery.start_soon(heard, forked, lambda: c.send(s, "fork", None, "new"))
        await settled(host)
        if fails:
            store_of(host).failing.append(DiskFull("log", "no space", True))
        with held(host):
            nursery.start_soon(heard, made, lambda: host.spawn(Counter, "new"))
            await trio.testing.wait_all_tasks_blocked()
            turns.release([s._uid])
            await trio.testing.wait_all_tasks_blocked()
        await settled(host)
        await trio.testing.wait_all_tasks_blocked()
        assert (made == ["DiskFull"]) is fails
        assert (forked == ["IdInUse"]) is not fails
        assert [row.id for row in host.sessions()] == ["c", "new", "s"]
