"""The benchmarks measure what they say, at sizes so small that the numbers mean nothing."""

from __future__ import annotations

import gc
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks import core, fibers, proof, server
from benchmarks.rows import Row


def small_core(folder: Path) -> core.Bench:
    bench = core.Bench(folder, True)
    bench.rounds, bench.scale, bench.count, bench.turns = 1, 1000, 8, 30
    return bench


def small_fibers(folder: Path) -> fibers.Bench:
    bench = fibers.Bench(folder, True)
    bench.rounds, bench.count, bench.awaits, bench.fibers = 1, 4, 6, 100
    return bench


def small_proof(folder: Path) -> proof.Bench:
    bench = proof.Bench(folder, True)
    bench.rounds, bench.sessions, bench.each, bench.records = 1, 4, 2, 60
    return bench


def small_server(folder: Path) -> server.Bench:
    bench = server.Bench(folder, True)
    bench.rounds, bench.count, bench.each, bench.many, bench.busy, bench.idle = 1, 2, 1, 3, 3, 5
    return bench


ROWS: list[tuple[str, Callable[[Path], Awaitable[Any]]]] = [
    *((name, lambda folder, name=name: core.rows_of(small_core(folder))[name]()) for name in core.NAMES),
    *((name, lambda folder, name=name: fibers.rows_of(small_fibers(folder))[name]()) for name in fibers.NAMES),
    *((name, lambda folder, name=name: proof.rows_of(small_proof(folder))[name]()) for name in proof.NAMES),
    *(
        (f"server-{name}", lambda folder, name=name: server.rows_of(small_server(folder))[name]())
        for name in server.NAMES
    ),
]


@pytest.fixture(autouse=True)
def _garbage_of_other_tests_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """To look through all that this process has, before each measurement, would be most of the work."""
    monkeypatch.setattr(gc, "collect", lambda: 0)


@pytest.mark.parametrize("measure", [row for _, row in ROWS], ids=[name for name, _ in ROWS])
async def test_a_row_can_be_measured(measure: Callable[[Path], Awaitable[Any]], tmp_path: Path) -> None:
    found = await measure(tmp_path)
    for row in found if isinstance(found, list) else [found]:
        assert row.verdict in ("ok", "near", "MISSED", "-")
        assert row.detail


def test_a_row_without_a_target_has_no_verdict() -> None:
    assert Row.shown("turns", 0.1, "10 of 100").verdict == "-"
