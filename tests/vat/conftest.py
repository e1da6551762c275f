"""Worlds for tests of hosts: in memory, and on both kinds of store; and a clock for them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from tests.vat.hosts import World


@pytest.fixture
def world() -> World:
    """A world in memory."""
    return World()


@pytest.fixture(params=["memory", "segments"])
def either(request: pytest.FixtureRequest, tmp_path: Path) -> World:
    """A world on each kind of store."""
    return World() if request.param == "memory" else World(tmp_path / "store")


@pytest.fixture
def patient_clock(monkeypatch: pytest.MonkeyPatch) -> trio.testing.MockClock:
    """Time that jumps to the next deadline when nothing can happen before it. It would not wait for what a thread does:
    that is done in line."""

    async def run_sync(act: Callable[..., Any], *arguments: Any, **_: Any) -> Any:
        await trio.lowlevel.checkpoint()
        return act(*arguments)

    monkeypatch.setattr(trio.to_thread, "run_sync", run_sync)
    return trio.testing.MockClock(autojump_threshold=0)
