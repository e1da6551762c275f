"""A store as it is looked at: its catalog, its dataspace, its owner, and which sessions are there for who asks.

It is made of the files of a store (`keeve.cli.reading`), or of a host that has it (`reading_of`).

The one rule: nothing here takes a lock or writes a byte.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

from dataspace.catalog.recent import SessionRow
from dataspace.observe.dataspace import Dataspace, living
from keeve.looking.proofs import HostProofs, Proofs, StoredProofs
from vat.heap.pending import OpenEffect, state_of
from vat.host.host import Host
from vat.host.within import dataspace_of, in_hand

StateOf = Callable[[OpenEffect], str]


def everything(row: SessionRow) -> bool:
    """All sessions are there."""
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
        reaches: Callable[[SessionRow], bool] = everything,
    ) -> None:
        self.space = space
        self.store = space.store
        self.catalog = space.catalog
        self._owner = owner
        self._proofs = proofs
        self._states = states
        self.reaches = reaches

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
        return living(row if row is None or self.reaches(row) else None, id)

    def sessions(self, prefix: str = "", *, after: str = "", deleted: bool = False) -> Iterator[SessionRow]:
        """All sessions whose ids begin with `prefix`, in order."""
        return filter(self.reaches, self.catalog.all_sessions(prefix, after=after, deleted=deleted))

    def type_of(self, uid: bytes) -> str | None:
        """The actor type of the session with that uid."""
        row = self.catalog.by_uid(uid)
        return None if row is None else row.type

    def name(self, uid: bytes | None) -> str | None:
        """The id of the session with that uid."""
        row = None if uid is None else self.catalog.by_uid(uid)
        return None if row is None else row.id

    def state_of(self) -> StateOf:
        """How far open effects are now, as `EffectStatus.state` says it."""
        if self._states is not None:
            return self._states()
        owned = self.owner is not None
        return lambda effect: state_of(effect, owned=owned)


def reading_of(host: Host, reaches: Callable[[SessionRow], bool] = everything, *, exact: bool = False) -> Reading:
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

    return Reading(dataspace_of(host), os.getpid, proofs=HostProofs(host), states=states, reaches=reaches)
