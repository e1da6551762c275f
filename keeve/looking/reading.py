"""A store as it is looked at: its catalog, its dataspace, its owner, and which sessions are there for who asks.

It is made of the files of a store (`keeve.cli.reading`), or of a host that has it (`reading_of`).

The one rule: nothing here takes a lock or writes a byte.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, Final, TypeVar

from dataspace.catalog.recent import SessionRow
from dataspace.errors import KeeveError
from dataspace.observe.dataspace import Dataspace, living
from keeve.looking.proofs import HostProofs, Proofs, StoredProofs
from snapshots.cache import PageCache
from vat.heap.memory import BadSnapshotPage
from vat.heap.pending import OpenEffect, state_of
from vat.heap.restore import Lineage, Restored, older, restore
from vat.host.host import Host
from vat.host.within import dataspace_of, in_hand

StateOf = Callable[[OpenEffect], str]


def everything(row: SessionRow) -> bool:
    """All sessions are there."""
    return True


def all_said(session: str, uid: bytes) -> bool:
    """All that was stated is there."""
    return True


class Reading:
    """A store that is read. `owner` tells which process has it, `states` how to tell how far its open effects are."""

    def __init__(
        self,
        space: Dataspace,
        owner: Callable[[], int | None],
        *,
        proofs: Proofs | None = None,
        states: Callable[[], StateOf] | None = None,
        lacking: Callable[[], set[str]] = set,
        reaches: Callable[[SessionRow], bool] = everything,
        sees: Callable[[str, bytes], bool] = all_said,
        listed: Callable[..., list[SessionRow]] | None = None,
    ) -> None:
        self.space = space
        self.store = space.store
        self.catalog = space.catalog
        self._owner = owner
        self._proofs = proofs
        self._states = states
        self.lacking = lacking
        """The devices that the host which has the store was asked for and has not."""
        self.reaches = reaches
        self.listed = self.catalog.sessions if listed is None else listed
        """A page of the sessions, with all that are there for who asks among them."""
        self.sees = sees
        """Whether what a session, by id and uid, has stated is there for who asks."""

    @property
    def owner(self) -> int | None:
        """The process that has the store; None when nobody does."""
        return self._owner()

    @property
    def proofs(self) -> Proofs:
        """What it can prove."""
        return StoredProofs(self.store, self.catalog) if self._proofs is None else self._proofs

    def session(self, id: str) -> SessionRow:
        """The session of that id. Raises `NoSuchSession` or `Deleted`."""
        row = self.catalog.session(id)
        if row is not None and not self.reaches(row):
            return living(None, id)
        return living(row, id, self.store)

    def sessions(self, prefix: str = "", *, after: str = "", deleted: bool = False) -> Iterator[SessionRow]:
        """All sessions whose ids begin with `prefix`, in order."""
        return filter(self.reaches, self.catalog.all_sessions(prefix, after=after, deleted=deleted))

    def type_of(self, uid: bytes) -> str | None:
        """The actor type of the session with that uid."""
        row = self.catalog.by_uid(uid)
        return None if row is None else row.type

    def name(self, uid: bytes | None) -> str | None:
        """The id of the session with that uid."""
        row = self.row(uid)
        return None if row is None else row.id

    def row(self, uid: bytes | None) -> SessionRow | None:
        """The session with that uid, also a deleted one."""
        return None if uid is None else self.catalog.by_uid(uid)

    def state_of(self) -> StateOf:
        """How far open effects are now, as `EffectStatus.state` says it."""
        if self._states is not None:
            return self._states()
        if self.owner is None:
            return lambda effect: state_of(effect, owned=False)
        return lambda effect: state_of(effect, owned=not (effect.started and self._started_before(effect)))

    def _started_before(self, effect: OpenEffect) -> bool:
        """Whether an effect has not started since the store's owner became that: then nobody runs it. False if that
        cannot be read. A start that does not say its seq was recorded by another version, and so before.
        """
        try:
            lineage = Lineage(effect.uid, self.catalog, self.store.read)
            return not effect.began or lineage.at(effect.began).header.epoch < self.store.epoch
        except KeeveError:
            return False


CACHE: Final = 8 << 20
"""Bytes of pages that are kept while a store is looked through."""
T = TypeVar("T")


async def read_heap(store: Reading, row: SessionRow, seq: int, look: Callable[[Restored], Awaitable[T]]) -> T:
    """What a look at a session's heap gives, as it was after a seq; again from an older snapshot where it comes to a
    page that cannot be read. Raises what a restore raises, and costs one."""
    without: int | None = None
    lineage = Lineage(row.uid, store.catalog, store.store.read)
    while True:
        try:
            return await look(restore(lineage, store.catalog, PageCache(CACHE), seq, without=without))
        except BadSnapshotPage as error:
            without = older(error, without)


def reading_of(
    host: Host,
    reaches: Callable[[SessionRow], bool] = everything,
    sees: Callable[[str, bytes], bool] = all_said,
    listed: Callable[..., list[SessionRow]] | None = None,
    *,
    exact: bool = False,
) -> Reading:
    """What a host of this process has, as far as somebody reaches it.

    exact: with the states of effects as the host has them; else as whoever reads its files has them, but for those
    that it holds, or leaves.
    """
    store = dataspace_of(host).store

    def states() -> StateOf:
        known = {effect.id: effect.state for effect in in_hand(host)}

        def state(effect: OpenEffect) -> str:
            said = known.get(effect.id)
            if said is None:  # nobody carries it out here
                return state_of(effect, owned=store.readonly)
            return said if exact or said == "unknown" else state_of(effect, owned=True)

        return state

    def lacking() -> set[str]:
        return {effect.device for effect in in_hand(host) if effect.state == "wanted"}

    proofs = HostProofs(host)
    how: Any = {"proofs": proofs, "states": states, "lacking": lacking, "reaches": reaches, "sees": sees}
    how["listed"] = listed
    return Reading(dataspace_of(host), os.getpid, **how)
