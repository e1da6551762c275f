"""Group commit: whatever is ready goes to the store as one batch, while the next one gathers.

A batch is appended in a worker thread, one at a time, so that the vats go on meanwhile. When nothing else is
to be done there is nothing to go on with, and a hand-over between threads would cost as much as the disk:
`commit_now` then appends in line. After a while without work the log is settled.

The one rule: what is told is told in the order of positions, and what fails takes with it all that is queued
behind it, since that may build upon it.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, Protocol, TypeAlias

import trio

from dataspace.errors import KeeveError
from dataspace.in_logs import in_log
from dataspace.log.marks import Certificate
from dataspace.log.store import Store, record_size
from dataspace.records import Record

log = logging.getLogger("keeve")

BATCH_BYTES: Final = 8 << 20
"""How large a batch grows, but for a single record or group that is larger."""
BATCH_RECORDS: Final = 4096

PAUSE: Final = 1.0
"""Seconds after which the log is settled again when that failed; each time twice as many, up to `LONGEST_PAUSE`."""
LONGEST_PAUSE: Final = 60.0

Group: TypeAlias = "tuple[int, Sequence[Record]]"
"""Records that are one commit, with their size in bytes."""

OnDurable = Callable[[Sequence[Record]], None]
OnFailed = Callable[[Sequence[Record], KeeveError], None]


class Certifier(Protocol):
    """Who signs what is durable."""

    def pending(self) -> Certificate | None:
        """What is to be kept when the log is settled now; None when there is nothing new.

        Raises `KeeveError` when there may be something later.
        """
        ...

    def kept(self, certificate: Certificate) -> None:
        """It is in the log, durably."""
        ...


class Writer:
    """The queue before a store. All of it belongs to one trio thread.

    `on_durable` is called with each batch once it is durable, `on_failed` with a batch that is not, together
    with all that was queued behind it. Both are called in the trio thread and must not raise. After a failure
    the writer goes on, unless the store itself has stopped: then `stopped` says why. What a `certifier` has is kept
    when the log is settled.
    """

    def __init__(
        self,
        store: Store,
        *,
        on_durable: OnDurable,
        on_failed: OnFailed,
        idle: float = 0.05,
        batch_bytes: int = BATCH_BYTES,
        certifier: Certifier | None = None,
    ) -> None:
        self._store = store
        self._certifier = certifier
        self._on_durable = on_durable
        self._on_failed = on_failed
        self._idle = idle
        self._batch_bytes = batch_bytes
        self._queue: deque[Group] = deque()
        self._limiter = trio.CapacityLimiter(1)
        self._in_flight = False
        self._unsettled = False
        self._pause = 0.0  # since settling failed
        self._last = 0.0
        self._bell: trio.Event | None = None
        self._dozing = False
        self._wanted = False
        """Whether `run` is to take what is queued."""
        self._empty = trio.Event()
        self.stopped: KeeveError | None = None
        """Why nothing more is written; None while the writer works."""

    @property
    def busy(self) -> bool:
        """Whether something is queued or in flight."""
        return self._in_flight or bool(self._queue)

    def enqueue(self, *group: Record, wake: bool = True) -> None:
        """Queue records for the next batch; several at once are one commit, whole or not at all.

        With `wake=False` nothing happens before `wake` or `commit_now` is called, which is up to the caller. Raises
        what has stopped the writer, or `RecordTooLarge`, so that one record does not fail a batch of others.
        """
        if self.stopped is not None:
            raise self.stopped
        whole = 0
        for record in group:
            whole += record_size(record)
        self._queue.append((whole, group))
        if wake:
            self.wake()

    def wake(self) -> None:
        """Let `run` take what is queued."""
        self._wanted = True
        self._ring()

    def _ring(self) -> None:
        if self._bell is not None:
            self._bell.set()
            self._bell = None

    def commit_now(self) -> int:
        """Append what is queued in line; gives how many records were taken. While a batch is in flight it takes none,
        and lets `run` take them after that.

        For a caller that sees that nothing else could run meanwhile: it blocks the thread for a sync.
        """
        taken = 0
        self._wanted = self._wanted or self._in_flight
        while self._queue and not self._in_flight:
            batch = self._take()
            taken += len(batch)
            try:
                self._store.append(batch)
            except KeeveError as error:
                self._fail(batch, error)
            else:
                self._durable(batch)
        if self._queue:
            self._wanted = True  # something is in flight: `run` takes it after that
        elif taken and self._dozing:
            self._ring()  # so that there is somebody to settle the log later
        return taken

    def settle_soon(self) -> None:
        """Settle the log after a while without work, although nothing may have been written: to keep a certificate."""
        self._unsettled = True
        self._ring()

    def keep_now(self) -> None:
        """Keep what the certifier has, in line: at the end, when nothing else is to be done."""
        certifier = self._certifier
        try:
            while certifier is not None and self.stopped is None and (certificate := certifier.pending()) is not None:
                self._store.settle(certificate)
                certifier.kept(certificate)
        except KeeveError as error:  # what was not kept is signed again when the store opens the next time
            log.warning("the newest checkpoint is not kept in the log: %s", in_log(error))

    @trio.lowlevel.enable_ki_protection  # between a batch that is durable and who hears of it nothing may come
    async def run(self) -> None:
        """Write until cancelled, or until the store stops. A batch that is in flight is waited for."""
        while self.stopped is None:
            if self._queue and self._wanted:
                await self._write()
            else:
                await self._wait()

    async def drain(self) -> None:
        """Wait until nothing is queued or in flight. `run` must be running."""
        while self.busy:
            self.wake()
            await self._empty.wait()

    async def _wait(self) -> None:
        """Wait for work; settle when there is none for a while."""
        bell = self._bell = trio.Event()
        self._dozing = not self._unsettled
        if not self._unsettled or self._queue:  # what is queued waits for `wake`
            await bell.wait()
            self._dozing = False
            return
        at = self._last + max(self._idle, self._pause)
        with trio.move_on_at(at) as scope:
            await bell.wait()
        if not scope.cancelled_caught:
            return
        self._bell = None
        if not self._queue and self._last + max(self._idle, self._pause) <= trio.current_time():
            await self._settle()

    async def _write(self) -> None:
        batch = self._take()
        self._in_flight = True
        try:
            with trio.CancelScope(shield=True):
                await trio.to_thread.run_sync(self._store.append, batch, limiter=self._limiter)
        except KeeveError as error:
            self._in_flight = False
            self._fail(batch, error)
        else:
            self._in_flight = False
            self._durable(batch)
        await trio.lowlevel.checkpoint()

    async def _settle(self) -> None:
        certifier = self._certifier
        certificate = None
        failed: KeeveError | None = None
        try:
            certificate = None if certifier is None else certifier.pending()
        except KeeveError as error:
            failed = error  # the log is settled without it
        self._in_flight = True
        try:
            with trio.CancelScope(shield=True):
                await trio.to_thread.run_sync(self._store.settle, certificate, limiter=self._limiter)
        except KeeveError as error:
            failed = error
        finally:
            self._in_flight = False
        if self._store.fault is not None and failed is not None:
            self._fail([], failed)
        elif failed is not None:
            self._pause = min(max(PAUSE, 2 * self._pause), LONGEST_PAUSE)
            self._last = trio.current_time()
            log.warning("the log is not settled, which is tried again after %g s: %s", self._pause, in_log(failed))
        else:
            self._pause = 0.0
            self._unsettled = certificate is not None  # there may be another one
            if certifier is not None and certificate is not None:
                certifier.kept(certificate)
        self._tell_empty()

    def _take(self) -> list[Record]:
        """The next batch: what is queued, as far as the limits go, and no group in part."""
        queue = self._queue
        size, group = queue.popleft()
        batch = list(group)
        while queue and len(batch) + len(queue[0][1]) <= BATCH_RECORDS:
            size += queue[0][0]
            if size > self._batch_bytes:
                break
            batch += queue.popleft()[1]
        if not queue:
            self._wanted = False
        return batch

    def _durable(self, batch: Sequence[Record]) -> None:
        self._last = trio.current_time()
        self._unsettled = True
        self._on_durable(batch)
        self._tell_empty()

    def _fail(self, batch: Sequence[Record], error: KeeveError) -> None:
        failed = [*batch, *(record for _, group in self._queue for record in group)]
        self._queue.clear()
        if self._store.fault is not None:
            self.stopped = error
            self.wake()
        self._on_failed(failed, error)
        self._tell_empty()

    def _tell_empty(self) -> None:
        if not self.busy:
            self._empty.set()
            self._empty = trio.Event()
