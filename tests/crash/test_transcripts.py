"""Real conversations through a `Session`, in processes that die, until each of the named points was hit.

By the journal outside the store each tool ran at most once; unknown are exactly the calls that had durably started and
had no durable outcome when a process died; and in the end the conversation is the transcript, byte for byte.

Two shortened transcripts by default; with KEEVE_CRASH=full all of them, whole, with several seeds. KEEVE_SEED
replays a run.
"""

from __future__ import annotations

import json
import os
import random
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio

from keeve.api import open_host, open_store
from tests.cli_runner import keeve
from tests.crash.crash_audit import audit
from tests.crash.crash_suites import FULL
from tests.crash.kill_points import POINTS
from tests.crash.nursery import Nursery
from tests.crash.transcript_life import SEGMENT_BYTES, Life, Outside, read_transcript

pytestmark = pytest.mark.crash

TRANSCRIPTS = Path(__file__).parents[3] / "shared" / "data" / "transcripts"
NAMES = sorted(path.stem for path in TRANSCRIPTS.glob("*.jsonl"))
SEED = int(os.environ.get("KEEVE_SEED", random.randrange(1 << 32)))

SAMPLE = [(name, 1 << 30) for name in NAMES] if FULL else [(name, 70) for name in NAMES[3:5]]
"""Which are played, and how many of their messages."""

needs_transcripts = pytest.mark.skipif(
    not NAMES, reason=f"the recorded conversations are not at {TRANSCRIPTS}; they are not part of the project"
)


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    """The program that leads lives."""
    with Nursery("tests.crash.transcript_life") as program:
        yield program


class Play:
    """A transcript on its way through several processes."""

    def __init__(self, nursery: Nursery, folder: Path, name: str, messages: int) -> None:
        self._nursery = nursery
        self._spare = folder / "spare"
        folder.mkdir(parents=True)
        self.outside = Outside(folder)
        self.life = Life(str(folder / "store"), str(TRANSCRIPTS / f"{name}.jsonl"), str(folder), messages)
        self.path = Path(self.life.transcript)
        self.unknown: set[str] = set()
        """The effects that had started and had no outcome when a process died, by the log."""

    @property
    def over(self) -> bool:
        """Whether the turn is over."""
        return self.outside.ended.exists()

    def lead(self, *, after: float = 0, **how: Any) -> bool:
        """Lead one life. Whether it was killed."""
        killed = self._nursery.lead(attrs.asdict(attrs.evolve(self.life, **how)), after)
        if killed:
            self._look()
        return killed

    def _look(self) -> None:
        """Note what is unknown now."""
        store, catalog = self._copy()
        found = audit(store, catalog, heaps=False)
        catalog.close()
        store.close()
        self.unknown |= {id for id in found.started - found.ended if found.wanted[id][0] == "tools"}

    def _copy(self) -> Any:
        shutil.rmtree(self._spare, ignore_errors=True)
        if Path(self.life.folder).exists():
            shutil.copytree(self.life.folder, self._spare)
        return open_store(self._spare, segment_bytes=SEGMENT_BYTES)

    def check(self) -> None:
        """All that must hold in the end."""
        ran = [line.split()[0] for line in self.outside.lines(self.outside.ran)]
        assert len(ran) == len(set(ran)), "a tool ran twice"
        transcript = read_transcript(self.path, self.life.messages)
        called = [said["tool_calls"][0]["id"] for said in transcript if said["role"] == "assistant"]
        effects = {line.split()[1] for line in self.outside.lines(self.outside.ran)}
        assert set(ran) <= set(called[:-1])
        assert set(self.outside.lines(self.outside.unknown)) == self.unknown
        assert len(effects | self.unknown) == len(called) - 1, "a call was neither made nor unknown"
        assert trio.run(self._messages) == self.path.read_text().splitlines()[: len(transcript)]
        store, catalog = self._copy()
        assert audit(store, catalog).heaps  # restored from its newest snapshot as from its first record
        catalog.close()
        store.close()
        said = keeve("verify", "--store", self.life.folder, "--json")
        assert (said.code, said.json["troubles"]) == (0, []), said
        assert said.json["snapshots"]

    async def _messages(self) -> list[str]:
        """The conversation as a host gives it, a line of JSON for each message."""
        ascii = all(json.dumps(json.loads(line)) == line for line in self.path.read_text().splitlines())
        async with open_host(self.life.folder) as host:
            session = await host.get("t")
            messages = await session.messages
            assert (await session.status())["running"] is None
            return [json.dumps(message, ensure_ascii=ascii) for message in messages]


def play_until_all_points_were_hit(
    nursery: Nursery, tmp_path: Path, name: str, messages: int, chance: random.Random
) -> Counter[str]:
    """Play a transcript, again and again, until each point was hit at least once. Gives how often."""
    hits: Counter[str] = Counter()
    for number in range(40):
        play = Play(nursery, tmp_path / f"{name} {number}", name, messages)
        wanted = [point for point in POINTS if not hits[point]]
        chance.shuffle(wanted)
        while not play.over:
            point, nth = next_kill(play, wanted, chance)
            if point == "SIGKILL":
                killed = play.lead(after=chance.uniform(0.01, 0.25))
            elif point == "any operation":
                killed = play.lead(at=f"{chance.randrange(1, 60)}:{chance.randrange(0, 2000)}")
            else:
                killed = play.lead(point=point, nth=nth)
            if killed:
                hits[point] += 1
                if point in wanted:
                    wanted.remove(point)
        play.check()
        if all(hits[point] for point in [*POINTS, "SIGKILL", "any operation"]):
            return hits
    raise AssertionError(f"never hit: {[point for point in POINTS if not hits[point]]}")


BEFORE = {"recovered": "crank: torn", "resolving": "tool: started, not called"}
"""What must have been the death before, for a point of this kind to be reached."""


def next_kill(play: Play, wanted: list[str], chance: random.Random) -> tuple[str, int]:
    """Where the next process dies: at a point that is wanted, or anywhere."""
    if chance.random() < 0.2:
        return chance.choice(["SIGKILL", "any operation"]), 1
    died = [*play.outside.lines(play.outside.died), ""][-2:][0]
    for point in wanted:
        kind = point.partition(":")[0]
        if kind in BEFORE and died != BEFORE[kind]:
            return BEFORE[kind], 1
        if kind in ("created", "spawn") and died:
            continue
        return point, chance.randrange(1, 6) if kind in ("crank", "started", "model", "tool") else 1
    return chance.choice(["SIGKILL", "any operation", *POINTS]), chance.randrange(1, 30)


@needs_transcripts
@pytest.mark.parametrize(("name", "messages"), SAMPLE or [("", 0)])
def test_a_transcript_is_played_whatever_dies(tmp_path: Path, nursery: Nursery, name: str, messages: int) -> None:
    """Invariants 6, 7, 10, 13, 14, 17 and 27."""
    print(f"KEEVE_SEED={SEED}")
    total: Counter[str] = Counter()
    for seed in range(SEED, SEED + (5 if FULL else 1)):
        folder = tmp_path / str(seed)
        total += play_until_all_points_were_hit(nursery, folder, name, messages, random.Random(seed))
        shutil.rmtree(folder)
    for point, count in sorted(total.items()):
        print(f"{count:6} {point}")
