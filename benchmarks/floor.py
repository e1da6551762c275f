"""The floor: a plain loop that appends the same bytes to a file and syncs each, on the same disk in the same run."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Awaitable, Callable
from pathlib import Path


def floor(folder: Path, size: int, count: int) -> float:
    """Appends of `size` bytes with an fdatasync each: how many a second."""
    path = folder / "floor.bin"
    data = os.urandom(size)
    fd = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND | os.O_TRUNC, 0o600)
    try:
        begin = time.perf_counter()
        for _ in range(count):
            os.write(fd, data)
            os.fdatasync(fd)
        return count / (time.perf_counter() - begin)
    finally:
        os.close(fd)
        path.unlink()


async def against_floor(
    folder: Path, size: int, count: int, rounds: int, run: Callable[[], Awaitable[float]]
) -> tuple[float, float, float]:
    """`run` (a rate) and the floor in turn, `rounds` times: the medians of both, and of the ratio of each round."""
    rates, floors, ratios = [], [], []
    for _ in range(rounds):
        floors.append(floor(folder, size, count))
        rates.append(await run())
        # The disk drifts: each round is held against the floor just before and just after it.
        floors.append(floor(folder, size, count))
        ratios.append(rates[-1] / ((floors[-1] + floors[-2]) / 2))
    return statistics.median(rates), statistics.median(floors), statistics.median(ratios)
