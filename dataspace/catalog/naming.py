"""Names in the catalog's rows: what stands there for an id, a type, a label, and what is read from it.

Where the store is encrypted that is a keyed hash, for what is looked up, and ciphertext, for what is shown. Hashes have
no order that means anything; so there the ids are deciphered once, when somebody lists them, and kept in order.

The one rule: whatever a row is to say of content goes through here.
"""

from __future__ import annotations

from typing import Any, Final

import apsw
from sortedcontainers import SortedList

from dataspace.catalog.connections import rows
from dataspace.catalog.recent import SessionRow
from dataspace.catalog.schema import FORMAT
from dataspace.encryption.veil import Veil

SESSION: Final = (
    "uid, id, type, seq, position, hash, parent, parent_seq, pending, deleted, created, updated FROM sessions"
)
"""The columns of a `SessionRow`."""


class Names:
    """Names as they are."""

    format: str = FORMAT
    """What the file says that it is."""

    def hashed(self, text: str) -> Any:
        """What a text is looked up by."""
        return text

    def hidden(self, text: str) -> Any:
        """What a text is read from."""
        return text

    def shown(self, hidden: Any) -> str:
        """The text. Raises `ValueError` or `TypeError` for what is none."""
        return str(hidden)

    def cells(self, row: SessionRow) -> tuple[Any, Any]:
        """What stands in the columns `id` and `type`."""
        return row.id, row.type

    def session(self, row: Any) -> SessionRow:
        """A row of `SESSION`, read."""
        return SessionRow(*row)

    def listed(self, db: apsw.Connection, prefix: str, after: str, limit: int) -> list[SessionRow]:
        """The sessions in the order of their ids, from `prefix` on, those behind `after`."""
        sql = f"SELECT {SESSION} WHERE id > ? AND id >= ? ORDER BY id LIMIT ?"
        return [SessionRow(*row) for row in rows(db, sql, (after, prefix, limit))]

    def renamed(self) -> None:
        """A session that was there has another id."""


class VeiledNames(Names):
    """Names under a veil."""

    def __init__(self, veil: Veil) -> None:
        self._veil = veil
        self.format = f"{FORMAT} veiled {veil.mark}"
        self._ids: SortedList[tuple[str, int]] = SortedList()
        self._upto = 0
        self._renamings = 0
        self._known = 0

    def hashed(self, text: str) -> bytes:
        return self._veil.hashed(text)

    def hidden(self, text: str) -> bytes:
        return self._veil.hidden(text)

    def shown(self, hidden: Any) -> str:
        return self._veil.shown(hidden)

    def cells(self, row: SessionRow) -> tuple[Any, Any]:
        return self.hashed(row.id), self.hidden(f"{len(row.id)} {row.id}{row.type}")

    def session(self, row: Any) -> SessionRow:
        length, _, text = self.shown(row[2]).partition(" ")
        at = int(length)
        return SessionRow(row[0], text[:at], text[at:], *row[3:])

    def listed(self, db: apsw.Connection, prefix: str, after: str, limit: int) -> list[SessionRow]:
        """The same. What is new since the last time is deciphered: about 5 µs for each session."""
        if self._known != self._renamings:
            self._known, self._upto = self._renamings, 0
            self._ids.clear()
        new = rows(db, f"SELECT n, {SESSION} WHERE n > ? ORDER BY n", (self._upto,))
        if new:
            self._ids.update([(self.session(row[1:]).id, row[0]) for row in new])
            self._upto = new[-1][0]
        found: list[SessionRow] = []
        for id, n in self._ids.irange((max(prefix, after), 0)):
            if len(found) >= limit:
                break
            if id > after:
                found += [self.session(row) for row in rows(db, f"SELECT {SESSION} WHERE n = ?", (n,))]
        return found

    def renamed(self) -> None:
        self._renamings += 1


def names_for(secret: bytes | None) -> Names:
    """The names of a store with this secret, or of one that is not encrypted."""
    return Names() if secret is None else VeiledNames(Veil(secret))
