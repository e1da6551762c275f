"""The page on archives: its program runs, and leaves the store whole."""

from __future__ import annotations

from pathlib import Path

from tests.cli_runner import keeve
from tests.pages import ROOT, run


def test_the_program_of_the_page_runs(tmp_path: Path) -> None:
    ended = run(ROOT / "docs" / "archives.md", tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert keeve("verify", "--store", tmp_path / "data", "--json").json["counts"]["archived"] == 0
    assert (tmp_path / "cold" / "archive").exists()
