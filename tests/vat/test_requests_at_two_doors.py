"""Sessions that one person has made with one request id at two doors: each is made once.

Invariant 30.
"""

from __future__ import annotations

from typing import Any

import pytest
import trio
import trio.testing

from dataspace.log.files import DiskFull
from keeve import Session, Tools
from tests.vat.hosts import Counter, World, held, settled, store_of
from vat.crank.vat import RequestConflict
from vat.errors import Deleted
from vat.host.host import Host
from vat.host.repetitions import also_as

FIRST = (0, 1), (1, 0)


def doors(host: Host) -> tuple[Host, Host]:
    """One person, who is called local at one and owner at the other."""
    return also_as(host, "owner"), also_as(host.asking("owner", "wire"), "local")


@pytest.mark.parametrize(("first", "then"), FIRST)
async def test_what_was_made_at_one_is_found_at_the_other(either: World, first: int, then: int) -> None:
    async with either.host() as host:
        made = await doors(host)[first].spawn(Counter, "s", request="k", count=2)
    async with either.host() as host:
        other = doors(host)[then]
        assert await (await other.spawn(Counter, "s", request="k", count=2)).total() == 2
        assert [row.uid for row in host.sessions()] == [made._uid]
        with pytest.raises(RequestConflict):
            await other.spawn(Counter, "s", request="k", count=3)
        await host.asking("ann").spawn(Counter, request="k", count=2)
        assert len(host.sessions()) == 2
        await host.delete("s")
        with pytest.raises(Deleted):
            await other.spawn(Counter, "s", request="k", count=2)


async def test_what_began_with_more_than_values_is_found_again(either: World) -> None:
    def weather() -> str:
        """The weather."""
        return "fine"

    async with either.host() as host:
        made = await host.spawn(Session, "s", request="k", tools=Tools(weather))
        assert await host.spawn(Session, "s", request="k", tools=Tools(weather)) == made
        with pytest.raises(RequestConflict):
            await host.spawn(Session, "s", request="k", tools=Tools())


@pytest.mark.parametrize(("first", "then"), FIRST)
async def test_a_fork_is_found_at_the_other_too(either: World, first: int, then: int) -> None:
    async with either.host() as host:
        await host.spawn(Counter, "s")
        made = await (await doors(host)[first].get("s")).fork(into="f", request="k")
        s = await doors(host)[then].get("s")
        assert await s.fork(into="f", request="k") == made
        with pytest.raises(RequestConflict):
            await s.fork(into="g", request="k")
        assert [row.id for row in host.sessions()] == ["f", "s"]


async def test_what_was_made_at_both_before_stays_each_doors_own(either: World) -> None:
    async with either.host() as host:
        made = [await each.spawn(Counter, request="k") for each in (host, host.asking("owner", "wire"))]
        assert made[0] != made[1]
        assert [await door.spawn(Counter, request="k") for door in doors(host)] == made


@pytest.mark.parametrize(("first", "then"), FIRST)
@pytest.mark.parametrize("id", ["s", None])
@pytest.mark.parametrize("fails", [False, True])
async def test_who_asks_while_the_first_is_on_its_way_gets_what_becomes_of_it(
    world: World, first: int, then: int, id: str | None, fails: bool
) -> None:
    made: list[Any] = []

    async def make(door: Host) -> None:
        try:
            made.append(await door.spawn(Counter, id, request="k"))
        except DiskFull:
            made.append("DiskFull")

    async with world.host() as host, trio.open_nursery() as nursery:
        if fails:
            store_of(host).failing.append(DiskFull("log", "no space", True))
        with held(host):
            for door in (first, then):
                nursery.start_soon(make, doors(host)[door])
                await trio.testing.wait_all_tasks_blocked()
            assert made == []
        await settled(host)
        await trio.testing.wait_all_tasks_blocked()
        found = await doors(host)[then].spawn(Counter, id, request="k")
        assert made[0] == ("DiskFull" if fails else found)
        assert made[1] in ((found, "DiskFull") if fails else (found,))
        assert [(row.uid, host.made_by(row.id)[0]) for row in host.sessions()] == [
            (found._uid, ("local", "owner")[then if fails else first])
        ]
