"""The log's Merkle tree, as the catalog keeps it: some of its nodes in rows, the others made of records again.

A row holds up to 32 nodes of one level, every fifth level has rows: those over 32 records, over 1,024, and so on. That
is about one byte for each record. What lies between is hashed anew; the records below are read from the log, 32 at the
most for each node that is asked for. What is not in the file yet comes from memory.

    tree    level, n: the nodes `32 n` to `32 n + 31` of that level, end to end; the last row of a level is shorter
            0, 0: the leaves after the last 32 that are whole

The one rule: a node that is whole never changes. So what was made of records once is remembered, and rows are only
added to.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Protocol

import apsw

from dataspace.catalog.connections import rows
from dataspace.proofs.merkle import Ways, beside, consistency, grown, leaf_hash, node_hash, root

STEP: Final = 5
"""Levels between two that have rows."""
WIDTH: Final = 1 << STEP
"""Nodes in a row."""
HASH: Final = 32
"""Bytes of a node."""
_REMEMBERED: Final = 8_192
_KEPT: Final = 256
"""Nodes of level 5, the most below which all is remembered."""

SCHEMA: Final = "CREATE TABLE tree(level INT, n INT, nodes BLOB, PRIMARY KEY(level, n)) WITHOUT ROWID;\n"


class Ground(Protocol):
    """What the tree stands on: a catalog."""

    @property
    def written(self) -> int:
        """How many records the tables hold."""
        ...

    def nodes(self, level: int, n: int) -> bytes:
        """A row; empty when there is none."""
        ...

    def hashes(self, first: int, last: int) -> list[bytes]:
        """The hashes of the records after position `first`, up to and with `last` or the head."""
        ...


class LogTree:
    """The tree over all records that a catalog has noted: its roots and proofs at any size.

    A root or a proof costs some `log2(size)` hashes, a few rows, and for old records the headers of 32 of them: below
    a millisecond, whatever the size.
    """

    def __init__(self, ground: Ground) -> None:
        self._ground = ground
        self._made: dict[tuple[int, int], bytes] = {}
        self._low: dict[int, list[list[bytes]]] = {}  # what is below a node of level 5, and that: all that is whole

    def forget(self) -> None:
        """Make everything again: the rows were not what they should be."""
        self._made.clear()
        self._low.clear()

    def root(self, size: int) -> bytes:
        """The root over the first `size` records, which are there."""
        return root(size, self._node)

    def inclusion(self, position: int, size: int) -> tuple[bytes, ...]:
        """What proves that the record at `position` is among the first `size`. Raises `IndexError`."""
        return self.ways(position, size).proof(position - 1)

    def ways(self, position: int, size: int) -> Ways:
        """The same for all records that are below one node of level `STEP` with that one. Raises `IndexError`."""
        if not 0 < position <= size:
            raise IndexError(f"position {position} is not in a tree of {size}")
        number = position - 1 >> STEP
        count = min(WIDTH, size - WIDTH * number)
        above = beside(STEP, number, size, self._node)
        return Ways(WIDTH * number, count, self._below(number, count)[:STEP], above)

    def known(self, after: int, upto: int) -> dict[int, bytes]:
        """The nodes of level `STEP`, by number, that became whole by the records after position `after`, as far as they
        are at hand and every one before them is."""
        found: dict[int, bytes] = {}
        for number in range(after >> STEP, upto >> STEP):
            levels = self._low.get(number)
            if levels is None or not levels[STEP]:
                break
            found[number] = levels[STEP][0]
        return found

    def consistency(self, old: int, new: int) -> list[bytes]:
        """What proves that the log of `new` records goes on from the one of `old`. Raises `IndexError`."""
        return consistency(old, new, self._node)

    def _node(self, level: int, index: int) -> bytes:
        if level < STEP:
            number = index << level >> STEP
            inside = index - (number << STEP >> level)
            return self._below(number, inside + 1 << level)[level][inside]
        found = self._made.get((level, index))
        if found is None:
            found = self._make(level, index)
            if len(self._made) >= _REMEMBERED:
                self._made.clear()
            self._made[level, index] = found
        return found

    def _make(self, level: int, index: int) -> bytes:
        if level % STEP == 0 and index + 1 << level <= self._ground.written:
            first = index // WIDTH * WIDTH
            row = _parts(self._ground.nodes(level, index // WIDTH))
            self._made.update({(level, first + at): node for at, node in enumerate(row)})
            if index - first < len(row):
                return row[index - first]
        if level == STEP:
            return self._below(index, WIDTH)[STEP][0]
        return node_hash(self._node(level - 1, 2 * index), self._node(level - 1, 2 * index + 1))

    def _below(self, number: int, count: int) -> list[list[bytes]]:
        """What is below node `number` of level 5, and that: by level what is whole, with `count` leaves at least."""
        levels = self._low.get(number)
        if levels is None:
            if len(self._low) >= _KEPT:
                del self._low[next(iter(self._low))]
            levels = self._low[number] = [[] for _ in range(STEP + 1)]
        have = len(levels[0])
        if have < count:
            hashes = self._ground.hashes(WIDTH * number + have, WIDTH * (number + 1))
            grown(levels, [leaf_hash(hash) for hash in hashes])
        return levels


def grow(db: apsw.Connection, size: int, hashes: Sequence[bytes], known: Mapping[int, bytes]) -> None:
    """Add the records that follow the first `size` to the rows. About 1.5 µs for each.

    `known` are nodes of level `STEP` by number, that need not be made again. Raises `LookupError` when the rows do not
    end there.
    """
    number, inside = divmod(size, WIDTH)
    before = _before(db, 0, 0, inside)
    new: list[bytes] = []
    while (node := known.get(number + len(new))) is not None:
        new.append(node)
    if new:
        before, hashes = b"", hashes[WIDTH * len(new) - inside :]
    *whole, rest = _rows(before + b"".join([leaf_hash(hash) for hash in hashes]))
    # Of the leaves only those are kept that no row of the next level stands for.
    db.execute("INSERT OR REPLACE INTO tree VALUES(0, 0, ?)", (rest,))
    level, size = STEP, number
    new += [_over(row) for row in whole]
    while new:
        number, inside = divmod(size, WIDTH)
        *whole, rest = _rows(_before(db, level, number, inside) + b"".join(new))
        kept = [(level, number + at, row) for at, row in enumerate([*whole, rest]) if row]
        db.executemany("INSERT OR REPLACE INTO tree VALUES(?, ?, ?)", kept)
        new = [_over(row) for row in whole]
        level, size = level + STEP, number


def _before(db: apsw.Connection, level: int, row: int, count: int) -> bytes:
    """The first nodes of a row, which there are."""
    found = nodes(db, level, row)[: HASH * count] if count else b""
    if len(found) != HASH * count:
        raise LookupError(f"row {row} of level {level} ends before its node {count}")
    return found


def _rows(nodes: bytes) -> list[bytes]:
    """Nodes of a level as rows, the last of which is shorter, or empty."""
    return [nodes[at : at + HASH * WIDTH] for at in range(0, len(nodes) + 1, HASH * WIDTH)]


def nodes(db: apsw.Connection, level: int, n: int) -> bytes:
    """A row; empty when there is none."""
    found = rows(db, "SELECT nodes FROM tree WHERE level = ? AND n = ?", (level, n))
    return bytes(found[0][0]) if found else b""


def _parts(row: bytes) -> list[bytes]:
    return [row[at : at + HASH] for at in range(0, len(row) // HASH * HASH, HASH)]


def _over(row: bytes) -> bytes:
    """The node over a row that is full."""
    level = _parts(row)
    while len(level) > 1:
        level = [node_hash(level[at], level[at + 1]) for at in range(0, len(level), 2)]
    return level[0]
