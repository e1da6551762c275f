"""The Merkle tree over the records of a log: roots, and proofs that hold for whoever has a root.

    root of nothing     SHA-256 of nothing
    leaf                SHA-256(0x00 ‖ hash of the record)
    node                SHA-256(0x01 ‖ left ‖ right), where left is over the largest power of two of leaves that is less

The tree of RFC 6962, section 2.1; leaf `n` is the record at position `n + 1`. Proofs are checked as RFC 9162, sections
2.1.3.2 and 2.1.4.2, says.

The one rule: everything is made of *whole* subtrees, those over `2**level` leaves that begin at a multiple of that.
They never change as the tree grows, so whoever keeps them somewhere passes in `node(level, index)`, and every root and
proof asks for some `log2(size)` of them.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import sha256
from typing import Final, TypeAlias

Node: TypeAlias = Callable[[int, int], bytes]
"""The hash of the whole subtree over `2**level` leaves from leaf `index * 2**level` on, given level and index."""

EMPTY: Final = sha256(b"").digest()
"""The root of a tree without leaves."""
LONGEST: Final = 64
"""No proof has more hashes."""
_SIZE: Final = 32
_PAIR: Final = struct.Struct("64s")


def leaf_hash(record: bytes) -> bytes:
    """The leaf of a record with this hash."""
    return sha256(b"\x00" + record).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """What stands over two subtrees."""
    return sha256(b"\x01" + left + right).digest()


def root(size: int, node: Node) -> bytes:
    """The root of the tree over the first `size` leaves."""
    return _over(0, size, node) if size else EMPTY


def inclusion(index: int, size: int, node: Node) -> list[bytes]:
    """What proves that leaf `index` is in the tree over the first `size` leaves; from the leaf's sibling up."""
    if not 0 <= index < size:
        raise IndexError(f"leaf {index} is not in a tree of {size}")
    return beside(0, index, size, node)


def beside(level: int, place: int, size: int, node: Node) -> list[bytes]:
    """What stands beside the way to the root from the node number `place` of a level."""
    found = []
    last = (size - 1) >> level
    while last:
        sibling = place ^ 1
        if sibling < last:
            found.append(node(level, sibling))
        elif sibling == last:
            found.append(_over(sibling << level, size, node))
        level, place, last = level + 1, place >> 1, last >> 1
    return found


class Ways:
    """The ways to the root from the first `count` leaves under one node, number `first` and on, of a tree of some size.

    `levels` are the whole nodes below that node, the leaves first, and `above` is what stands beside the way from it.
    All of it is kept here, and does not change: a proof is picked out of it at any time, whatever becomes of the tree.
    """

    __slots__ = ("_above", "_first", "_levels")

    def __init__(self, first: int, count: int, levels: Sequence[Sequence[bytes]], above: Iterable[bytes]) -> None:
        self._first = first
        self._above = tuple(above)
        shown = []
        edge = b""  # what is over the leaves behind the last whole node of the level
        for level, nodes in enumerate(levels):
            whole = tuple(nodes[: count >> level])
            shown.append((*whole, edge) if edge else whole)
            if len(whole) & 1:
                edge = node_hash(whole[-1], edge) if edge else whole[-1]
        self._levels = tuple(shown)

    def proof(self, index: int) -> tuple[bytes, ...]:
        """What proves leaf `index`, from its sibling up."""
        at = index - self._first
        found = []
        for nodes in self._levels:
            if at ^ 1 < len(nodes):  # the last one may have none beside it
                found.append(nodes[at ^ 1])
            at >>= 1
        return (*found, *self._above)


def grown(levels: Sequence[list[bytes]], leaves: Iterable[bytes]) -> None:
    """Add leaves to a subtree whose whole nodes are `levels`, the leaves first; and what is whole with them."""
    below = levels[0]
    below += leaves
    for level in levels[1:]:
        new = below[2 * len(level) :]
        level += [sha256(b"\x01" + left + right).digest() for left, right in zip(new[::2], new[1::2], strict=False)]
        below = level


def consistency(old: int, new: int, node: Node) -> list[bytes]:
    """What proves that the tree over the first `new` leaves goes on from the one over the first `old`."""
    if not 0 < old <= new:
        raise IndexError(f"a tree of {new} leaves does not go on from one of {old}")
    proof = []
    first, last = 0, new
    while old < last:
        middle = first + _left(last - first)
        if old <= middle:
            proof.append(_over(middle, last, node))
            last = middle
        else:
            proof.append(_over(first, middle, node))
            first = middle
    if first:  # else the old root is a subtree of the new tree, which whoever checks has already
        proof.append(_over(first, last, node))
    return proof[::-1]


def includes(root: bytes, size: int, leaf: bytes, index: int, proof: Sequence[bytes]) -> bool:
    """Whether `proof` shows that `leaf` is number `index` of the tree of that size and root."""
    if not (0 <= index < size and _hashes(root, leaf, *proof)):
        return False
    place, last = index, size - 1
    found = leaf
    for beside in proof:
        if last == 0:
            return False
        if place & 1 or place == last:
            found = node_hash(beside, found)
            place, last = _up(place, last)
        else:
            found = node_hash(found, beside)
        place, last = place >> 1, last >> 1
    return last == 0 and found == root


def extends(old: int, old_root: bytes, new: int, new_root: bytes, proof: Sequence[bytes]) -> bool:
    """Whether `proof` shows that the new tree goes on from the old one. Nothing is shown of an old size of 0."""
    if not (0 < old <= new and _hashes(*proof)):
        return False
    if old == new:
        return not proof and old_root == new_root
    path = list(proof)
    if old & (old - 1) == 0:  # the old tree is one whole subtree
        path.insert(0, old_root)
    if not path:
        return False
    place, last = old - 1, new - 1
    while place & 1:
        place, last = place >> 1, last >> 1
    before = after = path[0]
    for beside in path[1:]:
        if last == 0:
            return False
        if place & 1 or place == last:
            before = node_hash(beside, before)
            after = node_hash(beside, after)
            place, last = _up(place, last)
        else:
            after = node_hash(after, beside)
        place, last = place >> 1, last >> 1
    return last == 0 and before == old_root and after == new_root


class Tree:
    """A tree that is all in memory: two hashes for each leaf, and 64 bytes."""

    def __init__(self, leaves: Iterable[bytes] = ()) -> None:
        self.levels: list[bytearray] = [bytearray()]
        for leaf in leaves:
            self.append(leaf)

    @property
    def size(self) -> int:
        """How many leaves it has."""
        return len(self.levels[0]) // 32

    def append(self, leaf: bytes) -> None:
        """Add a leaf, and what is whole with it."""
        levels = self.levels
        level = levels[0]
        level += leaf
        above = 1
        while not len(level) & 63:
            if above == len(levels):
                levels.append(bytearray())
            level, below = levels[above], level
            level += node_hash(bytes(below[-64:-32]), bytes(below[-32:]))
            above += 1

    def extend(self, leaves: Sequence[bytes]) -> None:
        """Add many leaves: quicker than one after another."""
        levels = self.levels
        below = levels[0]
        below += b"".join(leaves)
        above = 1
        while len(below) >= 64:
            if above == len(levels):
                levels.append(bytearray())
            level = levels[above]
            new = below[2 * len(level) : len(below) & -64]
            level += b"".join([sha256(b"\x01" + pair).digest() for (pair,) in _PAIR.iter_unpack(new)])
            below = level
            above += 1

    def node(self, level: int, index: int) -> bytes:
        """The hash of a whole subtree."""
        return bytes(self.levels[level][32 * index : 32 * index + 32])

    def root(self, size: int) -> bytes:
        """The root over the first `size` leaves."""
        return root(size, self.node)


def whole(first: int, last: int) -> Iterator[tuple[int, int]]:
    """The whole subtrees (level, index) that cover the leaves from `first` to before `last`, left to right.

    `first` is a multiple of some power of two that is at least as large as the range.
    """
    while first < last:
        level = (last - first).bit_length() - 1
        yield level, first >> level
        first += 1 << level


def _over(first: int, last: int, node: Node) -> bytes:
    """The hash over a range of leaves that is a subtree."""
    size = last - first
    if not size & (size - 1):  # most are whole
        level = size.bit_length() - 1
        return node(level, first >> level)
    found = [node(level, index) for level, index in whole(first, last)]
    over = found.pop()
    while found:
        over = node_hash(found.pop(), over)
    return over


def _hashes(*given: bytes) -> bool:
    return len(given) <= LONGEST + 2 and all(len(each) == _SIZE for each in given)


def _left(size: int) -> int:
    """The largest power of two that is less than `size`."""
    return 1 << (size - 1).bit_length() - 1


def _up(place: int, last: int) -> tuple[int, int]:
    """Pass over the levels on which a place at the right edge has nothing beside it."""
    while place and not place & 1:
        place, last = place >> 1, last >> 1
    return place, last
