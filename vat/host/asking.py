"""Asking: a task that waits for what a vat answers.

The one rule: cancelling who waits abandons the wait, never what was asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import outcome as outcomes
import trio

from dataspace.errors import KeeveError
from dataspace.remedies import Remedy
from vat.heap.messages import Outcome

OPEN_AGAIN: Final = Remedy(
    "open-again",
    "the host is closed: open it again with open_host(...); with the same request id a retry is safe",
)


class NotRunning(KeeveError, quotes=False):
    """The host is closed, or is closing. What was asked for and not answered may have been done."""

    usage = True

    def __init__(self) -> None:
        super().__init__(OPEN_AGAIN())


class Waiter:
    """The task that runs now, waiting for one answer. The first one counts; after that it hears nothing more."""

    __slots__ = ("_task",)

    def __init__(self) -> None:
        self._task: trio.lowlevel.Task | None = trio.lowlevel.current_task()

    def reply(self, outcome: Outcome) -> None:
        """The answer."""
        task, self._task = self._task, None
        if task is not None:
            trio.lowlevel.reschedule(task, outcomes.Value(outcome))

    def failed(self, error: BaseException) -> None:
        """There is no answer: the error is raised to who waits."""
        task, self._task = self._task, None
        if task is not None:
            trio.lowlevel.reschedule(task, outcomes.Error(error))

    async def wait(self, abandoned: Callable[[], None] | None = None) -> Outcome:
        """Wait for the answer. It must not come before this is called; if it never comes, `abandoned` is called."""
        try:
            answer: Outcome = await trio.lowlevel.wait_task_rescheduled(self._abandon)
        except BaseException:
            if abandoned is not None:
                abandoned()
            raise
        return answer

    def _abandon(self, _: Any) -> trio.lowlevel.Abort:
        self._task = None
        return trio.lowlevel.Abort.SUCCEEDED
