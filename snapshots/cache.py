"""The pages that a host keeps in memory, for all of its vats together; the least recently used ones go first.

Every entry is a node as its page gave it, which nobody changes, so one entry serves any number of readers.
The one rule: a page is found by owner, seq and number, and given out only for the digest that it was kept
under, so that a damaged page and its good copy are two.

For one thread: the host's.
"""

from __future__ import annotations

from collections import OrderedDict

import attrs

from snapshots.nodes import Node, PageRef

_Key = tuple[bytes, int, int]


@attrs.frozen
class CacheStatistics:
    """How a cache stands: what is in it, and how often it had what was asked for."""

    entries: int
    size: int
    capacity: int
    hits: int
    misses: int


class PageCache:
    """At most `capacity` bytes of pages, counted by their encoded length.

    In memory, nodes of many small items take some twelve times the bytes of their pages; choose `capacity`
    accordingly. A page larger than that is not kept at all. Everything costs O(1).
    """

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._size = 0
        self._hits = 0
        self._misses = 0
        self._entries: OrderedDict[_Key, tuple[bytes, Node, int]] = OrderedDict()

    def get(self, owner: bytes, ref: PageRef) -> Node | None:
        """The node of a page, now the most recently used; None when it is not here."""
        key = (owner, ref.seq, ref.number)
        entry = self._entries.get(key)
        if entry is None or entry[0] != ref.digest:
            self._misses += 1
            return None
        self._hits += 1
        self._entries.move_to_end(key)
        return entry[1]

    def put(self, owner: bytes, ref: PageRef, node: Node, size: int) -> None:
        """Keeps the node of a page of `size` bytes, in place of what had its name."""
        key = (owner, ref.seq, ref.number)
        if key in self._entries:
            self._drop(key)
        if size > self._capacity:
            return
        self._entries[key] = (ref.digest, node, size)
        self._size += size
        while self._size > self._capacity:
            self._drop(next(iter(self._entries)))

    def statistics(self) -> CacheStatistics:
        """How it stands now."""
        return CacheStatistics(len(self._entries), self._size, self._capacity, self._hits, self._misses)

    def _drop(self, key: _Key) -> None:
        self._size -= self._entries.pop(key)[2]
