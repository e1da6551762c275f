"""A host dies in any file operation of erasing, deleting and reclaiming; the next one goes on, and nothing is lost.

A store with a session, a fork of it and another one is made once, and copied for each case. A life erases a turn that
both have, deletes the session, reclaims, deletes the fork, and reclaims again. What it was told is put down, and held
against what the next host finds; that one does the rest, and then what was to go is in no file.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import trio

from dataspace.records import Kind
from dataspace.values import ERASED
from keeve import Session, Settings, open_host
from keeve.testing.crashes import CrashFiles
from keeve.testing.disk import Mode
from tests.crash.crash_suites import FULL
from tests.keeve.canaries import found
from tests.vat.hosts import store_of
from vat.errors import Deleted
from vat.host.erasing import NothingToErase
from vat.host.host import Host
from vat.host.reclaiming import Reclaiming

pytestmark = pytest.mark.crash

SHARED, PARENT, CHILD, OTHER = "CANARYSHARED", "CANARYPARENT", "CANARYCHILD", "CANARYOTHER"
STEPS = ("erase", "delete parent", "reclaim", "delete child", "reclaim again")
LONG = " and so on" * 90


def host_of(folder: Path, files: CrashFiles | None = None) -> Any:
    settings = Settings(reclaim=None, closing_records=1, first_snapshot=3)
    return open_host(folder, files=files, settings=settings, segment_bytes=5_000)


async def _make(folder: Path) -> None:
    async with host_of(folder) as host:
        parent = await host.spawn(Session, "parent")
        await parent.turn(SHARED + LONG)
        child = await parent.fork(into="child")
        await parent.turn(PARENT + LONG)
        await child.turn(CHILD + LONG)
        await (await host.spawn(Session, "other")).turn(OTHER + LONG)


async def step(host: Host, name: str) -> None:
    if name == "erase":
        with suppress(NothingToErase):
            await host.erase("child", turn=1)
    elif name.startswith("delete"):
        with suppress(Deleted):
            await host.delete(name.partition(" ")[2])
    else:
        await host.reclaim()


async def _live(folder: Path, files: CrashFiles, told: list[str]) -> None:
    async with host_of(folder, files) as host:
        for name in STEPS:
            await step(host, name)
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


async def _read(folder: Path) -> None:
    """Who only reads before any host goes on sees what is erased as erased, whether or not its bytes are there yet."""
    async with open_host(folder, readonly=True) as host:
        if any(stored.header.kind == Kind.ERASE for stored in store_of(host).scan()):
            for row in host.sessions():
                assert SHARED not in str(await inputs(host, row.id))


async def _goes_on(folder: Path, told: list[str]) -> None:
    async with host_of(folder) as host:
        kinds = [stored.header.kind for stored in store_of(host).scan()]
        erased = Kind.ERASE in kinds
        assert erased or "erase" not in told
        shared = ERASED if erased else SHARED
        assert bool(found(folder, SHARED)) != erased, "an erasure is whole, or did not happen"
        deleted = {row.id for row in host.sessions(deleted=True) if row.deleted}
        assert {name.partition(" ")[2] for name in told if name.startswith("delete")} <= deleted
        if "parent" not in deleted:
            assert await inputs(host, "parent") == [shared, PARENT]
        if "child" not in deleted:
            assert await inputs(host, "child") == [shared, CHILD]
        if "reclaim" in told:
            assert found(folder, PARENT) == []
        if "reclaim again" in told:
            assert found(folder, CHILD) == []
        report = await host.verify()
        assert report.sound, report.troubles
        for name in STEPS:
            if name != "erase" or "child" not in deleted:
                await step(host, name)
        assert found(folder, SHARED, PARENT, CHILD) == []
        assert await inputs(host, "other") == [OTHER]
        report = await host.verify()
        assert report.sound, report.troubles


def goes_on(folder: Path, told: list[str]) -> None:
    """Raise `AssertionError` unless the store is what it was told to be, and the rest can be done."""
    trio.run(_goes_on, folder, told)
    assert found(folder, SHARED, PARENT, CHILD) == []
    assert found(folder, OTHER)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The store that each case begins with."""
    folder = tmp_path_factory.mktemp("made") / "store"
    trio.run(_make, folder)
    assert len(list((folder / "log").iterdir())) > 2
    return folder


@pytest.fixture(scope="module")
def calls(made: Path) -> int:
    """How many file operations a whole life makes."""
    files = CrashFiles()
    whole = made.with_name("whole")
    shutil.copytree(made, whole)
    told = live(whole, files)
    assert told == [*STEPS]
    goes_on(whole, told)
    return files.count


@contextmanager
def case(made: Path, tmp_path: Path) -> Iterator[Path]:
    """A copy of the store."""
    shutil.copytree(made, tmp_path / "case")
    yield tmp_path / "case"
    shutil.rmtree(tmp_path)


def test_a_process_that_dies_in_any_operation(made: Path, tmp_path: Path, calls: int) -> None:
    """Invariants 1, 10 and 26: an erasure is whole or absent, forks are whole, and the rest can be done."""
    for at in range(1, calls + 1, 1 if FULL else 7):
        with case(made, tmp_path / str(at)) as folder:
            told = live(folder, CrashFiles(at, partial=at * 37 % 3000))
            trio.run(_read, folder)
            goes_on(folder, told)


@pytest.mark.parametrize("mode", Mode)
def test_a_power_cut_in_any_operation(made: Path, tmp_path: Path, calls: int, mode: Mode) -> None:
    """Invariants 1, 4 and 26: what was told to be gone does not come back with the power."""
    modes = list(Mode)
    for at in range(1, calls + 1):
        if FULL or at % (4 * len(modes)) == modes.index(mode):
            with case(made, tmp_path / str(at)) as folder:
                files = CrashFiles(at, partial=at * 53 % 3000)
                told = live(folder, files)
                goes_on(cut(folder, files, mode, at), told)


def cut(folder: Path, files: CrashFiles, mode: Mode, seed: int) -> Path:
    left = folder.with_name("left")
    files.power_cut(folder, left, mode, seed)
    for path in left.glob("catalog.sqlite*"):  # its writes do not go through these files
        path.unlink()
    return left


def missed(made: Path, tmp_path: Path, calls: int, end: Callable[[Path, int], tuple[Path, list[str]]]) -> bool:
    """Whether some case, of all that there are, is found to be wrong."""
    for at in range(calls, 0, -3):
        with case(made, tmp_path / str(at)) as folder:
            left, told = end(folder, at)
            try:
                goes_on(left, told)
            except BaseException as error:  # a broken store may be told in any way
                if isinstance(error, KeyboardInterrupt):
                    raise
                return True
    return False


def test_the_suite_fails_without_syncs(made: Path, tmp_path: Path, calls: int) -> None:
    """Invariant 45."""

    def end(folder: Path, at: int) -> tuple[Path, list[str]]:
        files = CrashFiles(at, syncs=False)
        told = live(folder, files)
        return cut(folder, files, Mode.NOTHING, at), told

    assert missed(made, tmp_path, calls, end)


def test_the_suite_fails_when_a_start_does_not_end_what_was_erased(
    made: Path, tmp_path: Path, calls: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Invariant 45."""

    async def nothing(self: Reclaiming) -> None:
        pass

    monkeypatch.setattr(Reclaiming, "begin", nothing)
    assert missed(made, tmp_path, calls // 2, lambda folder, at: (folder, live(folder, CrashFiles(at))))
