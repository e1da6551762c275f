"""How much is done, at the most, before other tasks have a turn."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio


class Steps:
    """Counts `step`s; `longest` is the most of them between two turns of another task."""

    def __init__(self) -> None:
        self.longest = 0
        self._since = 0

    def step(self) -> None:
        self._since += 1

    def turn(self) -> None:
        """Another task has a turn."""
        self.longest, self._since = max(self.longest, self._since), 0

    def count(self, monkeypatch: pytest.MonkeyPatch, of: Any, name: str) -> None:
        """Each call of that method is a step."""
        method = getattr(of, name)

        def counted(*args: Any) -> Any:
            self.step()
            return method(*args)

        monkeypatch.setattr(of, name, counted)


@asynccontextmanager
async def beside_others() -> AsyncIterator[Steps]:
    """The block runs beside a task that takes every turn that it is left."""
    steps, over = Steps(), False

    async def others() -> None:
        while not over:
            steps.turn()
            await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(others)
        yield steps
        over = True
