"""Chain heads: whether a record follows the newest one of its chain, as far as a store knows.

A store remembers the chains that were written to lately, and no more: an idle session costs no memory, and
whoever loads a session has its head from the catalog.

The one rule: `follow` changes nothing. What a batch leads to is noted only when it is durable.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from dataspace.log.marks import ChainHead
from dataspace.log.store import WrongHead
from dataspace.records import ZERO_HASH, Kind, Record

REMEMBERED = 16_384
"""How many chains are remembered."""


class Chains:
    """The heads of the chains that were written to lately, the least recent first.

    `known` is asked for the head of any other; without it the first record of such a chain is taken as it is.
    """

    def __init__(self, known: Callable[[bytes], ChainHead | None] | None = None, remembered: int = REMEMBERED) -> None:
        self._heads: dict[bytes, ChainHead] = {}
        self._known = known
        self._remembered = remembered

    def get(self, uid: bytes) -> ChainHead | None:
        """The newest record of a chain, if it is remembered."""
        return self._heads.get(uid)

    def follow(self, records: Sequence[Record]) -> dict[bytes, ChainHead]:
        """The heads after these records. Raises `WrongHead`."""
        after: dict[bytes, ChainHead] = {}
        for record in records:
            uid = record.uid
            head = after.get(uid) or self._heads.get(uid)
            if head is None:
                head = self._first(record)
            if record.previous != head[1] or record.seq != head[0] + 1:
                raise WrongHead(uid.hex(), head, (record.seq - 1, record.previous))
            after[uid] = (record.seq, record.hash)
        return after

    def _first(self, record: Record) -> ChainHead:
        """What a record of a chain that is not remembered must follow."""
        head = self._known(record.uid) if self._known is not None else None
        if head is not None:
            return head
        if record.kind == Kind.FORKED or (self._known is None and record.seq > 1):
            return record.seq - 1, record.previous
        return 0, ZERO_HASH

    def note(self, after: Mapping[bytes, ChainHead]) -> None:
        """Remember what `follow` gave, now that it is durable."""
        heads = self._heads
        for uid, head in after.items():
            heads.pop(uid, None)
            heads[uid] = head
        while len(heads) > self._remembered:
            del heads[next(iter(heads))]
