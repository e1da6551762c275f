"""The same random program, undisturbed and disturbed: restarts in order and by death, sessions evicted and loaded
again, the clock set back. The heaps and the answers are the same.

What differs by its nature is left aside: the time of the last crank, and the seqs in the handles of facts, since asking
for a session to be restored is a record as well.

A few programs by default, many with KEEVE_CRASH=full. KEEVE_SEED replays a run.
"""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import attrs
import pytest

from keeve.testing.crashes import CrashFiles
from keeve.testing.hosts import FakeClock
from tests.crash.crash_audit import without
from tests.crash.crash_suites import FULL
from tests.crash.crash_world import SETTINGS, Move, Reference, Story
from vat.host.host import Host

pytestmark = pytest.mark.crash

SEED = int(os.environ.get("KEEVE_SEED", random.randrange(1 << 32)))


def program(chance: random.Random, length: int = 40) -> list[Move]:
    """Moves that can all be made, in sessions that live."""
    moves: list[Move] = [("spawn", "s0"), ("spawn", "s1")]
    living, claimed, made = ["s0", "s1"], [], 2
    for n in range(length):
        id = chance.choice(living)
        verb = chance.choice(["add", "add", "put", "claim", "drop", "tell", "tell", "pay", "ask", "fork", "snapshot"])
        verb = chance.choice([verb, verb, verb, "fail", "spawn", "delete", "at once"]) if n % 3 == 0 else verb
        if verb in ("spawn", "fork"):
            name = f"s{made}"
            moves.append((verb, name) if verb == "spawn" else (verb, id, name))
            living.append(name)
            made += 1
        elif verb == "delete" and len(living) > 2:
            moves.append((verb, id))
            living.remove(id)
            claimed = [(who, key) for who, key in claimed if who != id]
        elif verb == "drop" and claimed:
            who, key = claimed.pop(chance.randrange(len(claimed)))
            moves.append(("call", who, "drop", key))
        elif verb == "claim":
            moves.append(("call", id, "claim", f"key {n}"))
            claimed.append((id, f"key {n}"))
        elif verb == "tell":
            moves.append(("with", id, "tell", chance.choice(living), f"message {n}"))
        elif verb == "put":
            moves.append(("call", id, "put", f"key {n % 4}", f"text {n} " * chance.choice([1, 90])))
        elif verb == "at once":
            moves.append((verb, *(("call", who, "add", f"all {n}") for who in living)))
        elif verb == "snapshot":
            moves.append((verb, id))
        else:
            moves.append(("call", id, verb if verb in ("pay", "ask", "fail") else "add", n))
    return [move if move[2:3] != ("add",) else (*move[:3], str(move[3])) for move in map(worded, moves)]


def worded(move: Move) -> Move:
    """A move whose arguments are what the actor takes: numbers for payments, words for all else."""
    if move[0] == "call" and move[2] in ("ask", "fail", "add"):
        return (*move[:3], f"word {move[3]}")
    return move


class Restart(Exception):
    """The host is to be stopped in order and opened again."""


class Disturbed(Story):
    """A story that is disturbed before each move, with some chance."""

    def __init__(self, folder: Path, moves: list[Move], chance: random.Random) -> None:
        super().__init__(folder, moves)
        self.chance = chance
        self.clock = self._hands = FakeClock()
        self.disturbances = 0
        self.restarts = 0
        self._before: set[str] = set()

    async def _make(self, host: Host, move: Move, name: str, files: CrashFiles) -> None:
        if name not in self.journal.told and name not in self._before and "." not in name:
            self._before.add(name)
            await self._disturb(host, move, files)
        await super()._make(host, move, name, files)

    async def _disturb(self, host: Host, move: Move, files: CrashFiles) -> None:
        how = self.chance.choice(["restart", "crash", "reload", "evict", "clock", "crash later", "", "", ""])
        self.disturbances += bool(how)
        if how == "restart":
            raise Restart
        if how == "crash":
            files.crash(0)
        elif how == "crash later" and move[2:3] != ("pay",):
            files.crash(self.chance.randrange(12), partial=self.chance.randrange(500))
        elif how == "reload":
            rows = host.sessions()
            if rows:
                await host.restore_latest(self.chance.choice(rows).id)
        elif how == "evict":
            self.settings = attrs.evolve(SETTINGS, vats=1)
        elif how == "clock":
            self._hands.move(self.chance.choice([-86_400, -1, 1, 3600]))

    def lead(self) -> None:
        """Lead lives until the moves are done."""
        while not self.states:
            try:
                self.live(CrashFiles())
            except Restart:
                self.restarts += 1
            self.kept(self.folder.parent / "spare")


def essence(heap: dict[str, Any]) -> dict[str, Any]:
    """A heap without its time, and without the seqs in handles of facts and in what is said of failures."""
    heap = {**heap, "time": None, "system": dict(heap["system"])}
    heap["system"]["facts"] = [presence for _, presence in heap["system"]["facts"]]
    for _, _, fields in heap["actors"].values():
        fields["held"] = [key for key, _ in fields["held"]]
    return without(heap, "in")


@pytest.mark.parametrize("number", range(150 if FULL else 6))
def test_restarts_evictions_and_clocks_change_nothing(tmp_path: Path, number: int) -> None:
    """Invariants 8, 29 and 30."""
    print(f"KEEVE_SEED={SEED}")
    chance = random.Random(SEED + number)
    moves = program(chance)
    calm = Reference(tmp_path / "calm", moves)
    disturbed = Disturbed(tmp_path / "disturbed", moves, chance)
    disturbed.lead()
    assert disturbed.disturbances
    calm.ends_like(disturbed)
    found = disturbed.kept(tmp_path / "spare")
    if not disturbed.doubtful:
        for uid, heap in calm.found.heaps.items():
            assert essence(found.heaps[uid]) == essence(heap), calm.found.chains[uid].id
