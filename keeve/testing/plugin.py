"""Fixtures for pytest.

A project has them by `pytest_plugins = ["keeve.testing.plugin"]` in its topmost conftest.py.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from keeve.testing.folders import folder_for_stores


@pytest.fixture
def store_folder(tmp_path: Path) -> Path:
    """A folder of this test's own, whose stores it may open; its child processes may too."""
    return folder_for_stores(tmp_path / "stores")
