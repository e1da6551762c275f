"""The benchmarks measure what they say, at sizes so small that the numbers mean nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.core import Bench, rows_of

NAMES = list(rows_of(Path(), True))


@pytest.mark.parametrize("name", NAMES)
async def test_a_row_can_be_measured(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = Bench.__init__

    def small(self: Bench, folder: Path, quick: bool) -> None:
        made(self, folder, quick)
        self.rounds, self.scale, self.count, self.turns = 1, 1000, 8, 30

    monkeypatch.setattr(Bench, "__init__", small)
    found = await rows_of(tmp_path, True)[name]()
    for row in found if isinstance(found, list) else [found]:
        assert row.value > 0
        assert row.verdict in ("ok", "near", "MISSED")
