"""A thread of its own with trio in it, and calls carried to what is open there: what `keeve.blocking` stands on, with a
host, and a conversation at the prompt, with whoever has the store.

The one rule: whoever waits for an answer gets one. A host that ends, however it ends, fails what is left.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, suppress
from typing import Any, ClassVar, Generic, TypeVar

import trio

from dataspace.errors import KeeveError
from dataspace.in_logs import in_log, traced
from dataspace.log.store import StoreOwned
from keeve import api
from vat.devices.outcomes import alone
from vat.host.asking import NotRunning
from vat.host.host import Host

T = TypeVar("T")
Opened = TypeVar("Opened")

log = logging.getLogger("keeve")


class OwnThread(KeeveError, RuntimeError):
    """A call was made in the thread that would have to answer it."""

    usage: ClassVar[bool] = True

    def __init__(self) -> None:
        super().__init__(
            "this was called in the host's own thread (by an actor, a device or a listener), which would wait for "
            "itself: in an actor, send and go on with the promise; in a device, call from trio.to_thread.run_sync(...)"
        )


class OtherThread(Generic[Opened]):
    """A thread with trio in it, in which something is open from when this is made to `close`.

    opened: what is, for that thread alone. path: where its store is.
    """

    def __init__(self, opens: Callable[[], AbstractAsyncContextManager[Opened]], path: object) -> None:
        self._opened: Future[Opened] = Future()
        self._pending: set[Future[Any]] = set()
        self._token: trio.lowlevel.TrioToken | None = None
        self._nursery: trio.Nursery | None = None
        self._opening = trio.CancelScope()
        self._closing = trio.Event()
        self._begun = threading.Event()
        self._failure: BaseException | None = None
        self._path = str(path)
        self._process = os.getpid()
        self._thread = threading.Thread(target=self._run, args=(opens,), name="keeve host", daemon=True)
        try:
            self._thread.start()
            self.opened = _outcome(self._opened)
        except BaseException:  # opening failed, or Ctrl-C came in the middle of it, or of the thread's start
            if self._begun.wait(1):
                self._end()
            raise

    def _run(self, opens: Callable[[], AbstractAsyncContextManager[Opened]]) -> None:
        self._begun.set()
        try:
            trio.run(self._main, opens)
        except BaseException as error:  # noqa: BLE001  # it is given to whoever waits
            self._failure = _ended_by(alone(error))
        finally:
            self._nursery = None
            failure = self._failure or NotRunning()
            if not self._opened.done():
                self._opened.set_exception(failure)
            for future in list(self._pending):
                if not future.done():
                    future.set_exception(failure)

    async def _main(self, opens: Callable[[], AbstractAsyncContextManager[Opened]]) -> None:
        self._token = trio.lowlevel.current_trio_token()
        with self._opening:
            async with opens() as opened, trio.open_nursery() as nursery:
                self._nursery = nursery
                self._opened.set_result(opened)
                try:
                    await self._closing.wait()
                finally:
                    self._nursery = None  # however it ends: while it does, nobody new is let in
                nursery.cancel_scope.cancel()

    def do(self, what: Callable[..., Awaitable[T]], *args: Any, **keywords: Any) -> T:
        """Have something done in that thread, and wait for it. Ctrl-C abandons the wait."""
        return _outcome(self.begin(what, *args, **keywords))

    def begin(self, what: Callable[..., Awaitable[T]], *args: Any, **keywords: Any) -> Future[T]:
        """Have something done in that thread, without waiting for it."""
        self._elsewhere()
        future: Future[T] = Future()

        async def do() -> None:
            # A host that dies cancels this; then whoever waits is told by `_run`, with the reason.
            try:
                value = await what(*args, **keywords)
            except Exception as error:  # noqa: BLE001  # it is given to who asked
                future.set_exception(error)
            else:
                future.set_result(value)
            self._pending.discard(future)

        def start() -> None:
            if self._nursery is None:
                future.set_exception(self._failure or NotRunning())
            else:
                self._nursery.start_soon(do)

        if self._nursery is None or self._token is None:
            raise self._failure or NotRunning()
        self._pending.add(future)
        try:
            self._token.run_sync_soon(start)
        except trio.RunFinishedError:
            raise self._failure or NotRunning() from None
        return future

    def now(self, what: Callable[..., T], *args: Any, **keywords: Any) -> T:
        """The same, of what does not wait."""

        async def do() -> T:
            return what(*args, **keywords)

        return self.do(do)

    def close(self) -> None:
        """Stop in order. Does nothing the second time, and in a forked child. Raises what has ended the host, if
        something has."""
        if os.getpid() != self._process:
            return
        self._elsewhere()
        self._end()
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def _end(self) -> None:
        while self._token is None and self._thread.is_alive():
            self._thread.join(0.01)  # it is about to begin
        if self._token is not None and self._thread.is_alive():
            with suppress(trio.RunFinishedError):
                self._token.run_sync_soon(self._leave)
        self._thread.join()

    def _leave(self) -> None:
        self._closing.set()
        if not self._opened.done():
            self._opening.cancel()

    def _elsewhere(self) -> None:
        if os.getpid() != self._process:
            raise StoreOwned(self._path, self._process)  # a fork copies no threads: nobody would ever answer here
        if threading.current_thread() is self._thread:
            raise OwnThread


class HostThread(OtherThread[Host]):
    """Runs a host, from when this is made to `close`."""

    def __init__(self, path: Any, options: Mapping[str, Any]) -> None:
        super().__init__(lambda: api.open_host(path, **options), path)

    @property
    def host(self) -> Host:
        """The host, for that thread alone."""
        return self.opened


def _ended_by(error: BaseException) -> BaseException:
    """What has ended a host, as who asks it is told. What trio says of it is about trio, and Ctrl-C is not theirs."""
    if isinstance(error, trio.TrioInternalError):
        error = alone(error.__cause__ or error)
    if isinstance(error, BaseExceptionGroup):
        error = _first(error)
    if not isinstance(error, KeyboardInterrupt):
        return error
    ended = NotRunning()
    ended.__cause__ = error
    ended.add_note(f"it was ended by {in_log(error)}")  # all that it says, its cause does
    return ended


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The error of several that says why: the first one of ours, if there is one. That there are more is a note."""
    errors: list[BaseException] = []
    todo: list[BaseException] = [group]
    for each in todo:
        if isinstance(each, BaseExceptionGroup):
            todo.extend(each.exceptions)
        else:
            errors.append(each)
    log.debug("several errors have ended what ran in the host's thread", exc_info=traced(group))
    error = next(
        (each for kind in (KeyboardInterrupt, KeeveError) for each in errors if isinstance(each, kind)), errors[0]
    )
    error.add_note(
        f"{len(errors)} errors have ended the host, this one among them; its log has all, at the level debug"
    )
    return error


def _outcome(future: Future[T]) -> T:
    """What came of it. An error that says all by itself is raised without the frames of the host's thread.

    Those are ours and trio's, which say nothing to who called; the log has them, at the level debug. Its cause stays.
    """
    try:
        return future.result()
    except Exception as error:
        if not isinstance(error, KeeveError) and not hasattr(error, "__notes__"):
            raise  # where it was raised is said by nothing else
        log.debug("raised in the host's thread, and again where it was called", exc_info=traced(error))
        raise error.with_traceback(None) from error.__cause__
