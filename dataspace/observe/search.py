"""Searching: which records may say what a pattern asks for, what they say, and what holds.

The catalog gives the places, the log the words, the view what may be seen of them. Past and live are found
by the same code.

The one rule: nothing is skipped because it cannot be read. A record that may match and is damaged raises;
one that was erased, or whose session was deleted, says nothing any more.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Final

from dataspace.catalog.catalog import Catalog
from dataspace.catalog.lookups import LATEST
from dataspace.catalog.recall import Mistaken, Said
from dataspace.catalog.recent import Taken
from dataspace.drafts import Assertion, Handle, Statement
from dataspace.facts import Fact
from dataspace.log.archives import Archived
from dataspace.log.verdicts import SessionDamaged
from dataspace.observe.cursor import Cursor
from dataspace.observe.events import Away, Event, Held, Unreadable
from dataspace.observe.narrow import View
from dataspace.observe.turns import Turns
from dataspace.patterns import Captures, Pattern
from dataspace.records import Kind

AWAY: Final = "its content is in an archive that is not here (`keeve doctor` says where it should be)"

_TOGETHER: Final = 256
"""Places whose retractions are looked up at once."""


class Search:
    """What `pattern` finds through `view`."""

    def __init__(self, catalog: Catalog, log_id: bytes, pattern: Pattern, view: View) -> None:
        self.catalog = catalog
        self.pattern = pattern
        self.view = view
        self._log_id = log_id
        asked = [pattern, *[limit for limit in view.limits if isinstance(limit, Pattern)]]
        labels = [one.skeleton().label for one in asked]
        self._label = next((label for label in labels if label is not None), None)
        legs = view.legs
        self._upto = None if legs is None else {leg.uid: leg.upto for leg in legs}
        live = [leg.uid for leg in legs or () if leg.upto == LATEST]
        self.session = live[0] if live else None
        """The session that can still say something that matches; None when any can, or none."""
        self.wanted = _wanted(pattern, view) if legs is None or live else None
        """The pattern to wait with; None when nothing more can come."""
        self.turns = Turns()
        """Whose turn it is, as far as records are read here."""

    def places(self, after: int, upto: int) -> Iterator[int]:
        """The positions after `after`, up to and with `upto`, of the records that may match, in order."""
        if self.view.legs is None:
            yield from self.catalog.positions(None, self._label, after, upto)
            return
        for leg in self.view.legs:
            last = upto
            if leg.upto != LATEST:
                last = min(upto, self.catalog.position(leg.uid, leg.upto) or 0)
            yield from self.catalog.positions(leg.uid, self._label, after, last)

    def said(self, position: int) -> Said:
        """The record at one of those places. Raises `SessionDamaged`, which names the session by its id; `Mistaken`
        where the catalog has led to a record of another session or of other words."""
        try:
            said = self.catalog.said(position)
        except SessionDamaged as error:
            try:
                stored = self.catalog.stored(position)
            except SessionDamaged as headless:  # nothing says what it was, and whether it is deleted since
                name = self.catalog.name(bytes.fromhex(headless.session))
                raise SessionDamaged(name, headless.seq, headless.position, headless.what) from error
            uid = stored.header.uid
            nothing = Said(stored.header, stored.header.hash, stored.address, ())
            if self._hidden(nothing):
                return nothing  # whatever it said, it was deleted
            raise SessionDamaged(self.catalog.name(uid), error.seq, error.position, error.what) from error
        except Archived as error:  # it may be that of an earlier record, which this one refers to
            raise Archived(error.segment, error.places, position) from error
        if not self._belongs(said):
            raise Mistaken
        self.turns.reads(said.size)
        return said

    def _belongs(self, said: Said) -> bool:
        """Whether a record is one of those that were looked for, as far as it says anything."""
        header = said.header
        if self._upto is not None and not (
            header.seq <= self._upto.get(header.uid, -1)
            and self.catalog.position(header.uid, header.seq) == header.position
        ):
            return False
        if self._label is None or not said.statements:
            return True
        return any(self._tells(header.uid, statement) for statement in said.statements)

    def _tells(self, uid: bytes, statement: Statement) -> bool:
        """Whether a statement may be about the label that is looked for."""
        if isinstance(statement, Assertion):
            return statement.fact.label == self._label
        found = self.catalog.asserted(uid, statement.handle)
        return found is None or found[1].label == self._label

    def events(self, said: Said, after: int | None = None) -> list[Event]:
        """The events of a record, those after operation `after` if it is given."""
        found = []
        header = said.header
        for statement in said.statements:
            if after is not None and statement.at <= after:
                continue
            match = self._match(said, statement)
            if match is None:
                continue
            if self._hidden(said):
                return []
            fact, captures = match
            last = statement is said.statements[-1]
            found.append(
                Event(
                    header.position,
                    self.catalog.name(header.uid),
                    header.uid,
                    header.seq,
                    statement.at,
                    "assert" if type(statement) is Assertion else "retract",
                    fact,
                    captures,
                    header.time,
                    said.hash,
                    Cursor(self._log_id, header.position, said.hash, None if last else statement.at),
                )
            )
        return found

    def unreadable(self, position: int, error: SessionDamaged | Archived) -> Unreadable:
        """What is said in the place of a record that cannot be read."""
        kind = Away if isinstance(error, Archived) else Unreadable
        what = AWAY if isinstance(error, Archived) else error.what
        header = self.catalog.stored(position).header
        cursor = Cursor(self._log_id, position, header.hash)
        return kind(position, self.catalog.name(header.uid), header.uid, header.seq, what, cursor)

    def held(self, at: int) -> list[Held]:
        """What matches and holds at position `at`, in the order of assertion, all at once."""
        while True:
            try:
                return [step for step in self.holding(at) if isinstance(step, Held)]
            except Mistaken:
                if not self.catalog.doubt():
                    raise

    def holding(self, at: int, after: tuple[int, int | None] = (0, None)) -> Iterator[Held | int]:
        """The same in small steps, behind a place: what holds, and each position up to which all was looked at."""
        first, inside = after
        behind = first - (inside is not None)
        for positions in self._some_places(behind, at):
            taken = {
                (one.position, one.operation)
                for one in self.catalog.taken(positions[0], positions[-1], at)
                if self._takes(one)
            }
            for position in positions:
                said = self.said(position)
                passed = inside if position == first and inside is not None else -1
                for statement in said.statements:
                    if type(statement) is Assertion and statement.at > passed and (position, statement.at) not in taken:
                        match = self._match(said, statement)
                        if match is not None and not self._hidden(said):
                            yield self._held(said, statement.at, *match)
                yield position

    def _some_places(self, after: int, at: int) -> Iterator[list[int]]:
        """The positions of records that may say what holds, some at a time."""
        if self.view.legs is None and self._label is not None:
            places = self.catalog.standing(self._label, at, after)
        else:
            places = self.places(after, at)
        for _, group in groupby(enumerate(places), lambda place: place[0] // _TOGETHER):
            yield [position for _, position in group]

    def _held(self, said: Said, operation: int, fact: Fact, captures: Captures) -> Held:
        header = said.header
        handle = Handle(header.seq, operation)
        name = self.catalog.name(header.uid)
        return Held(handle, name, header.uid, fact, captures, header.position, header.time)

    def _match(self, said: Said, statement: Statement) -> tuple[Fact, Captures] | None:
        if isinstance(statement, Assertion):
            fact: Fact | None = statement.fact
        else:
            found = self.catalog.asserted(said.header.uid, statement.handle)
            fact = None if found is None else found[1]
        seen = None if fact is None else self.view.of(fact)
        captures = None if seen is None else self.pattern.match(seen)
        return None if seen is None or captures is None else (seen, captures)

    def _takes(self, taken: Taken) -> bool:
        """Whether a retraction counts here: a fork's, of what it inherited, counts in its own lineage only."""
        return taken.own if self._upto is None else taken.seq <= self._upto.get(taken.by, -1)

    def _hidden(self, said: Said) -> bool:
        """Whether a record's session is deleted. What a living fork inherited from it is still its own."""
        header = said.header
        row = self.catalog.by_uid(header.uid)
        if row is None or not row.deleted or header.kind == Kind.DELETE:
            return False
        return self._upto is None or self._upto.get(header.uid, LATEST) == LATEST


def _wanted(pattern: Pattern, view: View) -> Pattern:
    """A pattern of the facts, as they are stated, that `pattern` may match as they are seen."""
    return Pattern(pattern.label, (), {}, True) if view.redacts else pattern
