"""The watchdog: what holds a host is named, with its stack, while it does; and that the host goes on is told too."""

from __future__ import annotations

import logging
import sys
import threading
import time
from typing import Any

import pytest
import trio

from tests.vat.hosts import Worker, World, settled, store_of
from vat.devices.devices import Effect, effect
from vat.host.watchdog import LOOKS, Watched, name_of, watching
from vat.objects.actor import Actor, actor

seen = threading.Event()


def until_seen() -> bool:
    """Hold the thread until somebody has noticed."""
    until = time.monotonic() + 20
    while not seen.is_set() and time.monotonic() < until:
        pass
    return seen.is_set()


@actor("test.dawdler", version=1)
class Dawdler(Actor):
    """Computes until somebody has noticed."""

    def dawdle(self) -> bool:
        return until_seen()


class Notice(logging.Handler):
    """Sets `seen` at the first report, and keeps what is said."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.gone_on = threading.Event()

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if "for more than" in text:
            self.texts.append(text)
            seen.set()
        if "it goes on" in text:
            self.gone_on.set()


@pytest.fixture
def notice() -> Any:
    handler = Notice()
    seen.clear()
    logging.getLogger("keeve").addHandler(handler)
    yield handler
    logging.getLogger("keeve").removeHandler(handler)


async def test_a_crank_that_runs_long_is_reported_with_its_session_and_its_stack(world: World, notice: Notice) -> None:
    world.actors = (Dawdler,)
    async with world.host(slow=0.05) as host:
        assert await (await host.spawn(Dawdler, "s1")).dawdle()
        assert await trio.to_thread.run_sync(notice.gone_on.wait, 20)
    first = notice.texts[0]
    assert first.startswith("session 's1' (test.dawdler.dawdle, actor ")
    assert "in dawdle" in first
    assert "while not seen.is_set()" in first


async def test_a_device_that_holds_the_thread_is_reported_by_name(world: World, notice: Notice) -> None:
    class Blocking:
        @effect
        async def once(self, effect: Effect, value: Any) -> bool:
            await trio.lowlevel.checkpoint()
            return until_seen()

    async with world.host(slow=0.05, devices={"tool": Blocking()}) as host:
        s = await host.spawn(Worker, "s1")
        assert await s.work("once", 1) is True
        assert await trio.to_thread.run_sync(notice.gone_on.wait, 20)
    assert notice.texts[0].startswith("device tool.once (effect ")
    assert "of session 's1') has run for more than 0.05 s" in notice.texts[0]
    assert "return until_seen()" in notice.texts[0]


async def test_a_handler_of_an_observer_that_holds_the_thread_is_reported(world: World, notice: Notice) -> None:
    async with world.host(slow=0.05) as host:
        host.observe("(spawn . _)", lambda event: until_seen(), after="start")
        await host.spawn(Worker, "s1")
        await settled(host)
        assert await trio.to_thread.run_sync(seen.wait, 20)
    assert notice.texts[0].startswith("the handler of <Observer of (spawn . _)> has run")


async def test_a_disk_that_is_slow_in_line_is_reported(world: World, notice: Notice) -> None:
    async with world.host(slow=0.05) as host:
        s = await host.spawn(Worker, "s1")
        append = store_of(host).append

        def slow(batch: Any) -> None:
            until_seen()
            append(batch)

        store_of(host).append = slow
        assert await s.keep(1) == 1
    assert notice.texts[0].startswith("the store (a record that is committed in line) has run for more than")


async def test_a_disk_that_is_slow_beside_the_loop_is_reported_and_that_it_goes_on(
    world: World, notice: Notice, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vat.host.commits.LONE", 0)
    async with world.host(slow=0.05) as host:
        s = await host.spawn(Worker, "s1")
        append = store_of(host).append

        def slow(batch: Any) -> None:
            assert seen.wait(20)
            append(batch)

        store_of(host).append = slow
        assert await s.keep(1) == 1
        assert await trio.to_thread.run_sync(notice.gone_on.wait, 20)
    assert notice.texts[0].startswith("the store has written nothing for more than 0.05 s")


async def test_what_holds_the_loop_besides_is_named_by_its_task(notice: Notice) -> None:
    async def somebody() -> None:
        await trio.lowlevel.checkpoint()
        until_seen()

    with watching(0.05, lambda: None, {}):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(somebody)
    assert "a task (" in notice.texts[0]
    assert "somebody) has run" in notice.texts[0]


async def test_an_event_loop_that_waits_or_turns_is_not_reported(notice: Notice) -> None:
    with watching(0.005, lambda: None, {}):
        await trio.sleep(0.1)
        until = time.monotonic() + 0.1
        while time.monotonic() < until:
            await trio.lowlevel.checkpoint()
    assert [text for text in notice.texts if "a task" in text] == []


async def test_the_names_of_a_frame_are_those_of_its_innermost_function() -> None:
    def named(inner: bool) -> str:
        return named(False) if inner else name_of(sys._getframe(), {named.__code__: lambda found: repr(found["inner"])})

    assert named(True) == "False"
    assert name_of(None, {}) == "the event loop"


def looked(sights: list[int | None]) -> list[str]:
    """What is told of something that is seen like this, one look after another."""
    told: list[str] = []

    class Hear(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            told.append(record.getMessage())

    def tell(seconds: float) -> str:
        told.append(f"{seconds:g}")
        return "x"

    watched = Watched(lambda: sights.pop(0), tell)
    handler = Hear()
    logging.getLogger("keeve").addHandler(handler)
    try:
        while sights:
            watched.look(1)
    finally:
        logging.getLogger("keeve").removeHandler(handler)
    return told


def test_what_is_another_thing_at_each_look_is_not_reported() -> None:
    assert looked(list(range(50))) == []


def test_what_rests_is_not_reported() -> None:
    assert looked([None] * 50) == []


def test_what_has_stayed_for_a_look_less_than_is_reported_is_not_told_either_way() -> None:
    assert looked([1] * LOOKS + [2, 3]) == []
    assert looked([1] * (LOOKS + 1) + [2]) == ["4", "x: it goes on, after more than 4 s"]


def test_what_stays_is_reported_ever_more_rarely_and_once_when_it_goes_on() -> None:
    assert looked([1] * 20 + [2, 3]) == ["4", "8", "16", "x: it goes on, after more than 19 s"]


def test_what_cannot_go_on_is_not_said_to_be_slow() -> None:
    watched = Watched(lambda: 1, lambda seconds: pytest.fail("told"))
    for _ in range(5):
        watched.look(1)
        watched.forget()
