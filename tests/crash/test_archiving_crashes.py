"""A host dies in any file operation of archiving, erasing what was archived and bringing back; the next one goes on,
and nothing is lost that was to stay.

A store with two conversations and a fork is made once, and copied for each case. A life archives what idle sessions
have said, and what their records did, once each has written a base; erases a turn of it, deletes a session, reclaims,
and brings the rest back. What it was told is put down, and held against what the next host finds, which does the rest.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import trio

from dataspace.values import ERASED
from keeve import Session, Settings, open_host
from keeve.testing.crashes import CrashFiles
from keeve.testing.disk import Mode
from tests.crash.crash_suites import FULL
from tests.keeve.canaries import found
from vat.errors import Deleted
from vat.host import basing
from vat.host.archiving import NothingToArchive
from vat.host.erasing import NothingToErase
from vat.host.host import Host
from vat.host.within import dataspace_of

pytestmark = pytest.mark.crash

ERASE, PARENT, CHILD, OTHER = "CANARYERASE", "CANARYPARENT", "CANARYCHILD", "CANARYOTHER"
STEPS = ("archive", "erase", "delete", "reclaim", "back")
LONG = " and so on" * 90


@pytest.fixture(autouse=True, scope="module")
def _worth() -> Iterator[None]:
    """Bases are written for the little that these sessions do."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(basing, "WORTH", 1)
        yield


def host_of(folder: Path, files: CrashFiles | None = None) -> Any:
    settings = Settings(reclaim=None, closing_records=1, first_snapshot=3)
    return open_host(folder / "store", files=files, settings=settings, segment_bytes=5_000)


async def _make(folder: Path) -> None:
    async with host_of(folder) as host:
        parent = await host.spawn(Session, "parent")
        await parent.turn(ERASE + LONG)
        child = await parent.fork(into="child")
        await parent.turn(PARENT + LONG)
        await child.turn(CHILD + LONG)
        await (await host.spawn(Session, "other")).turn(OTHER + LONG)


async def step(host: Host, folder: Path, name: str) -> None:
    with suppress(NothingToArchive, NothingToErase, Deleted):
        if name == "archive":
            await host.archive(folder / "archive", idle=True, records=True)
        elif name == "erase":
            await host.erase("child", turn=1)
        elif name == "delete":
            await host.delete("parent")
        elif name == "reclaim":
            await host.reclaim()
        else:
            await host.bring_back()


async def _live(folder: Path, files: CrashFiles, told: list[str]) -> None:
    async with host_of(folder, files) as host:
        for name in STEPS:
            await step(host, folder, name)
            if not files.dead:
                told.append(name)


def live(folder: Path, files: CrashFiles) -> list[str]:
    """A life until it ends or dies; the steps that it was told are done."""
    told: list[str] = []
    try:
        trio.run(_live, folder, files, told)
    except BaseException:  # whatever a process that has died still does
        if not files.dead:
            raise
    return told


async def inputs(host: Host, id: str) -> list[Any]:
    return [said if said is ERASED else said.removesuffix(LONG) for said in await (await host.get(id)).history]


def stand_alone(folder: Path, host: Host) -> None:
    """Every session is restored without the archive, whatever of it is there."""
    archive, aside = folder / "archive", folder / "aside"
    if archive.exists():
        archive.rename(aside)
        dataspace_of(host).store.archives.renew()  # type: ignore[attr-defined]  # it is one of segments
        for row in host.sessions():
            assert host.look(row.id, lambda seen: seen.seq) == row.seq
        aside.rename(archive)


async def _goes_on(folder: Path, told: list[str], steps: Sequence[str]) -> None:
    async with host_of(folder) as host:
        stand_alone(folder, host)
        first = (await inputs(host, "child"))[0]
        assert first in (ERASE, ERASED)
        assert first is ERASED or "erase" not in told
        assert await inputs(host, "child") == [first, CHILD]
        assert await inputs(host, "other") == [OTHER]
        if not any(row.deleted for row in host.sessions(deleted=True)):
            assert "delete" not in told
            assert await inputs(host, "parent") == [first, PARENT]
        if "archive" in told and "reclaim" not in told:
            assert found(folder / "store" / "log", OTHER) == []
        report = await host.verify()
        assert report.sound, report.troubles
        assert report.counts.away == 0
        for name in steps:
            await step(host, folder, name)
        assert await inputs(host, "child") == [ERASED, CHILD]
        report = await host.verify()
        assert (report.sound, report.counts.archived) == (True, 0)
    assert found(folder, ERASE, PARENT) == []
    shutil.rmtree(folder / "archive", ignore_errors=True)
    async with host_of(folder) as host:
        assert (await inputs(host, "child"), await inputs(host, "other")) == ([ERASED, CHILD], [OTHER])


def goes_on(folder: Path, told: list[str], at: int = 0) -> None:
    """Raise `AssertionError` unless the store is what it was told to be, and the rest can be done; after every other
    death without archiving again."""
    trio.run(_goes_on, folder, told, STEPS[at % 2 :])


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that each case begins with."""
    folder = tmp_path_factory.mktemp("made") / "world"
    folder.mkdir()
    trio.run(_make, folder)
    return folder


@pytest.fixture(scope="module")
def calls(made: Path) -> int:
    """How many file operations a whole life makes."""
    files = CrashFiles()
    whole = made.with_name("whole")
    shutil.copytree(made, whole)
    assert live(whole, files) == [*STEPS]
    goes_on(whole, [*STEPS])
    return files.count


@contextmanager
def case(made: Path, tmp_path: Path) -> Iterator[Path]:
    """A copy of it."""
    shutil.copytree(made, tmp_path / "case")
    yield tmp_path / "case"
    shutil.rmtree(tmp_path)


def test_a_process_that_dies_in_any_operation(made: Path, tmp_path: Path, calls: int) -> None:
    """Invariants 1, 10 and 26: what is archived is in one of the two places, and what goes, from both."""
    for at in range(1, calls + 1, 1 if FULL else 9):
        with case(made, tmp_path / str(at)) as folder:
            told = live(folder, CrashFiles(at, partial=at * 37 % 3000))
            goes_on(folder, told, at)


@pytest.mark.parametrize("mode", Mode)
def test_a_power_cut_in_any_operation(made: Path, tmp_path: Path, calls: int, mode: Mode) -> None:
    """Invariants 1, 4 and 26: neither the store nor the archive loses what the other one does not have."""
    modes = list(Mode)
    for at in range(1, calls + 1):
        if FULL or at % (6 * len(modes)) == modes.index(mode):
            with case(made, tmp_path / str(at)) as folder:
                files = CrashFiles(at, partial=at * 53 % 3000)
                told = live(folder, files)
                left = folder.with_name("left")
                files.power_cut(folder, left, mode, at)
                for path in (left / "store").glob("catalog.sqlite*"):  # its writes do not go through these files
                    path.unlink()
                noted = left / "store" / "archived"
                if noted.exists():  # the archive has another name in what is left
                    noted.write_text(f"{left / 'archive'}\n")
                goes_on(left, told)
