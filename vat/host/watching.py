"""Watching: what running effects tell, to whoever listens at that moment.

    with host.watch(s) as pieces:
        async for piece in pieces:
            print(piece.text, end="")

Nothing of it is in the log. Who comes late hears what comes from then on; who stops, or raises, is gone and nobody
minds.

Where nothing more can come, since the session has ended or the store writes no more, whoever listens is told why, once
they have what had come.

The one rule: a watcher costs an effect one call that never waits. What it has not taken yet waits for it, the newest
`WAITING` pieces at most; the next one that it takes says how many it has missed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import Any, Final, TypeAlias
from weakref import ref

import attrs
import trio

from dataspace.observe.dataspace import Dataspace
from dataspace.values import Value
from vat.devices.attempts import Wanted

WAITING: Final = 10_000
"""Pieces that wait for one watcher."""

LOOK: Final = 1.0
"""Seconds between two looks at whether the host still runs, while nothing is told."""

Hearing: TypeAlias = list[Callable[[Wanted, Value], None]]


@attrs.frozen
class Piece:
    """Something that a running effect told.

    session: the id of the session that wants the effect. effect: the effect's id, the same in every attempt.
    device, method: who told it. value: what was told. after: the position of the newest durable record then, so that
    events up to there came before it. missed: how many pieces before it the watcher was too slow for.
    """

    session: str
    effect: str
    device: str
    method: str
    value: Value
    after: int
    missed: int = 0

    @property
    def text(self) -> str:
        """What it adds to the text of a model's answer; "" if it tells of something else."""
        delta = self.value.get("delta") if isinstance(self.value, dict) else None
        content = delta.get("content") if isinstance(delta, dict) else None
        return content if isinstance(content, str) else ""

    @property
    def failed(self) -> str:
        """Why the attempt that told it has failed, if the model is asked again; "" if it tells of something else."""
        failed = self.value.get("failed") if isinstance(self.value, dict) else None
        return failed if isinstance(failed, str) else ""

    @property
    def attempt(self) -> int:
        """Which attempt of the device at this effect told it, from 1: with a new one, what was told before is void."""
        attempt = self.value.get("attempt") if isinstance(self.value, dict) else None
        return attempt if type(attempt) is int else 1


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
        self._pieces: deque[Piece] = deque()
        self._missed = 0
        self._came = trio.Event()
        self._closed = False
        self._hearing = hearing
        self._told = _told(ref(self), hearing)
        hearing.append(self._told)

    def close(self) -> None:
        """Hear no more. Who is in the middle of it is given what has come, and then the end."""
        if not self._closed:
            self._closed = True
            if self._told in self._hearing:
                self._hearing.remove(self._told)
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
        return self._taken()

    def _uid(self) -> bytes | None:
        """The session, if it is there by now."""
        if not isinstance(self._session, str):
            return self._session
        row = self._space.catalog.session(self._session)
        return None if row is None else row.uid

    def left(self) -> Piece | None:
        """The next piece of those that have come, once the host has ended; None when there are no more."""
        return self._taken() if self._pieces else None

    def _taken(self) -> Piece:
        piece = self._pieces.popleft()
        if self._missed:
            piece, self._missed = attrs.evolve(piece, missed=self._missed), 0
        return piece

    def hear(self, wanted: Wanted, value: Value) -> None:
        """An effect tells something."""
        if self._session is not None and self._session not in (wanted.session, wanted.key[0]):
            return
        if len(self._pieces) == WAITING:
            self._pieces.popleft()
            self._missed += 1
        self._pieces.append(piece_of(wanted, value, self._space.store.head.position))
        self._came.set()


def hear_all(hearing: Hearing, space: Dataspace, hear: Callable[[Piece], None]) -> Callable[[], None]:
    """Have all that running effects tell told to `hear`, at that moment; gives what ends it, once or often."""

    def told(wanted: Wanted, value: Value) -> None:
        hear(piece_of(wanted, value, space.store.head.position))

    hearing.append(told)

    def stop() -> None:
        if told in hearing:
            hearing.remove(told)

    return stop


def piece_of(wanted: Wanted, value: Value, head: int) -> Piece:
    """What an effect tells while the log ends at `head`."""
    return Piece(wanted.session, wanted.id, wanted.device, wanted.method, value, head)


def _told(watch: Any, hearing: Hearing) -> Callable[[Wanted, Value], None]:
    """Tells a watch, and is gone when nobody has it any more, closed or not."""

    def told(wanted: Wanted, value: Value) -> None:
        watching = watch()
        if watching is None:
            hearing.remove(told)
        else:
            watching.hear(wanted, value)

    return told
