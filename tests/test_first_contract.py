"""The first contract: what a session promises, in twenty lines, whatever dies on the way.

Invariant 3: a half-written snapshot at every byte length leaves the heap as it was before.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from keeve.testing.lives import Lives


@pytest.fixture
def lives(tmp_path: Path) -> Iterator[Lives]:
    lives = Lives(tmp_path / "store")
    yield lives
    lives.close()


def test_the_contract(lives: Lives) -> None:
    session_vat, restore, restore_latest = lives.session_vat, lives.restore, lives.restore_latest
    observe, simulated_crash_mid_save = lives.observe, lives.simulated_crash_mid_save

    # fmt: off
    s = session_vat('s1')
    s.turn("hello")
    s.turn("again")
    snap = s.snapshot()
    del s
    s2 = restore(snap)
    assert s2.history == ["hello", "again"]
    s_fork = s2.fork()
    s_fork.turn("diverge")
    s2.turn("original")
    assert s2.history != s_fork.history
    turns = list(observe('(turn ? "s1" . _)'))
    assert len(turns) == 3                      # two before the fork and one after it; the fork has an id of its own
    with simulated_crash_mid_save():
        s2.snapshot()
    s3 = restore_latest('s1')
    assert s3.history == s2.history_before_crash
    # fmt: on

    assert lives.crashed
    assert s3.history == ["hello", "again", "original"]


def test_the_contract_with_the_death_of_the_process(lives: Lives) -> None:
    s = lives.session_vat("s1")
    s.turn("hello")
    s.turn("again")
    snap = s.snapshot()
    lives.die()
    s2 = lives.restore(snap)
    assert s2.history == ["hello", "again"]
    assert lives.host.loaded("s1") == (snap.seq, 0)
    s_fork = s2.fork()
    s_fork.turn("diverge")
    s2.turn("original")
    child = s_fork.describe()["id"]
    lives.die()
    assert lives.restore_latest("s1").history == ["hello", "again", "original"]
    assert lives.restore_latest(child).history == ["hello", "again", "diverge"]
    assert len(list(lives.observe('(turn ? "s1" . _)'))) == 3


@pytest.mark.parametrize("partial", [0, 1, 40, 700])
def test_a_crash_at_every_file_operation_of_the_snapshot(tmp_path: Path, partial: int) -> None:
    after = 0
    while True:
        lives = Lives(tmp_path / f"store-{after}")
        s = lives.session_vat("s1")
        s.turn("hello")
        s.turn("again")
        with lives.simulated_crash_mid_save(after, partial):
            s.snapshot()
        again = lives.restore_latest("s1")
        assert again.history == s.history_before_crash == ["hello", "again"]
        assert again.turn("on") == "on"
        assert len(list(lives.observe('(turn ? "s1" . _)'))) == 3
        lives.close()
        if not lives.crashed:
            break
        after += 1
    assert after >= 2
