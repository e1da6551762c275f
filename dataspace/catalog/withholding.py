"""Withholding: what the log says is erased reads as erased at once, and for ever, whatever is in the files.

The catalog sees every record of a log once, in order, when it opens or as they come. Of the store's own it tells the
store what they say of cells: which are erased, and up to which record the bytes of these are gone.

The one rule: a record that cannot be read says nothing; nobody is kept from the rest of a log by it.
"""

from __future__ import annotations

from contextlib import suppress

from dataspace.catalog.checked import Checked
from dataspace.catalog.remains import done, erased_cells, erasures, far, left_out, salvaged
from dataspace.errors import KeeveError
from dataspace.log.store import Store, Stored
from dataspace.records import STORE_UID, Kind
from dataspace.values.encoding import BadEncoding


def withhold_from_start(store: Store, catalog: Checked) -> None:
    """Take in what the records that a catalog has noted say is erased. Costs a reading of each of these."""
    last = salvaged(catalog)
    if last:
        _take(store, catalog.stored(last))
    for position in erasures(catalog, last):
        _take(store, catalog.stored(position))
    store.withheld.gone(done(store, catalog).erased)


def withhold(store: Store, address: int) -> None:
    """Take in a record that is new: one that says what is erased, or how far that is gone."""
    _take(store, store.read(address))


def _take(store: Store, stored: Stored) -> None:
    header = stored.header
    if header.uid != STORE_UID:
        return
    with suppress(KeeveError, BadEncoding, LookupError, TypeError, ValueError):
        if header.kind == Kind.ERASE:
            store.withheld.add(header.position, erased_cells(stored))
        elif header.kind == Kind.RECLAIMED:
            store.withheld.gone(far(stored).erased)
        elif header.kind == Kind.SALVAGED:
            store.withheld.begin(left_out(stored))
