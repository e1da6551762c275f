"""Closing a coroutine that is not needed any more, whatever its code makes of that.

`Ends` is raised where it waits, and not `GeneratorExit`: a loop with a bare `except:` takes that for a failure, goes
round, finds that there is no crank, takes that for a failure as well, and so on for ever. Python frees `Ends` when the
handler that swallowed it is left, and when it is freed, another one is raised there: outside of that handler.

The one rule: whatever code does while it is closed, this returns.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Coroutine
from types import FrameType
from typing import Any, Final

from dataspace.interrupts import is_interrupt
from vat.heap.refs import running

_AT_MOST: Final = 100
_stubborn: list[Coroutine[Any, Any, Any]] = []
"""Coroutines that wait again however often they are closed. Python would say so whenever it drops one."""


class _Here(threading.local):
    closes = False


_here: Final = _Here()
"""Whether a coroutine is closed in this thread."""


class Ends(BaseException):
    """Who waits is not needed any more. What is done now has no effect."""

    def __del__(self) -> None:
        frame = sys._getframe(1)
        if _here.closes and frame.f_code is not close.__code__:
            frame.f_trace, frame.f_trace_opcodes = _raise, True
            sys.settrace(_untraced)


def _raise(frame: FrameType, event: str, arg: Any) -> Any:
    """Raise `Ends` at the next instruction. Python takes the tracing away with that."""
    if event not in ("line", "opcode"):
        return _raise
    frame.f_trace_opcodes = False
    raise Ends


def close(coroutine: Coroutine[Any, Any, Any]) -> None:
    """End a coroutine; whatever its user's code does or raises is of no account. There must be no crank."""
    if not getattr(coroutine, "cr_suspended", True):  # it is over, or has not begun
        coroutine.close()
        return
    before, running.crank = running.crank, None
    traced = sys.gettrace()
    _here.closes = True
    try:
        for _ in range(_AT_MOST):
            try:
                coroutine.throw(Ends)  # an instance would be held by this frame
            except BaseException as error:
                _here.closes = False
                if is_interrupt(error):
                    raise
                return
        _stubborn.append(coroutine)
    finally:
        _here.closes = False
        if sys.gettrace() is not traced:
            sys.settrace(traced)
        running.crank = before


def _untraced(frame: FrameType, event: str, arg: Any) -> None:
    """Stands for the tracing of what is called from there: none."""
