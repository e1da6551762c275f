"""Reclaiming: what was deleted, and what was erased, goes from the store's files.

A tombstone takes effect at once, and so does the record that says what is erased; that the bytes go is what comes
after, in steps: some tombstones, and of what they leave one segment at a time. A record of the store's own chain says
how far it has come. Whoever is interrupted does a step again, and finds most of it done.

The one rule: what is to go follows from the log; nothing is remembered here.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Final

import attrs
import trio

from dataspace.catalog.catalog import Catalog
from dataspace.catalog.remains import Done, done, erased, erasures, remains, steps, tombstones, unfinished
from dataspace.errors import KeeveError
from dataspace.in_logs import in_log, traced
from dataspace.log.files import ReadFailed, SyncFailed, WriteFailed
from dataspace.log.marks import ChainHead
from dataspace.log.notices import reclaimed
from dataspace.log.segments import SegmentStore
from dataspace.log.store import Erasure, Store
from dataspace.records import STORE_UID, Record, Salts
from vat.host.allowing import looked_for
from vat.host.births import Births
from vat.host.commits import Commits
from vat.host.shredding import Shredding
from vat.host.thinning import Thinning

log = logging.getLogger("keeve")

STEP: Final = 10_000
"""Records that are looked for before their segments are written anew, but for those of one session."""
SLICE: Final = 256
"""Records that are looked for before other tasks get a chance."""
LONGEST: Final = 600.0
"""Seconds between two tries, at the most, while the disk refuses."""


class ErasureUnfinished(KeeveError, quotes=False):
    """What was to be erased is, and nobody reads it any more; but its bytes lie in the files yet.

    `pieces` is how many pieces of content do, with those of other erasures; `cause` is what the disk said.
    """

    def __init__(self, pieces: int, cause: KeeveError) -> None:
        self.pieces = pieces
        self.cause = cause
        why = cause.reason if isinstance(cause, WriteFailed | SyncFailed | ReadFailed) else str(cause)
        super().__init__(
            "it is erased, and nobody reads it any more; but its bytes lie in the store's files yet, which could not "
            f"be written anew ({why}; pieces of content that are left: {pieces}): make space; then the host takes them "
            "out by itself after a while, and so do the next start and `keeve gc`"
        )


@attrs.frozen
class Reclaimed:
    """What went: how many deleted sessions were seen to, how many bodies, cells and pages of what was deleted or erased
    are gone; how many pages of old snapshots; and how many bodies from archives."""

    sessions: int
    bodies: int
    pages: int = 0
    archived: int = 0


class Reclaiming:
    """Has the remains of a store's sessions go."""

    def __init__(
        self,
        store: Store,
        catalog: Catalog,
        commits: Commits,
        births: Births,
        clock: Callable[[], int],
        entropy: Callable[[int], bytes],
        after: float | None,
    ) -> None:
        self._store = store
        self._catalog = catalog
        self._commits = commits
        self._clock = clock
        self._entropy = entropy
        self._after = after
        self._deleted = trio.Event()
        self.shredding = Shredding(store, catalog)
        self._thinning = Thinning(store, catalog, births)
        self._one = trio.Lock()
        self._limiter = trio.CapacityLimiter(1)

    @property
    def pending(self) -> bool:
        """Whether anything is left to do."""
        before = done(self._store, self._catalog)
        left = next(tombstones(self._catalog, before.deleted), None), next(erasures(self._catalog, before.erased), None)
        return left != (None, None)

    def soon(self) -> None:
        """Something was deleted."""
        self._deleted.set()

    async def run(self) -> None:
        """Reclaim in a quiet while after each deletion, until cancelled; and what the disk refuses again and again."""
        if self._after is None:
            return
        try:
            if self.pending:
                self.soon()
        except KeeveError as error:  # what is left is looked for again, in a while
            log.warning("what was deleted or erased cannot be looked for now: %s", in_log(error))
            self.soon()
        wait = self._after
        while True:
            await self._deleted.wait()
            while self._deleted.is_set():  # until there was none for so long
                self._deleted = trio.Event()
                await trio.sleep(wait)
            try:
                await self.finish()
                await self.reclaim(quietly=True)
                wait = self._after
            except KeeveError as error:
                wait = max(self._after, min(LONGEST, max(1.0, 2 * wait)))
                again = "when the store is opened again" if self._store.fault is not None else f"in {wait:g} s"
                log.warning(
                    "what was deleted or erased is in the files yet, and is tried again %s: %s", again, in_log(error)
                )
                if self._store.fault is None:
                    self.soon()
            except Exception as error:
                log.error("what was deleted cannot be reclaimed; the host goes on", exc_info=traced(error))

    async def reclaim(self, *, quietly: bool = False) -> Reclaimed:
        """Have all that is pending go, and pages of old snapshots; `quietly`, no such pages, and only up to what lies
        in a file that is hardly begun.

        Raises what `Store.append` raises; then what was done stays done.
        """
        sessions = bodies = 0
        async with self._one:
            while True:
                before = done(self._store, self._catalog)
                found, after, count = await self._found(before)
                if quietly and unfinished(self._store, found):
                    return Reclaimed(sessions, bodies)
                if after == before:
                    break
                await self.shredding.finish()  # what is said to be done is not looked at again
                gone = await self._erase(found)
                await self._say(after, gone)
                sessions += count
                bodies += gone
            if quietly:
                return Reclaimed(sessions, bodies)
            bodies += await self._again()
            return Reclaimed(sessions, bodies, await self._thinning.thin())

    async def _again(self) -> int:
        """Have go what went before, and is there again, since an older file was put back; gives how many bodies."""
        if not isinstance(self._store, SegmentStore):
            return 0
        found: list[Erasure] = []
        for n, one in enumerate(looked_for(self._store, self._catalog), 1):
            if one is not None:
                found.append(one)
            if n % SLICE == 0:
                await trio.lowlevel.checkpoint()
        return await self._erase(found)

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        """For as long as the block lasts nothing is reclaimed or erased."""
        async with self._one:
            yield

    async def say(self, make: Callable[[ChainHead, int, Salts], Record]) -> None:
        """Append a record to the store's own chain, made of its head, the time and random bytes. Raises what has kept
        it from becoming durable."""
        await self._put(lambda chain: make(chain, self._clock(), self._entropy))

    async def erase(self, record: Callable[[ChainHead], Record]) -> int:
        """Say in the store's chain what is erased, and have it go; gives how many cells are gone.

        Raises what has kept the record from becoming durable, and then nothing is erased; or `ErasureUnfinished`.
        """
        async with self._one:
            await self._put(record)
            return await self._finish()

    async def begin(self) -> None:
        """Have go what records say is erased and a crash has left, before anybody works. What the disk refuses is tried
        again later."""
        try:
            await self.finish()
        except KeeveError as error:
            log.warning("what a host before this one has erased: %s", in_log(error))

    async def finish(self) -> None:
        """Have go what records say is erased. Raises `ErasureUnfinished`."""
        async with self._one:
            await self._finish()

    async def _finish(self) -> int:
        try:
            return await self._ended()
        except BaseException as error:
            if self._store.fault is None:
                self.soon()
            if isinstance(error, KeeveError):
                raise ErasureUnfinished(len(self._store.withheld), error) from error
            raise

    async def _ended(self) -> int:
        before = done(self._store, self._catalog)
        places = list(erasures(self._catalog, before.erased))
        if not places:
            return 0
        gone = await self._erase([one for place in places for one in erased(self._catalog, place)])
        await self._say(before._replace(erased=places[-1]), gone)
        return gone

    async def _found(self, before: Done) -> tuple[list[Erasure], Done, int]:
        """What is to go in the next step, how far that comes, and how many sessions it sees to."""
        found: list[Erasure] = []
        after, count = before, 0
        for place in erasures(self._catalog, before.erased):
            found += erased(self._catalog, place)
            after = after._replace(erased=place)
        for place in tombstones(self._catalog, before.deleted):
            for one in remains(self._catalog, place):
                found.append(one)
                if len(found) % SLICE == 0:  # of however many sessions
                    await trio.lowlevel.checkpoint()
            after = after._replace(deleted=place)
            count += 1
            if count % SLICE == 0:
                await trio.lowlevel.checkpoint()
            if len(found) >= STEP:
                break
        return found, after, count

    async def _erase(self, found: Iterable[Erasure]) -> int:
        gone = 0
        for listed in steps(found):
            gone += await trio.to_thread.run_sync(self._store.erase, listed, limiter=self._limiter)
        self._catalog.recall.forget()
        return gone

    async def _say(self, after: Done, gone: int) -> None:
        await self._put(lambda chain: reclaimed(chain, *after, gone, self._clock(), self._entropy))

    async def _put(self, make: Callable[[ChainHead], Record]) -> None:
        """Append a record to the store's own chain. Raises what has kept it from becoming durable."""
        chain = self._store.chain(STORE_UID)
        if chain is None:
            row = self._catalog.by_uid(STORE_UID)
            assert row is not None
            chain = row.seq, row.hash
        await self._commits.put(make(chain))
