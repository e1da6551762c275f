"""The dataspace: the facts of a store, as something to query and to observe.

A `Reader` sees them through a view, and can be narrowed; the `Dataspace` is the one that sees all, and is told
what has become durable. There is no live buffer: the log is the buffer. An observer reads on from its cursor
(`observation`) and waits in an index of what is wanted (`waiting`); one that does not wait costs nobody anything.

The one rule: only what is durable is noted, and only what is noted is seen.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from inspect import isawaitable
from typing import ClassVar, Final, Literal, overload

import trio

from dataspace.catalog.catalog import Catalog
from dataspace.catalog.recall import Mistaken, Notable, noted
from dataspace.catalog.recent import SessionRow
from dataspace.drafts import Assertion
from dataspace.errors import KeeveError, gone
from dataspace.facts import Fact
from dataspace.interrupts import is_interrupt
from dataspace.log.store import Store
from dataspace.observe.cursor import Cursor
from dataspace.observe.endings import Endings
from dataspace.observe.events import Event, Held, NotProven, Opened, Proof
from dataspace.observe.hearers import have_hear, heard
from dataspace.observe.holding import BEGIN, Holding, Place
from dataspace.observe.narrow import EVERYTHING, View
from dataspace.observe.observation import Item, Observation
from dataspace.observe.places import After, Places, Until
from dataspace.observe.search import Search
from dataspace.observe.waiting import Waiting
from dataspace.patterns import BadPattern, Pattern, parse
from dataspace.records import Kind, Rest, part_digest
from dataspace.remedies import Remedy

LOOK_AT_SESSIONS: Final = Remedy("look-at-sessions", "look at those of host.sessions()")


class NoSuchSession(KeeveError, LookupError):
    """No session has that id or uid, or the reader may not see it."""

    usage: ClassVar[bool] = True

    def __init__(self, session: str) -> None:
        self.session = session
        super().__init__(f"there is no session {session!r} to read here: {LOOK_AT_SESSIONS()}")


def living(row: SessionRow | None, name: str, store: Store | None = None) -> SessionRow:
    """What is known of a session. Raises `NoSuchSession`, or what is wrong with its `store`, if so; or `Deleted`."""
    if row is None:
        raise (store.fault if store is not None and store.readonly else None) or NoSuchSession(name)
    if row.deleted:
        raise gone(row.id)
    return row


class ObserverFailed(KeeveError, quotes=False):
    """A handler raised. Its observer has stopped before the event; `cursor` is where to go on with it."""

    def __init__(self, cursor: Cursor, position: int) -> None:
        self.cursor = cursor
        self.position = position
        super().__init__(
            f"an observer's handler failed at the event at position {position}: see the cause, and observe "
            f"again after cursor {cursor}"
        )


class Reader:
    """Reads a dataspace through a view. All of it when the view has no limits."""

    def __init__(self, space: Dataspace, view: View) -> None:
        self._space = space
        self._view = view

    def narrow(
        self,
        *,
        session: str | bytes | None = None,
        lineage: bool = False,
        pattern: str | Pattern | None = None,
        without: Sequence[str] = (),
    ) -> Reader:
        """A reader that sees less: one session's records (with `lineage` its ancestors' before them), facts that
        match a pattern, facts without some keywords. It can be handed on, and narrowed again, never widened."""
        view = self._limited(session, lineage)
        if pattern is not None:
            view = view.matching(_pattern(pattern))
        if without:
            view = view.without(without)
        return Reader(self._space, view)

    def query(
        self,
        pattern: str | Pattern,
        *,
        after: After = "start",
        upto: int | Cursor | None = None,
        session: str | bytes | None = None,
        lineage: bool = False,
    ) -> Iterator[Event]:
        """The events after `after`, up to `upto` or what is noted now, in order.

        Raises `WrongCursor` and `NoSuchSession` at once; `SessionDamaged` when it comes to a damaged record.
        """
        space = self._space
        search = self._search(pattern, session, lineage)
        cursor = space.places.at(after)
        head = space.catalog.head.position
        last = head if upto is None else min(head, space.places.end(upto))
        return _query(search, cursor, last)

    @overload
    def observe(
        self,
        pattern: str | Pattern,
        *,
        after: After = "start",
        until: Until = None,
        marks: Literal[False] = False,
        session: str | bytes | None = None,
        lineage: bool = False,
    ) -> Observation[Event]: ...

    @overload
    def observe(
        self,
        pattern: str | Pattern,
        *,
        after: After = "start",
        until: Until = None,
        marks: bool,
        session: str | bytes | None = None,
        lineage: bool = False,
    ) -> Observation[Item]: ...

    def observe(
        self,
        pattern: str | Pattern,
        *,
        after: After = "start",
        until: Until = None,
        marks: bool = False,
        session: str | bytes | None = None,
        lineage: bool = False,
    ) -> Observation[Item]:
        """The events after `after`, to `until` (`"head"`: the head as it is now; `None`: for ever), as they come.

        With `marks` it says `CaughtUp` each time there is nothing more to read, and `Unreadable` in the place
        of a record that is damaged, or whose content is archived and not here (`Away`), which raises `SessionDamaged`
        or `Archived` otherwise. Raises `WrongCursor` and `NoSuchSession`; and,
        where nothing more can come, since the session that is named has ended or nothing is written any more, why.
        """
        space = self._space
        search = self._search(pattern, session, lineage)
        cursor = space.places.at(after)
        seen = space.store.head.position
        last = seen if until == "head" else None if until is None else space.places.end(until)
        return Observation(space.places, space.waiting, space.endings, search, cursor, seen, last, marks)

    async def observe_with(
        self,
        pattern: str | Pattern,
        handler: Callable[[Event], Awaitable[object] | object],
        *,
        after: After = "start",
        until: Until = None,
        session: str | bytes | None = None,
        lineage: bool = False,
    ) -> None:
        """Call `handler` with each event, to `until`. Raises `ObserverFailed` from what the handler raises."""
        observation = self.observe(pattern, after=after, until=until, session=session, lineage=lineage)
        before = observation.cursor
        async for event in observation:
            try:
                done = handler(event)
                if isawaitable(done):
                    await done
            except BaseException as error:  # a handler is the users' code
                if is_interrupt(error):
                    raise
                await trio.lowlevel.checkpoint_if_cancelled()
                raise ObserverFailed(before, event.position) from error
            before = event.cursor

    def facts(
        self,
        pattern: str | Pattern,
        *,
        at: int | Cursor | None = None,
        session: str | bytes | None = None,
        lineage: bool = False,
    ) -> list[Held]:
        """What matches and holds at position `at` (now): asserted there or before and not taken back."""
        head = self._space.catalog.head.position
        last = head if at is None else min(head, self._space.places.end(at))
        return self._search(pattern, session, lineage).held(last)

    def proof(self, event: Event) -> Proof:
        """What ties `event`, which this reader has seen, to its record's hash.

        The words of the facts are in it only if this reader may see all facts of a record.
        """
        space = self._space
        legs = self._view.legs
        if not 0 < event.position <= space.catalog.head.position or (
            legs is not None and event.uid not in {leg.uid for leg in legs}
        ):
            raise NotProven(event.position, "this reader has no such record")
        stored = space.catalog.stored(event.position)
        rest = stored.rest() or Rest.of(stored.body(), 0)
        opened = None
        if not self._view.limits:
            parts = {number: stored.part(number) for number in range(stored.attachments)}
            cells = {number: part for number, part in parts.items() if isinstance(part, bytes)}
            opened = Opened(rest.salt, rest.facts, cells)
        return Proof(stored.header, rest.deeds, part_digest(rest.salt, rest.facts), opened)

    def _search(self, pattern: str | Pattern, session: str | bytes | None, lineage: bool) -> Search:
        space = self._space
        return Search(space.catalog, space.store.log_id, _pattern(pattern), self._limited(session, lineage))

    def _limited(self, session: str | bytes | None, lineage: bool) -> View:
        if session is None:
            return self._view
        if not isinstance(session, str | bytes):
            raise TypeError(f"session is the id of a session or its uid, a str or bytes, and not {session!r}")
        catalog = self._space.catalog
        row = catalog.by_uid(session) if isinstance(session, bytes) else catalog.session(session)
        mine = self._view.legs
        if row is None or (mine is not None and row.uid not in {leg.uid for leg in mine}):
            raise NoSuchSession(session.hex() if isinstance(session, bytes) else session)
        # What a deleted session has inherited is not its own any more.
        legs = catalog.lineage(row.uid)
        return self._view.within(legs if lineage and not row.deleted else legs[-1:])


class Dataspace(Reader):
    """The dataspace of `store`. `note` is called with each batch that has become durable, in order."""

    def __init__(self, store: Store, catalog: Catalog) -> None:
        super().__init__(self, EVERYTHING)
        self.store = store
        self.catalog = catalog
        self.places = Places(store, catalog)
        self.waiting = Waiting(catalog.asserted)
        self.endings = Endings(store, catalog)
        self._told_up_to = catalog.head.position
        self._due: trio.Event | None = None
        self._told: dict[str, tuple[Callable[[Fact], None], ...]] = {}
        self._told_of: dict[int, tuple[Callable[[Notable], None], ...]] = {}

    @property
    def cursor(self) -> Cursor:
        """The cursor at the head of what has been noted."""
        return self.places.head

    def holding(
        self,
        pattern: str | Pattern,
        *,
        at: int | Cursor | None = None,
        after: Place = BEGIN,
        session: str | bytes | None = None,
        lineage: bool = False,
    ) -> Holding:
        """What `facts` gives, one fact after another and behind `after`, while others have their turns."""
        head = self.catalog.head.position
        last = head if at is None else min(head, self.places.end(at))
        return Holding(self._search(pattern, session, lineage), last, after)

    def on_fact(self, labels: Iterable[str], hear: Callable[[Fact], None]) -> Callable[[], None]:
        """Have `hear` called with each fact of these labels that is asserted from now on, when it has been noted.

        For who counts. Nothing is read for it, and it is called in line: it must be quick. What it raises is logged.
        Gives the function that ends it.
        """
        return heard(self._told, labels, hear)

    def on_record(self, kinds: Iterable[int], hear: Callable[[Notable], None]) -> Callable[[], None]:
        """Have `hear` called with each record of these kinds from now on, when it has been noted.

        As `on_fact`; but what is in a record's kind no actor can state.
        """
        return heard(self._told_of, kinds, hear)

    def note(self, records: Sequence[Notable]) -> None:
        """Take in a batch that has just become durable, and wake who waits for something in it.

        About 2 µs for each record, and the cost of looking up each fact while anybody waits.
        """
        catalog = self.catalog
        catalog.note(records)
        if self.waiting:
            self.waiting.note(records, catalog.reached.position)
        if self.endings:
            for record in records:
                if record.kind == Kind.DELETE:
                    self.endings.tell(record.uid)
        if self._told:
            self._tell(records)
        if self._told_of:
            self._tell_of(records)
        self._told_up_to = records[-1].position
        if catalog.due:
            if self._due is None:
                catalog.flush()
            else:
                self._due.set()

    def _tell(self, records: Sequence[Notable]) -> None:
        for record in records:
            for statement in record.statements:
                if type(statement) is Assertion:
                    label = statement.fact.label
                    have_hear(self._told.get(label, ()), statement.fact, f"a fact {label}")

    def _tell_of(self, records: Sequence[Notable]) -> None:
        for record in records:
            have_hear(self._told_of.get(record.kind, ()), record, f"a record of kind {record.kind}")

    def catch_up(self) -> None:
        """Note what the log has and nobody has told of: for a store that another process writes.

        Where that fails, the next call goes on from there, also if the catalog has noted the rest meanwhile.
        """
        told = self._told_up_to
        for stored in self.store.scan(self.catalog.at(told)):
            if stored.header.position > told:
                self.note([noted(stored, whole=True)])

    async def run(self) -> None:
        """Write the catalog behind from a thread of its own, for ever. Without it `note` writes in line."""
        try:
            while True:
                self._due = trio.Event()
                if not self.catalog.due:
                    await self._due.wait()
                flush = self.catalog.begin()
                if flush is None:
                    continue
                if flush.threadsafe:
                    await trio.to_thread.run_sync(flush.write)
                else:
                    flush.write()
                    await trio.lowlevel.checkpoint()
                self.catalog.finish(flush)
        finally:
            self._due = None


def _query(search: Search, cursor: Cursor, upto: int) -> Iterator[Event]:
    after, inside = cursor.position, cursor.operation
    while True:
        try:
            for position in search.places(after - (inside is not None), upto):
                events = search.events(search.said(position), inside if position == after else None)
                yield from events
                after, inside = position, None
        except Mistaken:
            if not search.catalog.doubt():
                raise
        else:
            return


def _pattern(pattern: str | Pattern) -> Pattern:
    if isinstance(pattern, str):
        return parse(pattern)
    if not isinstance(pattern, Pattern):
        raise BadPattern(f"a pattern is a text, or made by pattern(...), not {pattern!r}")
    return pattern
