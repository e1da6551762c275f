"""Real conversations through the loop that people write, an async method, in processes that die at every kind of point.

As recorded and with some calls made beside each other; with what is unknown settled by somebody, and left unknown; and
through a `Session` with calls beside each other.

A sample shares the points among its cases; with KEEVE_CRASH=full each case comes to each of them, with every
transcript, whole. KEEVE_SEED replays a run.
"""

from __future__ import annotations

import os
import random
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.crash.conversations import MISSING, NAMES
from tests.crash.crash_suites import FULL
from tests.crash.kill_points import FIBERS, POINTS
from tests.crash.nursery import Nursery
from tests.crash.plays import OUTSIDE, histogram, play_until_hit

pytestmark = [pytest.mark.crash, pytest.mark.skipif(not NAMES, reason=MISSING)]

SEED = int(os.environ.get("KEEVE_SEED", random.randrange(1 << 32)))

WAYS: dict[str, dict[str, Any]] = {
    "a loop": {"through": "loop"},
    "a loop with calls beside each other": {"through": "loop", "beside": SEED or 1},
    "a loop that is told what is unknown": {"through": "loop", "beside": SEED or 1, "unknown": "left"},
    "a session with calls beside each other": {"through": "session", "beside": SEED or 1},
}

MESSAGES = 1 << 30 if FULL else 30
"""How many messages of a transcript are played."""


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    """The program that leads lives."""
    with Nursery("tests.crash.transcript_life") as program:
        yield program


def points_of(way: str) -> list[str]:
    """The points at which processes are to die in this case."""
    loop, left = WAYS[way]["through"] == "loop", WAYS[way].get("unknown") == "left"
    points = [point for point in POINTS if not (left and point.startswith("resolving"))]
    if FULL:
        return [*OUTSIDE, *points, *(FIBERS if loop else ())]
    share = list(WAYS).index(way)
    mine = [*POINTS[share :: len(WAYS)], *(FIBERS[share :: len(WAYS) - 1] if loop else ())]
    also = [point for point in points if point.startswith("tool" if left else "resolving" if loop else "-")]
    return [*OUTSIDE, *(point for point in mine if point in {*points, *FIBERS}), *also]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", NAMES if FULL else NAMES[4:5])
def test_an_agent_comes_to_the_end_of_its_conversation(tmp_path: Path, nursery: Nursery, name: str, way: str) -> None:
    """Invariants 6, 8, 13, 14, 16, 17 and 27."""
    print(f"KEEVE_SEED={SEED}")
    total: Counter[str] = Counter()
    for seed in range(SEED, SEED + (2 if FULL else 1)):
        folder = tmp_path / str(seed)
        total += play_until_hit(nursery, folder, name, MESSAGES, random.Random(seed), points_of(way), **WAYS[way])
        shutil.rmtree(folder)
    print(histogram(total))
