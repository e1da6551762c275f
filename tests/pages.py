"""Pages whose Python blocks are one program."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


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


def run(page: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the program of a page in a folder, from a file of the page's name."""
    program = folder / page.name
    program.write_text(program_in(page.read_text()))
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, program], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
