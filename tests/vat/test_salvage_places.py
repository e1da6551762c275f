"""Where a store is salvaged: a folder that one process makes, which is told from another's and gone when it fails."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import trio

from dataspace.log.files import DiskFull, SyncFailed
from dataspace.log.layout import PlaceTaken
from keeve import open_host
from keeve.testing import CrashFiles, SimulatedCrash
from tests.dataspace.segment_folders import content
from tests.vat.hosts import Counter
from vat.host.salvaging import salvage


def salvaged(
    tmp_path: Path, to: str = "new", *, files: Any = None, meanwhile: Callable[[], object] | None = None
) -> None:
    """Salvage, and do something once while the old log is read."""
    acts = [] if meanwhile is None else [meanwhile]

    def progress(done: int, total: int) -> None:
        if acts:
            acts.pop()()

    salvage(
        tmp_path / "store",
        tmp_path / to,
        now=lambda: 1,
        salts=os.urandom,
        files=files,
        segment_bytes=1000,
        progress=progress,
    )


@pytest.fixture(autouse=True)
def old(tmp_path: Path) -> dict[str, bytes]:
    """What is in the store that is salvaged."""

    async def main() -> None:
        async with open_host(tmp_path / "store", actors=[Counter]) as host:
            s = await host.spawn(Counter, "s1")
            for n in range(4):
                await s.add(f"word {n} " * 40)

    trio.run(main)
    return content(tmp_path / "store")


def test_of_two_to_one_place_the_second_is_refused_and_the_first_goes_on(tmp_path: Path) -> None:
    def another() -> None:
        with pytest.raises(PlaceTaken, match="another salvage to this place is being made; wait for that, or name"):
            salvaged(tmp_path)

    salvaged(tmp_path, meanwhile=another)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new", "store"]
    assert sorted(os.listdir(tmp_path / "new" / "log")) == ["00000001.seg", "00000002.seg"]


def test_what_is_left_of_one_that_was_killed_is_told_and_stays(tmp_path: Path) -> None:
    with suppress(SimulatedCrash):
        salvaged(tmp_path, files=CrashFiles(16))
    left = content(tmp_path / "new.salvaging")
    with pytest.raises(PlaceTaken, match="left of a salvage that was interrupted, and is no store; remove it, or name"):
        salvaged(tmp_path)
    assert content(tmp_path / "new.salvaging") == left != {}
    shutil.rmtree(tmp_path / "new.salvaging")
    salvaged(tmp_path)


def exchange(tmp_path: Path) -> dict[str, bytes]:
    """Put another's folder where it is made; gives what is in that."""
    shutil.rmtree(tmp_path / "new.salvaging")
    shutil.copytree(tmp_path / "store", tmp_path / "new.salvaging")
    (tmp_path / "new.salvaging" / "catalog.new").write_text("of another salvage")
    return content(tmp_path / "new.salvaging")


def test_another_folder_of_its_name_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "store" / "catalog").write_text("of which a copy is looked into")
    theirs: dict[str, bytes] = {}
    with pytest.raises(PlaceTaken, match="it was removed while a salvage was made in it"):
        salvaged(tmp_path, meanwhile=lambda: theirs.update(exchange(tmp_path)))
    assert content(tmp_path / "new.salvaging") == theirs != {}
    assert not (tmp_path / "new").exists()


def test_so_is_one_that_comes_while_the_first_segment_is_written(tmp_path: Path) -> None:
    theirs: dict[str, bytes] = {}

    class Exchanging(CrashFiles):
        def sync(self, fd: int) -> None:
            super().sync(fd)
            if not theirs and (tmp_path / "new.salvaging" / "log" / "00000001.seg").exists():
                theirs.update(exchange(tmp_path))

    with pytest.raises(PlaceTaken, match="it was removed while a salvage was made in it"):
        salvaged(tmp_path, files=Exchanging())
    assert content(tmp_path / "new.salvaging") == theirs != {}


def test_something_that_has_its_name_by_then_stays(tmp_path: Path) -> None:
    with pytest.raises(PlaceTaken, match="something is there"):
        salvaged(tmp_path, meanwhile=lambda: (tmp_path / "new").write_text("something"))
    assert (tmp_path / "new").read_text() == "something"
    assert not (tmp_path / "new.salvaging").exists()


def test_a_full_disk_anywhere_leaves_nothing_and_the_store_as_it_was(tmp_path: Path, old: dict[str, bytes]) -> None:
    """Invariant 43."""
    files = CrashFiles()
    salvaged(tmp_path, "above/new", files=files)
    shutil.rmtree(tmp_path / "above")
    writes = [n for n, name in enumerate(files.names) if name.startswith(("write", "create", "make folder"))]
    for at in writes:
        failing = CrashFiles()
        failing.fail(28, at)
        with pytest.raises(DiskFull):
            salvaged(tmp_path, "above/new", files=failing)
        assert [path.name for path in tmp_path.iterdir()] == ["store"]
    assert content(tmp_path / "store") == old
    assert len(writes) > 10


def test_a_name_that_is_not_durable_is_taken_back(tmp_path: Path) -> None:
    files = CrashFiles()
    salvaged(tmp_path, "whole", files=files)
    assert files.names[-1].startswith("sync folder")
    failing = CrashFiles()
    failing.fail(5, len(files.names) - 1)
    with pytest.raises(SyncFailed):
        salvaged(tmp_path, files=failing)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["store", "whole"]
