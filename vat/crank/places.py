"""Places: where in the users' code each operation comes from, of a part that is run again.

They are kept as code and line, and put into words for the one at which a part departs from its record.

The one rule: only a part that has departed from its record once is run so, since it costs a few frames of looking for
each operation.
"""

from __future__ import annotations

import sys
from collections.abc import Coroutine, Iterable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from vat.failures import is_ours


class Traced(list[Any]):
    """The operations of a part that runs, each that is added with its place. `until` is the code that runs it."""

    def __init__(self, operations: Iterable[Any], until: CodeType) -> None:
        super().__init__(operations)
        self._until = until
        self._places: dict[int, tuple[CodeType, int] | None] = {}

    def append(self, operation: Any) -> None:
        """Add an operation."""
        self._places[len(self)] = _users_own(sys._getframe(1), self._until)
        super().append(operation)

    def place(self, at: int) -> str:
        """Where an operation comes from: `agent.py:12 in answer`; "" where no code of the users' ran."""
        place = self._places.get(at)
        return "" if place is None else _in_words(*place)


def waits_at(coroutine: Coroutine[Any, Any, Any]) -> str:
    """The line of the users' code at which a coroutine waits, or "" if it does not say."""
    found = ""
    inner: Any = coroutine
    while (frame := getattr(inner, "cr_frame", None)) is not None:
        if not is_ours(frame.f_code):
            found = _in_words(frame.f_code, frame.f_lineno)
        inner = inner.cr_await
    return found


def _users_own(frame: FrameType | None, until: CodeType) -> tuple[CodeType, int] | None:
    """The innermost frame that is not ours, on this side of the code `until`."""
    while frame is not None and frame.f_code is not until:
        if not is_ours(frame.f_code):
            return frame.f_code, frame.f_lineno
        frame = frame.f_back
    return None


def _in_words(code: CodeType, line: int) -> str:
    return f"{Path(code.co_filename).name}:{line} in {code.co_name}"
