"""Pages in memory: the readable specification of what a writer and a loader of pages do.

The one rule is that of every place for pages: a page is found under the name that `put` gave, is checked against
its digest each time, and gives a node or an error that says which page was bad.
"""

from __future__ import annotations

from hashlib import sha256

from dataspace.errors import KeeveError
from snapshots.nodes import Node, PageRef
from snapshots.pages import BadPage, decode_node


class MissingPage(KeeveError, LookupError, quotes=False):
    """There is no page of that name."""

    def __init__(self, ref: PageRef) -> None:
        super().__init__(f"page {ref.seq}.{ref.number} is missing: restore from an older snapshot")
        self.ref = ref


class MemoryPages:
    """A writer (`put`) and a loader (`load`). `seq` is what its pages are named after; number counts from 1."""

    def __init__(self, seq: int = 1) -> None:
        self.seq = seq
        self.data: dict[tuple[int, int], bytes] = {}
        self.loads = 0

    def put(self, data: bytes) -> PageRef:
        """Keeps a page."""
        ref = PageRef(self.seq, len(self.data) + 1, sha256(data).digest())
        self.data[ref.seq, ref.number] = data
        return ref

    def load(self, ref: PageRef) -> Node:
        """The node of a page. Raises `MissingPage`, and `BadPage` when the bytes are not those that were put."""
        self.loads += 1
        data = self.data.get((ref.seq, ref.number))
        if data is None:
            raise MissingPage(ref)
        if sha256(data).digest() != ref.digest:
            raise BadPage(f"page {ref.seq}.{ref.number} does not fit its digest")
        return decode_node(data)
