"""A store, open for reading: what the commands look at that change nothing.

They work while a host owns the store, and see what is durable.

The one rule: nothing here takes a lock or writes a byte.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dataspace.catalog.catalog import Catalog
from dataspace.catalog.recent import SessionRow
from dataspace.log.layout import Layout, State
from dataspace.log.ownership import owner_of
from dataspace.log.segments import SegmentStore
from dataspace.log.store import NotAStore
from dataspace.observe.dataspace import Dataspace, living
from keeve.api import open_store
from keeve.archive_places import archives_from
from keeve.guard import guard
from keeve.host_keys import host_key_from


class Reading:
    """A store that is open for reading, its catalog, its dataspace."""

    def __init__(self, folder: Path, store: SegmentStore, catalog: Catalog) -> None:
        self.folder = folder
        self.store = store
        self.catalog = catalog
        self.space = Dataspace(store, catalog)

    @property
    def owner(self) -> int | None:
        """The process that has the store, as `owner_of` tells it."""
        return owner_of(Layout(self.folder).lock)

    def session(self, id: str) -> SessionRow:
        """The session of that id. Raises `NoSuchSession` or `Deleted`."""
        return living(self.catalog.session(id), id)

    def sessions(self, prefix: str = "", *, after: str = "", deleted: bool = False) -> Iterator[SessionRow]:
        """All sessions whose ids begin with `prefix`, in order."""
        return self.catalog.all_sessions(prefix, after=after, deleted=deleted)

    def type_of(self, uid: bytes) -> str | None:
        """The actor type of the session with that uid."""
        row = self.catalog.by_uid(uid)
        return None if row is None else row.type

    def name(self, uid: bytes | None) -> str | None:
        """The id of the session with that uid."""
        row = None if uid is None else self.catalog.by_uid(uid)
        return None if row is None else row.id


def must_be_there(folder: Path) -> None:
    """Raise `NotAStore` unless a store is there: for what would otherwise make one in a wrong place."""
    guard(folder)
    layout = Layout(folder)
    if layout.state() is not State.STORE:
        raise NotAStore(str(layout.folder), "there is nothing in it yet")


@contextmanager
def reading(folder: Path) -> Iterator[Reading]:
    """The store at `folder`, open for reading, with the key that the environment names.

    Raises `NotAStore`, `NewerFormat`, `TestRunGuard`, or what is wrong with keys.
    """
    guard(folder)
    key, archives = host_key_from(os.environ), archives_from(os.environ)
    store, catalog = open_store(folder, readonly=True, key=key, archives=archives)
    try:
        yield Reading(folder, store, catalog)
    finally:
        catalog.close()
        store.close()
