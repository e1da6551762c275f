"""Who settles an effect with a request id is answered as the first time, after a restart too (Invariant 30)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from dataspace.log.files import DiskFull
from dataspace.log.marks import Damage
from dataspace.records import Kind, Record
from keeve.looking.records import of_record
from keeve.testing.crashes import CrashFiles
from keeve.testing.lives import suppress_crash
from tests.vat.hosts import Worker, World, catalog_of, held, records, settled, store_of
from tests.vat.test_host_effect_windows import Mortal
from tests.vat.test_host_effects import wanted
from vat.crank.vat import RequestConflict
from vat.heap.restore import Lineage
from vat.host.host import Host
from vat.host.repetitions import sent
from vat.host.resolving import NoSuchEffect
from vat.host.settling import settle

OUTCOMES: list[dict[str, Any]] = [{"value": None}, {"error": "it was not"}, {"again": True}]


async def left_unknown(world: World) -> None:
    world.settings |= {"hold_unknown": True, "grace": 0.0}
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


# To run again is answered with the record that it starts: by whichever of the two it is done, it is done.

AGAIN = {"again": True}


async def test_who_goes_away_while_it_becomes_durable_has_it_run_again_once(either: World) -> None:
    await left_unknown(either)
    async with either.host() as host:
        await settled(host)
        [effect] = host.effects()
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as nursery:
                with held(host):
                    nursery.start_soon(ask, host, effect.id, AGAIN)
                    await trio.testing.wait_all_tasks_blocked()
                    scope.cancel()
                    await trio.testing.wait_all_tasks_blocked()
        await ask(host, effect.id, AGAIN)
        await settled(host)
        assert either.tool.calls == [("once", 1)] * 2
        assert [each.state for each in host.effects()] == ["running"]


@pytest.mark.crash
async def test_whenever_its_process_dies_it_starts_again_or_the_retry_starts_it(tmp_path: Path) -> None:
    """Invariant 1, 30: Of the answer and what makes it true both are there, or neither."""
    seen = set()
    for at in range(1, 40):
        world = Mortal(tmp_path / f"{at}")
        await left_unknown(world)
        files = world.files = CrashFiles(at=at)
        with suppress_crash():
            async with world.host(dies=True) as host:
                await settled(host)
                host._engine.errands.again = lambda *what, **how: None  # nor does it come to run it
                [effect] = host.effects()
                await ask(host, effect.id, AGAIN)
        files.crash(0)
        world.files = None
        async with world.host() as host:
            await settled(host)
            [effect] = host.effects()
            starts = records(host, "s1").count(Kind.STARTED)
            await ask(host, effect.id, AGAIN)
            await settled(host)
            [after] = host.effects()
            assert (starts, len(world.tool.calls), after.state) in [(1, 2, "running"), (2, 1, "unknown")]
            seen.add(starts)
            if after.state == "unknown":
                await ask(host, effect.id, AGAIN, "another")
                await settled(host)
                assert len(world.tool.calls) == 2
        if not files.dead:
            break
    assert seen == {1, 2}


async def test_the_record_says_who_had_it_run_again(world: World) -> None:
    await left_unknown(world)
    async with world.host() as host:
        await settled(host)
        [effect] = host.effects()
        await ask(host, effect.id, AGAIN)
        row = host.row("s1")
        lineage = Lineage(row.uid, catalog_of(host), store_of(host).read)
        starts = [each for seq in range(1, row.seq + 1) if (each := lineage.at(seq)).header.kind == Kind.STARTED]
        said = [of_record(each) or {} for each in starts]
        assert [(each["by"], each["request"]) for each in said][:2] == [(None, None), ("ann", "r")]


@pytest.mark.parametrize("first", [AGAIN, {"value": "v"}])
async def test_of_two_who_settle_it_at_once_one_is_told_that_it_is_done(either: World, first: dict[str, Any]) -> None:
    await left_unknown(either)
    told: dict[str, Any] = {}
    async with either.host() as host:
        await settled(host)
        [effect] = host.effects()

        async def one(given: dict[str, Any], request: str) -> None:
            try:
                told[next(iter(given))] = await ask(host, effect.id, given, request)
            except NoSuchEffect as error:
                told[next(iter(given))] = error

        async with trio.open_nursery() as nursery:
            with held(host):
                nursery.start_soon(one, first, "r1")
                await trio.testing.wait_all_tasks_blocked(0.001)
                nursery.start_soon(one, {"value": "v"} if first is AGAIN else AGAIN, "r2")
                await trio.testing.wait_all_tasks_blocked(0.001)
        either.tool.gate.set()
        await settled(host)
        done = [name for name, what in told.items() if what is None]
        assert (len(told), len(done)) == (2, 1)
        assert await (await host.get("s1")).results == ["once 1" if done == ["again"] else "v"]
        assert len(either.tool.calls) == (2 if done == ["again"] else 1)


async def test_what_is_settled_while_its_session_is_loaded_is_not_run_again(either: World) -> None:
    await left_unknown(either)
    async with either.host(takes_up="asked") as host:
        (effect,) = host.effects()

        async def again() -> None:
            with pytest.raises(NoSuchEffect):
                await host.resolve(effect.id, again=True)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(again)
            nursery.start_soon(lambda: host.resolve(effect.id, value="one"))
        assert await (await host.get("s1")).results == ["one"]
    assert either.tool.calls == [("once", 1)]


@pytest.mark.parametrize("deleted", [False, True])
async def test_one_that_is_to_run_again_does_when_the_disk_has_room(
    world: World, patient_clock: Any, deleted: bool
) -> None:
    """Its request is answered, so it is not held again because its start could not be recorded once more."""
    await left_unknown(world)
    async with world.host() as host:
        await settled(host)
        [effect] = host.effects()
        store, again = store_of(host), host._engine.errands.again
        append = store.append

        def full(records: list[Record]) -> None:
            if all(record.kind != Kind.DELETE for record in records):
                raise DiskFull("log", "no space", True)
            append(records)

        def runs(*what: Any, **how: Any) -> None:
            store.append = full
            again(*what, **how)

        host._engine.errands.again = runs
        await ask(host, effect.id, AGAIN)
        await settled(host)
        assert len(world.tool.calls) == 1
        assert [each.state for each in host.effects()] == ["running"]
        with pytest.raises(NoSuchEffect, match="it is running"):
            await host.resolve(effect.id, value=1)
        if deleted:
            row = host.row("s1")
            store.damaged[row.uid] = Damage(row.seq, row.seq, 0, "test")  # so that deletion does not take it up
            await host.delete("s1", force=True)
            await settled(host)
            assert host.effects() == []
        store.append = append
        await trio.sleep(3)
        await settled(host)
        assert len(world.tool.calls) == (1 if deleted else 2)
