"""The front door as a type checker sees it."""

from __future__ import annotations

import sys
from pathlib import Path
from subprocess import run

ROOT = Path(__file__).parent.parent


def test_what_users_call_has_the_types_that_the_docs_say() -> None:
    """Strict also means: an expected mistake that is none fails."""
    check("tests/typed_use.py")


def test_the_examples_have_no_mistake_of_types() -> None:
    check(*sorted((ROOT / "examples").glob("*.py")))


def check(*files: str | Path) -> None:
    command = [sys.executable, "-m", "mypy", *files]  # as `make test` calls it, whose cache it finds
    done = run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
