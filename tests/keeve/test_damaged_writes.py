"""What somebody is told who would write into a store that is open for reading only because its log is damaged."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from actors.session import Session
from dataspace.log.store import StoreDamaged
from keeve import blocking
from tests.cli_runner import keeve
from tests.crash.damages import DAMAGES


@pytest.fixture
def store(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    with blocking.open_host(folder) as host:
        s = host.spawn(Session, "s1")
        for number in range(5):
            s.turn(f"line {number}")
    DAMAGES["a flipped bit in the header of a RECORD"](folder, Random(1))
    (folder / "catalog.sqlite").unlink()
    return folder


@pytest.mark.parametrize("words", [("chat", "s1"), ("delete", "s1"), ("fork", "s1")])
def test_a_command_that_would_write_names_the_damage_and_what_to_do(store: Path, words: tuple[str, ...]) -> None:
    said = keeve(*words, "--store", store, input=b"hello\n")
    assert said.code == 1
    assert "readonly=True" not in said.err
    assert "the log is corrupt" in said.err
    assert "keeve verify" in said.err
    assert "keeve salvage" in said.err


def test_a_host_names_the_damage_to_who_would_write(store: Path) -> None:
    with blocking.open_host(store) as host:
        with pytest.raises(StoreDamaged, match="the log is corrupt"):
            host.get("s1").turn("hello")
        with pytest.raises(StoreDamaged, match="the log is corrupt"):
            host.spawn(Session, "s2")
