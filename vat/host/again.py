"""Running all fibers of a store again, to see whether each does what it did: see `keeve.testing.fibers_run_again`.

The one rule: the store is only read, and no fiber goes on.
"""

from __future__ import annotations

from collections.abc import Callable

from dataspace.catalog.catalog import Catalog
from dataspace.log.store import Store
from snapshots.cache import PageCache
from vat.crank.vat import Powers
from vat.errors import FiberDiverged
from vat.host.loading import Loader
from vat.host.residents import Residents
from vat.objects.types import Types

CACHE = 1 << 24
"""Bytes of pages that are kept in memory meanwhile."""


def run_again(
    store: Store, catalog: Catalog, types: Types, *, clock: Callable[[], int], entropy: Callable[[int], bytes]
) -> tuple[int, list[FiberDiverged]]:
    """How many fibers wait in a store, and why some of them could not go on.

    Raises what loading a session raises. Costs all parts of all of them.
    """
    powers = Powers(store.log_id, clock, entropy, lambda: "start")
    residents = Residents(0)
    loader = Loader(store, catalog, types, powers, PageCache(CACHE), residents.durable)
    count = 0
    diverged: list[FiberDiverged] = []
    for row in catalog.all_sessions():
        resident = residents.use(row.uid)
        vat = loader.load(resident)
        count += vat.heap.system["fibers"].count
        diverged += vat.crank.fibers.bring()
        residents.drop(resident)
    return count, diverged
