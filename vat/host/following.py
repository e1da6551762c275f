"""Following: what a host that only reads does to see what the owner of its store writes.

The one rule: only what the owner has published is looked at, and a vat that is behind it is loaded again.
"""

from __future__ import annotations

import logging

import trio

from dataspace.errors import KeeveError
from dataspace.in_logs import in_log
from dataspace.log.files import ReadFailed
from dataspace.log.store import Store
from dataspace.observe.dataspace import Dataspace
from vat.host.commits import Commits
from vat.host.residents import Residents

log = logging.getLogger("keeve")


class Outrun(KeeveError, quotes=False):
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
        self._followed = dataspace.catalog.head.position
        """Up to where all is noted, and no vat in memory is behind it. The catalog may be further than that: whoever
        asks it has it note what could not be noted here."""

    def refresh(self) -> None:
        """Learn what the owner has written by now. Costs what is new. Raises `StoreMoved`, or what reading raises."""
        catalog = self._dataspace.catalog
        upto = self._store.refresh().position
        if upto == self._followed:
            return
        self._dataspace.catch_up()
        for resident in self._residents:
            row = catalog.by_uid(resident.uid)
            vat = resident.vat
            if vat is not None and (row is None or row.deleted or row.seq != vat.seq):
                if vat.waiters:
                    self._commits.drop(resident, Outrun(vat.id))
                else:
                    resident.let_go()
        self._followed = upto

    async def run(self) -> None:
        """Look again and again, also where the disk does not give what is there. What else ends it is raised to whoever
        asks for something."""
        try:
            told = False
            while True:
                await trio.sleep(self._seconds)
                try:
                    self.refresh()
                    told = False
                except ReadFailed as error:
                    if not told:
                        log.warning("what the owner has written is looked for again and again: %s", in_log(error))
                    told = True
        except KeeveError as error:
            self._dataspace.endings.stopped(error)
            log.warning("this host follows its store no more: %s", in_log(error))
