"""Each example runs to its end, in a folder of its own, with nothing on the standard error."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.py"))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs(example: Path, tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, example], cwd=tmp_path, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr == ""
