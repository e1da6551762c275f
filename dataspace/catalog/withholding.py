"""Withholding: what the log says is erased reads as erased at once, and for ever, whatever is in the files.

The catalog sees every record of a log once, in order, when it opens or as they come. Of the store's own it tells the
store what they say of cells: which are erased, and up to which record the bytes of these are gone.

The one rule: a damaged record says nothing, and nobody is kept from the rest of a log by it; one that the disk does not
give may say it, and is never taken for one that says nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dataspace.catalog.checked import Checked
from dataspace.catalog.recall import Notable
from dataspace.catalog.remains import done, done_in, erased_cells, erasures, left_out, said_by, salvaged
from dataspace.errors import KeeveError
from dataspace.log.files import ReadFailed
from dataspace.log.store import Store, Stored
from dataspace.records import STORE_UID, Kind
from dataspace.values.encoding import BadEncoding


def withhold_from_start(store: Store, catalog: Checked) -> None:
    """Take in what the records that a catalog has noted say is erased. Costs a reading of each of these."""
    last = salvaged(catalog)
    if last:
        _read(store, catalog.stored(last))
    for position in erasures(catalog, last):
        _read(store, catalog.stored(position))
    store.withheld.gone(done(store, catalog).erased)


def withhold(store: Store, record: Notable) -> None:
    """Take in a record that is new: one that says what is erased, or how far that is gone. One that was just written is
    at hand, so that nothing is read for it."""

    def says() -> Any:
        return said_by(store.read(record.address)) if record.message is None else record.message

    _take(store, record.uid, record.kind, record.position, says)


def _read(store: Store, stored: Stored) -> None:
    header = stored.header
    _take(store, header.uid, header.kind, header.position, lambda: said_by(stored))


def _take(store: Store, uid: bytes, kind: int, position: int, says: Callable[[], Any]) -> None:
    if uid != STORE_UID:
        return
    try:
        if kind == Kind.ERASE:
            store.withheld.add(position, erased_cells(says()))
        elif kind == Kind.RECLAIMED:
            store.withheld.gone(done_in(says()).erased)
        elif kind == Kind.SALVAGED:
            store.withheld.begin(left_out(says()))
    except ReadFailed:
        raise
    except (KeeveError, BadEncoding, LookupError, TypeError, ValueError, AttributeError):
        return
