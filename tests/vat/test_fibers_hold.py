"""What holds for every message holds for fibers too: unknown outcomes, reasons, stops, credentials, observers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trio

from keeve.api import open_host
from tests.vat.hosts import World, settled
from tests.vat.test_host_credentials import CANARY, FORMS, Echo, search
from vat.devices.outcomes import OutcomeUnknown
from vat.devices.vault import Vault
from vat.errors import Deleted
from vat.heap.refs import Promise, Ref, cancel, near
from vat.objects.actor import Actor, actor
from vat.objects.collections import List, Map


@actor("fibers.holder", version=1)
class Holder(Actor):
    log: List[Any]
    running: Map[str, Any]

    async def once(self, value: Any) -> Any:
        """Has something done once, and says what came of it."""
        try:
            came = await self.device("tool").once(value)
        except OutcomeUnknown:
            came = "unknown"
        self.log.append([value, came])
        return came

    async def again(self, value: Any) -> Any:
        came = await self.device("tool").again(value)
        self.log.append([value, came])
        return came

    async def uncaught(self, value: Any) -> Any:
        return await self.device("tool").once(value)

    def begin(self, name: str, value: Any) -> None:
        self.running[name] = near(self.ref).again(value)

    def keep(self, value: Any) -> None:
        self.running["kept"] = self.device("tool").again(value)

    async def await_kept(self) -> Any:
        try:
            return await self.running["kept"]
        except ValueError as error:
            return str(error)

    def stop(self, name: str) -> bool:
        promise: Promise = self.running[name]
        return cancel(promise, ValueError(f"{name} was stopped"))

    async def wait_for(self, other: Ref) -> Any:
        return await other.again("theirs")

    async def telling(self) -> None:
        for number in range(4):
            self.assert_fact("fibers.told", self.session_id, number)
            await self.device("tool").again(number)

    def begin_telling(self) -> None:
        near(self.ref).telling()

    async def leaks(self, *forms: str) -> None:
        kept = []
        for form in forms:
            try:
                kept.append(await self.device("leaky").give(form))
                await self.device("leaky").fail(form)
            except Exception as error:  # noqa: BLE001  # whatever it is, it is kept
                kept.append(str(error))
        self.log.append(kept)
        await self.sleep(1_000_000)
        self.log.append(kept)

    def begin_leaking(self, *forms: str) -> None:
        near(self.ref).leaks(*forms)


@pytest.fixture
def world() -> World:
    made = World()
    made.actors = (Holder,)
    return made


def shut(world: World) -> None:
    world.tool.open, world.tool.gate = False, trio.Event()


def reopen(world: World) -> None:
    world.tool.open = True
    world.tool.gate.set()


async def accepted(host: Any, nursery: trio.Nursery, call: Any, *args: Any, **how: Any) -> None:
    """Have a call begin, and nobody wait for it any more."""

    async def begin() -> None:
        with trio.CancelScope() as scope:
            scopes.append(scope)
            await call(*args, **how)

    scopes: list[trio.CancelScope] = []
    nursery.start_soon(begin)
    await settled(host)
    scopes[0].cancel()
    await settled(host)


async def test_after_three_restarts_an_effect_of_unknown_outcome_was_called_once(world):
    """Invariant 13: the fiber that waits for it is told, and goes on; or somebody settles it."""
    shut(world)
    async with world.host(dies=True) as host, trio.open_nursery() as nursery:
        await accepted(host, nursery, (await host.spawn(Holder, "s")).once, "a", request="r")
        await accepted(host, nursery, (await host.spawn(Holder, "held")).once, "b", request="r")
    for _ in range(3):
        async with world.host(dies=True, hold_unknown=True) as host:
            await settled(host)
            assert {status.state for status in host.effects()} == {"unknown"}
    reopen(world)
    async with world.host(hold_unknown=True) as host:
        (open,) = [status for status in host.effects() if status.session == "held"]
        await host.resolve(open.id, value="it was done")
        assert await (await host.get("held")).once("b", request="r") == "it was done"
    async with world.host() as host:
        assert await (await host.get("s")).once("a", request="r") == "unknown"
    assert sorted(world.tool.calls) == [("once", "a"), ("once", "b")]


async def test_what_broke_before_a_restart_still_breaks_who_awaits_it_later_with_its_own_reason(world):
    """Invariant 15."""
    async with world.host(dies=True) as host:
        s = await host.spawn(Holder, "s")
        await s.keep("bad")
        await settled(host)
    for _ in range(2):
        async with world.host(dies=True) as host:
            assert await (await host.get("s")).await_kept() == "the tool is broken"


@pytest.mark.parametrize("restart", [False, True])
async def test_one_that_waits_for_a_session_that_is_deleted_is_told(world, restart):
    """Invariant 15: no promise is pending with nobody to settle it."""
    shut(world)
    async with world.host(dies=restart) as host, trio.open_nursery() as nursery:
        s, other = await host.spawn(Holder, "s"), await host.spawn(Holder, "other")
        await accepted(host, nursery, s.wait_for, other, request="r")
        if not restart:
            await host.delete("other", force=True)
            with pytest.raises(Deleted):
                await s.wait_for(other, request="r")
    if restart:
        async with world.host() as host:
            s, other = await host.get("s"), await host.get("other")
            await host.delete("other", force=True)
            await settled(host)
            assert (await s.describe())["fibers"] == 0
    reopen(world)


async def test_a_call_that_never_has_its_outcome_holds_up_no_other(world):
    """Invariant 17: one breaks, unknown; one waits for ever; the next one goes."""
    shut(world)
    async with world.host(dies=True) as host, trio.open_nursery() as nursery:
        s = await host.spawn(Holder, "s")
        await accepted(host, nursery, s.uncaught, "lost", request="lost")
    async with world.host() as host, trio.open_nursery() as nursery:
        s = await host.get("s")
        with pytest.raises(OutcomeUnknown):
            await s.uncaught("lost", request="lost")
        await s.begin("slow", "slow")
        reopen(world)
        assert await s.again("next") == "again next"


async def test_who_gives_up_waiting_and_asks_again_begins_no_second_one(world):
    """Invariants 18 and 30."""
    shut(world)
    async with world.host() as host, trio.open_nursery() as nursery:
        s = await host.spawn(Holder, "s")
        for _ in range(3):
            await accepted(host, nursery, s.again, "x", request="r")
        assert (await s.describe())["fibers"] == 1
        reopen(world)
        assert await s.again("x", request="r") == "again x"
        assert await s.log == [["x", "again x"]]


async def test_several_in_one_session_each_go_on_once(world):
    """Invariant 14: none is asked for twice in the host that takes them up."""
    shut(world)
    async with world.host(dies=True) as host:
        s = await host.spawn(Holder, "s")
        for number in range(5):
            await s.begin(f"n{number}", number)
    world.tool.calls.clear()
    reopen(world)
    async with world.host() as host:
        await settled(host)
        assert sorted(world.tool.calls) == [("again", number) for number in range(5)]
        assert sorted(await (await host.get("s")).log) == [[number, f"again {number}"] for number in range(5)]


@pytest.mark.parametrize("restart", [False, True])
async def test_a_stop_ends_the_one_that_it_was_meant_for_and_comes_late_for_none_other(world, restart):
    """Invariant 19."""
    shut(world)
    async with world.host(dies=restart) as host:
        s = await host.spawn(Holder, "s")
        await s.begin("one", 1)
        await s.begin("two", 2)
        if not restart:
            await stops(world, host, s)
    if restart:
        async with world.host() as host:
            await stops(world, host, await host.get("s"))


async def stops(world: World, host: Any, s: Any) -> None:
    assert await s.stop("one") is True
    assert await s.stop("one") is False
    assert (await s.describe())["fibers"] == 1
    reopen(world)
    await settled(host)
    assert await s.stop("two") is False
    assert await s.log == [[2, "again 2"]]


async def test_a_credential_is_nowhere_though_a_fiber_had_it_answered(store_folder: Path, caplog):
    """Invariant 20: not in what its locals held, nor in what was recorded to bring them back."""
    said: list[str] = []
    vault = Vault({"shop": lambda: CANARY})
    options: dict[str, Any] = {"actors": [Holder], "devices": {"leaky": Echo()}, "vault": vault}
    async with open_host(store_folder, **options) as host:
        s = await host.spawn(Holder, "s")
        await s.begin_leaking(*FORMS)
        await settled(host)
        await s.snapshot()
    async with open_host(store_folder, **options) as host:
        s = await host.get("s")
        said.append(repr(await s.log))
        assert (await s.describe())["fibers"] == 1
    assert "‹credential shop›" in said[0]
    search(store_folder, [*said, caplog.text], CANARY)


async def test_a_part_that_is_run_again_wakes_no_observer(world):
    """Invariant 34: nor does a fork of what waits."""
    heard: list[Any] = []

    async def hear(event: Any) -> None:
        heard.append([*event.value.fields])

    shut(world)
    async with world.host(dies=True) as host:
        host.observe("(fibers.told . _)", hear, after="start")
        await (await host.spawn(Holder, "s")).begin_telling()
        await settled(host)
    assert heard == [["s", 0]]
    async with world.host(dies=True) as host:
        host.observe("(fibers.told . _)", hear, after="head")
        await settled(host)
        gate, world.tool.gate = world.tool.gate, trio.Event()
        gate.set()
        await settled(host)
        assert heard == [["s", 0], ["s", 1]]
        twin = await (await host.get("s")).fork(into="twin")
        assert (await twin.describe())["fibers"] == 0
    async with world.host() as host:
        host.observe("(fibers.told . _)", hear, after="head")
        reopen(world)
        await settled(host)
    assert heard == [["s", number] for number in range(4)]
