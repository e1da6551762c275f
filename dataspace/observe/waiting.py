"""Waiting: who wants to hear of the next fact of some kind, of a session's next record, or that the log has come to a
position.

Whoever waits is in an index by what it wants. The first record that may matter to it takes it out again and
leaves it one number, the record's position; it hears no more until it waits again. So noting a record costs
the same with ten who wait and with a hundred thousand, as long as nobody wants it.

The one rule: this file wakes and never reads for anybody.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import trio
from sortedcontainers import SortedDict

from dataspace.catalog.recall import ANYTHING, Notable, Said
from dataspace.drafts import Assertion, Handle, Statement
from dataspace.errors import KeeveError
from dataspace.facts import Fact
from dataspace.log.verdicts import SessionDamaged
from dataspace.observe.interest import Interest
from dataspace.patterns import Pattern


class Parked:
    """One who waits. When `event` is set, `wanted` is the position to read on from, or None: all was passed."""

    __slots__ = ("event", "place", "session", "wanted")

    def __init__(self, session: bytes | None) -> None:
        self.event = trio.Event()
        self.wanted: int | None = None
        self.session = session
        self.place: tuple[int, int] | None = None


class Waiting:
    """Those who wait. `asserted` finds the facts that are retracted."""

    def __init__(self, asserted: Callable[[bytes, Handle], tuple[Said, Fact] | None]) -> None:
        self._asserted = asserted
        self._everywhere: Interest[Parked] = Interest()
        self._by_session: dict[bytes, Interest[Parked]] = {}
        self._by_position: SortedDict[tuple[int, int], Parked] = SortedDict()
        self._parked: set[Parked] = set()
        self._appended: dict[bytes, trio.Event] = {}
        self._serial = 0

    def __bool__(self) -> bool:
        return bool(self._parked or self._appended)

    def park(self, pattern: Pattern | None, session: bytes | None, until: int | None) -> Parked:
        """Wait for a fact that `pattern` matches (of one session, if it is named), or for a position.

        The caller awaits `event`, and calls `leave` however that ends. O(size of the pattern).
        """
        parked = Parked(session)
        self._parked.add(parked)
        if pattern is not None:
            interest = self._everywhere
            if session is not None:
                interest = self._by_session.setdefault(session, Interest())
            interest.add(parked, pattern)
        if until is not None:
            self._serial += 1
            parked.place = (until, self._serial)
            self._by_position[parked.place] = parked
        return parked

    def leave(self, parked: Parked) -> None:
        """Wait no more. Once is enough."""
        self._parked.discard(parked)
        if parked.session is None:
            self._everywhere.discard(parked)
        elif (interest := self._by_session.get(parked.session)) is not None:
            interest.discard(parked)
            if not interest:
                del self._by_session[parked.session]
        if parked.place is not None:
            self._by_position.pop(parked.place, None)

    async def reached(self, position: int) -> None:
        """Wait until the record at `position` has been noted, which the caller has seen that it is not."""
        parked = self.park(None, None, position)
        try:
            await parked.event.wait()
        finally:
            self.leave(parked)

    async def appended(self, session: bytes) -> None:
        """Wait until another record of that session, by uid, has been noted, whatever it states."""
        event = self._appended.setdefault(session, trio.Event())
        try:
            await event.wait()
        finally:
            # Of several that give up at once, each sees that nobody waits; and another event may be there by then.
            if self._appended.get(session) is event and not event.statistics().tasks_waiting:
                del self._appended[session]

    def note(self, records: Sequence[Notable], head: int) -> None:
        """Wake those who may want something in `records`, and those who wait for positions up to `head`; and all, where
        that is before these: what they say could not be noted, and whoever reads on notes it, or is told why not.

        O(facts) look-ups, and what it costs to wake who is woken.
        """
        if head < records[-1].position:
            self._wake(list(self._parked), records[0].position)
        for record in records:
            if self._appended and (event := self._appended.pop(record.uid, None)) is not None:
                event.set()
            if record.statements is ANYTHING:
                self._wake(list(self._parked), record.position)
            local = self._by_session.get(record.uid)
            if local is None and not self._everywhere:
                continue
            for statement in record.statements:
                try:
                    fact = self._fact(record.uid, statement)
                except KeeveError:  # nobody knows now what is taken back: whoever waits comes to that, and is told
                    self._wake(list(self._parked), record.position)
                    break
                if fact is not None:
                    self._wake(self._everywhere.wanting(fact), record.position)
                    if local is not None:
                        self._wake(local.wanting(fact), record.position)
        while self._by_position:
            (position, _), parked = self._by_position.peekitem(0)
            if position > head:
                break
            self._wake((parked,), None)

    def _wake(self, wanting: Iterable[Parked], position: int | None) -> None:
        for parked in wanting:
            parked.wanted = position
            parked.event.set()
            self.leave(parked)

    def _fact(self, uid: bytes, statement: Statement) -> Fact | None:
        if isinstance(statement, Assertion):
            return statement.fact
        try:
            found = self._asserted(uid, statement.handle)
        except SessionDamaged:
            return None  # nobody can be shown what cannot be read
        return None if found is None else found[1]
