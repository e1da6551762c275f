"""The crash suites as functions, so that they can be run with a protection taken out, and must then fail.

The one rule: whatever a suite finds wrong is an `AssertionError`.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dataspace.log.chains import Chains
from dataspace.log.segments import SegmentStore
from dataspace.log.store import Stored
from dataspace.log.verdicts import LogCorrupt
from dataspace.records import STORE_UID, Record
from keeve.api import open_store
from keeve.testing.crashes import CrashFiles
from keeve.testing.disk import Mode
from tests.crash.crash_audit import constant, dump, restored, standing
from tests.crash.crash_world import Move, Reference, Story
from vat.heap.restore import BrokenChain

FULL = os.environ.get("KEEVE_CRASH") == "full"
"""Whether every case is to be run, or a sample."""


BASE: list[Move] = [("spawn", "a"), ("call", "a", "add", "one"), ("call", "a", "add", "two")]


def kills(reference: Reference) -> Iterator[tuple[int, int]]:
    """Each operation to die in, and how much of a write is done before."""
    for at, call in enumerate(reference.calls, 1):
        partials = [0, at * 37 % 900 + 1] if call.startswith("write") else [0]
        for partial in [*partials, 1, 8, 4096] if FULL and len(partials) > 1 else partials:
            yield at, partial


def dies(tmp_path: Path, files: CrashFiles, reference: Reference, cut: tuple[Mode, int] | None = None) -> Story:
    """The first life of a story, which ends with the files; or with a power cut of a mode and a seed."""
    shutil.rmtree(tmp_path, ignore_errors=True)
    story = Story(tmp_path / "store")
    story.live(files)
    if cut is not None:
        files.power_cut(story.folder, tmp_path / "left", *cut)
        story.folder = tmp_path / "left"
    reference.holds(story.kept(tmp_path / "spare"))
    return story


def goes_on(story: Story, reference: Reference) -> None:
    """The last life of a story: to the end."""
    story.live(CrashFiles())
    story.kept(story.folder.parent / "spare")
    reference.ends_like(story)


def two_owners(tmp_path: Path) -> None:
    """Two hosts that each believed that the store was theirs went on from the same point, and the records of the one
    came behind those of the other. What is found is what one of them said, or an error; never a mixture."""
    left, right = ([("call", "a", "add", f"{who} {n}") for n in range(4)] for who in ("left", "right"))
    tmp_path.mkdir(exist_ok=True)
    theirs = Reference(tmp_path / "right", [*BASE, *right])
    foreign = records(theirs.folder)
    said = list(theirs.heaps.values())
    for count in range(len(left) + 1):
        ours = Reference(tmp_path / f"left {count}", [*BASE, *left[:count]])
        said += ours.heaps.values()
        store = SegmentStore(ours.folder, now=standing, salts=constant)
        store._chains = Chains()  # this one does not know what the other has written
        store.append(foreign[len(BASE) + count :])
        store.close()
        assert heap_of(ours.folder, foreign[0].uid) in [*said, None], "a heap that no host has had"


def heap_of(folder: Path, uid: bytes) -> Any:
    """The heap of a session; None when the store says that its history is broken."""
    store, catalog = open_store(folder, clock=standing, entropy=constant)
    try:
        assert store.fault is None or isinstance(store.fault, LogCorrupt)
        row = catalog.by_uid(uid)
        assert row is not None
        return dump(restored(store, catalog, uid, row.seq))
    except BrokenChain:
        return None
    finally:
        catalog.close()
        store.close()


def records(folder: Path) -> list[Record]:
    """The records of a store's sessions, in order, so that they can be appended elsewhere."""
    store, catalog = open_store(folder, clock=standing, entropy=constant)
    found = [taken(stored) for stored in store.scan() if stored.header.uid != STORE_UID]
    catalog.close()
    store.close()
    return found


def taken(stored: Stored) -> Record:
    """A stored record as one that can be appended elsewhere."""
    header, body = stored.header, stored.body()
    cells = [bytes(stored.part(number)) for number in range(stored.attachments)]
    return Record(
        header.uid, header.seq, header.kind, header.time, header.previous, body.salts, body.deeds, body.facts, cells
    )
