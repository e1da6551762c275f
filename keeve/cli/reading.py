"""A store, open for reading: what the commands look at that change nothing.

They work while a host owns the store, and see what is durable.

The one rule: nothing here takes a lock or writes a byte.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dataspace.log.layout import Layout, State
from dataspace.log.ownership import owner_of
from dataspace.log.segments import SegmentStore
from dataspace.log.store import NotAStore
from dataspace.observe.dataspace import Dataspace
from keeve.api import open_store
from keeve.archive_places import archives_from
from keeve.guard import guard
from keeve.host_keys import host_key_from
from keeve.looking import Reading

__all__ = ["FilesRead", "Reading", "must_be_there", "reading"]


class FilesRead(Reading):
    """The files of a store, that are read."""

    store: SegmentStore

    def is_encrypted(self) -> bool:
        """Whether the store is encrypted. Raises `KeyFileOlder` where the key file is older than its newest record."""
        newest = self.catalog.at(self.catalog.head.position)
        if newest is not None:
            self.store.check_keys(newest)
        return self.store.secret is not None


def must_be_there(folder: Path) -> None:
    """Raise `NotAStore` unless a store is there: for what would otherwise make one in a wrong place."""
    guard(folder)
    layout = Layout(folder)
    if layout.state() is not State.STORE:
        raise NotAStore(str(layout.folder))


@contextmanager
def reading(folder: Path) -> Iterator[FilesRead]:
    """The store at `folder`, open for reading, with the key that the environment names.

    Raises `NotAStore`, `NewerFormat`, `TestRunGuard`, or what is wrong with keys.
    """
    guard(folder)
    key, archives = host_key_from(os.environ), archives_from(os.environ)
    store, catalog = open_store(folder, readonly=True, key=key, archives=archives)
    try:
        yield FilesRead(Dataspace(store, catalog), lambda: owner_of(Layout(folder).lock))
    finally:
        catalog.close()
        store.close()
