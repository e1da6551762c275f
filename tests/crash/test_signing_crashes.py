"""A host that signs dies in any file operation: every receipt that it has given out stays proven, and signing goes on.

Each case lives a store through three owners, the last of which changes the key. Whoever was given a receipt or a
checkpoint expects all of it of the store that is opened next.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import trio

from actors.models import EchoModel
from dataspace.log.verdicts import LogError
from dataspace.proofs.signers import SigningKey
from dataspace.proofs.verifiers import Verifier
from keeve import Session, Settings, open_host
from keeve.testing.crashes import CrashFiles
from keeve.testing.disk import Mode
from tests.crash.crash_suites import FULL

pytestmark = pytest.mark.crash

ECHO = {"model": EchoModel()}
"""A model of its own, and no stand-in: it goes on with what a dead host has left."""
KEYS = [SigningKey.of_seed(bytes([number]) * 32) for number in range(2)]
OWNERS: list[tuple[SigningKey, SigningKey | None]] = [(KEYS[0], None), (KEYS[0], None), (KEYS[1], KEYS[0])]


async def live(folder: Path, files: CrashFiles, given: list[str]) -> None:
    """Three owners, one after another; what they give out is put down as it is given."""
    for life, (key, former) in enumerate(OWNERS):
        settings = Settings(closing_records=1)
        async with open_host(folder, devices=ECHO, signer=key, former=former, files=files, settings=settings) as host:
            s = await (host.spawn(Session, "s1") if life == 0 else host.get("s1"))
            _, receipt = await s.turn(f"life {life}", receipt=True)
            given.append(str(receipt))
            given.append(host.checkpoint())


def lives(folder: Path, files: CrashFiles) -> list[str]:
    """A life until it ends or dies; what was given out."""
    given: list[str] = []
    try:
        trio.run(live, folder, files, given)
    except BaseException:  # whatever a process that has died still does
        if not files.dead:
            raise
    return given


async def _expects(folder: Path, given: list[str]) -> None:
    async with open_host(folder, devices=ECHO, signer=KEYS[1], former=KEYS[0]) as host:
        for seen in given:
            host.expect(seen)
        newest = host.checkpoint()
        s = await (host.get("s1") if host.sessions() else host.spawn(Session, "s1"))
        _, receipt = await s.turn("after", receipt=True)
        assert receipt.verify([Verifier.parse(key) for key in host.log_keys()])
        host.expect(newest)
        report = await host.verify(keys=host.log_keys(), expect=receipt)
        assert report.sound, report.troubles


def expects(folder: Path, given: list[str]) -> None:
    """Raise `AssertionError` unless the store has all that was given out, and signs on."""
    try:
        trio.run(_expects, folder, given)
    except LogError as error:
        raise AssertionError(str(error)) from error


@pytest.fixture(scope="module")
def calls(tmp_path_factory: pytest.TempPathFactory) -> int:
    """How many file operations a whole life makes."""
    files = CrashFiles()
    folder = tmp_path_factory.mktemp("whole") / "store"
    given = lives(folder, files)
    assert len(given) == 6
    expects(folder, given)
    return files.count


def test_a_process_that_dies_in_any_operation(tmp_path: Path, calls: int) -> None:
    """Invariants 1, 7 and 10: what was proven to somebody stays proven."""
    for at in range(1, calls + 1, 1 if FULL else 5):
        shutil.rmtree(tmp_path / "store", ignore_errors=True)
        given = lives(tmp_path / "store", CrashFiles(at, partial=at * 37 % 700))
        expects(tmp_path / "store", given)


def cut(tmp_path: Path, files: CrashFiles, mode: Mode, seed: int) -> tuple[Path, list[str]]:
    shutil.rmtree(tmp_path, ignore_errors=True)
    given = lives(tmp_path / "store", files)
    files.power_cut(tmp_path / "store", tmp_path / "left", mode, seed)
    for path in (tmp_path / "left").glob("catalog.sqlite*"):  # its writes do not go through these files
        path.unlink()
    return tmp_path / "left", given


@pytest.mark.parametrize("mode", Mode)
def test_a_power_cut_in_any_operation(tmp_path: Path, calls: int, mode: Mode) -> None:
    """Invariants 1, 4 and 7: what was signed was durable."""
    modes = list(Mode)
    for at in range(1, calls + 1):
        if FULL or at % (3 * len(modes)) == modes.index(mode):
            expects(*cut(tmp_path / "case", CrashFiles(at, partial=at * 53 % 700), mode, at))


def test_the_suite_fails_without_syncs(tmp_path: Path, calls: int) -> None:
    """Invariant 45."""
    for at in range(calls, 1, -2):
        left, given = cut(tmp_path / "case", CrashFiles(at, syncs=False), Mode.NOTHING, at)
        try:
            expects(left, given)
        except AssertionError:
            return
    pytest.fail("nobody missed anything")
