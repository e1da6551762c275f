"""What holds for every test here, doctests included: a store under `tmp_path` may be opened."""

from __future__ import annotations

import pytest

from keeve.testing import folder_for_stores

pytest_plugins = ["keeve.testing.plugin"]


@pytest.fixture(scope="session", autouse=True)
def _stores_under_tmp_path_are_for_tests(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder_for_stores(tmp_path_factory.getbasetemp())
