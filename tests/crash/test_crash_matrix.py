"""A host that dies in any file operation of a script that does everything, and is opened again.

Each case is a story: a process that dies, what it left, a process that goes on. What the world saw of the first must
be in the store; each session must be as it was after some of its cranks, whole; and asking again must bring the story
to the end that it would have had. Payments whose outcome nobody knows are those that had begun, and are never made
again.

A sample runs by default, every case with KEEVE_CRASH=full; KEEVE_SEED replays the choice.
"""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from keeve.testing.crashes import CrashFiles
from keeve.testing.disk import Mode
from tests.crash.crash_suites import FULL, dies, goes_on, kills, two_owners
from tests.crash.crash_world import Move, Reference, SlowFiles, Story, under_load

pytestmark = pytest.mark.crash

SEED = int(os.environ.get("KEEVE_SEED", random.randrange(1 << 32)))


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Reference:
    return Reference(tmp_path_factory.mktemp("reference") / "store")


@pytest.mark.parametrize("part", range(2))
def test_a_process_that_dies_in_any_operation(tmp_path: Path, reference: Reference, part: int) -> None:
    """Invariants 1, 2, 3, 6, 7, 9, 13 and 14."""
    print(f"KEEVE_SEED={SEED}")
    doubtful = 0
    for at, partial in list(kills(reference))[part::2] if FULL else list(kills(reference))[(SEED + part) % 4 :: 4]:
        files = CrashFiles(at, partial=partial)
        story = dies(tmp_path / "case", files, reference)
        # A batch is what had come when the writer was free, so that one life takes fewer operations than another.
        assert files.dead or len(files.names) > 0.9 * len(reference.calls), f"operation {at} never came"
        goes_on(story, reference)
        doubtful += len(story.doubtful)
    assert doubtful


@pytest.mark.parametrize("mode", Mode)
def test_a_power_cut_in_any_operation(tmp_path: Path, reference: Reference, mode: Mode) -> None:
    """Invariants 1, 2, 3, 4, 6, 7 and 9: what was not synced is lost, whole or in part."""
    which = list(Mode).index(mode)
    for at in range(1, len(reference.calls) + 1):
        if FULL or at % len(Mode) == which:
            for seed in range(3 if FULL else 1):
                files = CrashFiles(at, partial=at * 53 % 700)
                story = dies(tmp_path / "case", files, reference, (mode, at * 10 + seed))
                goes_on(story, reference)


def test_a_process_that_dies_under_load(tmp_path: Path, reference: Reference, monkeypatch: pytest.MonkeyPatch) -> None:
    """Invariants 1, 6 and 7, when batches are written while the vats go on."""
    under_load(monkeypatch)
    for at in range(3, len(reference.calls) + 1, 1 if FULL else 6):
        files = SlowFiles(at, partial=at * 41 % 600)
        goes_on(dies(tmp_path / "case", files, reference), reference)


@pytest.mark.parametrize("growing", [True, False])
def test_a_store_whose_every_process_dies(tmp_path: Path, reference: Reference, growing: bool) -> None:
    """Invariant 10: recovery is killed at every step, again and again: each process a little later than the one
    before, or each as soon as it can have done anything."""
    story = Story(tmp_path / "store")
    for life in range(1, 400):
        files = CrashFiles(life if growing else 13 + life % 3, partial=life * 31 % 500)
        story.live(files)
        story.kept(tmp_path / "spare")
        if not files.dead:
            break
    assert not files.dead
    goes_on(story, reference)


@pytest.mark.parametrize("mode", Mode if FULL else [Mode.SECTORS])
def test_recovery_dies_in_each_of_its_operations(tmp_path: Path, reference: Reference, mode: Mode) -> None:
    """Invariant 10: a torn tail, a recovery that is cut short at each step, and another one of that."""
    for at in range(20, len(reference.calls), 3 if FULL else 37):
        for second in range(1, 16 if FULL else 9):
            story = dies(tmp_path / "case", CrashFiles(at, partial=200), reference)
            for nth, step in enumerate((second, second // 2 + 1)):
                files = CrashFiles(step, partial=step * 29 % 300)
                story.live(files)
                left = tmp_path / "case" / f"left {nth}"
                files.power_cut(story.folder, left, mode, seed=at * second)
                story.folder = left
                story.kept(tmp_path / "case" / "spare")
            goes_on(story, reference)


def test_whatever_is_asked_again_is_answered_as_the_first_time(tmp_path: Path, reference: Reference) -> None:
    """Invariant 30: with every process dead in between, and not one record more than those of the snapshots."""
    for at in range(30, len(reference.calls), 5 if FULL else 29):
        story = dies(tmp_path / "case", CrashFiles(at), reference)
        goes_on(story, reference)
        before = story.kept(tmp_path / "spare")
        told = {name: answer for name, answer in story.journal.told.items() if not about(story.move(name), "d")}
        story.journal.told = {name: answer for name, answer in story.journal.told.items() if name not in told}
        story.live(CrashFiles())
        again = story.kept(tmp_path / "spare")
        for name, answer in told.items():
            assert story.move(name)[0] == "snapshot" or story.journal.told[name] == answer
        for uid, chain in before.chains.items():
            snapshots = [move for move in story.moves if move[0] == "snapshot" and move[1] == chain.id]
            assert again.chains[uid].hashes[: len(chain.hashes)] == chain.hashes
            assert again.chains[uid].seq <= chain.seq + len(snapshots)


def about(move: Move, id: str) -> bool:
    """Whether a move is about a session. One that was deleted is not to be asked again."""
    return id in move


def test_two_owners_of_one_store_leave_no_mixture(tmp_path: Path) -> None:
    """Invariant 4: what does not fit is reported by name, and nobody gets a heap that no host has had."""
    two_owners(tmp_path / "case")
