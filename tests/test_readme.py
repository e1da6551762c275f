"""The tour of the README is a program, and runs."""

from __future__ import annotations

from pathlib import Path

from tests.pages import ROOT, run


def test_the_tour_runs_from_the_first_block_to_the_last(tmp_path: Path) -> None:
    ran = run(ROOT / "README.md", tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr == ""
    assert (tmp_path / "data").is_dir()
