"""Watching: what running effects tell, to whoever listens at that moment.

    with host.watch(s) as pieces:
        async for piece in pieces:
            print(piece.text, end="")

Nothing of it is in the log. Who comes late hears what comes from then on; who stops, or raises, is gone and nobody
minds.

Where nothing more can come, since the session has ended or the store writes no more, whoever listens is told why, once
they have what had come.

The one rule: a watcher costs an effect one call that never waits. What it has not taken yet waits for it, the newest
`WAITING` pieces at most (`vat.host.pieces`); the next one that it takes says how many it has missed.
"""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any, Final
from weakref import ref

import trio

from dataspace.errors import KeeveError
from dataspace.log.store import StoreReadOnly
from dataspace.observe.dataspace import Dataspace
from vat.host.commits import OPENED_TO_READ
from vat.host.engine import Engine
from vat.host.hearing import Hearing
from vat.host.pieces import Piece, Pieces


class HeardElsewhere(StoreReadOnly, quotes=False):
    """Of what running effects tell, nothing is ever heard by a host that was opened to read."""

    def __init__(self) -> None:
        self.path, self.why = "this host", OPENED_TO_READ()
        KeeveError.__init__(
            self,
            f"{self.path} is open for reading only: {self.why}, and runs no effects. What they tell is in no log: "
            "watch with the host that owns the store, or a client of its server; observers are told what is recorded",
        )


def hearing_of(engine: Engine) -> Hearing:
    """Where what running effects tell is heard. Raises `HeardElsewhere` of a host that was opened to read."""
    if engine.store.readonly and engine.store.fault is None:
        raise HeardElsewhere
    return engine.errands.hearing


LOOK: Final = 1.0
"""Seconds between two looks at whether the host still runs, while nothing is told."""


class Watch:
    """The pieces of a session's effects (or of all, for None), from when it was made to `close`, in order.

    One task takes them. It ends when it is closed, after what has come by then, and when the host ends. When the
    session ends, it raises why: `Deleted`, or `SessionDamaged`.
    """

    def __init__(
        self,
        hearing: Hearing,
        space: Dataspace,
        running: Callable[[], bool],
        session: str | bytes | None,
    ) -> None:
        self._space = space
        self._running = running
        self._session = session
        self._pieces = Pieces()
        self._came = trio.Event()
        self._closed = False
        self._hearing = hearing
        self._told = _told(ref(self), hearing, session)
        hearing.add(session, self._told)

    def close(self) -> None:
        """Hear no more. Who is in the middle of it is given what has come, and then the end."""
        if not self._closed:
            self._closed = True
            self._hearing.remove(self._session, self._told)
            self._came.set()

    def __enter__(self) -> Watch:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __aiter__(self) -> Watch:
        return self

    async def __anext__(self) -> Piece:
        await trio.lowlevel.checkpoint()
        while not self._pieces:
            if self._closed or not self._running():
                self.close()
                raise StopAsyncIteration
            uid = self._uid()
            if (why := self._space.endings.of(uid)) is not None:
                self.close()
                raise why
            self._came = came = trio.Event()
            with trio.move_on_after(LOOK), self._space.endings.told(uid, came.set):
                await came.wait()
        return self._pieces.take()

    def _uid(self) -> bytes | None:
        """The session, if it is there by now."""
        if not isinstance(self._session, str):
            return self._session
        row = self._space.catalog.session(self._session)
        return None if row is None else row.uid

    def left(self) -> Piece | None:
        """The next piece of those that have come, once the host has ended; None when there are no more."""
        return self._pieces.take() if self._pieces else None

    def hear(self, piece: Piece) -> None:
        """An effect tells something."""
        self._pieces.put(piece)
        self._came.set()


def hear_all(hearing: Hearing, which: str | bytes | None, hear: Callable[[Piece], None]) -> Callable[[], None]:
    """Have what running effects of a session (None: of all) tell told to `hear`, at that moment; gives what ends it,
    once or often."""

    def told(piece: Piece) -> None:
        hear(piece)

    hearing.add(which, told)
    return lambda: hearing.remove(which, told)


def _told(watch: Any, hearing: Hearing, which: str | bytes | None) -> Callable[[Piece], None]:
    """Tells a watch, and is gone when nobody has it any more, closed or not."""

    def told(piece: Piece) -> None:
        watching = watch()
        if watching is None:
            hearing.remove(which, told)
        else:
            watching.hear(piece)

    return told
