"""Worlds for tests of hosts: in memory, and on both kinds of store."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.vat.hosts import World


@pytest.fixture
def world() -> World:
    """A world in memory."""
    return World()


@pytest.fixture(params=["memory", "segments"])
def either(request: pytest.FixtureRequest, tmp_path: Path) -> World:
    """A world on each kind of store."""
    return World() if request.param == "memory" else World(tmp_path / "store")
