"""The segment store on a machine that dies: at every call that changes something, with every kind of power cut.

A run offers batches and notes which were acknowledged. What is found afterwards must be the acknowledged
ones and at most the whole batch after them, and the store must go on from there.
"""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path

import pytest

from dataspace.errors import KeeveError
from dataspace.log import scan, segments
from dataspace.log.files import Files, SyncFailed, WriteFailed
from dataspace.log.layout import Layout
from dataspace.log.segments import SegmentStore
from dataspace.log.store import StoreFailed
from dataspace.log.verdicts import Verdict
from dataspace.records import STORE_UID, Kind
from keeve.testing.crashes import CRASH_AT, CrashFiles, SimulatedCrash
from keeve.testing.disk import Disk, Mode
from keeve.testing.stores import Chain


def opened(folder: Path, files: Files) -> SegmentStore:
    return SegmentStore(folder, now=int, salts=os.urandom, files=files, segment_bytes=4000)


class Run:
    """Batches offered to a store one after another: from an empty folder, through several segments, to its close."""

    def __init__(self) -> None:
        first, second = Chain("a"), Chain("b")
        self.batches = [
            [first.record("one")],
            [first.record("two", cells=["c" * 700], pages=[b"p" * 600]), second.record("three")],
            [second.record(f"many {n}", cells=["d" * 300]) for n in range(4)],
            [first.record("large", cells=["e" * 5000])],
            [first.record("last")],
        ]
        self.acknowledged: list[bytes] = []

    def carry_out(self, folder: Path, files: Files) -> None:
        """Raises `SimulatedCrash` when the files do."""
        store = opened(folder, files)
        for batch in self.batches:
            store.append(batch)
            self.acknowledged += [record.hash for record in batch]
            if len(batch) > 1:
                store.settle()
        store.close()

    def check(self, found: list[bytes]) -> None:
        """What is found: all that was acknowledged, and then one more batch whole or nothing."""
        offered: list[list[bytes]] = [[]]
        for batch in self.batches:
            offered.append(offered[-1] + [record.hash for record in batch])
        following = min(len(offered) - 1, offered.index(self.acknowledged) + 1)
        assert found in (self.acknowledged, offered[following])


def said(store: SegmentStore) -> list[bytes]:
    """The hashes of the sessions' records; each record is read whole."""
    hashes = []
    for stored in store.scan():
        assert stored.body().digest == stored.header.body_digest
        for number in range(stored.attachments):
            stored.part(number)
        if stored.header.uid != STORE_UID:
            hashes.append(stored.header.hash)
    return hashes


def goes_on(folder: Path, files: Files) -> list[bytes]:
    """Open what is there, append to it, open it again; gives what was found at first."""
    store = opened(folder, files)
    assert store.fault is None
    found = said(store)
    extra = Chain("new").record("goes on")
    store.append([extra])
    store.close()
    again = opened(folder, files)
    assert said(again) == [*found, extra.hash]
    again.close()
    return found


def calls_of_a_run(folder: Path) -> int:
    files = CrashFiles()
    Run().carry_out(folder, files)
    return files.count


def crashes(tmp_path: Path, **options: bool) -> Iterator[tuple[Run, CrashFiles, Path, int]]:
    """A run for each call to die in, partly done as well."""
    for at in range(1, calls_of_a_run(tmp_path / "whole") + 1):
        run, folder = Run(), tmp_path / f"run {at}"
        files = CrashFiles(at, partial=at * 37 % 900, **options)
        with suppress(SimulatedCrash):
            run.carry_out(folder, files)
        yield run, files, folder, at


def test_a_process_that_dies_in_any_call_loses_nothing_acknowledged(tmp_path: Path) -> None:
    """Invariants 1, 4 and 6."""
    for run, _, folder, _ in crashes(tmp_path):
        run.check(goes_on(folder, CrashFiles()) if folder.exists() else [])


@pytest.mark.parametrize("mode", Mode)
def test_a_power_cut_in_any_call_loses_nothing_acknowledged(tmp_path: Path, mode: Mode) -> None:
    """Invariants 1, 4 and 6."""
    seeds = 2 if mode in (Mode.PREFIX, Mode.SECTORS, Mode.GARBAGE) else 1
    for run, files, folder, at in crashes(tmp_path):
        for seed in range(seeds):
            left = tmp_path / f"left {at} {seed}"
            files.power_cut(folder, left, mode, seed=at * seeds + seed)
            run.check(goes_on(left, CrashFiles()))


def test_the_suite_notices_a_disk_that_does_not_sync(tmp_path: Path) -> None:
    """Invariant 45: with the syncs taken out, acknowledged records are lost, and that is seen."""
    noticed = 0
    for run, files, folder, at in crashes(tmp_path, syncs=False):
        left = tmp_path / f"left {at}"
        files.power_cut(folder, left, Mode.NOTHING)
        try:
            run.check(goes_on(left, CrashFiles()))
        except AssertionError:
            noticed += 1
    assert noticed > 10


def test_the_suite_notices_names_that_are_not_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Invariant 45: with the syncs of folders taken out, whole files are lost, and that is seen."""
    monkeypatch.setattr(Disk, "synced_folder", lambda self, path: None)
    noticed = 0
    for run, files, folder, at in crashes(tmp_path):
        left = tmp_path / f"left {at}"
        files.power_cut(folder, left, Mode.NOTHING)
        try:
            run.check(goes_on(left, CrashFiles()))
        except (AssertionError, KeeveError):
            noticed += 1
    assert noticed > 10


def after_a_refused_batch(tmp_path: Path) -> int:
    """A batch that a full disk refuses, another one in its place, and a power cut before that one is durable: in how
    many of the states that may be left there is something of the one that was refused."""
    kept, refused, other = Chain("kept").record("one"), Chain("no").record("two"), Chain("yes").record("six")
    mixed = 0
    for seed in range(40):
        folder, left, files = tmp_path / f"{seed}", tmp_path / f"{seed} left", CrashFiles()
        store = opened(folder, files)
        store.append([kept])
        files.fail(errno.ENOSPC, partial=1 << 20)
        with pytest.raises(WriteFailed):
            store.append([refused])
        files.crash(after=1)
        with pytest.raises(SimulatedCrash):
            store.append([other])
        files.power_cut(folder, left, Mode.SECTORS, seed)
        mixed += said(opened(left, CrashFiles())) not in ([kept.hash], [kept.hash, other.hash])
    return mixed


def test_what_a_full_disk_refused_never_comes_back(tmp_path: Path) -> None:
    """Invariant 5."""
    assert not after_a_refused_batch(tmp_path)


def test_the_suite_notices_commits_that_cover_anything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Invariant 45: the check of a commit frame over the frames before it."""

    class Anything(int):
        def __eq__(self, other: object) -> bool:
            return True

        __hash__ = int.__hash__

    commit_head = scan.commit_head
    monkeypatch.setattr(scan, "commit_head", lambda head: commit_head(head)._replace(headers_crc=Anything(0)))
    assert after_a_refused_batch(tmp_path)


def killed_while_opening(folder: Path, mode: Mode, name: str) -> Iterator[Path]:
    """What is left of a store when its opening is killed in each of its calls; and at last what a whole one
    makes of it."""
    for at in count(1):
        copy, left = folder.parent / f"{name} {at}", folder.parent / f"{name} {at} left"
        shutil.copytree(folder, copy)
        files = CrashFiles(at, partial=100)
        with suppress(SimulatedCrash):
            store = opened(copy, files)
            files.crash()
            with suppress(SimulatedCrash):
                store.close()
            yield copy
            return
        files.power_cut(copy, left, mode, seed=at)
        yield left


@pytest.mark.parametrize("mode", [Mode.ALL, Mode.SECTORS])
def test_recovery_may_itself_be_killed_at_every_step_twice(tmp_path: Path, mode: Mode) -> None:
    """Invariant 10, with a torn tail to be cut, saved and put down."""
    folder = tmp_path / "0"
    run = Run()
    del run.batches[2:]
    run.carry_out(folder, CrashFiles())
    with open(max((folder / "log").iterdir()), "ab") as file:
        file.write(b"torn" * 500)
    for first in killed_while_opening(folder, mode, "first"):
        for second in killed_while_opening(first, mode, first.name):
            store = opened(second, CrashFiles())
            assert said(store) == run.acknowledged
            kinds = [stored.header.kind for stored in store.scan()]
            assert kinds.count(Kind.RECOVERED) == 1
            (saved,) = (second / "cut").iterdir()
            assert saved.suffix == ".bin"
            assert saved.read_bytes() == b"torn" * 500
            store.close()


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO])
def test_an_error_of_the_disk_at_any_call_is_shown_and_loses_nothing(tmp_path: Path, error: int) -> None:
    """Invariants 11 and 12: with a full disk work goes on when there is space, after a failed sync the store
    must be opened again. Each error is shown once, and the batch is then offered again."""
    for at in range(1, calls_of_a_run(tmp_path / "whole") + 1):
        folder, files, run = tmp_path / f"run {at}", CrashFiles(), Run()
        files.fail(error, after=at - 1, partial=at * 37 % 900)
        shown = 0
        store = None
        for batch in run.batches:
            while run.acknowledged[-len(batch) :] != [record.hash for record in batch]:
                try:
                    store = store or opened(folder, files)
                    if said(store) == run.acknowledged:
                        store.append(batch)
                    run.acknowledged += [record.hash for record in batch]
                except (WriteFailed, SyncFailed):
                    shown += 1
                    assert not any(record.position for record in batch)
                except StoreFailed:
                    shown += 1
                    assert store is not None
                    store.close()
                    store = None
        assert store is not None
        assert said(store) == run.acknowledged
        assert shown <= 1
        store.close()
        assert goes_on(folder, CrashFiles()) == run.acknowledged


def seen_after_a_lie(tmp_path: Path) -> tuple[list[bytes], list[bytes], int]:
    """Opens a store again whose sync failed, on a machine that goes on: what was seen of it, what a power cut leaves of
    that, and how many records had been acknowledged."""
    run, folder, left = Run(), tmp_path / "store", tmp_path / "left"
    files = CrashFiles(lies=True)
    store = opened(folder, files)
    store.append(run.batches[0])
    files.fail(errno.EIO, after=1)
    with pytest.raises(StoreFailed):
        store.append(run.batches[1])
    store.close()
    again = CrashFiles(disk=files.disk)
    seen = said(opened(folder, again))
    again.power_cut(folder, left, Mode.NOTHING)
    return seen, said(opened(left, CrashFiles())), 1


def test_what_recovery_shows_is_durable_even_when_a_sync_has_failed_and_lied(tmp_path: Path) -> None:
    """Invariant 12."""
    seen, left, acknowledged = seen_after_a_lie(tmp_path)
    assert len(seen) > acknowledged
    assert left == seen


def test_the_suite_notices_a_recovery_that_only_syncs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Invariant 45: the last batch written again. A sync alone does not put down what the system takes for clean."""

    def put_right(layout: Layout, files: Files, verdict: Verdict) -> None:
        fd = files.open(layout.segment(verdict.end.segment))
        files.sync(fd)
        files.close(fd)

    monkeypatch.setattr(segments, "put_right", put_right)
    seen, left, _ = seen_after_a_lie(tmp_path)
    assert left != seen


CHILD = """
import os, sys
sys.path[:0] = [{tests!r}, {root!r}]
from pathlib import Path
from keeve.testing.crashes import crash_files_from
from test_crash_files import Run
run = Run()
try:
    run.carry_out(Path(sys.argv[1]), crash_files_from(os.environ))
finally:
    sys.stdout.write("done")
"""


@pytest.mark.parametrize("at", ["9", "17:100", "26:300", "33", "9999"])
def test_a_real_process_that_ends_in_the_middle_leaves_a_store_that_goes_on(tmp_path: Path, at: str) -> None:
    tests = Path(__file__).parent
    child = CHILD.format(tests=str(tests), root=str(tests.parent))
    command = [sys.executable, "-c", child, str(tmp_path / "store")]
    ended = subprocess.run(command, env={**os.environ, CRASH_AT: at}, capture_output=True, text=True)
    assert (ended.returncode, ended.stdout) == ((0, "done") if at == "9999" else (137, "")), ended.stderr
    found = goes_on(tmp_path / "store", CrashFiles())
    offered = [record.hash for batch in Run().batches for record in batch]
    assert found == offered[: len(found)]
