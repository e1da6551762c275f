"""Everything in a store's folder but the log may be lost or damaged, before the start and while a host runs.

What is asked afterwards: the sessions, what they say of themselves, all events, the facts that hold. The answers are
those of an untouched store.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trio

from dataspace.log.frames import Type
from keeve.api import open_store
from keeve.testing.crashes import CrashFiles
from snapshots.cache import PageCache
from tests.crash.crash_audit import constant, dump, standing
from tests.crash.crash_world import SCRIPT, Reference, Story
from tests.crash.harms import answers, flip_body, frames, opened
from tests.vat.hosts import catalog_of
from vat.heap.restore import Lineage, restore
from vat.host.host import Host

pytestmark = pytest.mark.crash

DERIVED = ("catalog.sqlite", "catalog.sqlite-wal", "catalog.sqlite-shm", "head", "cut")
"""What lies in a store's folder and is no part of the log."""


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Reference:
    return Reference(tmp_path_factory.mktemp("reference") / "store")


@pytest.fixture
def folder(tmp_path: Path, reference: Reference) -> Path:
    """A copy of the reference's store."""
    shutil.copytree(reference.folder, tmp_path / "store")
    return tmp_path / "store"


@pytest.fixture(scope="module")
def expected(reference: Reference, tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("expected") / "store"
    shutil.copytree(reference.folder, folder)
    return trio.run(_answers, folder)


async def _answers(folder: Path) -> Any:
    async with opened(folder) as host:
        return await answers(host)


def delete(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def truncate(path: Path) -> None:
    if path.is_file():
        os.truncate(path, path.stat().st_size // 2)


def empty(path: Path) -> None:
    if path.is_file():
        os.truncate(path, 0)


def garbage(path: Path) -> None:
    if path.is_file():
        with path.open("r+b") as file:
            file.write(os.urandom(path.stat().st_size))


def flip(path: Path) -> None:
    """One byte in each 4 KiB, so that what opens is wrong inside."""
    if path.is_file():
        data = bytearray(path.read_bytes())
        for at in range(100, len(data), 4096):
            data[at] ^= 0xFF
        with path.open("r+b") as file:
            file.write(data)


HARMS = (delete, truncate, empty, garbage, flip)


@pytest.mark.parametrize("name", DERIVED)
@pytest.mark.parametrize("harm", HARMS)
def test_a_derived_file_that_is_harmed_before_the_start_changes_no_answer(
    folder: Path, expected: Any, name: str, harm: Callable[[Path], None]
) -> None:
    """Invariants 21 and 22."""
    harm(folder / name)
    assert trio.run(_answers, folder) == expected
    assert trio.run(_answers, folder) == expected


def test_a_catalog_of_another_store_changes_no_answer(tmp_path: Path, folder: Path, expected: Any) -> None:
    """Invariant 21."""
    other = Reference(tmp_path / "other", SCRIPT[:6])
    for name in DERIVED[:1]:
        shutil.copy(other.folder / name, folder / name)
    assert trio.run(_answers, folder) == expected


def test_a_catalog_of_another_time_changes_no_answer(tmp_path: Path, reference: Reference, expected: Any) -> None:
    """Invariant 21: an older one of the same store, and one that is ahead of the log."""
    story = Story(tmp_path / "store", SCRIPT[:9])
    story.live(CrashFiles())
    early = tmp_path / "early"
    shutil.copytree(story.folder, early)
    story.moves = SCRIPT
    story.live(CrashFiles())
    shutil.copy(story.folder / DERIVED[0], tmp_path / "late.sqlite")
    shutil.copy(early / DERIVED[0], story.folder / DERIVED[0])
    states, listed, *_ = trio.run(_answers, story.folder)
    assert (states, listed) == tuple(expected[:2])
    before = trio.run(_answers, early)
    shutil.copy(tmp_path / "late.sqlite", early / DERIVED[0])
    assert trio.run(_answers, early) == before


@pytest.mark.parametrize("name", DERIVED)
@pytest.mark.parametrize("harm", HARMS)
def test_a_derived_file_that_is_harmed_while_a_host_runs_changes_no_answer(
    tmp_path: Path, expected: Any, name: str, harm: Callable[[Path], None]
) -> None:
    """Invariant 21."""
    story = Harmed(tmp_path / "store", lambda: harm(tmp_path / "store" / name))
    story.live(CrashFiles())
    assert story.answers == expected
    assert trio.run(_answers, story.folder) == expected


class Harmed(Story):
    """The script, with something done to the store's folder on the way."""

    def __init__(self, folder: Path, harm: Callable[[], None]) -> None:
        super().__init__(folder)
        self._harm = harm
        self.answers: Any = None

    async def _make(self, host: Host, move: Any, name: str, files: CrashFiles) -> None:
        await super()._make(host, move, name, files)
        if name in ("4", "9", "16"):
            catalog_of(host).flush()  # so that there is something in the file
        if name in ("5", "10", "17"):
            self._harm()
        if name == str(len(self.moves) - 1):
            self.answers = await answers(host)


@pytest.mark.parametrize("catalog", ["kept", "lost"])
def test_with_every_snapshot_bad_the_heap_is_the_same_from_the_beginning(
    folder: Path, reference: Reference, expected: Any, catalog: str
) -> None:
    """Invariant 21."""
    pages = list(frames(folder, Type.PAGE))
    assert pages
    for path, page in pages:
        flip_body(path, page)
    if catalog == "lost":
        delete(folder / DERIVED[0])
    assert trio.run(_answers, folder) == expected
    store, index = open_store(folder, clock=standing, entropy=constant)
    for chain in reference.found.chains.values():
        if not chain.deleted:
            lineage = Lineage(chain.uid, index, store.read)
            found = restore(lineage, index, PageCache(1 << 20), reference.found.chains[chain.uid].seq)
            assert dump(found.heap) == reference.found.heaps[chain.uid]
            assert found.snapshot == 0
    index.close()
    store.close()
