"""Readers and observers without `await`: events are fetched some at a time, handlers run in threads of their own.

The one rule: nothing is done here. Each question is carried to the trio host, and its answer back.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import Literal, TypeVar, Unpack, overload

import trio

from dataspace.errors import KeeveError
from dataspace.interrupts import is_interrupt
from dataspace.observe.dataspace import ObserverFailed
from dataspace.observe.dataspace import Reader as AsyncReader
from dataspace.observe.events import Event, Held, Proof
from dataspace.observe.observation import Item, Observation, Wanted
from dataspace.observe.places import Heard, Holding, Queried
from dataspace.patterns import Pattern
from keeve.host_thread import HostThread
from vat.host.asking import NotRunning
from vat.host.observers import Observer as AsyncObserver
from vat.host.pieces import Piece
from vat.host.watching import Watch as AsyncWatch

_MANY = 64
"""Events that are fetched in one go."""

T = TypeVar("T")


class Observer:
    """A handler that is called with each event, in a thread that is not the host's, so that it may call the host."""

    def __init__(self, thread: HostThread, observer: AsyncObserver) -> None:
        self._thread = thread
        self._observer = observer

    @property
    def failure(self) -> KeeveError | None:
        """Why it stopped by itself, if it did, with the cursor to go on from."""
        return self._observer.failure

    def cancel(self) -> None:
        """Bring it no more events. One that it is handling is handled to its end."""
        self._thread.now(self._observer.cancel)

    def wait(self) -> None:
        """Return when it has ended. Raises `ObserverFailed`, or what reading raised."""
        self._thread.do(self._observer.wait)


class Watch:
    """What running effects tell, as it comes: an iterator for one thread, and a context manager that ends it.

    It ends when it is closed, and when the host is.
    """

    def __init__(self, thread: HostThread, watch: AsyncWatch) -> None:
        self._thread = thread
        self._watch = watch

    def close(self) -> None:
        """Hear no more. A thread that is in the middle of it is given what has come, and then the end."""
        with suppress(NotRunning):
            self._thread.now(self._watch.close)

    def __iter__(self) -> Iterator[Piece]:
        return self

    def __next__(self) -> Piece:
        async def fetch() -> Piece | None:
            return await anext(self._watch, None)

        try:
            piece = self._thread.do(fetch)
        except NotRunning:
            piece = self._watch.left()
        if piece is None:
            raise StopIteration
        return piece

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Reader:
    """A reader without `await`; see `dataspace.observe.dataspace.Reader` for what its methods do."""

    def __init__(self, thread: HostThread, reader: AsyncReader) -> None:
        self._thread = thread
        self._reader = reader

    def narrow(
        self,
        *,
        session: str | bytes | None = None,
        lineage: bool = False,
        pattern: str | Pattern | None = None,
        without: Sequence[str] = (),
    ) -> Reader:
        """A reader that sees less."""
        narrow = self._reader.narrow
        narrowed = self._thread.now(narrow, session=session, lineage=lineage, pattern=pattern, without=without)
        return Reader(self._thread, narrowed)

    def query(self, pattern: str | Pattern, **how: Unpack[Queried]) -> Iterator[Event]:
        """The events that match up to now."""
        return queried(self._thread, self._thread.now(self._reader.query, pattern, **how))

    @overload
    def observe(
        self, pattern: str | Pattern, *, marks: Literal[False] = False, **how: Unpack[Heard]
    ) -> Iterator[Event]: ...
    @overload
    def observe(self, pattern: str | Pattern, *, marks: bool, **how: Unpack[Heard]) -> Iterator[Item]: ...

    def observe(self, pattern: str | Pattern, *, marks: bool = False, **how: Unpack[Heard]) -> Iterator[Item]:
        """The events that match: those there are, or, with `until=None`, those to come as well."""
        how.setdefault("until", "head")
        observation = self._thread.now(self._reader.observe, pattern, marks=marks, **how)
        return observed(self._thread, observation, live=how["until"] is None)

    def observe_with(self, pattern: str | Pattern, handler: Callable[[Event], object], **how: Unpack[Heard]) -> None:
        """Call `handler` with each event, here, to `until`: by default for ever.

        Raises `ObserverFailed` from what the handler raises.
        """
        how.setdefault("until", None)
        observation: Observation[Event] = self._thread.now(self._reader.observe, pattern, **how)
        before = self._thread.now(lambda: observation.cursor)
        for event in observed(self._thread, observation, live=how["until"] is None):
            try:
                handler(event)
            except BaseException as error:  # a handler is the users' code
                if is_interrupt(error):
                    raise
                raise ObserverFailed(before, event.position) from error
            before = event.cursor

    def facts(self, pattern: str | Pattern, **how: Unpack[Holding]) -> list[Held]:
        """What matches and holds."""
        return self._thread.now(self._reader.facts, pattern, **how)

    def proof(self, event: Event) -> Proof:
        """What ties an event to its record's hash."""
        return self._thread.now(self._reader.proof, event)


def queried(thread: HostThread, events: Iterator[T]) -> Iterator[T]:
    """What a query gives, asked for some at a time."""
    while page := thread.now(lambda: list(islice(events, _MANY))):
        yield from page


def observed(thread: HostThread, observation: Observation[Wanted], *, live: bool) -> Iterator[Wanted]:
    """What an observation gives; what is `live` one at a time, as it comes, until the host ends."""

    async def fetch() -> tuple[list[Wanted], bool]:
        items: list[Wanted] = []
        try:
            items.append(await observation.__anext__())
            while not live and len(items) < _MANY:
                items.append(await observation.__anext__())
        except StopAsyncIteration:
            return items, True
        return items, False

    ended = False
    while not ended:
        try:
            items, ended = thread.do(fetch)
        except NotRunning:
            if not live:
                raise
            return
        yield from items


def elsewhere(handler: Callable[[Event], object]) -> Callable[[Event], Awaitable[object]]:
    """A handler that blocks, as the trio host calls it: in another thread, which the end of the host does not wait for.

    It may be waiting for that host.
    """

    async def handle(event: Event) -> None:
        await trio.to_thread.run_sync(handler, event, abandon_on_cancel=True)

    return handle
