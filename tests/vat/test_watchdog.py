"""The watchdog: what runs long is named, with its stack, while it runs."""

from __future__ import annotations

import logging
import threading
import time
from typing import Any

import pytest

from tests.vat.hosts import World
from vat.host.watchdog import watching
from vat.objects.actor import Actor, actor

seen = threading.Event()


@actor("test.dawdler", version=1)
class Dawdler(Actor):
    """Computes until somebody has noticed."""

    def dawdle(self) -> bool:
        until = time.monotonic() + 20
        while not seen.is_set() and time.monotonic() < until:
            pass
        return seen.is_set()


class Notice(logging.Handler):
    """Sets `seen` at the first report."""

    def __init__(self) -> None:
        super().__init__()
        self.text = ""

    def emit(self, record: logging.LogRecord) -> None:
        if "has run for more than" in record.getMessage():
            self.text = record.getMessage()
            seen.set()


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
    assert "session 's1'" in notice.text
    assert "test.dawdler" in notice.text
    assert "in dawdle" in notice.text
    assert "while not seen.is_set()" in notice.text


def looked(running: list[tuple[int, str] | None], looks: int) -> int:
    """How often something is reported, when the watchdog looks at `running` this often (the last one stays)."""
    done = threading.Event()
    reports = 0

    class Count(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            nonlocal reports
            reports += 1

    def look() -> tuple[int, str] | None:
        nonlocal looks
        looks -= 1
        if looks <= 0:
            done.set()
        return running.pop(0) if len(running) > 1 else running[0]

    handler = Count()
    logging.getLogger("keeve").addHandler(handler)
    try:
        with watching(look, 0.001):
            assert done.wait(20)
    finally:
        logging.getLogger("keeve").removeHandler(handler)
    return reports


def test_what_is_another_thing_at_each_look_is_not_reported() -> None:
    assert looked([(n, "x") for n in range(50)], 40) == 0


def test_what_rests_is_not_reported() -> None:
    assert looked([None], 40) == 0


def test_what_runs_on_is_reported_ever_more_rarely() -> None:
    assert 1 < looked([(1, "x")], 60) < 10
