"""Whatever users' code raises, in actors, devices and listeners, fails what it was doing, and nothing else."""

from __future__ import annotations

import asyncio
import logging
import signal
import threading
from functools import partial
from typing import Any

import pytest
import trio
import trio.testing

from dataspace.interrupts import is_interrupt
from dataspace.log.memory import MemoryLog
from keeve.testing.hosts import memory_host
from tests.effect_host import error_of
from tests.vat.hosts import Counter, Watcher
from vat.crank.upgrading import UpgradeFailed
from vat.crank.vat import Vat
from vat.devices.devices import effect
from vat.devices.outcomes import DeviceFailed
from vat.errors import Failed
from vat.heap.refs import near
from vat.host import subscriptions
from vat.host.settings import Settings
from vat.objects.actor import Actor, actor


class Odd(BaseException):
    """No `Exception`, like `SystemExit` and what asyncio cancels with."""


class Unshowable(Exception):
    def __str__(self) -> str:
        raise Odd


class UnshowableKey(KeyError):
    args = property(lambda self: [][0])  # type: ignore[assignment]  # that is what is wrong with it


class UnshowableGroup(ExceptionGroup[Exception]):
    def __str__(self) -> str:
        raise Odd


class Trap(dict[str, Any]):
    def items(self) -> Any:
        raise Odd


def group(depth: int) -> BaseException:
    error: BaseException = BaseExceptionGroup("many", [Odd(), ValueError("deep")])
    for _ in range(depth):
        error = BaseExceptionGroup("many", [error, ValueError("beside")])
    return error


ERRORS = {
    "exit": lambda: SystemExit(3),
    "interrupt": lambda: KeyboardInterrupt("of its own"),
    "odd": Odd,
    "generator exit": GeneratorExit,
    "asyncio": asyncio.CancelledError,
    "no message": Unshowable,
    "no arguments": UnshowableKey,
    "iteration": lambda: StopIteration(1),
    "group": lambda: UnshowableGroup("many", [ValueError(1), ValueError(2)]),
    "deep group": lambda: group(3000),
}


@actor("hostile.raiser", version=1)
class Raiser(Actor):
    count: int = 0

    def fail(self, kind: str) -> None:
        self.count += 1
        raise ERRORS[kind]()

    def catch(self, kind: str) -> int:
        try:
            near(self.ref).fail(kind)
        except BaseException:  # noqa: BLE001  # that is what the actor is for
            return self.count
        raise AssertionError

    def trap(self) -> Any:
        return Trap(a=1)

    def send(self, to: Any, kind: str) -> Any:
        return to.fail(kind).then(None, broken=self.named)

    def named(self, error: Exception) -> str:
        return str(error)

    def ask(self, what: str) -> Any:
        return self.device("d").go(what)


class Listened:
    @effect
    async def go(self, effect: Any, what: str) -> Any:
        if what in ERRORS:
            raise ERRORS[what]()
        effect.progress(what)
        return what


DEVICES = {"d": Listened()}


@pytest.mark.parametrize("kind", ERRORS)
async def test_whatever_an_actor_raises_fails_its_delivery_alone(kind: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "keeve")  # it is told, and may not let itself be shown
    async with memory_host(actors=[Raiser]) as host:
        s = await host.spawn(Raiser, "s")
        with pytest.raises(Failed) as caught:
            await s.fail(kind)
        assert caught.value.kind == type(ERRORS[kind]()).__name__
        assert await s.count == 0


@pytest.mark.parametrize("kind", ERRORS)
async def test_a_near_call_that_raises_anything_is_undone(kind: str) -> None:
    async with memory_host(actors=[Raiser]) as host:
        assert await (await host.spawn(Raiser, "s")).catch(kind) == 0


async def test_a_result_that_exits_when_it_is_read_fails_its_delivery_alone() -> None:
    async with memory_host(actors=[Raiser]) as host:
        s = await host.spawn(Raiser, "s")
        with pytest.raises(Failed):
            await s.trap()
        assert await s.count == 0


async def test_a_message_that_makes_its_receiver_exit_is_answered_and_not_brought_again() -> None:
    """Invariant 23: else the same message would end every host that opens the store."""
    log = MemoryLog()
    async with memory_host(log, actors=[Raiser]) as host:
        s, t = await host.spawn(Raiser, "s"), await host.spawn(Raiser, "t")
        assert await s.send(t, "exit") == "SystemExit: 3"
    async with memory_host(log, actors=[Raiser]) as host:
        assert await (await host.get("t")).count == 0


@pytest.mark.parametrize("kind", ERRORS)
async def test_whatever_a_device_raises_is_the_outcome_of_its_effect(kind: str) -> None:
    async with memory_host(actors=[Raiser], devices=DEVICES) as host:
        s = await host.spawn(Raiser, "s")
        with pytest.raises((DeviceFailed, Failed, RuntimeError)):
            await s.ask(kind)
        assert await s.ask("well") == "well"


async def test_a_cancellation_that_is_none_of_the_effects_is_its_outcome() -> None:
    async def stale(effect: Any) -> None:
        kept: list[BaseException] = []
        with trio.CancelScope() as scope:
            scope.cancel()
            try:
                await trio.lowlevel.checkpoint()
            except trio.Cancelled as error:
                kept.append(error)
        raise kept[0]

    error = await error_of(stale)
    assert isinstance(error, DeviceFailed)
    assert error.kind == "Cancelled"


async def test_a_listener_that_raises_changes_nothing_for_the_effect() -> None:
    heard = []

    def failing(piece: Any) -> None:
        heard.append(piece.value)
        raise Odd

    async with memory_host(actors=[Raiser], devices=DEVICES) as host:
        s = await host.spawn(Raiser, "s")
        host.on_progress(failing)
        host.on_progress(lambda piece: heard.append(piece.value))
        assert await s.ask("well") == "well"
        assert heard == ["well"] * 2


async def test_a_cycle_that_a_device_gives_is_named_as_what_it_is() -> None:
    async def cycle(effect: Any) -> Any:
        items: list[Any] = []
        items.append(items)
        return items

    assert str(await error_of(cycle)) == "d.again(): list that contains itself"


@pytest.mark.parametrize("error", [Odd, Unshowable])
async def test_an_upgrade_that_raises_anything_leaves_its_session_alone_as_it_was(error: type[BaseException]) -> None:
    log = MemoryLog()
    async with memory_host(log, actors=[Raiser]) as host:
        await host.spawn(Raiser, "s")

    @actor("hostile.raiser", version=2)
    class Newer(Actor):
        count: int = 0

        @classmethod
        def upgrade(cls, state: Any, from_version: int) -> None:
            raise error

    async with memory_host(log, actors=[Newer]) as host:
        with pytest.raises(UpgradeFailed):
            await (await host.get("s")).count
        assert await (await host.spawn(Newer, "other")).count == 0


def test_an_interrupt_is_found_in_groups_of_any_depth() -> None:
    assert is_interrupt(KeyboardInterrupt())
    assert not is_interrupt(group(3000))
    deep = BaseExceptionGroup("a", [KeyboardInterrupt(), ValueError()])
    for _ in range(3000):
        deep = BaseExceptionGroup("a", [ValueError(), deep])
    assert is_interrupt(deep)


async def test_a_snapshot_for_which_there_is_no_memory_costs_no_session_its_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Invariant 23: what fails in one session ends no other."""

    def without_memory(vat: Any) -> Any:
        raise MemoryError

    monkeypatch.setattr(Vat, "snapshot", without_memory)
    async with memory_host(actors=[Counter], settings=Settings(first_snapshot=2)) as host:
        s, t = await host.spawn(Counter, "s"), await host.spawn(Counter, "t")
        for number in range(1, 6):
            assert await s.add() == await t.add() == number
        assert await (await host.restore_latest("s")).count == 5


async def test_a_subscription_that_cannot_go_on_stops_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def without_memory(event: Any) -> Any:
        raise MemoryError

    monkeypatch.setattr(subscriptions, "event_value", without_memory)
    async with memory_host(actors=[Counter, Watcher]) as host:
        s, w = await host.spawn(Counter, "s"), await host.spawn(Watcher, "w")
        await w.watch("(test.said . _)")
        await s.state("something")
        await trio.testing.wait_all_tasks_blocked()
        assert await s.add() == 1
        assert await w.heard == []


def raised(by: Any) -> BaseException:
    try:
        by()
    except KeyboardInterrupt as error:
        return error
    raise AssertionError


@pytest.mark.parametrize(
    ("handler", "own"),
    [
        (signal.default_int_handler, True),
        (signal.SIG_IGN, False),
        (lambda *_: interrupts(), False),
        (partial(lambda *_: interrupts()), True),
    ],
)
def test_an_interrupt_counts_where_what_handles_the_signal_may_have_raised_it(handler: Any, own: bool) -> None:
    before = signal.signal(signal.SIGINT, handler)
    try:
        assert is_interrupt(raised(interrupts)) is own
        if callable(handler):
            assert is_interrupt(raised(lambda: signal.raise_signal(signal.SIGINT)))
    finally:
        signal.signal(signal.SIGINT, before)


def test_no_interrupt_comes_in_another_thread() -> None:
    found: list[bool] = []
    thread = threading.Thread(target=lambda: found.append(is_interrupt(raised(interrupts))))
    thread.start()
    thread.join()
    assert found == [False]


def interrupts() -> None:
    raise KeyboardInterrupt
