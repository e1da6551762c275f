"""Erasing content from segment files: what goes, what stays in its place, and what a crash can do to it."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from dataspace.log import erasing
from dataspace.log.files import DiskFull
from dataspace.log.segments import SegmentStore
from dataspace.log.store import BodyErased, Erasure, StoreFailed
from dataspace.log.verify import Verification
from dataspace.records import Record
from dataspace.values import ERASED
from keeve.testing import CrashFiles, SimulatedCrash
from keeve.testing.chains import Chain
from keeve.testing.disk import Mode
from tests.dataspace.segment_folders import content, opened, segment

SECRET = "the canary sings"
KEPT = "the canary's neighbour"


def filled(folder: Path, size: int = 40, **options: Any) -> tuple[SegmentStore, list[Record]]:
    """A store with six records in a few small segments; the second and the fifth are to go."""
    chain = Chain()
    store = opened(folder, segment_bytes=1500, **options)
    records = []
    for n in range(1, 7):
        said = SECRET if n in (2, 5) else KEPT
        records.append(chain.record(f"{said} {n}", cells=[said * size], pages=[said.encode() * size]))
        store.append(records[-1:])
    return store, records


def doomed(records: list[Record]) -> list[Erasure]:
    return [Erasure(records[1].address), Erasure(records[4].address)]


def nowhere(folder: Path) -> bool:
    return not any(SECRET.encode() in data for data in content(folder).values())


def sound(folder: Path) -> int:
    """Check all of a log; gives how many bodies are erased in it."""
    store = opened(folder, readonly=True)
    with store.still() as (segments, evidence):
        check = Verification(segments, evidence)
        # The records of `Chain` are no real ones, so that their bodies cannot be taken apart.
        findings = [found for found in check.findings() if "cannot be read" not in found.what]
        assert findings == []
    store.close()
    return check.counts.erased


def test_content_is_in_no_file_and_the_rest_lies_where_it_lay(tmp_path: Path) -> None:
    store, records = filled(tmp_path)
    places = [stored.address for stored in store.scan()]
    mark = store.mark
    assert store.erase(doomed(records)) == 6
    assert nowhere(tmp_path)
    assert [stored.address for stored in store.scan()] == places
    assert store.holds(mark)
    for n, record in enumerate(records):
        if n not in (1, 4):
            assert store.read(record.address).cell(0) == KEPT * 40
    store.close()
    assert sound(tmp_path) == 6


def test_a_log_with_erased_content_is_judged_from_a_mark_and_from_its_beginning(tmp_path: Path) -> None:
    store, records = filled(tmp_path)
    store.erase(doomed(records))
    head = store.head
    store.close()
    again = opened(tmp_path)
    assert (again.head, again.fault, dict(again.damaged)) == (head, None, {})
    again.close()


@pytest.mark.parametrize("chunk", [4096, 8192])
def test_bodies_that_span_chunks_are_erased_whole(tmp_path: Path, chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(erasing, "CHUNK", chunk)
    store, records = filled(tmp_path, size=1500)
    store.erase(doomed(records))
    assert nowhere(tmp_path)
    assert store.read(records[2].address).part(1) == KEPT.encode() * 1500
    store.close()
    assert sound(tmp_path) == 6


def test_what_is_gone_takes_no_space(tmp_path: Path) -> None:
    chain = Chain()
    store = opened(tmp_path)
    record = chain.record(cells=[os.urandom(1 << 20), "short"])
    store.append([record])
    store.erase([Erasure(record.address, [0], body=False)])
    before = segment(tmp_path).stat().st_size
    assert before < 2048
    store.erase([Erasure(record.address, [1], body=False)])
    assert segment(tmp_path).stat().st_size < before + 64
    store.close()


def test_small_bodies_between_headers_take_no_space_either(tmp_path: Path) -> None:
    chain = Chain()
    store = opened(tmp_path)
    records = [chain.record(cells=["a small one, kept " * 8, f"a small one, and it goes {n} " * 8]) for n in range(200)]
    store.append(records)
    whole = segment(tmp_path).stat().st_size
    store.erase([Erasure(record.address, [1], body=False) for record in records])
    assert segment(tmp_path).stat().st_size < whole - 200 * 200
    assert [stored.cell(0) for stored in store.scan() if stored.attachments] == ["a small one, kept " * 8] * 200
    store.close()


def test_a_segment_without_anything_to_erase_is_left_alone(tmp_path: Path) -> None:
    store, records = filled(tmp_path)
    store.erase(doomed(records))
    before = {path: path.stat().st_ino for path in (tmp_path / "log").iterdir()}
    assert store.erase(doomed(records)) == 0
    assert {path: path.stat().st_ino for path in (tmp_path / "log").iterdir()} == before
    store.close()


def test_what_a_crash_left_beside_a_segment_is_gone_at_the_next_opening(tmp_path: Path) -> None:
    store, _ = filled(tmp_path)
    store.close()
    (tmp_path / "log" / "erasing.new").write_bytes(SECRET.encode())
    opened(tmp_path).close()
    assert not (tmp_path / "log" / "erasing.new").exists()


def test_a_full_disk_leaves_all_as_it_was_and_erasing_works_later(tmp_path: Path) -> None:
    """Invariant 11: A disk that is full while content is erased is told at once, and nothing is lost."""
    full = CrashFiles()
    store, records = filled(tmp_path, files=full)
    full.fail(28, 2)
    with pytest.raises(DiskFull):
        store.erase(doomed(records))
    assert store.read(records[1].address).cell(0) == SECRET * 40
    assert not (tmp_path / "log" / "erasing.new").exists()
    assert store.erase(doomed(records)) == 6
    assert nowhere(tmp_path)
    store.close()


def test_a_folder_that_cannot_be_synced_stops_the_store(tmp_path: Path) -> None:
    """Invariant 12: A sync that failed while content is erased is not tried again."""
    files = CrashFiles()
    store, records = filled(tmp_path, files=files)
    before = files.count
    store.erase(doomed(records)[:1])
    last = files.count - before  # the sync of the folder comes last
    files.fail(5, last - 1)
    with pytest.raises(StoreFailed):
        store.erase([Erasure(records[3].address)])
    with pytest.raises(StoreFailed):
        store.append([Chain("b").record()])
    store.close()


def test_what_recovery_has_cut_goes_as_well(tmp_path: Path) -> None:
    store, records = filled(tmp_path)
    store.close()
    with open(segment(tmp_path, len(list((tmp_path / "log").iterdir()))), "ab") as file:
        file.write(b"torn off: " + SECRET.encode())
    store = opened(tmp_path)
    assert [path.suffix for path in (tmp_path / "cut").iterdir()] == [".bin"]
    (tmp_path / "cut" / "notes of mine").write_text("kept")
    store.erase(doomed(records))
    assert [path.name for path in (tmp_path / "cut").iterdir()] == ["notes of mine"]
    assert nowhere(tmp_path)
    store.close()


# Crashes.


def killed(folder: Path, at: int, partial: int = 0) -> CrashFiles:
    """Fill a store, and die in the file operation `at` of erasing; dead or not, these are its files."""
    files = CrashFiles()
    store, records = filled(folder, files=files)
    files.crash(at, partial=partial)
    with suppress(SimulatedCrash):
        store.erase(doomed(records))
    return files


def operations(tmp_path: Path) -> int:
    """How many file operations erasing takes."""
    files = CrashFiles()
    store, records = filled(tmp_path / "whole", files=files)
    begun = files.count
    store.erase(doomed(records))
    count = files.count - begun
    store.close()
    return count


def holds(folder: Path) -> None:
    """Check that every body is whole or gone, and that erasing goes on from there."""
    store = opened(folder)
    assert store.fault is None
    assert not store.damaged
    records = [stored for stored in store.scan() if stored.header.uid == Chain().uid]
    assert len(records) == 6
    for n, stored in enumerate(records, 1):
        said = SECRET if n in (2, 5) else KEPT
        try:
            assert stored.body().deeds == f"{said} {n}".encode()
            whole = True
        except BodyErased:
            whole = False
        assert stored.cell(0) == (said * 40 if whole else ERASED)
        assert whole or n in (2, 5)
    store.erase([Erasure(records[1].address), Erasure(records[4].address)])
    assert nowhere(folder)
    store.close()
    assert sound(folder) == 6


def test_killed_at_any_file_operation_each_body_is_whole_or_gone(tmp_path: Path) -> None:
    """Invariant 10: Erasing is killed at every step, and goes on from there at the next opening."""
    for at in range(operations(tmp_path)):
        for partial in (0, 100):
            folder = tmp_path / f"at {at}.{partial}"
            killed(folder, at, partial)
            holds(folder)


@pytest.mark.parametrize("mode", list(Mode))
def test_a_power_cut_at_any_file_operation_leaves_each_body_whole_or_gone(tmp_path: Path, mode: Mode) -> None:
    """Invariant 10: The power is cut at every step of erasing; what is left is sound, and erasing goes on."""
    for at in range(operations(tmp_path)):
        folder = tmp_path / f"at {at}"
        killed(folder, at).power_cut(folder, tmp_path / f"left {at}", mode, seed=at)
        holds(tmp_path / f"left {at}")


def test_without_syncs_a_power_cut_would_lose_what_is_to_stay(tmp_path: Path) -> None:
    """Invariant 45: The suite fails when the syncs are taken out of erasing."""
    store, records = filled(tmp_path / "store")
    store.close()
    unsafe = CrashFiles(syncs=False)
    store = opened(tmp_path / "store", files=unsafe)
    store.erase(doomed(records))
    unsafe.power_cut(tmp_path / "store", tmp_path / "left", Mode.SIZES)
    with pytest.raises(AssertionError):
        holds(tmp_path / "left")
    store.close()


def test_what_was_exchanged_before_a_crash_is_made_durable_by_erasing_again(tmp_path: Path) -> None:
    files = CrashFiles()
    store, records = filled(tmp_path, files=files)
    store.erase(doomed(records))
    begun = files.count
    store.erase(doomed(records)[:1])
    assert [name.split("/")[0] for name in files.names[begun:]] == ["sync folder "]
    store.close()
