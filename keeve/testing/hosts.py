"""Hosts without a disk, and clocks that stand still.

    async with memory_host(actors=[Counter]) as host:
        ...

`MemoryLog` outlives a store, so that one log can be opened again by a second host, as after a restart.

The one rule: everything but the store is what runs in production.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

from dataspace.catalog.catalog import Catalog
from dataspace.log.memory import MemoryLog, MemoryStore
from keeve.api import run_host
from keeve.opening import opened_by_async_with
from vat.host.host import Host


class FakeClock:
    """A clock that stands at `time` (µs since 1970) until it is moved; the timers of its host come then."""

    def __init__(self, time: int = 1_700_000_000_000_000) -> None:
        self.time = time
        self._hearing: list[Callable[[], None]] = []

    def __call__(self) -> int:
        return self.time

    def move(self, seconds: float) -> None:
        """Let time pass, or go back. Timers that are due then come at once, as soon as the host has its turn."""
        self.time += round(seconds * 1_000_000)
        for hear in list(self._hearing):
            hear()

    def on_move(self, hear: Callable[[], None]) -> Callable[[], None]:
        """Have `hear()` called whenever it is moved; gives the function that ends that."""
        self._hearing.append(hear)
        return lambda: self._hearing.remove(hear)


@opened_by_async_with
async def memory_host(log: MemoryLog | None = None, **options: Any) -> AsyncIterator[Host]:
    """A host on a store in memory; `options` are those of `keeve.api.run_host`.

    A `log` that is given can be opened again when the block has ended.
    """
    store = MemoryStore(MemoryLog() if log is None else log)
    catalog = Catalog(None, store)
    try:
        async with run_host(store, catalog, **options) as host:
            yield host
    finally:
        catalog.close()
        store.close()
