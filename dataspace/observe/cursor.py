"""Cursors: how far an observer has read.

A cursor names a log, a position in it and the hash of the record there, so that it cannot be taken for a
place in another log or in another history. Its text is `log id:position:hash`, or `log id:position.operation:hash`
while statements of that record are left; ids and hashes are hex.

The one rule: a cursor is everything that an observer has. What it has considered lies at or before it,
whether it matched or not.
"""

from __future__ import annotations

import re
from typing import ClassVar, Final, NamedTuple

from dataspace.errors import KeeveError
from dataspace.records import ZERO_HASH
from dataspace.remedies import Remedy

_TEXT = re.compile(r"([0-9a-f]{32}):(\d{1,19})(?:\.(\d{1,19}))?:([0-9a-f]{64})", re.ASCII)


NAME_PLACE: Final = Remedy("name-place", "a position, or the cursor that an event carried")


class BadCursor(KeeveError, ValueError):
    """A text that is no cursor."""

    usage: ClassVar[bool] = True

    def __init__(self, text: object) -> None:
        self.text = text
        super().__init__(f'{text!r} is no cursor: use "start", "head", {NAME_PLACE()}')


def number_in(text: str) -> int | None:
    """The number that a text is, in decimal digits; None if it is none, or is 10**18 or more, as no place in a log is.

    >>> number_in("12"), number_in("-1"), number_in("1e3"), number_in("9" * 19)
    (12, None, None, None)
    """
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 19 else None


class Cursor(NamedTuple):
    """A place in a log: after the record at `position`, whose hash is `hash`; 0 and zeros at the start.

    With `operation`, after that operation of the record and before the later ones.
    """

    log_id: bytes
    position: int
    hash: bytes
    operation: int | None = None

    @classmethod
    def start(cls, log_id: bytes) -> Cursor:
        """The cursor before the first record."""
        return cls(log_id, 0, ZERO_HASH)

    @classmethod
    def parse(cls, text: str) -> Cursor:
        """The cursor whose text this is. Raises `BadCursor`."""
        found = _TEXT.fullmatch(text)
        if found is None:
            raise BadCursor(text)
        log_id, position, operation, digest = found.groups()
        return cls(
            bytes.fromhex(log_id),
            int(position),
            bytes.fromhex(digest),
            None if operation is None else int(operation),
        )

    def __str__(self) -> str:
        inside = "" if self.operation is None else f".{self.operation}"
        return f"{self.log_id.hex()}:{self.position}{inside}:{self.hash.hex()}"


class WrongCursor(KeeveError):
    """A cursor that is no place in this log. Reading does not begin anywhere else instead."""

    usage: ClassVar[bool] = True

    def __init__(self, cursor: Cursor, what: str) -> None:
        self.cursor = cursor
        super().__init__(f"{f'cursor {cursor}' if cursor.hash else f'position {cursor.position}'}: {what}")


class CursorOfAnotherLog(WrongCursor, quotes=False):
    """A cursor from another store."""

    def __init__(self, cursor: Cursor, log_id: bytes) -> None:
        self.log_id = log_id
        super().__init__(
            cursor, f"it is of another log than this one ({log_id.hex()}): use it with its own store, or start over"
        )


class CursorAhead(WrongCursor, quotes=False):
    """A cursor beyond the newest durable record: the log is not the one that was read, or a part is missing."""

    def __init__(self, cursor: Cursor, head: int) -> None:
        self.head = head
        older = "this may be an older copy of the store; find the newer one, or start over"
        remedy = older if cursor.hash else "give one up to that, or head"
        super().__init__(cursor, f"it is ahead of the log, which ends at position {head}: {remedy}")


class CursorChanged(WrongCursor, quotes=False):
    """A cursor whose record is another one now: history is not what was read."""

    def __init__(self, cursor: Cursor, actual: bytes) -> None:
        self.actual = actual
        super().__init__(
            cursor,
            f"the record there has the hash {actual.hex()} now: the history is not the one that was read; "
            "compare the store with a backup, or start over",
        )
