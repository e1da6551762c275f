"""Shredding: the keys of deleted sessions are destroyed, so that nobody can read what only they held.

A tombstone takes effect at once, and its session's keys go right after it. What an interrupted host has left, or a disk
has refused, goes at the next start, or before the space of it is reclaimed; and with it the keys of forks that were to
be and never came to be.

The one rule: whose keys are to go follows from the log; nothing is remembered here.
"""

from __future__ import annotations

import logging

import trio

from dataspace.catalog.catalog import Catalog
from dataspace.catalog.remains import done, tombstones
from dataspace.errors import KeeveError
from dataspace.in_logs import in_log
from dataspace.log.store import Store

log = logging.getLogger("keeve")


class Shredding:
    """Has the keys of deleted sessions destroyed. Where a store is not encrypted there is nothing to do."""

    def __init__(self, store: Store, catalog: Catalog) -> None:
        self._store = store
        self._catalog = catalog
        self._encrypted = store.secret is not None and not store.readonly

    async def shred(self, uid: bytes) -> None:
        """Have the keys of one session go, whose tombstone is durable. What the disk refuses is left for `finish`."""
        if self._encrypted:
            try:
                with trio.CancelScope(shield=True):
                    await trio.to_thread.run_sync(self._store.destroy, [uid])
            except KeeveError as error:
                log.warning(
                    "session %s is deleted, and its keys are destroyed later: %s",
                    self._catalog.name(uid),
                    in_log(error),
                )

    async def finish(self) -> None:
        """Have go what is left, as far as it has not been reclaimed. Raises what the disk refuses."""
        if self._encrypted:
            places = tombstones(self._catalog, done(self._store, self._catalog).deleted)
            gone = {self._catalog.stored(place).header.uid for place in places}
            await trio.to_thread.run_sync(self._store.destroy, gone)

    async def begin(self) -> None:
        """The same at a start, before anybody works: with the keys of what was to be a fork, and is in no record."""
        if self._encrypted:
            await self.finish()
            unborn = [uid for uid in self._store.heirs(()) if self._catalog.by_uid(uid) is None]
            await trio.to_thread.run_sync(self._store.destroy, (), unborn)
