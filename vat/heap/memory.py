"""Where a vat's pages and cells come from when they are not in its heap: the records of its lineage.

A seq means one thing along a lineage: those up to a fork's are its parent's. Pages are checked against the digest
that refers to them and kept in the host's cache; cells are checked by the store.

The one rule: what cannot be read is an error, never an absence.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from dataspace.errors import KeeveError
from dataspace.log.files import ReadFailed
from dataspace.log.store import Stored
from dataspace.log.verdicts import SessionDamaged
from dataspace.records import content_digest
from dataspace.values import CellRef, Erased
from snapshots.cache import PageCache
from snapshots.nodes import Node, PageRef
from snapshots.pages import decode_node
from vat.heap.refs import Promise, Ref

SALT = 16
"""Bytes of salt before a page, as its digest covers them."""


class BadSnapshotPage(KeeveError, quotes=False):
    """A page of a heap is missing or is not the one that was written."""

    def __init__(self, ref: PageRef, what: str) -> None:
        super().__init__(
            f"heap page {ref.seq}.{ref.number}: {what}. Nothing is lost by that: a session is restored from an older "
            "snapshot, or from its records. Run `keeve verify` for what else there is, and `keeve salvage`"
        )
        self.ref = ref
        self.what = what


class Records(Protocol):
    """Where records are: by lineage and seq."""

    def owner(self, seq: int) -> bytes:
        """The uid of the chain that the record of that seq belongs to."""

    def at(self, seq: int) -> Stored:
        """The record of that seq."""


class VatMemory:
    """The memory of one vat (`vat.heap.heap.Memory`)."""

    __slots__ = ("_cache", "_records", "trouble")

    def __init__(self, records: Records, cache: PageCache) -> None:
        self._records = records
        self._cache = cache
        self.trouble: Exception | None = None
        """What could not be read, whoever caught the error: what was made of it must not be recorded."""

    def page(self, ref: PageRef) -> Node:
        """The node of a page. Raises `BadSnapshotPage` or `ReadFailed`."""
        owner = self._records.owner(ref.seq)
        node = self._cache.get(owner, ref)
        if node is None:
            try:
                data = read_page(self._records, ref)
                node = decode_node(data, ref=Ref, promise=Promise)
            except (BadSnapshotPage, ReadFailed) as error:  # what cannot be read now is not bad for that
                self.trouble = error
                raise
            except KeeveError as error:
                self.trouble = BadSnapshotPage(ref, error.what if isinstance(error, SessionDamaged) else str(error))
                raise self.trouble from error
            self._cache.put(owner, ref, node, len(data))
        return node

    def cell(self, cell: CellRef) -> str | bytes | Erased:
        """The content of a cell. Raises `SessionDamaged`."""
        try:
            return self._records.at(cell.seq).cell(cell.number)
        except KeeveError as error:
            self.trouble = error
            raise


def read_page(records: Records, ref: PageRef) -> bytes:
    """A page's bytes without their salt. Raises `BadSnapshotPage`, or what reading its record raises."""
    data = records.at(ref.seq).page(ref.number)
    if content_digest(data) != ref.digest:
        raise BadSnapshotPage(ref, "its digest does not fit")
    return data[SALT:]


def salted(salts: Callable[[int], bytes], page: bytes) -> bytes:
    """A page as it is stored."""
    return salts(SALT) + page
