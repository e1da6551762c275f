"""What is said of an approved call that was given up, whatever number its turn has, and whoever asked for it."""

from __future__ import annotations

from typing import Any

import attrs
import pytest
import trio

from actors.approvals import Approvals, Approver
from actors.chat import marked_call
from actors.session import Session
from actors.tools import Tools, tool
from dataspace.log.memory import MemoryLog
from keeve.testing import FakeClock, memory_host
from tests.actors.scenes import Says, calls, says
from vat.devices.devices import effect
from vat.host.host import Host
from vat.host.settings import Settings
from vat.objects.actor import Actor, actor
from vat.objects.types import type_of
from vat.objects.waiting import TimeLimit, within

SECONDS = 10


@actor("numbering.own", version=1)
class Own(Actor):
    """Gives its turns numbers of its own."""

    approvals: Approvals

    async def go(self, turn: int, told: bool = False) -> str:
        call = calls(f"c{turn}", "pay")
        try:
            await within(SECONDS, self.approvals.run("tools", call, turn, told=told))
        except TimeLimit:
            return "given up"
        return "paid"


class Till:
    """Tools with one that begins and never ends."""

    def __init__(self) -> None:
        self.began = trio.Event()

    @property
    def tools(self) -> Tools:
        @tool(approval=True)
        async def pay() -> str:
            """Pay."""
            self.began.set()
            await trio.sleep_forever()
            return ""

        return Tools(pay)


def unknown(host: Host) -> list[tuple[Any, ...]]:
    return [tuple(event.value.fields) for event in host.query("(tool-unknown . _)")]


async def given_up(host: Host, clock: FakeClock, till: Till, ref: Any, call: str) -> None:
    """A call that waits is approved of, begins, and has no more time."""
    await (await ref.approvals).approve(call)
    await till.began.wait()
    clock.move(SECONDS + 1)


@pytest.mark.parametrize(("turn", "told"), [(0, False), (3, False), (0, True), (3, True)])
async def test_a_call_that_began_and_was_given_up_leaves_a_fact_of_whatever_turn_it_is(turn: int, told: bool) -> None:
    till, clock = Till(), FakeClock()
    async with (
        memory_host(actors=[Own], devices={"tools": till.tools}, clock=clock) as host,
        trio.open_nursery() as nursery,
    ):
        own = await host.spawn(Own, "s1")
        over: list[str] = []

        async def go() -> None:
            over.append(await own.go(turn, told))
            nursery.cancel_scope.cancel()

        nursery.start_soon(go)
        async for _ in host.observe("(approval-wanted . _)"):
            break
        await given_up(host, clock, till, own, f"c{turn}")
        await trio.sleep_forever()
    assert over == ["given up"]
    assert unknown(host) == ([] if told else [(turn, "s1", f"c{turn}")])


class Slow:
    """Tools that never say whether a call needs approval."""

    def __init__(self) -> None:
        self.began = trio.Event()

    @effect(on_crash="retry")
    async def run(self, effect: Any, call: Any, approved: bool = False) -> str:
        self.began.set()
        await trio.sleep_forever()
        return ""


class Before:
    """As it was when a call did not say who tells of it."""

    def _run(self: Any, device: str, call: Any, turn: int, told: bool = False) -> Any:
        call = marked_call(call)
        return self.device(device).run(call).then(self._came, device, call, turn, broken=self._stopped)

    def _stopped(self: Any, error: Exception, device: str, call: Any, turn: int, told: bool = False) -> Any:
        said = self._ask(call, turn)
        return said.then(self._approved, device, marked_call(call), turn, self._wanted[self._asked]["id"])


@pytest.mark.parametrize("before", [False, True], ids=["now", "from an earlier version"])
async def test_a_session_states_its_own_once(before: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    log, clock, till = MemoryLog(), FakeClock(), Till()
    how: dict[str, Any] = {"clock": clock, "settings": Settings(takes_up="all")}
    script = Says(says("well", calls("c1", "pay")), *[says("done")] * 5)
    with monkeypatch.context() as earlier:
        if before:
            inner: Any = type_of(Approver).inner
            earlier.setitem(inner, "_stopped", attrs.evolve(inner["_stopped"], function=Before._stopped))
        async with memory_host(log, devices={"model": script, "tools": till.tools}, **how) as host:
            s = await host.spawn(Session, "s1", tools=till.tools, max_seconds=SECONDS)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(s.turn, "pay")
                async for _ in host.observe("(approval-wanted . _)"):
                    break
                nursery.cancel_scope.cancel()
    async with memory_host(log, devices={"model": script, "tools": till.tools}, **how) as host:
        await given_up(host, clock, till, await host.get("s1"), "c1")
        async for _ in host.observe("(turn-done . _)", after="start"):
            break
        assert unknown(host) == [(1, "s1", "c1")]


@actor("numbering.derived", version=1)
class Derived(Session):
    """A conversation under a name of its own."""


@pytest.mark.parametrize("kind", [Session, Derived])
@pytest.mark.parametrize("before", [False, True], ids=["now", "from an earlier version"])
async def test_a_session_states_a_call_once_of_which_it_was_not_known_whether_a_person_is_asked(
    kind: type[Session], before: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, clock, till, slow = MemoryLog(), FakeClock(), Till(), Slow()
    how: dict[str, Any] = {"actors": [Session, Derived], "clock": clock}
    script = Says(says("well", calls("c1", "pay")), *[says("done")] * 5)
    with monkeypatch.context() as earlier:
        if before:
            inner: Any = type_of(Approver).inner
            earlier.setitem(inner, "_run", attrs.evolve(inner["_run"], function=Before._run))
        settings = Settings(takes_up="all", grace=0.0)
        async with memory_host(log, devices={"model": script, "tools": slow}, settings=settings, **how) as host:
            s = await host.spawn(kind, "s1", tools=till.tools, max_seconds=SECONDS)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(s.turn, "pay")
                await slow.began.wait()
                nursery.cancel_scope.cancel()
    settings = Settings(takes_up="all")
    async with memory_host(log, devices={"model": script, "tools": till.tools}, settings=settings, **how) as host:
        async for _ in host.observe("(approval-wanted . _)", after="start"):
            break
        await given_up(host, clock, till, await host.get("s1"), "c1")
        async for _ in host.observe("(turn-done . _)", after="start"):
            break
        assert unknown(host) == [(1, "s1", "c1")]
