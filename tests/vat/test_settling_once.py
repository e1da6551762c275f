"""Who settles an effect with a request id is answered as the first time, after a restart too (Invariant 30)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.vat.hosts import Worker, World, settled
from tests.vat.test_host_effects import wanted
from vat.crank.vat import RequestConflict
from vat.host.host import Host
from vat.host.repetitions import sent
from vat.host.resolving import NoSuchEffect
from vat.host.settling import settle

OUTCOMES: list[dict[str, Any]] = [{"value": None}, {"error": "it was not"}, {"again": True}]


async def left_unknown(world: World) -> None:
    world.settings["hold_unknown"] = True
    world.tool.open = False
    async with world.host(dies=True) as host:
        await wanted(host, await host.spawn(Worker, "s1"), "once", 1)


async def ask(host: Host, id: str, given: dict[str, Any], request: str | None = "r", by: str = "ann") -> None:
    await settle(host.asking(by, "http"), "s1", id, sent(request, "resolve", id, given), lambda _: given)


@pytest.mark.parametrize("given", OUTCOMES)
async def test_a_repetition_is_answered_and_does_nothing_after_a_restart_too(either: World, given: Any) -> None:
    await left_unknown(either)
    async with either.host() as host:
        await settled(host)
        [effect] = host.effects()
        await ask(host, effect.id, given)
        await settled(host)
        seq, calls = host.row("s1").seq, len(either.tool.calls)
        await ask(host, effect.id, given)
        assert (host.row("s1").seq, len(either.tool.calls)) == (seq, calls)
    async with either.host() as host:
        await settled(host)
        seq = host.row("s1").seq
        await ask(host, effect.id, given)
        for other in OUTCOMES:
            if other != given:
                with pytest.raises(RequestConflict):
                    await ask(host, effect.id, other)
        assert (host.row("s1").seq, len(either.tool.calls)) == (seq, calls)


@pytest.mark.parametrize(("request_id", "by"), [(None, "ann"), ("r2", "ann"), ("r", "bob")])
async def test_anybody_else_and_any_other_request_is_refused(world: World, request_id: str | None, by: str) -> None:
    await left_unknown(world)
    async with world.host() as host:
        await settled(host)
        [effect] = host.effects()
        await ask(host, effect.id, {"value": 1})
        with pytest.raises(NoSuchEffect, match="by ann"):
            await ask(host, effect.id, {"value": 1}, request_id, by)


async def test_an_effect_of_another_session_is_none_of_this_one(world: World) -> None:
    await left_unknown(world)
    async with world.host() as host:
        await host.spawn(Worker, "s2")
        await settled(host)
        [effect] = host.effects()
        with pytest.raises(NoSuchEffect):
            await settle(host, "s2", effect.id, sent("r", "resolve"), lambda _: {"value": 1})
        assert [each.id for each in host.effects()] == [effect.id]


async def test_a_fork_knows_nothing_of_the_request(world: World) -> None:
    await left_unknown(world)
    async with world.host() as host:
        await settled(host)
        [effect] = host.effects()
        await ask(host, effect.id, {"value": 1})
        await (await host.get("s1")).fork(into="s2")
        given = {"value": 1}
        request, asking = sent("r", "resolve", effect.id, given), host.asking("ann", "http")
        with pytest.raises(NoSuchEffect):
            await settle(asking, "s2", effect.id, request, lambda _: given)
