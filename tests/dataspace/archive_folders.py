"""Stores with sealed segments, archived and brought back, and killed meanwhile: for tests of archives."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from dataspace.log.findings import Counts
from dataspace.log.segments import SegmentStore
from dataspace.log.verify import Verification
from dataspace.records import Record
from keeve.testing import CrashFiles, SimulatedCrash
from keeve.testing.chains import Chain
from tests.dataspace.segment_folders import content, opened

Act = Callable[[SegmentStore, Path], object]
"""Archives, or brings back."""
GOES, STAYS, LATE = "what goes to the archive", "what is still needed", "what is said now"
TEXTS = [GOES, STAYS] * 3


def filled(folder: Path, **options: Any) -> tuple[SegmentStore, list[Record]]:
    """A store with six records in small sealed segments, and one in that which is written to."""
    chain = Chain()
    store = opened(folder / "store", segment_bytes=3000, **options)
    records = []
    for n, said in enumerate([*TEXTS, LATE]):
        records.append(chain.record(f"body {n}", cells=[said * 50]))
        store.append(records[-1:])
    store.seal(0)
    return store, records


def stays(uid: bytes, seq: int, number: int) -> bool:
    return bool(seq % 2 == 0)


def archive(store: SegmentStore, folder: Path) -> int:
    return sum(store.archive(each.segment, folder / "archive", stays)[0] for each in store.sealed())


def texts(store: SegmentStore) -> list[Any]:
    return [stored.cell(0) for stored in store.scan() if stored.attachments]


def in_store(folder: Path, said: str) -> bool:
    return any(said.encode() in data for data in content(folder / "store").values())


def sound(store: SegmentStore) -> Counts:
    with store.still() as (segments, evidence):
        check = Verification(segments, evidence, archives=store.archives.found)
        # The records of `Chain` are no real ones, so that their bodies cannot be taken apart.
        assert [found for found in check.findings() if "cannot be read" not in found.what] == []
    return check.counts


def back(store: SegmentStore, folder: Path) -> None:
    for each in store.sealed():
        store.bring_back(each.segment)


def killed(folder: Path, at: int, act: Act, *, partial: int = 0, syncs: bool = True) -> CrashFiles:
    """Die in the file operation `at` of something; dead or not, these are the files."""
    files = CrashFiles(syncs=syncs)
    store, _ = filled(folder, files=files)
    if act is back:
        archive(store, folder)
    files.crash(at, partial=partial)
    with suppress(SimulatedCrash):
        act(store, folder)
    with suppress(SimulatedCrash):
        store.close()
    return files


def operations(folder: Path, act: Act) -> int:
    return killed(folder, 10_000, act).count - killed(folder / "again", 0, act).count


def holds(folder: Path) -> None:
    """Check that nothing is lost, and that it can be done to the end and undone."""
    store = opened(folder / "store")
    assert store.fault is None
    assert not store.damaged
    noted = folder / "store" / "archived"
    if noted.exists():  # where it went, by the name that this copy of the folder has
        noted.write_text(f"{folder / 'archive'}\n")
    assert texts(store) == [said * 50 for said in [*TEXTS, LATE]]
    sound(store)
    archive(store, folder)
    assert not in_store(folder, GOES)
    assert texts(store) == [said * 50 for said in [*TEXTS, LATE]]
    back(store, folder)
    shutil.rmtree(folder / "archive")
    assert texts(store) == [said * 50 for said in [*TEXTS, LATE]]
    store.close()
