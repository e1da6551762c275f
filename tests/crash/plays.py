"""A transcript on its way through processes that die, and what must hold in the end.

By the journal outside the store each tool ran at most once; unknown are exactly the calls that had durably started and
had no durable outcome when a process died; and in the end the conversation is the transcript, byte for byte, but for
those that were left unknown.

The one rule: what is expected is read from the log and the journal at each death, never from a host.
"""

from __future__ import annotations

import json
import random
import shutil
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import attrs
import trio

from actors.messages import UNKNOWN
from keeve.api import open_host, open_store
from tests.cli_runner import keeve
from tests.crash.conversations import TRANSCRIPTS, calls_in
from tests.crash.crash_audit import audit
from tests.crash.nursery import Nursery
from tests.crash.transcript_life import SEGMENT_BYTES, Agent, Life, Outside

OUTSIDE = ("SIGKILL", "any operation")
"""Deaths that are at no named point."""


class Play:
    """A transcript on its way through several processes."""

    def __init__(self, nursery: Nursery, folder: Path, name: str, messages: int, **how: Any) -> None:
        self._nursery = nursery
        self._spare = folder / "spare"
        folder.mkdir(parents=True)
        self.outside = Outside(folder)
        self.life = Life(str(folder / "store"), str(TRANSCRIPTS / f"{name}.jsonl"), str(folder), messages, **how)
        self.unknown: dict[str, str] = {}
        """The effects that had started and had no outcome when a process died, by the log; and their calls."""

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
        for id in found.started - found.ended:
            device, args = found.wanted[id]
            if device == "tools":
                self.unknown[id] = args[0]["id"]

    def _copy(self) -> Any:
        shutil.rmtree(self._spare, ignore_errors=True)
        if Path(self.life.folder).exists():
            shutil.copytree(self.life.folder, self._spare)
        return open_store(self._spare, segment_bytes=SEGMENT_BYTES)

    def check(self) -> None:
        """All that must hold in the end."""
        ran = [line.split() for line in self.outside.lines(self.outside.ran)]
        transcript = self.life.said
        called = list(calls_in(transcript))
        assert len({call for call, _ in ran}) == len(ran), "a tool ran twice"
        made = {call for call, _ in ran}
        assert made <= set(called)
        assert made | set(self.unknown.values()) == set(called), "a call was neither made nor unknown"
        assert all(self.unknown.get(id, call) == call for call, id in ran)
        messages = trio.run(self._messages)
        if self.life.unknown == "settled":
            assert set(self.outside.lines(self.outside.unknown)) == self.unknown.keys()
            assert [json.dumps(said) for said in messages] == [json.dumps(said) for said in transcript]
        else:
            left = {said["tool_call_id"] for said in messages if said["content"] == UNKNOWN}
            assert left == set(self.unknown.values())
            expected = [
                {**said, "content": UNKNOWN} if said.get("tool_call_id") in left else said for said in transcript
            ]
            assert [json.dumps(said) for said in messages] == [json.dumps(said) for said in expected]
        store, catalog = self._copy()
        assert audit(store, catalog).heaps  # restored from its newest snapshot as from its first record
        catalog.close()
        store.close()
        said = keeve("verify", "--store", self.life.folder, "--json")
        assert (said.code, said.json["troubles"]) == (0, []), said
        assert said.json["snapshots"]

    async def _messages(self) -> list[Any]:
        """The conversation as a host gives it."""
        async with open_host(self.life.folder, actors=[Agent]) as host:
            session = await host.get("t")
            described = await session.describe()
            assert (described["fibers"], described["effects"]) == (0, 0)
            return list(await session.messages)


def play_until_hit(
    nursery: Nursery, folder: Path, name: str, messages: int, chance: random.Random, points: Sequence[str], **how: Any
) -> Counter[str]:
    """Play a transcript, again and again, until each of the points was hit at least once. Gives how often."""
    hits: Counter[str] = Counter()
    for number in range(40):
        play = Play(nursery, folder / f"{name} {number}", name, messages, **how)
        wanted = [point for point in points if not hits[point]]
        chance.shuffle(wanted)
        while not play.over:
            point, nth = next_kill(play, wanted, points, chance)
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
        if all(hits[point] for point in points):
            return hits
    raise AssertionError(f"never hit: {[point for point in points if not hits[point]]}")


BEFORE = {"recovered": "crank: torn", "resolving": "tool: started, not called"}
"""What must have been the death before, for a point of this kind to be reached."""

OFTEN = ("crank", "started", "model", "tool", "fiber", "restoring")
"""Kinds of points that a process comes to many times,"""

ONCE = ("fiber: run again, at its beginning", "fiber: run again, to go on")
"""but for these: there is one fiber."""


def next_kill(play: Play, wanted: list[str], points: Sequence[str], chance: random.Random) -> tuple[str, int]:
    """Where the next process dies: at a point that is wanted, or anywhere."""
    if chance.random() < 0.2:
        return chance.choice(OUTSIDE), 1
    died = [*play.outside.lines(play.outside.died), ""][-2:][0]
    for point in wanted:
        kind = point.partition(":")[0]
        if kind in BEFORE and died != BEFORE[kind]:
            return BEFORE[kind], 1
        if kind in ("created", "spawn") and died:
            continue
        if point.startswith("fiber: run again") and not died:  # somebody must have died before, in a later part
            return chance.choice([other for other in points if other.startswith(("model", "tool"))]), chance.randrange(
                2, 8
            )
        return point, chance.randrange(1, 6) if kind in OFTEN and point not in ONCE else 1
    return chance.choice([*OUTSIDE, *points]), chance.randrange(1, 30)


def histogram(hits: Counter[str]) -> str:
    """How often processes died, and where."""
    return "\n".join(f"{count:6} {point}" for point, count in sorted(hits.items()))
