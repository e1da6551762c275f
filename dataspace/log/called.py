"""What sessions are called, by what other records say than their first ones: for a log of which these are lost.

The one rule: what cannot be read names nobody.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Final

from dataspace.drafts import Assertion, read_deeds, read_statements
from dataspace.errors import KeeveError
from dataspace.records import Header, Kind, split_body
from dataspace.values import ERASED

_OWN: Final = "spawn", "fork", "forked", "snapshot", "base", "restore", "salvaged", "deleted"
_FIELDS: Final = {**dict.fromkeys(_OWN, 0), "turn": 1}
"""Facts in which a session says what it is called, and in which field."""


class Called:
    """The ids of sessions by their uids, as the first says it who names one."""

    def __init__(self) -> None:
        self.names: dict[bytes, str] = {}

    def hear(self, header: Header, body: bytes) -> None:
        """Take up what a record says its session is called, and those that it names as its fork or its parent."""
        with suppress(KeeveError, ValueError, TypeError, LookupError):
            split = split_body(body)
            message = read_deeds(split.deeds).message  # type: ignore[union-attr]  # none is a body that names nobody
            for said in read_statements(split.facts, lambda _: ERASED):  # type: ignore[union-attr]  # the same
                if isinstance(said, Assertion) and said.fact.label in _FIELDS:
                    self._call(header.uid, said.fact.fields[_FIELDS[said.fact.label]])
                    if header.kind == Kind.FORK:
                        self._call(message.get("child"), said.fact.keywords.get("into"))
                    elif header.kind == Kind.FORKED:
                        self._call(message.get("parent"), said.fact.keywords.get("from"))

    def _call(self, uid: Any, id: Any) -> None:
        if isinstance(uid, bytes) and isinstance(id, str):
            self.names.setdefault(uid, id)
