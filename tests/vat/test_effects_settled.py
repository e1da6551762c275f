"""Who is to settle what has an outcome is told what that was, when, and by whom; and nothing that was said."""

from __future__ import annotations

from typing import Any

import pytest

from tests.vat.hosts import Worker, World, catalog_of, settled, store_of
from tests.vat.test_host_effects import wanted
from vat.heap import settled as settling
from vat.host.resolving import NoSuchEffect

SECRET = "what nobody is to read in a log"


async def refused(host: Any, id: str, **outcome: Any) -> str:
    with pytest.raises(NoSuchEffect) as caught:
        await host.resolve(id, **(outcome or {"value": 1}))
    assert SECRET not in str(caught.value)
    assert caught.value.logged == "NoSuchEffect"
    return str(caught.value)


async def left_unknown(world: World, *values: int) -> None:
    world.settings["hold_unknown"] = True
    world.tool.open = False
    async with world.host(dies=True) as host:
        s = await host.spawn(Worker, "s1")
        for value in values:
            await wanted(host, s, "once", value)


async def test_what_was_settled_by_hand_says_by_whom_and_when_and_how(either: World) -> None:
    await left_unknown(either, 1, 2)
    either.tool.open = True
    async with either.host() as host:
        await settled(host)
        first, second = host.effects()
        await host.asking("ann", "http").resolve(first.id, value=SECRET)
        await host.asking("bob", "cli").resolve(second.id, error=ValueError(SECRET))
        for _ in range(3):
            said = await refused(host, first.id)
            assert " it was settled at 20" in said
            assert "Z by ann (http), with a value; look at " in said
        assert "Z by bob (cli), with the error ValueError; look at " in await refused(host, second.id, error="no")
    async with either.host() as host:
        assert "by ann (http), with a value" in await refused(host, first.id)


async def test_what_its_device_has_ended_says_that_and_not_who(either: World) -> None:
    either.tool.open = False
    async with either.host() as host:
        s = await host.spawn(Worker, "s1")
        for value in (1, "bad"):
            await wanted(host, s, "once", value)
        ids = [effect.id for effect in host.effects()]
        for id in ids:
            assert "it is running, and what comes of it settles it; look at" in await refused(host, id)
        either.tool.gate.set()
        await settled(host)
        for id, what in zip(ids, ("a value", "the error ValueError"), strict=True):
            said = await refused(host, id)
            assert f"no effect {id!r} waits for somebody to settle it: it ended by itself at 20" in said
            assert f"Z, with {what}; look at the list of effects" in said


async def test_what_nobody_has_ever_wanted_is_called_that(either: World) -> None:
    async with either.host() as host:
        await (await host.spawn(Worker, "s1")).work("again", 1)
        for id in ("nope", "0" * 32):
            assert "it may be settled already, or be running" in await refused(host, id)


async def test_it_is_looked_for_among_so_many_records_and_no_further(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    await left_unknown(world, 1)
    world.tool.open = True
    async with world.host() as host:
        await settled(host)
        [effect] = host.effects()
        await host.resolve(effect.id, value=1)
        s = await host.get("s1")
        for n in range(20):
            await s.work("again", n)
        assert "with a value" in await refused(host, effect.id)
        monkeypatch.setattr(settling, "MOST", 10)
        assert "it may be settled already" in await refused(host, effect.id)
        records = settling.of_session(host.row("s1"), catalog_of(host), store_of(host).read)
        assert len([None for each in settling.settled_in(records, effect.id) if each is None]) == 10


async def test_who_settles_is_in_the_record_and_the_same_session_comes_of_it(either: World) -> None:
    await left_unknown(either, 1)
    async with either.host() as host:
        await settled(host)
        [effect] = host.effects()
        await host.asking("ann", "http").resolve(effect.id, value="it happened")
    either.tool.open = True
    async with either.host() as host:
        assert await (await host.get("s1")).results == ["it happened"]
        assert (await host.verify()).sound
