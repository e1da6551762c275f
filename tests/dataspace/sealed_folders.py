"""Encrypted stores in folders, and what the randomness of one has given, for tests."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dataspace.drafts import Draft
from dataspace.encryption.key_file import unpacked
from dataspace.encryption.keys import HostKey, Keys
from dataspace.log.segments import SegmentStore
from dataspace.log.store import Store
from dataspace.records import Kind, Record
from dataspace.values import FrozenDict
from keeve.testing.chains import Chain
from keeve.testing.crashes import SimulatedCrash

KEY = bytes(range(32))
OTHER_KEY = bytes(range(1, 33))


@contextmanager
def opened(folder: Path, key: bytes | None = KEY, **options: object) -> Iterator[SegmentStore]:
    """A store, open for the block; nobody closes it when the machine has died."""
    given = {"now": int, "salts": os.urandom, "key": key, **options}
    store = SegmentStore(folder, **given)  # type: ignore[arg-type] # as the tests say
    try:
        yield store
    except SimulatedCrash:
        raise
    except BaseException:
        store.close()
        raise
    store.close()


def keys_in(folder: Path, key: bytes = KEY) -> tuple[Keys, HostKey]:
    """The table in the key file of a store."""
    return unpacked((folder / "keys").read_bytes(), key, "keys")


def forked(parent: Chain, name: str, at: int) -> tuple[Chain, list[Record]]:
    """A fork of `parent`, which is at seq `at` or beyond: its chain, and the two records that make it."""
    child = Chain(name, seq=at, hash=parent.hash)
    first = child.record(f"{name} is born", kind=Kind.FORKED)
    first.message = FrozenDict({"parent": parent.uid, "seq": at})
    return child, [parent.record(f"{name} is a fork", kind=Kind.FORK), first]


def said(store: Store, record: Record) -> str:
    """What a record of a test chain says, read from a store."""
    return store.read(record.address).body().deeds.decode()


def tombstone(chain: Chain) -> Record:
    """The record that a session was deleted."""
    draft = Draft(chain.uid, chain.seq + 1, Kind.DELETE, chain.seq + 1)
    draft.message = FrozenDict({"by": "somebody"})
    record = draft.seal(chain.hash, os.urandom)
    chain.seq, chain.hash = record.seq, record.hash
    return record
