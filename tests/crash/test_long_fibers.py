"""A fiber that has waited a thousand times, with a long time of others' messages in between, and a process that dies.

What is read to bring it back is counted: its own parts, and at the gap what lies after a snapshot; never the past of
the session. A few hundred messages of others by default, 100,000 with KEEVE_CRASH=full. KEEVE_SEED replays a run.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import trio

from keeve.api import open_host
from keeve.testing.crashes import CrashFiles, SimulatedCrash
from keeve.testing.lives import suppress_crash
from tests.crash.crash_audit import audited
from tests.crash.crash_suites import FULL
from vat.devices.devices import Effect, effect
from vat.heap.restore import Lineage
from vat.host.asking import NotRunning
from vat.objects.actor import Actor, actor
from vat.objects.collections import List

pytestmark = pytest.mark.crash

SEED = int(os.environ.get("KEEVE_SEED", random.randrange(1 << 32)))
WAITS = 1000
FOREIGN = 100_000 if FULL else 400
APART = 256
"""Records between two snapshots while a fiber waits, at most."""


@actor("long.agent", version=1)
class Agent(Actor):
    count: int = 0
    log: List[Any]

    async def work(self, times: int) -> list[Any]:
        seen, chance, log = {"sum": 0}, self.random, self.log
        alias = seen
        for number in range(times):
            seen["sum"] += await self.device("tool").use(number)
            if number % 100 == 0:
                log.append([alias["sum"], chance.integer(0, 99), self.count])
        return [alias["sum"], alias is seen, list(log)]

    def poke(self) -> None:
        self.count += 1


class Tool:
    """Answers with the number that it is given; at the half of them, when it is let."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self.half = trio.Event()
        self.go_on = trio.Event()

    @effect(on_crash="retry")
    async def use(self, effect: Effect, number: int) -> int:
        self.calls[effect.id] += 1
        if number == WAITS // 2:
            self.half.set()
            await self.go_on.wait()
        return number


async def first_life(folder: Path, files: CrashFiles, tool: Tool, chance: random.Random) -> None:
    """Half of the way, the messages of others, and a part of the other half."""

    async def work(s: Any) -> None:
        try:
            await s.work(WAITS, request="work")
        except (NotRunning, SimulatedCrash):
            assert files.dead

    async with (
        open_host(folder, files=files, actors=[Agent], devices={"tool": tool}) as host,
        trio.open_nursery() as nursery,
    ):
        s = await host.spawn(Agent, "s", request="s")
        nursery.start_soon(work, s)
        await tool.half.wait()
        for _ in range(FOREIGN // 100):
            async with trio.open_nursery() as others:
                for _ in range(100):
                    others.start_soon(s.poke)
        files.crash(chance.randrange(1, 1200), partial=chance.randrange(300))
        tool.go_on.set()


async def last_life(folder: Path, tool: Tool) -> Any:
    """What the work gives, and what the session has then."""
    tool.go_on.set()
    async with open_host(folder, actors=[Agent], devices={"tool": tool}) as host:
        s = await host.get("s")
        answer = await s.work(WAITS, request="work")
        return answer, await s.log, await s.count


def test_a_fiber_costs_its_own_parts_and_not_what_came_between(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Invariants 8, 14, 16 and 36."""
    print(f"KEEVE_SEED={SEED}")
    chance, tool, files = random.Random(SEED), Tool(), CrashFiles()
    with suppress_crash():
        trio.run(first_life, tmp_path / "store", files, tool, chance)
    assert files.dead
    parts = len(tool.calls)
    read: Counter[int] = Counter()
    at = Lineage.at

    def counted(self: Lineage, seq: int) -> Any:
        read[seq] += 1
        return at(self, seq)

    monkeypatch.setattr(Lineage, "at", counted)
    again = Tool()
    answer, log, count = trio.run(last_life, tmp_path / "store", again)
    monkeypatch.undo()
    print(f"{parts} parts, {FOREIGN} messages between them: {len(read)} records read, {read.total()} times")
    assert answer == [sum(range(WAITS)), True, log]
    assert [entry[0] for entry in log] == [sum(range(number + 1)) for number in range(0, WAITS, 100)]
    assert (count, [entry[2] for entry in log]) == (FOREIGN, [0] * 5 + [FOREIGN] * 5)
    both = tool.calls + again.calls
    assert len(both) == WAITS
    assert both.total() <= WAITS + 2, "an effect whose outcome was recorded was asked for again"
    assert len(read) <= 2 * parts + 3 * APART
    assert read.total() <= 2 * len(read)
    assert audited(tmp_path / "store", tmp_path / "spare").heaps
