"""Folders whose stores a test run may open.

The one rule: what makes them so is a file in them, and nothing else.
"""

from __future__ import annotations

from pathlib import Path

from keeve.guard import MARKER


def folder_for_stores(path: Path) -> Path:
    """The folder at `path`, made if it is missing: tests may open the stores beneath it."""
    path.mkdir(parents=True, exist_ok=True)
    (path / MARKER).touch()
    return path
