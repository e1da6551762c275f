"""Who hears what running effects tell: of one session, named by its id or its uid, or of all.

The one rule: what is told costs those who hear it, not those who are there: a piece of which nobody hears is not made.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from dataspace.values import Value
from vat.devices.attempts import Wanted
from vat.host.pieces import Piece

Hear: TypeAlias = Callable[[Piece], None]
Which: TypeAlias = str | bytes | None


class Hearing:
    """Those who hear, by what they want to hear of. `head` is the position of the newest durable record."""

    def __init__(self, head: Callable[[], int]) -> None:
        self._head = head
        self._by: dict[Which, list[Hear]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._by.values()))

    def add(self, which: Which, hear: Hear) -> None:
        """From now on `hear` is told of a session, or for None of all."""
        self._by.setdefault(which, []).append(hear)

    def remove(self, which: Which, hear: Hear) -> None:
        """It is told no more. Nothing happens when it is not there."""
        those = self._by.get(which, [])
        if hear in those:
            those.remove(hear)
            if not those:
                del self._by[which]

    def of(self, wanted: Wanted) -> list[Hear]:
        """Those who are to be told what an effect tells."""
        by = self._by
        return [*by.get(None, ()), *by.get(wanted.session, ()), *by.get(wanted.key[0], ())]

    def piece(self, wanted: Wanted, value: Value) -> Piece:
        """What an effect tells now."""
        return Piece(wanted.session, wanted.id, wanted.device, wanted.method, value, self._head())
