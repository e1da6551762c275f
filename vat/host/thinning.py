"""Thinning: the heap pages of snapshots that newer ones have taken the place of go from the files.

A snapshot saves work and holds nothing of its own: its heap is what the records before it give. So of each session the
newest ones are kept, with those that they share pages with; of any other the pages go, and it is no snapshot any more.
Forks share pages with their parents: what one of a family needs, none of them loses.

The one rule: **only derived bytes go here**, so that nothing has to be said in the log, and whoever is interrupted has
done a part of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, NamedTuple

import trio

from dataspace.catalog.catalog import Catalog
from dataspace.catalog.lookups import LATEST, SnapshotRow
from dataspace.catalog.recent import SessionRow
from dataspace.catalog.remains import steps
from dataspace.drafts import read_deeds
from dataspace.log.frames import place
from dataspace.log.store import Erasure, Store, Stored
from dataspace.records import split_digests
from vat.heap.reaching import KEPT, Needed, Place, needs
from vat.heap.restore import Lineage
from vat.host.births import Births, Meanwhile

ALL: Final = 1 << 30
"""As many snapshots as there are."""


class Thinning:
    """Has superseded pages of a store go. `births` tells of forks meanwhile."""

    def __init__(self, store: Store, catalog: Catalog, births: Births) -> None:
        self._store = store
        self._catalog = catalog
        self._births = births
        self._one = trio.Lock()
        self._limiter = trio.CapacityLimiter(1)

    async def thin(self) -> int:
        """Have the superseded pages go from all segments but the one that is written to; gives how many are gone.

        The newest go first: a snapshot shares pages with older ones, never with newer, so that whoever is interrupted
        leaves none that has lost some of what it shares. What a fork that is made meanwhile may need ends it.

        Costs a walk through each heap of more than `KEPT` snapshots, and a copy of each file concerned. Raises what
        `Store.erase` raises; then what was done stays done.
        """
        gone = 0
        async with self._one:
            with self._births.meanwhile() as born:
                found: list[_Superseded] = []
                for family in families(self._catalog):
                    found += await trio.to_thread.run_sync(self._superseded, family, limiter=self._limiter)
                for listed in reversed(steps([each.erasure for each in found])):
                    asked = _Asked(born, _firsts(found, listed))
                    gone += await trio.to_thread.run_sync(self._store.erase, listed, asked, limiter=self._limiter)
                    if asked.refused:
                        break
        return gone

    def _superseded(self, family: list[SessionRow]) -> list[_Superseded]:
        """The pages that nobody of a family needs, of its living sessions' own snapshots."""
        catalog, store = self._catalog, self._store
        old: list[tuple[SnapshotRow, Stored]] = []
        stay: dict[bytes, list[SnapshotRow]] = {}
        for row in family:
            lineage = Lineage(row.uid, catalog, store.read)
            own = [each for each in catalog.snapshots(row.uid, LATEST, ALL) if each.uid == row.uid]
            for each in own[KEPT:]:
                stored = lineage.at(each.seq)
                if place(stored.address)[0] == store.mark.segment:  # for now, with all that they share
                    stay.setdefault(row.uid, []).append(each)
                else:
                    old.append((each, stored))
        if not old:
            return []
        needed = Needed()
        for row in family:
            one = needs(Lineage(row.uid, catalog, store.read), catalog, row.seq, stay.get(row.uid, ()))
            if one is None:
                return []
            needed.add(one)
        found = []
        for each, stored in old:
            numbers = [n for n in pages(stored) if Place(each.uid, each.seq, n) not in needed.pages]
            if numbers:
                found.append(_Superseded(each.uid, each.seq, Erasure(stored.address, numbers, body=False)))
        return found


class _Superseded(NamedTuple):
    """Pages of the snapshot that the record `seq` of a session has brought, which are to go."""

    uid: bytes
    seq: int
    erasure: Erasure


class _Asked:
    """Has pages go unless somebody who was born meanwhile may need them, and remembers if so."""

    def __init__(self, born: Meanwhile, firsts: Mapping[bytes, int]) -> None:
        self._born = born
        self._firsts = firsts
        self.refused = False

    def __call__(self, act: Callable[[], None]) -> bool:
        """Do it, or not."""
        self.refused = not self._born.exchange(self._firsts, act)
        return not self.refused


def _firsts(found: Iterable[_Superseded], listed: Iterable[Erasure]) -> dict[bytes, int]:
    """From which seq on pages of these sessions go, with those that are listed."""
    addresses = {erasure.address for erasure in listed}
    firsts: dict[bytes, int] = {}
    for each in found:
        if each.erasure.address in addresses:
            firsts[each.uid] = min(each.seq, firsts.get(each.uid, each.seq))
    return firsts


def pages(stored: Stored) -> range:
    """The numbers of the pages that a snapshot's record has brought: they come after its cells."""
    return range(len(split_digests(read_deeds(stored.body().deeds).digests)), stored.attachments)


def families(catalog: Catalog) -> Iterator[list[SessionRow]]:
    """The living sessions, each with all living ones that have a past in common with it."""
    met: set[bytes] = set()
    for row in catalog.all_sessions():
        forks = catalog.forks(row.uid)
        if row.parent is None and not forks:
            yield [row]
            continue
        first = catalog.lineage(row.uid)[0].uid
        if first not in met:
            met.add(first)
            yield [one for one in _descended(catalog, first) if not one.deleted]


def _descended(catalog: Catalog, uid: bytes) -> Iterator[SessionRow]:
    """A session, and all that were forked from it, and from those."""
    found: dict[bytes, SessionRow] = {}
    row = catalog.by_uid(uid)
    todo = [*catalog.forks(uid)] if row is None else [row]
    while todo:
        one = todo.pop()
        if one.uid not in found:
            found[one.uid] = one
            todo += catalog.forks(one.uid)
    yield from found.values()
