"""The right to write a catalog's file: one thread has it at a time, and no child of the process that opened it; and
what is written with it, one run of records at a time.

A forked child has copies of the connections, and closing one that was in the middle of a transaction would undo in
the file what the parent goes on with. So a fork waits for the end of a transaction, which takes milliseconds; and what
the child notes stays in its memory.

The one rule: who writes the file, or puts another in its place, holds this and has asked whether it is `ours`.
"""

from __future__ import annotations

import os
import threading
import weakref
from types import TracebackType

import apsw

from dataspace.catalog.connections import FAILED
from dataspace.catalog.recent import Recent
from dataspace.catalog.tables import Tables


class Writing:
    """The lock around what is done to one file, and the process that may do it."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._process = os.getpid()
        _ALL.add(self)

    @property
    def ours(self) -> bool:
        """Whether this is the process that opened the file."""
        return os.getpid() == self._process

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lock.release()


_ALL: weakref.WeakSet[Writing] = weakref.WeakSet()
_PAUSED: list[Writing] = []
"""Those whose lock is held while the process forks."""


def _pause() -> None:
    for each in list(_ALL):
        each.__enter__()
        _PAUSED.append(each)


def _go_on() -> None:
    while _PAUSED:
        _PAUSED.pop().__exit__(None, None, None)


os.register_at_fork(before=_pause, after_in_parent=_go_on, after_in_child=_go_on)


class Flush:
    """One run of records on its way into the tables. `write` may be called in any one thread."""

    def __init__(self, recent: Recent, tables: Tables, writing: Writing) -> None:
        self.recent = recent
        self.tables = tables
        self.error: Exception | None = None
        self._writing = writing

    @property
    def threadsafe(self) -> bool:
        """Whether `write` may run beside questions: a file's connections allow it, memory's does not."""
        return self.tables.path is not None

    def write(self) -> None:
        """Write it. What goes wrong is kept in `error`, for `Catalog.finish`."""
        try:
            with self._writing:
                if self.threadsafe and not self._writing.ours:
                    raise apsw.BusyError("another process writes this file: the one that opened it")
                self.tables.write(self.recent)
        except FAILED as error:
            self.error = error
