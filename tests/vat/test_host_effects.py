"""Effects through a host: run after they are durable, once, and never lost; whatever dies between."""

from __future__ import annotations

import re
from typing import Any

import pytest
import trio
import trio.testing

from dataspace.log import store as log_store
from dataspace.log.files import DiskFull
from dataspace.records import Kind
from tests.vat.hosts import (
    Counter,
    Worker,
    World,
    held,
    let_go,
    outcomes_of,
    records,
    residents_of,
    run_no_effects,
    settled,
    store_of,
)
from vat.devices.devices import effect
from vat.errors import Deleted
from vat.host.outside import HostRef
from vat.host.resolving import BadOutcome, NoSuchEffect


async def wanted(host: Any, ref: HostRef[Worker], method: str, value: Any) -> None:
    """Have an effect wanted, and wait until its device is called."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(ref.work, method, value)
        await settled(host)
        nursery.cancel_scope.cancel()


async def test_an_effect_is_carried_out_and_its_outcome_recorded(either: World) -> None:
    async with either.host() as host:
        s = await host.spawn(Worker, "s1")
        assert await s.work("once", 1) == "once 1"
        assert await s.work("again", 2) == "again 2"
        assert await s.work("once", "bad") == "ValueError"
        assert await s.work("nothing", 1) == "UnknownDevice"
        assert records(host, "s1").count(Kind.STARTED) == 2
    async with either.host() as host:
        assert await (await host.get("s1")).results == ["once 1", "again 2", "ValueError", "UnknownDevice"]
    assert len(either.tool.calls) == 3


async def test_an_effect_of_unknown_outcome_is_not_run_again(either: World) -> None:
    """Invariant 13: Three restarts, one call."""
    either.tool.open = False
    async with either.host(dies=True) as host:
        await wanted(host, await host.spawn(Worker, "s1"), "once", 1)
    for _ in range(3):
        async with either.host(dies=True) as host:
            await settled(host)
    async with either.host() as host:
        assert await (await host.get("s1")).results == ["OutcomeUnknown"]
    assert either.tool.calls == [("once", 1)]


async def test_an_effect_that_may_run_again_does(either: World) -> None:
    either.tool.open = False
    async with either.host(dies=True) as host:
        await wanted(host, await host.spawn(Worker, "s1"), "again", 1)
    either.tool.open = True
    async with either.host() as host:
        await settled(host)
        assert await (await host.get("s1")).results == ["again 1"]
    assert either.tool.calls == [("again", 1)] * 2


async def test_an_effect_that_had_not_started_is_run_by_the_next_host(either: World) -> None:
    async with either.host(dies=True) as host:
        s = await host.spawn(Worker, "s1")
        run_no_effects(host)  # it dies just before
        await wanted(host, s, "once", 1)
    assert either.tool.calls == []
    async with either.host() as host:
        await settled(host)
        assert await (await host.get("s1")).results == ["once 1"]


async def test_a_recorded_outcome_is_never_asked_for_twice(either: World) -> None:
    """Invariant 14: A recorded outcome is never asked for twice; restore calls nothing outside."""
    async with either.host(dies=True) as host:
        s = await host.spawn(Worker, "s1")
        await s.work("again", 1)
        await s.snapshot()
    async with either.host() as host:
        await host.restore_latest("s1")
        await settled(host)
    assert either.tool.calls == [("again", 1)]


# Held ones


async def test_a_held_effect_waits_for_whoever_resolves_it(either: World) -> None:
    either.settings["hold_unknown"] = True
    either.tool.open = False
    async with either.host(dies=True) as host:
        s = await host.spawn(Worker, "s1")
        for value in (1, 2, 3):
            await wanted(host, s, "once", value)
    either.tool.open = True
    async with either.host() as host:
        await settled(host)
        first, second, third = host.effects()
        assert [effect.state for effect in (first, second, third)] == ["unknown"] * 3
        assert list(first.args) == [1]
        await host.resolve(first.id, value="it happened")
        await host.resolve(second.id, error=ValueError("it did not"))
        await host.resolve(third.id, again=True)
        await settled(host)
        s = await host.get("s1")
        assert await s.results == ["it happened", "ValueError", "once 3"]
        assert host.effects() == []
        with pytest.raises(NoSuchEffect):
            await host.resolve(first.id, value=1)
    assert either.tool.calls == [("once", 1), ("once", 2), ("once", 3), ("once", 3)]


async def test_a_held_effect_stays_held_over_restarts_and_evictions(world: World) -> None:
    world.settings.update(hold_unknown=True, vats=1)
    world.tool.open = False
    async with world.host(dies=True) as host:
        await wanted(host, await host.spawn(Worker, "s1"), "once", 1)
    async with world.host() as host:
        (effect,) = host.effects()
    async with world.host() as host:
        for number in range(3):
            await host.spawn(Counter, str(number))
            await (await host.get("s1")).results
        assert host.effects() == [effect]
        await host.resolve(effect.id, value="done")
        assert await (await host.get("s1")).results == ["done"]
    assert world.tool.calls == [("once", 1)]


async def test_an_effect_that_runs_again_is_not_held_beside_it(world: World) -> None:
    world.settings.update(hold_unknown=True, vats=1)
    world.tool.open = False
    async with world.host(dies=True) as host:
        await wanted(host, await host.spawn(Worker, "s1"), "once", 1)
    async with world.host() as host:
        (effect,) = host.effects()
        await host.resolve(effect.id, again=True)
        await settled(host)
        await host.spawn(Counter, "other")
        await host.spawn(Counter, "another")
        await (await host.get("s1")).results  # loaded again while it runs
        assert [effect.state for effect in host.effects()] == ["running"]
        world.tool.gate.set()
        await settled(host)
        assert await (await host.get("s1")).results == ["once 1"]


async def test_an_effect_of_a_host_that_leaves_work_alone_can_be_resolved(either: World) -> None:
    either.tool.open = False
    async with either.host(dies=True) as host:
        await wanted(host, await host.spawn(Worker, "s1"), "once", 1)
    async with either.host(takes_up="nothing") as host:
        (effect,) = host.effects()
        await host.resolve(effect.id, value="by hand")
        assert await (await host.get("s1")).results == ["by hand"]
    assert either.tool.calls == [("once", 1)]


@pytest.mark.parametrize(
    "outcome", [{}, {"value": 1, "error": "no"}, {"value": None, "again": True}, {"error": None}, {"error": 7}]
)
async def test_an_outcome_is_one_value_or_one_error_or_another_run(either: World, outcome: dict[str, Any]) -> None:
    either.settings["hold_unknown"] = True
    either.tool.open = False
    async with either.host(dies=True) as host:
        await wanted(host, await host.spawn(Worker, "s1"), "once", 1)
    async with either.host() as host:
        await settled(host)
        (effect,) = host.effects()
        with pytest.raises(BadOutcome, match="exactly one of value"):
            await host.resolve(effect.id, **outcome)
        assert host.effects() == [effect]


async def test_none_is_a_value_and_words_are_an_error(either: World) -> None:
    either.settings["hold_unknown"] = True
    either.tool.open = False
    async with either.host(dies=True) as host:
        s = await host.spawn(Worker, "s1")
        for value in (1, 2):
            await wanted(host, s, "once", value)
    async with either.host() as host:
        await settled(host)
        first, second = host.effects()
        await host.resolve(first.id, value=None)
        await host.resolve(second.id, error="the line was down")
        assert await (await host.get("s1")).results == [None, "Failed"]


async def test_open_effects_of_sessions_that_nobody_tends_are_listed(either: World) -> None:
    either.tool.open = False
    async with either.host(dies=True) as host:
        for id in ("s1", "s2"):
            await wanted(host, await host.spawn(Worker, id), "once", id)
        run_no_effects(host)  # it dies before this one has begun
        await wanted(host, await host.spawn(Worker, "s3"), "once", "s3")
    async with either.host(takes_up="asked", hold_unknown=True, grace=0) as host:
        listed = {effect.session: effect.state for effect in host.effects()}
        assert listed == {"s1": "unknown", "s2": "unknown", "s3": "wanted"}
        first, second = (effect.id for effect in host.effects()[:2])
        await host.resolve(first, value="found out")
        await host.resolve(second, again=True)
        await settled(host)
        assert [(effect.session, effect.state) for effect in host.effects()] == [("s2", "running"), ("s3", "wanted")]
    assert either.tool.calls == [("once", "s1"), ("once", "s2"), ("once", "s2")]


async def test_a_host_that_breaks_what_is_unknown_runs_nothing_again(either: World) -> None:
    either.tool.open = False
    async with either.host(dies=True) as host:
        await wanted(host, await host.spawn(Worker, "s1"), "once", 1)
    async with either.host(takes_up="asked") as host:
        (effect,) = host.effects()
        with pytest.raises(BadOutcome, match='unknown="hold"'):
            await host.resolve(effect.id, again=True)
    assert either.tool.calls == [("once", 1)]


# Stores that do not write


async def test_a_device_is_not_called_before_it_is_durable_that_it_starts(world: World, autojump_clock: Any) -> None:
    async with world.host() as host:
        s = await host.spawn(Worker, "s1")
        store = store_of(host)
        append, fails = store.append, [False, True]

        def sometimes(batch: Any) -> None:
            if fails and fails.pop(0):
                raise DiskFull("log", "no space", True)
            append(batch)

        store.append = sometimes
        with pytest.raises(DiskFull):  # the record that it starts fails once
            await s.work("once", 1)
        assert world.tool.calls == []
        await trio.sleep(2)
        await settled(host)
        assert world.tool.calls == [("once", 1)]
        assert await s.results == ["once 1"]


async def test_an_outcome_that_cannot_be_committed_is_offered_again(world: World, autojump_clock: Any) -> None:
    world.tool.open = False
    async with world.host() as host:
        s = await host.spawn(Worker, "s1")
        for method in ("once", "again"):
            await wanted(host, s, method, 1)
        store_of(host).failing += [DiskFull("log", "no space", True)] * 3
        world.tool.gate.set()
        for _ in range(5):
            await trio.sleep(1)
            await settled(host)
        assert sorted(await s.results) == ["again 1", "once 1"]
        assert len(world.tool.calls) == 2
        assert outcomes_of(host) == {}


async def test_an_outcome_waits_for_a_session_that_was_loaded_meanwhile(world: World, autojump_clock: Any) -> None:
    world.tool.open = False
    async with world.host(retry=60) as host:
        s = await host.spawn(Worker, "s1")
        await wanted(host, s, "once", 1)
        store_of(host).failing += [DiskFull("log", "no space", True)]
        world.tool.gate.set()
        await trio.testing.wait_all_tasks_blocked()
        assert await s.results in ([], ["once 1"])  # loading it offers the outcome, and runs nothing
        await settled(host)
        assert await s.results == ["once 1"]
        assert world.tool.calls == [("once", 1)]


async def test_the_outcome_for_a_session_that_left_memory_loads_it(world: World) -> None:
    world.tool.open = False
    async with world.host(vats=1) as host:
        await wanted(host, await host.spawn(Worker, "s1"), "once", 1)
        for number in range(3):
            await host.spawn(Counter, str(number))
        assert len(residents_of(host)) == 1
        world.tool.gate.set()
        await settled(host)
        assert await (await host.get("s1")).results == ["once 1"]


async def test_an_effect_that_runs_is_not_run_twice_when_its_session_is_loaded_again(world: World) -> None:
    world.tool.open = False
    async with world.host(vats=1) as host:
        s = await host.spawn(Worker, "s1")
        await wanted(host, s, "again", 1)
        for number in range(5):
            await host.spawn(Counter, str(number))
            await s.results
        world.tool.gate.set()
        await settled(host)
    assert world.tool.calls == [("again", 1)]


# Deletion and progress


async def test_a_late_outcome_of_a_deleted_session_is_refused(world: World) -> None:
    """Invariant 25: Late effects of a deleted session are refused."""
    world.tool.open = False
    async with world.host() as host:
        s = await host.spawn(Worker, "s1")
        await wanted(host, s, "once", 1)
        with held(host):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(lambda: host.delete("s1", force=True))
                await trio.testing.wait_all_tasks_blocked()
                world.tool.gate.set()  # the outcome comes behind the tombstone
                await trio.testing.wait_all_tasks_blocked()
                let_go(host)
        await settled(host)
        with pytest.raises(Deleted):
            await s.results
        assert outcomes_of(host) == {}
        assert records_of_deleted(host)[-1] == Kind.DELETE


def records_of_deleted(host: Any) -> list[int]:
    return [stored.header.kind for stored in store_of(host).scan()]


async def test_an_effect_of_one_session_never_settles_anothers(either: World) -> None:
    async with either.host() as host:
        refs = [await host.spawn(Worker, str(number)) for number in range(8)]
        async with trio.open_nursery() as nursery:
            for number, ref in enumerate(refs * 4):
                nursery.start_soon(ref.work, "again", number)
        for number, ref in enumerate(refs):
            assert sorted(await ref.results) == sorted(f"again {number + 8 * n}" for n in range(4))


async def test_an_outcome_that_no_record_takes_breaks_its_promise(world: World, monkeypatch: Any) -> None:
    @effect()
    async def wordy(effect: Any) -> str:
        return "x" * 50_000

    async with world.host(devices={"wordy": wordy}) as host:
        s = await host.spawn(Worker, "s1")
        monkeypatch.setattr(log_store, "MAX_RECORD", 20_000)
        with pytest.raises(log_store.RecordTooLarge):
            await s.use("wordy", "call")
        await settled(host)
        assert await s.results == ["RecordTooLarge"]
        assert outcomes_of(host) == {}
        assert await s.work("once", 1) == "once 1"


async def test_an_error_of_a_device_says_where_it_was_raised_live_and_after_a_restart(
    either: World, caplog: pytest.LogCaptureFixture
) -> None:
    async with either.host() as host:
        s = await host.spawn(Worker, "s1")
        for _ in range(2):
            with pytest.raises(ValueError, match="the tool is broken") as caught:
                await s.ask("once", "bad", request="r1")
            assert re.fullmatch(r"in session 's1' at hosts\.py:\d+ in _do", caught.value.__notes__[0])
    async with either.host() as host:
        with pytest.raises(ValueError, match="the tool is broken") as again:
            await (await host.get("s1")).ask("once", "bad", request="r1")
    assert again.value.__notes__ == caught.value.__notes__
    (logged,) = (record for record in caplog.records if "tool.once failed" in record.getMessage())
    assert logged.levelname == "WARNING"
    assert "Traceback" in logged.getMessage()
