"""Looking over what a session goes back to, before a fork is made of it: damage that nobody has come to is met then.

A fork copies nothing and reads next to nothing, so it would be made of a past that is damaged, and not go on. A command
that opens a store for it can wait for the reading of that past; what is served costs the same however long that is.

The one rule: it finds nothing wrong itself. What is damaged is known from then on to whoever reads the store.
"""

from __future__ import annotations

from contextlib import suppress

import trio

from dataspace.catalog.catalog import Catalog
from dataspace.errors import KeeveError
from dataspace.log.near import Near
from dataspace.log.store import NoSuchPart, Store, Stored
from vat.heap.restore import Lineage


class LookedOver:
    """How far the pasts of sessions were read. Costs some 20 µs for each record, in another thread, the first time."""

    def __init__(self, store: Store, catalog: Catalog) -> None:
        self._store = store
        self._catalog = catalog
        self._upto: dict[bytes, int] = {}
        self._limiter = trio.CapacityLimiter(1)

    async def look(self, uid: bytes, at: int | None) -> None:
        """Read what a session goes back to at a seq (None: its head), messages and contents."""
        row = self._catalog.by_uid(uid)
        if row is None or row.deleted:
            return
        upto = row.seq if at is None else min(at, row.seq)
        if upto > self._upto.get(uid, 0):
            await trio.to_thread.run_sync(self._read, uid, upto, limiter=self._limiter, abandon_on_cancel=True)

    def _read(self, uid: bytes, upto: int) -> None:
        near = Near()
        lineage = Lineage(uid, self._catalog, lambda address: self._store.read(address, near))
        for seq in range(self._upto.get(uid, 0) + 1, upto + 1):
            with suppress(KeeveError):
                _read(lineage.at(seq))
        self._upto[uid] = max(upto, self._upto.get(uid, 0))


def _read(stored: Stored) -> None:
    with suppress(KeeveError):  # who is damaged is known by that; of what is away, or erased, others tell
        stored.body()
    for number in range(stored.attachments):
        try:
            stored.cell(number)
        except NoSuchPart:
            return  # from here on there are pages
        except KeeveError:
            continue
