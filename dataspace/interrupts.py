"""Ctrl-C, told from what users' code raises itself.

The one rule: it asks who handles the signal, and where an exception comes from; it changes neither.
"""

from __future__ import annotations

import signal
import threading


def is_interrupt(error: BaseException) -> bool:
    """Whether an error is Ctrl-C, or a group with that in it. All else that users' code raises is its own affair.

    A `KeyboardInterrupt` that it raises itself as well: Python raises Ctrl-C in the main thread alone, by what handles
    SIGINT there. Python's own handler, or one that is no function, leaves no trace; who runs trio has another one.
    """
    todo = [error]
    while todo:
        found = todo.pop()
        if isinstance(found, KeyboardInterrupt) and _was_signalled(found):
            return True
        if isinstance(found, BaseExceptionGroup):
            todo.extend(BaseExceptionGroup.exceptions.__get__(found))
    return False


def _was_signalled(interrupt: KeyboardInterrupt) -> bool:
    if threading.current_thread() is not threading.main_thread():
        return False
    handler = signal.getsignal(signal.SIGINT)
    trace = interrupt.__traceback__
    code = getattr(handler, "__code__", None)
    if trace is None or handler is None or (callable(handler) and code is None):  # as Python's own: it cannot be told
        return True
    while True:
        if trace.tb_frame.f_code is code:
            return True
        if trace.tb_next is None:  # trio raises what came while it could not be raised at once
            return str(trace.tb_frame.f_globals.get("__name__")).startswith("trio.")
        trace = trace.tb_next
