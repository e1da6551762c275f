"""How much is done, at the most, before other tasks have a turn."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio


class Steps(trio.abc.Instrument):
    """Counts `step`s; `longest` is the most of them that a task did in one go."""

    def __init__(self) -> None:
        self.longest = 0
        self._since = 0

    def step(self) -> None:
        self._since += 1

    def after_task_step(self, task: trio.lowlevel.Task) -> None:
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
    """What is done in the block is counted. Between two goes of a task each of the others has one."""
    steps = Steps()
    trio.lowlevel.add_instrument(steps)
    try:
        yield steps
        await trio.lowlevel.checkpoint()  # what is done is over, and counted
    finally:
        trio.lowlevel.remove_instrument(steps)
