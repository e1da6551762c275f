"""Places in a log: the heads of what is durable, a mark to read on from, what was signed, what is damaged.

The one rule: these are plain data, so that recovery (which is pure) and the stores (which are not) can
hand them to each other.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from dataspace.records import ZERO_HASH


class Head(NamedTuple):
    """The newest record of a log: its position and its hash. `START` when there is none."""

    position: int
    hash: bytes


START = Head(0, ZERO_HASH)
"""The head of a log without records."""

ChainHead: TypeAlias = tuple[int, bytes]
"""The newest record of one chain: its seq and its hash."""


class Mark(NamedTuple):
    """A place just after a commit frame, where reading may begin again.

    `position` is the last record's before it and `hash` that record's own (zeros when there is none);
    `commit` is the hash of the commit frame, by which the place is known again.
    """

    segment: int
    offset: int
    position: int
    hash: bytes
    commit: bytes

    @property
    def place(self) -> tuple[int, int]:
        """Its segment and offset, by which marks of one log are in order."""
        return self.segment, self.offset

    @property
    def head(self) -> Head:
        """The head as it was at this mark."""
        return Head(self.position, self.hash)


BEGINNING = Mark(1, 0, 0, ZERO_HASH, ZERO_HASH)
"""Where the first segment's first frame goes."""


class Certificate(NamedTuple):
    """A signed note over the records up to position `size`, whose tree has this root."""

    size: int
    root: bytes
    note: bytes


class Damage(NamedTuple):
    """The first record of a session whose body, cell or page is wrong while the chain around it is sound."""

    seq: int
    position: int
    address: int
    what: str
