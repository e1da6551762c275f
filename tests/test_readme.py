"""The tour of the README is a program, and runs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

README = Path(__file__).parent.parent / "README.md"


def program_in(page: str) -> str:
    """The Python blocks of a page, each line at the number that it has there, so that a traceback names it."""
    lines, inside = [], False
    for line in page.splitlines():
        if line.startswith("```"):
            inside = line == "```python"
            lines.append("")
        else:
            lines.append(line if inside else "")
    return "\n".join(lines)


def test_the_tour_runs_from_the_first_block_to_the_last(tmp_path: Path) -> None:
    tour = tmp_path / "README.md"
    tour.write_text(program_in(README.read_text()))
    ran = subprocess.run([sys.executable, tour], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr == ""
    assert (tmp_path / "data").is_dir()
