"""Endings: of which sessions nothing more comes, and why; and who is to be told when one ends.

A session ends when it is deleted, and when it is found to be damaged, since it takes no more input then. With a store
that writes no more, and with the host that owns it, all of them end at once. Whoever waits for something of one session
asks here before it waits, and is woken when its session ends: to wait on would be to wait for ever.

The one rule: an ending is final. Nobody who was told of one is to be told of anything after it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from dataspace.catalog.catalog import Catalog
from dataspace.errors import KeeveError, gone
from dataspace.log.store import Store
from dataspace.log.verdicts import SessionDamaged


class Endings:
    """The endings of the sessions of `store`; the catalog knows which of them are deleted."""

    def __init__(self, store: Store, catalog: Catalog) -> None:
        self._store = store
        self._catalog = catalog
        self._met: dict[bytes, KeeveError] = {}
        self._all: KeeveError | None = None
        self._waiting: dict[bytes | None, set[Callable[[], None]]] = {}

    def __bool__(self) -> bool:
        """Whether anybody waits for one."""
        return bool(self._waiting)

    def of(self, uid: bytes | None) -> KeeveError | None:
        """Why nothing more comes of a session (of any session, for None); None as long as something may."""
        if uid is not None:
            row = self._catalog.by_uid(uid)
            if row is not None and row.deleted:
                return gone(row.id)
            if uid in self._met:
                return self._met[uid]
            damage = self._store.damaged.get(uid)
            if damage is not None:
                return SessionDamaged(self._catalog.name(uid), damage.seq, damage.position, damage.what)
        return self._all

    def damaged(self, uid: bytes, why: KeeveError) -> None:
        """A session was found to take no more input."""
        self._met.setdefault(uid, why)
        self.tell(uid)

    def stopped(self, why: KeeveError) -> None:
        """Nothing more is written to the store."""
        if self._all is None:
            self._all = why
            for uid in list(self._waiting):
                self.tell(uid)

    def tell(self, uid: bytes | None) -> None:
        """Wake those who wait for something of a session that has ended. O(those)."""
        for wake in list(self._waiting.get(uid, ())):
            wake()

    @contextmanager
    def told(self, uid: bytes | None, wake: Callable[[], None]) -> Iterator[None]:
        """Have `wake` called when that session ends (the whole store, for None), while the block lasts. O(1)."""
        self._waiting.setdefault(uid, set()).add(wake)
        try:
            yield
        finally:
            waiting = self._waiting[uid]
            waiting.discard(wake)
            if not waiting:
                del self._waiting[uid]
