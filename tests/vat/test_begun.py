"""Whether an effect may have begun: what a crank is told of that, and that it is told the same again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked
from vatmaker import operations
from waits import Agent, Fiberworld, script, value_of

from keeve.api import open_host
from keeve.testing.hosts import memory_host
from vat.devices.devices import Effect, effect
from vat.heap.opcodes import Op
from vat.heap.refs import begun, cancel
from vat.host.settings import Settings
from vat.objects.actor import Actor, actor
from vat.objects.collections import List
from vat.objects.owing import owe


@pytest.fixture
def world() -> Fiberworld:
    world = Fiberworld()
    world.powers.begun = lambda uid, number: False
    return world


@script
async def looks(me: Agent) -> Any:
    promise = me.want()
    me.log.append(begun(promise))
    value = await promise
    me.log.append(begun(promise))
    return [value, *me.log]


def test_an_effect_that_surely_was_not_given_to_its_device_has_not_begun(world: Fiberworld) -> None:
    got = world.go("looks")
    world.give("came")
    assert value_of(got) == ["came", False, True]
    world.sound()


def test_what_a_fiber_was_told_it_is_told_again(world: Fiberworld) -> None:
    """Invariant 14."""
    world.go("looks")
    world.restart()
    world.powers.begun = lambda uid, number: True
    world.give("came")
    assert world.seen() == [False, True]
    assert Op.LOOKED in {operation[0] for record in world.agent.records for operation in operations(record)}


def test_one_of_which_a_record_says_that_it_has_started_has_begun(world: Fiberworld) -> None:
    @script
    async def starts(me: Agent) -> Any:
        me.value = me.want()
        return await me.value

    @script
    async def looks_at_value(me: Agent) -> Any:
        return begun(me.value)

    world.go("starts")
    assert value_of(world.go("looks_at_value")) is False
    (number, _), *_ = world.agent.heap.entries("effects")
    world.agent.keep(world.agent.vat.started(number))
    assert value_of(world.go("looks_at_value")) is True


def test_what_an_actor_owes_has_not_begun_and_what_others_send_may_have(world: Fiberworld) -> None:
    @script
    async def owes(me: Agent) -> Any:
        return [begun(owe(me)), begun(me.ref.plain())]

    assert value_of(world.go("owes")) == [False, True]


class Slow:
    """A device that is given one thing at a time."""

    def __init__(self) -> None:
        self.begun = trio.Event()

    @effect(concurrency=1)
    async def use(self, effect: Effect, what: str) -> None:
        self.begun.set()
        await trio.sleep_forever()


@actor("begun.user", version=1)
class User(Actor):
    uses: List[Any]

    def go(self) -> None:
        self.uses.extend([self.device("slow").use("first"), self.device("slow").use("second")])

    def give_up(self) -> list[bool]:
        said = [begun(promise) for promise in self.uses]
        for promise in self.uses:
            cancel(promise, ValueError("given up"))
        return said


async def test_a_host_knows_which_effect_waits_for_its_turn(tmp_path: Path) -> None:
    slow = Slow()
    async with open_host(tmp_path, actors=[User], devices={"slow": slow}) as host:
        user = await host.spawn(User)
        await user.go()
        await slow.begun.wait()
        assert await user.give_up() == [True, False]


class Given:
    """A device whose calls may be made again; and one whose calls may not."""

    def __init__(self) -> None:
        self.uses: list[str] = []

    @effect(on_crash="retry")
    async def use(self, effect: Effect, what: str) -> None:
        self.uses.append(what)
        await trio.sleep_forever()

    @effect
    async def once(self, effect: Effect, what: str) -> None:
        self.uses.append(what)
        await trio.sleep_forever()


@actor("begun.hasty", version=1)
class Hasty(Actor):
    uses: Any = None

    def go(self) -> None:
        device = self.device("given")
        self.uses = [device.use("first"), device.once("second")]

    def give_up(self) -> list[bool]:
        said = [begun(promise) for promise in self.uses]
        for promise in self.uses:
            cancel(promise, ValueError("given up"))
        return said

    def at_once(self) -> list[bool]:
        self.go()
        return self.give_up()


async def test_what_is_not_durable_yet_nobody_has_been_given(autojump_clock: MockClock) -> None:
    """The time stands still, so nothing is durable before both have had their turn."""
    given, said = Given(), []
    async with memory_host(actors=[Hasty], devices={"given": given}) as host, trio.open_nursery() as nursery:
        hasty = await host.spawn(Hasty)

        async def gives_up() -> None:
            said.append(await hasty.give_up())

        uid, turns = host.sessions()[0].uid, host._engine.turns
        turns.hold([uid])
        for ask in (hasty.go, gives_up):
            nursery.start_soon(ask)
            await wait_all_tasks_blocked()
        turns.release([uid])
        assert await hasty.at_once() == [False, False]
        await wait_all_tasks_blocked()
        assert said == [[False, False]]
        assert given.uses == []
        await hasty.go()
        await wait_all_tasks_blocked()
        assert await hasty.give_up() == [True, True]
        assert sorted(given.uses) == ["first", "second"]


async def test_of_what_an_earlier_host_may_have_done_no_host_says_that_it_has_not_begun(tmp_path: Path) -> None:
    async with open_host(tmp_path, actors=[Hasty], devices={"given": Given()}, settings=Settings(grace=0.0)) as host:
        await (await host.spawn(Hasty, "s1")).go()
    async with open_host(tmp_path, actors=[Hasty]) as host:  # it has no such device, and leaves what wants it
        assert await (await host.get("s1")).give_up() == [True, True]
