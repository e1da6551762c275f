"""Erasing: what somebody said goes out of a session, and out of all that has it from there; the session goes on.

1. The session and its forks do nothing for a while, and their vats leave memory: nobody says again what is to go. While
   a device runs for one of them, which may have been told of it, erasing is refused unless it is forced.
2. The cells that are meant are read, and whatever was said later in these sessions is searched for the same content.
3. A record of the store's chain says which cells are erased. From then on it is so for whoever reads the store.
4. Their bodies go from the files (`reclaiming`), and the sessions go on. Where that fails it is tried again, here or
   by the next host.

Records stay as they are, but for the content of their cells, which reads as `ERASED` from then on; so chains verify,
and every heap is what it was.

The one rule: what is erased is named by a record before it goes, and never by what it said.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar, Final

import trio

from dataspace.catalog.lookups import LATEST
from dataspace.catalog.recent import SessionRow
from dataspace.catalog.remains import needed
from dataspace.errors import KeeveError
from dataspace.log.notices import erase
from dataspace.log.store import Store
from dataspace.remedies import Remedy
from dataspace.values import Erased
from vat.errors import BadCall
from vat.heap.messages import Asker, Observed
from vat.host.engine import Engine
from vat.host.meaning import Meant, Parts, TurnReader, cells
from vat.host.sessions import Busy, Sessions, on_their_way

SLICE: Final = 256
"""Records that are looked up before other tasks get a chance."""


LOOK_AT_TURNS: Final = Remedy(
    "look-at-turns",
    " with `keeve show`; what short strings hold that are no `Text` goes only with the session",
)

GIVE_SEQ: Final = Remedy("give-seq", "erase what a record has brought: erase({id}, seq=...)")


class NothingToErase(KeeveError, LookupError):
    """A session has no content there that can be erased. `turnless`: it has stated no turn at all, so that none has a
    number."""

    usage: ClassVar[bool] = True

    def __init__(self, session: str, where: str, *, turnless: bool = False) -> None:
        do = f"it has stated no turn, so {GIVE_SEQ(id=repr(session))}"
        super().__init__(
            f"session {session!r} has no content at {where} that could be erased, or none any more: "
            f"{do if turnless else f'look at its turns and their seqs{LOOK_AT_TURNS()}'}"
        )
        self.session = session


class Erasing:
    """Takes content out of the sessions of an engine's store."""

    def __init__(self, engine: Engine, sessions: Sessions) -> None:
        self._engine = engine
        self._sessions = sessions
        self._one = trio.Lock()

    async def erase(
        self, id: str, asker: Asker, *, seq: int | None = None, turn: int | None = None, force: bool = False
    ) -> int:
        """Erase what the record at `seq` brought, or what a `turn` said; gives how many pieces of content are gone.

        What is erased and lies in the files yet goes from there, and is counted too.

        Raises `NothingToErase`, `NoSuchSession`, `Deleted`, `ValueError` unless one of the two is given, or what the
        store raises; `Busy`, unless `force`d, while something is under way that may have been told of it; and
        `ErasureUnfinished` where it is erased, and the disk refuses to have it go from the files yet.
        """
        if (seq is None) == (turn is None):
            raise ValueError("say either the seq of a record or the number of a turn")
        _check_number("seq", "the seq of a record", seq)
        _check_number("turn", "the number of a turn", turn)
        self._sessions.must_write()
        row = self._sessions.row(id)
        held: set[bytes] = set()
        async with self._one:
            try:
                meant = await self._meant(row, seq, turn)
                if meant.first is None:
                    return await self._finish(row, meant, f"seq {seq}" if turn is None else f"turn {turn}")
                await self._hold(meant.first, held)
                if not force:
                    self._check_idle(held)
                found = await self._same(meant.first, meant.parts)
                which = {name: n for name, n in (("seq", seq), ("turn", turn)) if n is not None}
                said: dict[str, str | int] = {**which, "by": asker.by, "via": asker.via}
                engine = self._engine
                time, salts = engine.powers.clock(), engine.entropy
                return await engine.reclaiming.erase(
                    lambda chain: erase(chain, row.uid, row.id, found, said, time, salts)
                )
            finally:
                self._engine.turns.release(held)

    # What is meant.

    async def _meant(self, row: SessionRow, seq: int | None, turn: int | None) -> Meant:
        """The cells that are meant."""
        catalog, store = self._engine.dataspace.catalog, self._engine.store
        found = Meant()
        if turn is not None:
            reader = TurnReader(turn)
            for name, addresses in self._lineage(row):
                await trio.to_thread.run_sync(reader.read, store, addresses, name)
            found = reader.meant()
        elif seq is not None and (position := catalog.position(row.uid, seq)) is not None:
            stored = catalog.stored(position)
            found.places.add(position)
            found.add(stored, set(cells(stored)))
        return found

    async def _finish(self, row: SessionRow, meant: Meant, where: str) -> int:
        """Nothing is meant that anybody reads: have go what is left of it in the files. Raises `NothingToErase`."""
        withheld = self._engine.store.withheld
        left = sum(len(withheld.of(position)) for position in meant.places)
        if not left:
            raise NothingToErase(row.id, where, turnless=meant.turnless)
        await self._engine.reclaiming.finish()
        return left

    def _lineage(self, row: SessionRow) -> Iterator[tuple[str, list[int]]]:
        """The records of a session's lineage in their order, some at a time: what their session is called, and where
        they lie."""
        catalog = self._engine.dataspace.catalog
        for leg in catalog.lineage(row.uid):
            own = catalog.by_uid(leg.uid)
            assert own is not None
            seqs = range(own.parent_seq + 1, min(own.seq, leg.upto) + 1)
            for first in range(seqs.start, seqs.stop, SLICE):
                places = (catalog.locate(leg.uid, seq) for seq in range(first, min(first + SLICE, seqs.stop)))
                yield own.id, [address for address in places if address is not None]

    # Who has it.

    def _family(self, first: tuple[bytes, int]) -> dict[bytes, tuple[int, int]]:
        """The sessions that have what a record brought, by uid, each with the seqs in between which it may say so again
        (that of the record, and later ones)."""
        catalog = self._engine.dataspace.catalog
        found: dict[bytes, tuple[int, int]] = {}
        todo = [first]
        while todo:
            uid, seq = todo.pop()
            row = catalog.by_uid(uid)
            if row is None or uid in found:
                continue
            found[uid] = seq, min(row.seq, needed(catalog, uid)) if row.deleted else LATEST
            todo += [(fork.uid, fork.parent_seq + 1) for fork in catalog.forks(uid) if fork.parent_seq >= seq]
        return found

    async def _hold(self, first: tuple[bytes, int], held: set[bytes]) -> None:
        """Have all who have it do nothing, and forget what they know; forks that are on their way are waited for."""
        turns = self._engine.turns
        while True:
            family = self._family(first).keys()
            new = family - held
            turns.hold(new)
            held |= new
            if all(turns.unload(uid) for uid in held) and not new:
                return
            await trio.sleep(0.001)

    def _check_idle(self, uids: set[bytes]) -> None:
        """Raise `Busy` where a device, or a message on its way, may have what is to go and bring it back."""
        engine = self._engine
        for wanted in engine.errands.running():
            if wanted.key[0] in uids and wanted.device != "timer":
                raise Busy(wanted.session, f"{wanted.device}.{wanted.method} is running")
        for uid in uids:
            resident = engine.residents.get(uid)
            name = engine.dataspace.catalog.name(uid)
            if resident is not None and resident.unacknowledged:
                raise Busy(name, on_their_way(len(resident.unacknowledged)))
            if resident is not None and any(isinstance(job.message, Observed) for job in resident.mailbox):
                raise Busy(name, "events are on their way to it")

    # What is the same.

    async def _same(self, first: tuple[bytes, int], parts: Parts) -> Parts:
        """The cells that are meant, and those that hold the same and came later."""
        catalog, store = self._engine.dataspace.catalog, self._engine.store
        contents: set[str | bytes] = set()
        for position, numbers in parts.items():
            stored = catalog.stored(position)
            contents |= {content for n in numbers if not isinstance(content := stored.cell(n), Erased)}
        found = {position: set(numbers) for position, numbers in parts.items()}
        addresses: list[int] = []
        for uid, (seq, last) in self._family(first).items():
            row = catalog.by_uid(uid)
            assert row is not None
            for at in range(seq, min(row.seq, last) + 1):
                address = catalog.locate(uid, at)
                if address is not None:
                    addresses.append(address)
                if len(addresses) >= SLICE:
                    await _search(store, addresses, contents, found)
                    addresses = []
        await _search(store, addresses, contents, found)
        return found


def _check_number(name: str, what: str, given: object) -> None:
    if given is not None and type(given) is not int:
        raise BadCall(f"{name} is {what}: give a whole number, and not {given!r}")


async def _search(store: Store, addresses: Sequence[int], contents: set[str | bytes], found: Parts) -> None:
    """Look for cells with these contents in some records, in another thread."""

    def search() -> None:
        for address in addresses:
            stored = store.read(address)
            numbers = {n for n, content in cells(stored).items() if content in contents}
            if numbers:
                found.setdefault(stored.header.position, set()).update(numbers)

    await trio.to_thread.run_sync(search)
