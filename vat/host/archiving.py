"""Archiving: content that no session needs any more goes from old segments to an archive, and comes back from there.

1. What was deleted, erased or superseded goes first (`reclaiming`): it is to be in no archive.
2. Where records are to go as well, each session writes a base that stands for what they did (`basing`).
3. Each session says what it needs (`reaching`): what its heap leads to. One that has a fiber that waits, or that cannot
   be read, needs all that it has; one that is idle needs nothing, if whoever asks says so: it has done nothing for
   long, and waits for nothing, neither for a person's word nor for anything else.
4. Of each old segment what nobody needs goes (`dataspace.log.archiving`), one segment at a time, once the store's chain
   has named it: that, and nothing else, a record allows to be gone. What is forked since the sessions were asked needs
   all that it goes back to, up to the moment in which a segment is exchanged.
5. The store's chain says how much that was.

Facts and the runtime's own records stay, so whoever is restored, verified or listed needs no archive; who reads what
was said does, and who goes back behind a base.

The one rule: **nothing is lost, and no session that is in use is any slower.** Who comes to what went is given it from
where it is, or told so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from os import PathLike
from pathlib import Path
from typing import ClassVar, Final, TypeVar, TypeVarTuple

import attrs
import trio

from dataspace.catalog.catalog import Catalog
from dataspace.errors import KeeveError
from dataspace.log.archives import NotAnArchive, archive_of
from dataspace.log.leaving import Names, named
from dataspace.log.marks import ChainHead
from dataspace.log.notices import archived, archiving, brought_back
from dataspace.log.segments import SegmentStore
from dataspace.records import Record, Salts
from vat.heap.reaching import Needed, needs
from vat.heap.restore import Lineage
from vat.host.basing import Basing, Needs
from vat.host.births import Meanwhile
from vat.host.engine import Engine
from vat.host.thinning import families

_Given = TypeVarTuple("_Given")
_Got = TypeVar("_Got")

LEAST: Final = 1 << 12
"""Bytes of the segment that is written to which make it worth ending."""


class NothingToArchive(KeeveError):
    """A store has no segments that could be archived, or none of them has anything in an archive."""

    usage: ClassVar[bool] = True

    def __init__(self, what: str) -> None:
        super().__init__(f"{what}; nothing was done: see what was archived with `keeve log '(archived . _)'`")


@attrs.frozen
class ArchivedContent:
    """What went to an archive, or came back: from how many segments, how many pieces of content, and their bytes.

    `whole`: the ids of the sessions that keep all they have, since a fiber waits in them or they cannot be read.
    `idle`: how many sessions keep nothing, since they have done nothing for so long; `waiting`: the ids of those that
    have done nothing either and keep what they need, since they wait for something, a person's word say. `records`: how
    many of the pieces are the deeds of records; `bases`: how many sessions have written their whole heap for that.
    """

    folder: str | None
    segments: int
    pieces: int
    bytes: int
    whole: tuple[str, ...] = ()
    idle: int = 0
    records: int = 0
    bases: int = 0
    waiting: tuple[str, ...] = ()


class Archiving:
    """Has content of a store go to archives."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._store = engine.store
        self._catalog = engine.dataspace.catalog
        self._reclaiming = engine.reclaiming
        self._limiter = trio.CapacityLimiter(1)

    async def archive(
        self, into: Path, *, before: int | None = None, keep: int = 0, idle: bool = False, records: bool = False
    ) -> ArchivedContent:
        """Have go to `into`, which is absolute, what nobody needs of segments whose records all come before a position,
        but for the newest `keep`; with `idle`, sessions that have done nothing since do not count; with `records`, the
        deeds of records go as well.

        Raises `NothingToArchive`, `NotAnArchive`, `Archived`, and what the disk refuses: then what was done stays done.
        """
        store = self._segmented()
        await self._reclaiming.reclaim()
        async with self._reclaiming.alone():
            if not keep and (before is None or before > store.head.position):
                await self._do(store.seal, LEAST)
        sealed = store.sealed()
        old = [each for each in sealed[: len(sealed) - keep] if before is None or each.last < before]
        if not old:
            raise NothingToArchive("no segment of the log is full and all older than was asked for")
        asleep = self._asleep(old[-1].last) if idle else {}
        basing, deeds = Basing(self._engine, store), Needs()
        if records:  # nobody is kept from erasing meanwhile, who keeps sessions from doing anything
            deeds = await basing.needs([each.segment for each in old])
        async with self._reclaiming.alone():
            with self._engine.births.meanwhile() as born:
                if records:
                    await basing.again(deeds)
                needed, whole, slept, waiting = await self._needs(asleep, deeds)
                stays = _staying(self._catalog, needed, whole, born)

                def leaves(uid: bytes, seq: int) -> bool:
                    return deeds.leaves(uid, seq) and not born.need(uid, seq)

                done = pieces = size = gone = 0
                try:
                    for each in old:
                        say = partial(self._names, str(into), each.segment)
                        went = await self._do(store.archive, each.segment, into, stays, say, leaves, born.exchange)
                        done, gone = done + bool(went.pieces), gone + went.records
                        pieces, size = pieces + went.pieces, size + went.bytes
                finally:
                    await self._said(pieces, partial(_archived, str(into), done, pieces, size))
                names = tuple(sorted(map(self._catalog.name, whole | deeds.whole)))
                left = tuple(sorted(waiting))
                return ArchivedContent(str(into), done, pieces, size, names, slept, gone, len(deeds.made), left)

    async def bring_back(self, folder: Path | None = None) -> ArchivedContent:
        """Have come back all that was archived, from where it went, or from `folder`. Raises as `archive` does."""
        store = self._segmented()
        if folder is not None:
            of = archive_of(folder)
            if of != store.log_id:
                raise NotAnArchive(folder, "there is none in it" if of is None else f"it is that of log {of.hex()}")
            store.archives.also(folder)
            await self._do(store.note_archive, folder)
        async with self._reclaiming.alone():
            done = pieces = upto = 0
            try:
                for each in store.sealed():
                    count = await self._do(store.bring_back, each.segment)
                    done, pieces, upto = done + bool(count), pieces + count, each.last
            finally:
                await self._said(pieces, partial(_brought_back, upto, done, pieces))
            if not pieces:
                raise NothingToArchive("nothing of this store is in an archive")
            return ArchivedContent(None, done, pieces, 0)

    async def weed(self) -> int:
        """Have go from the archives that are in their places what was erased since; gives how many bodies."""
        store, gone = self._store, 0
        if isinstance(store, SegmentStore) and store.archives.places:
            async with self._reclaiming.alone():
                for each in store.sealed():
                    gone += await self._do(store.weed, each.segment)
        return gone

    def _segmented(self) -> SegmentStore:
        if not isinstance(self._store, SegmentStore):
            raise NothingToArchive("this store is not in a folder, and has no segments")
        return self._store

    def _asleep(self, since: int) -> dict[bytes, int]:
        """The sessions that have done nothing since that position: their newest seqs."""
        return {row.uid: row.seq for row in self._catalog.all_sessions() if row.position <= since}

    async def _needs(self, asleep: Mapping[bytes, int], deeds: Needs) -> tuple[Needed, set[bytes], int, list[str]]:
        """What the sessions need, and those (by uid) that need all that they have; how many of those `asleep` have done
        nothing yet but write a base, and so do not count; and the ids of those of them that wait for something."""
        needed, whole, slept, waiting = Needed(), set[bytes](), 0, list[str]()
        for family in families(self._catalog):
            for row in family:
                one = await self._do(self._needs_of, row.uid, row.seq)
                before = asleep.get(row.uid)
                if one is None:
                    whole.add(row.uid)
                    continue
                rests = before is not None and (row.seq == before or row.seq == deeds.made.get(row.uid) == before + 1)
                if rests and not (one.waits or row.pending):
                    slept += 1
                    continue
                needed.cells |= one.cells
                waiting += [row.id] if rests else []
        return needed, whole, slept, waiting

    def _needs_of(self, uid: bytes, seq: int) -> Needed | None:
        return needs(Lineage(uid, self._catalog, self._store.read), self._catalog, seq)

    async def _do(self, act: Callable[[*_Given], _Got], *arguments: *_Given) -> _Got:
        return await trio.to_thread.run_sync(act, *arguments, limiter=self._limiter)

    def _names(self, into: str, segment: int, pieces: Iterable[tuple[int, int]]) -> None:
        """Say in the store's chain, from another thread, what is about to go of a segment."""
        for names in named(pieces):
            trio.from_thread.run(self._reclaiming.say, partial(_archiving, into, segment, names))

    async def _said(self, pieces: int, record: Callable[[ChainHead, int, Salts], Record]) -> None:
        """Say in the store's chain what was done, also when not all could be."""
        if pieces:
            self._catalog.recall.forget()
            await self._reclaiming.say(record)


def absolute(folder: str | PathLike[str]) -> Path:
    """A folder's path from the root."""
    return Path(folder).absolute()


def _archiving(into: str, segment: int, names: Names, chain: ChainHead, time: int, salts: Salts) -> Record:
    return archiving(chain, into, segment, names, time, salts)


def _archived(into: str, segments: int, pieces: int, size: int, chain: ChainHead, time: int, salts: Salts) -> Record:
    return archived(chain, into, segments, pieces, size, time, salts)


def _brought_back(upto: int, segments: int, pieces: int, chain: ChainHead, time: int, salts: Salts) -> Record:
    return brought_back(chain, upto, segments, pieces, time, salts)


def _staying(
    catalog: Catalog, needed: Needed, whole: Iterable[bytes], born: Meanwhile
) -> Callable[[bytes, int, int], bool]:
    """Whether a cell stays: whose record brought it, at which seq, its number there."""
    kept: dict[bytes, int] = {}
    for uid in whole:
        for leg in catalog.lineage(uid):
            kept[leg.uid] = max(kept.get(leg.uid, 0), leg.upto)

    def stays(uid: bytes, seq: int, number: int) -> bool:
        return seq <= kept.get(uid, 0) or (uid, seq, number) in needed.cells or born.need(uid, seq)

    return stays
