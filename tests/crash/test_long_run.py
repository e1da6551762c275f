"""Many sessions that take turns at once, through many processes that are killed: every turn is taken once, in order.

A few thousand turns by default, 100,000 with KEEVE_CRASH=full. KEEVE_SEED replays a run, as far as the moments of
SIGKILL can be.
"""

from __future__ import annotations

import os
import random
import time
from pathlib import Path

import attrs
import pytest
import trio

from keeve.api import open_host
from tests.crash.crash_suites import FULL
from tests.crash.long_life import SEGMENT_BYTES, Life, told
from tests.crash.nursery import Nursery

pytestmark = pytest.mark.crash

SEED = int(os.environ.get("KEEVE_SEED", random.randrange(1 << 32)))
SESSIONS, TURNS = (50, 2000) if FULL else (16, 100)


def test_every_turn_is_taken_once_and_in_order_whatever_is_killed(tmp_path: Path) -> None:
    """Invariants 6, 8, 10, 18 and 30."""
    print(f"KEEVE_SEED={SEED}")
    chance = random.Random(SEED)
    outside = tmp_path / "outside"
    outside.mkdir()
    life = Life(str(tmp_path / "store"), str(outside), SESSIONS, TURNS)
    killed = 0
    began = time.monotonic()
    with Nursery("tests.crash.long_life") as nursery:
        while not (outside / "ended").exists():
            if chance.random() < 0.5:
                at = f"{chance.randrange(1, 900 if FULL else 250)}:{chance.randrange(4000)}"
                killed += nursery.lead(attrs.asdict(attrs.evolve(life, at=at)))
            else:
                killed += nursery.lead(attrs.asdict(life), after=chance.uniform(0.05, 2.5 if FULL else 0.4))
    print(f"{SESSIONS * TURNS} turns, {killed} kills, {time.monotonic() - began:.1f} s")
    assert killed
    assert [told(outside, f"s{number}") for number in range(SESSIONS)] == [TURNS] * SESSIONS
    trio.run(_check, life)


async def _check(life: Life) -> None:
    async with open_host(life.folder, segment_bytes=SEGMENT_BYTES) as host:
        assert (await host.verify()).sound
        for number in range(life.sessions):
            session = await host.get(f"s{number}")
            assert await session.history == [f"s{number} says {n}" for n in range(life.turns)]
            roles = [message["role"] for message in await session.messages]
            assert roles == ["user", "assistant"] * life.turns
