"""Following: what a host that only reads does to see what the owner of its store writes.

The one rule: only what the owner has published is looked at, and a vat that is behind it, or has what was erased, is
loaded again.
"""

from __future__ import annotations

import logging

import trio

from dataspace.catalog.remains import erased_cells, erasures
from dataspace.errors import KeeveError
from dataspace.log.store import Store
from dataspace.observe.dataspace import Dataspace
from vat.host.commits import Commits
from vat.host.residents import Residents

log = logging.getLogger("keeve")


class Outrun(KeeveError):
    """A session went on in its owner's process while somebody here waited for a promise in it."""

    def __init__(self, session: str) -> None:
        super().__init__(f"session {session!r} has gone on in its owner's process meanwhile: ask again")


class Following:
    """Keeps up with a store that another process owns, by looking every so many seconds, or when asked."""

    def __init__(
        self, store: Store, dataspace: Dataspace, residents: Residents, commits: Commits, seconds: float
    ) -> None:
        self._store = store
        self._commits = commits
        self._dataspace = dataspace
        self._residents = residents
        self._seconds = seconds

    def refresh(self) -> None:
        """Learn what the owner has written by now. Costs what is new. Raises `StoreMoved`, or what reading raises."""
        catalog = self._dataspace.catalog
        before = catalog.head.position
        if self._store.refresh().position == before:
            return
        self._dataspace.catch_up()
        erased = self._erased(before)
        for resident in self._residents:
            row = catalog.by_uid(resident.uid)
            vat = resident.vat
            if vat is None:
                continue
            has = erased and any(leg.uid in erased for leg in catalog.lineage(resident.uid))
            if has or row is None or row.deleted or row.seq != vat.seq:
                if vat.waiters:
                    self._commits.drop(resident, Outrun(vat.id))
                else:
                    resident.let_go()

    def _erased(self, after: int) -> set[bytes]:
        """The sessions of whose own records something was erased after that position."""
        catalog = self._dataspace.catalog
        said = [erased_cells(catalog.stored(place)) for place in erasures(catalog, after)]
        return {catalog.stored(position).header.uid for cells in said for position in cells}

    async def run(self) -> None:
        """Look again and again. What ends it is raised to whoever asks for something."""
        try:
            while True:
                await trio.sleep(self._seconds)
                self.refresh()
        except KeeveError as error:
            log.warning("this host follows its store no more: %s", error)
