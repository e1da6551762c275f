"""The page on deletion: its program runs, and what it says is gone is in no file."""

from __future__ import annotations

from pathlib import Path

from tests.keeve.canaries import found
from tests.pages import ROOT, run


def test_the_program_of_the_page_runs_and_leaves_nothing(tmp_path: Path) -> None:
    ended = run(ROOT / "docs" / "deletion.md", tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert found(tmp_path / "data", "my number is 12345", "and so on", "on it goes") == []
