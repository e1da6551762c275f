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


OWNERS: Final = 1_000
"""Owners whose sessions are kept in order."""


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

    def owner(self, by: str) -> Any:
        """What stands in the column `owner`."""
        return self.hashed(by) if by else None

    def listed(
        self, db: apsw.Connection, prefix: str, after: str, limit: int, by: str | None = None
    ) -> list[SessionRow]:
        """The sessions in the order of their ids, from `prefix` on, those behind `after`; or those of one owner."""
        which, whose = ("", ()) if by is None else ("owner = ? AND ", (self.owner(by),))
        sql = f"SELECT {SESSION} WHERE {which}id > ? AND id >= ? ORDER BY id LIMIT ?"
        return [SessionRow(*row) for row in rows(db, sql, (*whose, after, prefix, limit))]

    def renamed(self) -> None:
        """A session that was there has another id."""


class Ids:
    """Ids that were deciphered, in order, of all rows up to one."""

    def __init__(self) -> None:
        self.listed: SortedList[tuple[str, int]] = SortedList()
        self.upto = 0


class VeiledNames(Names):
    """Names under a veil."""

    def __init__(self, veil: Veil) -> None:
        self._veil = veil
        self.format = f"{FORMAT} veiled {veil.mark}"
        self._ids: dict[bytes | None, Ids] = {}
        self._renamings = 0
        self._known = 0

    def hashed(self, text: str) -> bytes:
        return self._veil.hashed(text)

    def hidden(self, text: str) -> bytes:
        return self._veil.hidden(text)

    def shown(self, hidden: Any) -> str:
        return self._veil.shown(hidden)

    def owner(self, by: str) -> Any:
        # Not as an id or a label of the same letters: that these are the same is nothing to be seen.
        return self.hashed(f"\0{by}") if by else None

    def cells(self, row: SessionRow) -> tuple[Any, Any]:
        return self.hashed(row.id), self.hidden(f"{len(row.id)} {row.id}{row.type}")

    def session(self, row: Any) -> SessionRow:
        length, _, text = self.shown(row[2]).partition(" ")
        at = int(length)
        return SessionRow(row[0], text[:at], text[at:], *row[3:])

    def listed(
        self, db: apsw.Connection, prefix: str, after: str, limit: int, by: str | None = None
    ) -> list[SessionRow]:
        """The same. What is new since the last time is deciphered: about 5 µs for each session."""
        if self._known != self._renamings:
            self._known = self._renamings
            self._ids.clear()
        owner = None if by is None else self.owner(by)
        ids = self._ids.setdefault(owner, Ids())
        if len(self._ids) > OWNERS:  # but the list of all, which is long, stays
            stay = (None, owner)
            self._ids = {whose: known for whose, known in self._ids.items() if whose in stay}
        if (last := rows(db, "SELECT max(n) FROM sessions")[0][0] or 0) > ids.upto:
            which, whose = ("", ()) if by is None else ("owner = ? AND ", (owner,))
            new = rows(db, f"SELECT n, {SESSION} WHERE {which}n > ? ORDER BY n", (*whose, ids.upto))
            ids.listed.update([(self.session(row[1:]).id, row[0]) for row in new])
            ids.upto = new[-1][0] if new and new[-1][0] > last else last  # some came after `last` was asked for
        found: list[SessionRow] = []
        for id, n in ids.listed.irange((max(prefix, after), 0)):
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
