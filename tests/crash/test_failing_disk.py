"""A disk that refuses: full, or with an error, at any operation of the script, for a moment or for a while.

Whoever asked is told at once, nothing acknowledged is lost, and when the same is asked again all comes to the same end:
in the same process when a write was refused, in the next one when a sync failed.
"""

from __future__ import annotations

import errno
import shutil
from pathlib import Path
from typing import Any

import pytest
import trio

from dataspace.log.files import SyncFailed, WriteFailed
from dataspace.log.store import StoreFailed
from keeve.testing.crashes import CrashFiles
from tests.crash.crash_suites import FULL
from tests.crash.crash_world import Reference, Story, perform, under_load
from vat.host.sessions import Busy

pytestmark = pytest.mark.crash


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Reference:
    return Reference(tmp_path_factory.mktemp("reference") / "store")


class Insistent(Story):
    """A story whose caller asks again when it is told that the disk refused."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.shown: list[Exception] = []
        self.stopped = 0

    async def _make(self, host: Any, move: Any, name: str, files: CrashFiles) -> None:
        while name not in self.journal.told:
            try:
                await super()._make(host, move, name, files)
            except WriteFailed as error:
                self.shown.append(error)
                await trio.sleep(0.001)
            except Busy:  # a message whose record was refused is brought again after a while
                await trio.sleep(0.001)
            except StoreFailed:
                with pytest.raises(StoreFailed):  # and whatever is asked then
                    await perform(host, ("spawn", "late"), "late")
                raise

    def insist(self, files: CrashFiles) -> None:
        """Lead lives until the moves are done."""
        while not self.states:
            try:
                self.live(files)
            except* (WriteFailed, SyncFailed, StoreFailed) as group:
                self.shown += group.exceptions
                self.stopped += 1
                assert self.stopped < 60
            self.kept(self.folder.parent / "spare")


def fails(tmp_path: Path, reference: Reference, error: int, at: int, times: int) -> Insistent:
    """The script on a disk that fails from operation `at` on."""
    shutil.rmtree(tmp_path, ignore_errors=True)
    story = Insistent(tmp_path / "store")
    files = CrashFiles()
    files.fail(error, after=at - 1, partial=at * 37 % 900, times=times)
    story.insist(files)
    reference.ends_like(story)
    assert at > len(files.names) - 8 or files.names[at - 1] != "sync" or story.stopped
    return story


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO])
def test_an_error_at_any_operation_is_shown_and_loses_nothing(tmp_path: Path, reference: Reference, error: int) -> None:
    """Invariants 5, 6, 11 and 12."""
    shown = 0
    for at in range(1, len(reference.calls) + 1, 1 if FULL else 4):
        shown += len(fails(tmp_path / "case", reference, error, at, 1).shown)
    assert shown > 10


@pytest.mark.parametrize("times", [3, 10, 40])
def test_a_disk_that_is_full_for_a_while(tmp_path: Path, reference: Reference, times: int) -> None:
    """Invariant 11: work goes on when there is space."""
    for at in range(8, len(reference.calls) + 1, 4 if FULL else 43):
        fails(tmp_path / "case", reference, errno.ENOSPC, at, times)


def test_a_disk_that_fails_under_load(tmp_path: Path, reference: Reference, monkeypatch: pytest.MonkeyPatch) -> None:
    """Invariants 5, 11 and 12, when batches are written while the vats go on."""
    under_load(monkeypatch)
    for at in range(10, len(reference.calls) + 1, 2 if FULL else 11):
        for error in (errno.ENOSPC, errno.EIO):
            fails(tmp_path / "case", reference, error, at, 1 + at % 3)
