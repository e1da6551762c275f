"""Real conversations through a `Session`, in processes that die, until each of the named points was hit.

A shortened transcript and half of the points by default; with KEEVE_CRASH=full all of them, whole, with several seeds.
KEEVE_SEED replays a run.
"""

from __future__ import annotations

import os
import random
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crash.conversations import MISSING, NAMES
from tests.crash.crash_suites import FULL
from tests.crash.kill_points import POINTS
from tests.crash.nursery import Nursery
from tests.crash.plays import OUTSIDE, histogram, play_until_hit

pytestmark = [pytest.mark.crash, pytest.mark.skipif(not NAMES, reason=MISSING)]

SEED = int(os.environ.get("KEEVE_SEED", random.randrange(1 << 32)))

SAMPLE = [(name, 1 << 30) for name in NAMES] if FULL else [(name, 30) for name in NAMES[3:4]]
"""Which are played, and how many of their messages."""


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    """The program that leads lives."""
    with Nursery("tests.crash.transcript_life") as program:
        yield program


@pytest.mark.parametrize(("name", "messages"), SAMPLE or [("", 0)])
def test_a_transcript_is_played_whatever_dies(tmp_path: Path, nursery: Nursery, name: str, messages: int) -> None:
    """Invariants 6, 7, 10, 13, 14, 17 and 27."""
    print(f"KEEVE_SEED={SEED}")
    total: Counter[str] = Counter()
    for seed in range(SEED, SEED + (5 if FULL else 1)):
        folder = tmp_path / str(seed)
        chance = random.Random(seed)
        points = POINTS if FULL else POINTS[seed % 2 :: 2]
        total += play_until_hit(nursery, folder, name, messages, chance, [*points, *OUTSIDE])
        shutil.rmtree(folder)
    print(histogram(total))
