"""Places in a log, as readers name them: the start, the head, a position, a cursor.

The one rule: a cursor that is no place in this log is refused. Nobody is taken somewhere else instead.
"""

from __future__ import annotations

from typing import Literal, TypeAlias, TypedDict

from dataspace.catalog.catalog import Catalog
from dataspace.log.store import Store
from dataspace.observe.cursor import BadCursor, Cursor, CursorAhead, CursorChanged, CursorOfAnotherLog, number_in
from dataspace.records import ZERO_HASH

After: TypeAlias = 'Literal["start", "head"] | int | Cursor'
"""Where to begin: after the record at a position, or after nothing, or after all that is durable now."""
Until: TypeAlias = 'Literal["head"] | int | Cursor | None'
"""Where to end: with the record at a position, with what is durable now, or never."""


def place_of(text: str) -> Literal["start", "head"] | int | Cursor:
    """The place that a text names: `start`, `head`, a position, or a cursor. Raises `BadCursor`."""
    if text == "start":
        return "start"
    if text == "head":
        return "head"
    position = number_in(text)
    return Cursor.parse(text) if position is None else position


class Whose(TypedDict, total=False):
    """Of which session, for who hands on how it is to be read; with `lineage` its ancestors' before."""

    session: str | bytes | None
    lineage: bool


class Heard(Whose, total=False):
    """How events are observed."""

    after: After
    until: Until


class Queried(Whose, total=False):
    """How events are asked for."""

    after: After
    upto: int | Cursor | None


class Holding(Whose, total=False):
    """How facts are asked for: those that hold at a position."""

    at: int | Cursor | None


class Places:
    """The places of `store`, as far as `catalog` has come."""

    def __init__(self, store: Store, catalog: Catalog) -> None:
        self.store = store
        self.catalog = catalog

    @property
    def head(self) -> Cursor:
        """The cursor at the head of what has been noted."""
        return Cursor(self.store.log_id, *self.catalog.reached)

    def at(self, after: After) -> Cursor:
        """The cursor that is meant. Raises `WrongCursor` for one that is no place in this log."""
        head = self.store.head
        log_id = self.store.log_id
        if after == "start":
            return Cursor.start(log_id)
        if after == "head":
            return Cursor(log_id, *head)
        if not isinstance(after, Cursor | int):
            raise BadCursor(after)
        cursor = after if isinstance(after, Cursor) else Cursor(log_id, after, b"")
        if cursor.log_id != log_id:
            raise CursorOfAnotherLog(cursor, log_id)
        if not 0 <= cursor.position <= head.position:
            raise CursorAhead(cursor, head.position)
        actual = self._hash_at(cursor.position)
        if isinstance(after, int):
            return Cursor(log_id, after, actual)
        if cursor.hash != actual:
            raise CursorChanged(cursor, actual)
        return cursor

    def end(self, upto: int | Cursor) -> int:
        """The position that is meant as an end; a bare one may be yet to come. Raises `WrongCursor` as `at` does."""
        return upto if isinstance(upto, int) else self.at(upto).position

    def _hash_at(self, position: int) -> bytes:
        if position == 0:
            return ZERO_HASH
        head = self.store.head
        if position == head.position:
            return head.hash
        if position > self.catalog.head.position:
            # Durable and not noted yet: the next step of the writer will tell; until then the log does.
            for stored in self.store.scan(self.catalog.at(self.catalog.head.position)):
                if stored.header.position == position:
                    return stored.header.hash
        return self.catalog.stored(position).header.hash
