"""Stores for the tests of the command line, with actors that the command line does not know."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import trio

from actors.approvals import Approvals
from actors.session import Session
from actors.tools import Tools, tool
from keeve import Settings, open_host
from vat.devices.devices import Effect, effect
from vat.objects.actor import Actor, Device, actor
from vat.objects.collections import List, Map, Set
from vat.objects.owing import owe
from vat.objects.waiting import within

SOON = Settings(grace=0.01)
"""Of a host that gives what runs hardly any time to end."""


class SlowModel:
    """A model that is asked and does not answer."""

    def __init__(self) -> None:
        self.asked = trio.Event()

    @effect(on_crash="retry")
    async def complete(self, effect: Effect, messages: Any, **options: Any) -> Any:
        self.asked.set()
        await trio.sleep_forever()


@actor("test.caller", version=1)
class Caller(Actor):
    """Calls a device, and waits."""

    tool: Device = "tool"  # type: ignore[assignment]  # a field of that kind is given a name
    got: Any = None

    def call(self, what: str) -> Any:
        return self.tool.call(what).then(self.keep)

    def keep(self, what: Any) -> Any:
        self.got = what
        return what


class Stuck:
    """A device that never answers."""

    def __init__(self) -> None:
        self.called = trio.Event()

    @effect()
    async def call(self, effect: Effect, what: str) -> None:
        self.called.set()
        self.called = trio.Event()
        await trio.sleep_forever()


async def leave_waiting(store: Path, ids: Sequence[str] = ("c1",)) -> None:
    """Sessions whose calls have started, and a host that ends before they have an outcome."""
    stuck = Stuck()
    how: Any = {"actors": [Caller], "devices": {"tool": stuck}, "settings": SOON}
    async with open_host(store, **how) as host, trio.open_nursery() as nursery:
        for id in ids:
            called = stuck.called
            ref = await host.spawn(Caller, id)
            nursery.start_soon(ref.call, "a stone")
            await called.wait()
        nursery.cancel_scope.cancel()


class Asking:
    """A model that calls a tool once, and says what that said."""

    @effect(on_crash="retry")
    async def complete(self, effect: Effect, messages: Sequence[Any], **options: Any) -> dict[str, Any]:
        last = messages[-1]
        if last["role"] == "tool":
            return {"message": {"role": "assistant", "content": f"it said: {last['content']}"}, "usage": None}
        call = {"id": "call_1", "type": "function", "function": {"name": "send", "arguments": "{}"}}
        return {"message": {"role": "assistant", "content": None, "tool_calls": [call]}, "usage": None}


class StuckTools:
    """Tools that never answer."""

    def __init__(self) -> None:
        self.called = trio.Event()

    @effect()
    async def run(self, effect: Effect, call: Any) -> None:
        self.called.set()
        await trio.sleep_forever()


async def leave_a_turn_waiting(store: Path, id: str = "s1") -> None:
    """A session whose turn waits for a tool that has started, and a host that ends before it has an outcome."""
    tools = StuckTools()
    devices = {"model": Asking(), "tools": tools}
    async with open_host(store, devices=devices, settings=SOON) as host, trio.open_nursery() as nursery:
        session = await host.spawn(Session, id, tools=[{"type": "function", "function": {"name": "send"}}])
        nursery.start_soon(session.turn, "send it")
        await tools.called.wait()
        nursery.cancel_scope.cancel()


@tool(approval=True)
def send() -> str:
    """Send it."""
    return "sent"


def asking_devices() -> dict[str, Any]:
    """A model that has a tool called of which a person has to approve."""
    return {"model": Asking(), "tools": Tools(send)}


async def leave_asking(store: Path, id: str = "s1") -> None:
    """A session whose turn waits for a person's word on a call (`call_1`), and a host that ends then."""
    devices, settings = asking_devices(), Settings(takes_up="asked")
    async with open_host(store, devices=devices, settings=settings) as host, trio.open_nursery() as nursery:
        session = await host.spawn(Session, id, tools=devices["tools"])
        nursery.start_soon(session.turn, "send it")
        async for _ in host.observe(f'(approval-wanted _ "{id}" . _)'):
            nursery.cancel_scope.cancel()


@actor("test.waiter", version=1)
class Waiter(Actor):
    """Waits for whatever there is to wait for."""

    approvals: Approvals
    peer: Any = None

    async def for_a_person(self, what: str) -> Any:
        call = {"id": "c1", "type": "function", "function": {"name": "pay", "arguments": what}}
        return await self.approvals.ask(call)

    async def for_tomorrow(self) -> None:
        await self.sleep(86_400)

    async def for_itself(self) -> None:
        await self.ref.for_tomorrow()

    async def for_one_of_two(self) -> Any:
        return await within(3_600, self.device("tool").call("a stone"))

    async def for_another(self, peer: Any) -> Any:
        return await peer.for_a_person("for somebody else")

    async def for_what_is_owed(self) -> Any:
        return await owe(self)


@actor("test.asker", version=1)
class Asker(Waiter):
    """Asks a person about whatever it is told."""

    async def turn(self, text: str) -> Any:
        return await self.for_a_person(text)


async def leave_fibers(store: Path, **calls: tuple[Any, ...]) -> None:
    """Sessions by id whose methods wait (the method and its arguments), and a host that ends then.

    An argument that is the id of an earlier session is the ref to it.
    """
    devices = {"tool": Stuck()}
    async with (
        open_host(store, actors=[Waiter], devices=devices, settings=SOON) as host,
        trio.open_nursery() as nursery,
    ):
        refs: dict[str, Any] = {}
        for id, (method, *arguments) in calls.items():
            refs[id] = await host.spawn(Waiter, id)
            nursery.start_soon(getattr(refs[id], method), *[refs.get(each, each) for each in arguments])
            waits = False
            while not waits:
                waits = (await refs[id].describe())["fibers"] > 0
        nursery.cancel_scope.cancel()


@actor("test.keeper", version=1)
class Keeper(Actor):
    """Keeps promises, and has no method that waits."""

    kept: Any = None

    def ask(self, peer: Any) -> None:
        self.kept = peer.for_a_person("40")

    def want(self) -> None:
        self.kept = owe(self)


async def leave_promises(store: Path) -> None:
    """`asks` has a promise of `w1`, which waits for a person, and `owes` one of its own."""
    async with open_host(store, actors=[Waiter, Keeper]) as host:
        w1 = await host.spawn(Waiter, "w1")
        await (await host.spawn(Keeper, "asks")).ask(w1)
        await (await host.spawn(Keeper, "owes")).want()
        while not (await w1.describe())["fibers"]:
            pass


@actor("test.guest", version=1)
class Guest(Actor):
    """Is here, and then is not."""

    def come_and_go(self) -> None:
        self.retract(self.assert_fact("test.here", "guest"))


def presence(store: Path) -> None:
    """A store in which a fact was asserted and retracted."""

    async def main() -> None:
        async with open_host(store, actors=[Guest]) as host:
            await (await host.spawn(Guest, "g1")).come_and_go()

    trio.run(main)


@actor("test.ledger", version=1)
class Ledger(Actor):
    """Has a field of each kind."""

    count: int = 0
    names: List[str]
    by_number: Map[int, str]
    by_name: Map[str, int]
    tags: Set[str]
    inside: Any = None
    _own: str = "of the type"

    def add(self, name: str) -> None:
        self.count += 1
        self.names.append(name)
        self.by_number[self.count] = name
        self.by_name[name] = self.count
        self.tags.add(name)
        self.inside = {"name": name}
        self.assert_fact("test.added", name)


async def leave_a_ledger(store: Path, *names: str) -> None:
    """A session `l1` of a type that the command line does not know, to which these were added."""
    async with open_host(store, actors=[Ledger]) as host:
        ledger = await host.spawn(Ledger, "l1")
        for name in names:
            await ledger.add(name)
