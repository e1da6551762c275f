"""The watchdog: reports a crank that runs long, by the name of its session and with its stack.

A crank runs user code in the thread of the event loop, and CPython cannot stop it safely. While it runs, nothing else
of the host does. So all that can be done is to say so, from another thread: which session, and where it is. Code that
nobody trusts belongs in a host of its own.

The one rule: it only looks. It takes no lock and touches nothing that the host uses.
"""

from __future__ import annotations

import logging
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager

log = logging.getLogger("keeve")


@contextmanager
def watching(running: Callable[[], tuple[int, str] | None], seconds: float) -> Iterator[None]:
    """Watch the thread that enters this: report what it does when that takes longer than `seconds`.

    `running` tells what is being done, as a number that is another one each time, and a name; None when nothing is.
    It is called from another thread. What runs on is reported again after twice the time, and so on.
    """
    stopped = threading.Event()
    thread = threading.get_ident()
    watch = threading.Thread(
        target=_watch, args=(running, seconds, thread, stopped), name="keeve watchdog", daemon=True
    )
    watch.start()
    try:
        yield
    finally:
        stopped.set()
        watch.join()


def _watch(
    running: Callable[[], tuple[int, str] | None], seconds: float, thread: int, stopped: threading.Event
) -> None:
    before: tuple[int, str] | None = None
    looks = 0
    while not stopped.wait(seconds):
        now = running()
        looks = looks + 1 if now is not None and now == before else 0
        before = now
        if now is not None and looks and looks & (looks - 1) == 0:
            frame = sys._current_frames().get(thread)
            stack = "".join(traceback.format_stack(frame)) if frame is not None else ""
            if running() == now:
                log.warning("%s has run for more than %g s:\n%s", now[1], looks * seconds, stack)
