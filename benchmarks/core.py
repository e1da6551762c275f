"""The numbers that Keeve keeps, each held against a floor that is measured in the same run.

    python -m benchmarks.core [--quick] [--store FOLDER] [ROW ...]

The crank is one that keeps a 1 KB string in a List and states one fact. Rates are held against a plain loop that
appends the same bytes and calls fdatasync for each, in turn with ours, medians of several rounds.
"""

from __future__ import annotations

import gc
import secrets
import statistics
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import trio

from actors.session import Session
from benchmarks.floor import against_floor, floor
from benchmarks.rows import Row, Rows, main
from keeve.api import open_host
from vat.objects.actor import Actor, actor
from vat.objects.collections import List

PIECE = 1000
"""Bytes of the string that a crank keeps, and of what is said each way in a turn."""


@actor("bench.keeper", version=1)
class Keeper(Actor):
    """Keeps strings and states a fact for each."""

    kept: List[str]

    def keep(self, text: str) -> None:
        self.kept.append(text)
        self.assert_fact("bench.kept", len(self.kept))


def said() -> str:
    """1000 characters that do not compress."""
    return secrets.token_urlsafe(PIECE)[:PIECE]


class Bench:
    """Where the rows are measured, and how many rounds each takes."""

    def __init__(self, folder: Path, quick: bool) -> None:
        self.folder = folder
        self.rounds = 3 if quick else 7
        self.scale = 10 if quick else 1
        self.count = 200 if quick else 1000
        self.turns = 2000

    @asynccontextmanager
    async def host(self, name: str, **options: Any) -> AsyncIterator[Any]:
        async with open_host(self.folder / name, actors=[Keeper], **options) as host:
            yield host

    def size(self, name: str) -> int:
        """Bytes of all files of a store."""
        return sum(path.stat().st_size for path in (self.folder / name).rglob("*") if path.is_file())

    async def crank_bytes(self) -> int:
        """What one crank writes to the log: its record, cell and commit."""
        async with self.host("crank-bytes") as host:
            s = await host.spawn(Keeper)
            before = await self.end(host)
            for _ in range(10):
                await s.keep(said())
            return (await self.end(host) - before) // 10

    async def end(self, host: Any) -> int:
        """Where the log ends, in bytes of its newest segment."""
        offset: int = host._engine.store.mark.offset
        return offset

    # Rows.

    async def one_session(self) -> Row:
        size = await self.crank_bytes()
        async with self.host("one") as host:
            s = await host.spawn(Keeper)
            texts = [said() for _ in range(self.count)]

            async def run() -> float:
                begin = time.perf_counter()
                for text in texts:
                    await s.keep(text)
                return len(texts) / (time.perf_counter() - begin)

            await run()
            rate, base, ratio = await against_floor(self.folder, size, self.count, self.rounds, run)
        detail = f"{rate:,.0f}/s against {base:,.0f}/s of {size} bytes"
        return Row("one session, durable cranks one after another (× floor)", ratio, 0.7, False, detail)

    async def many_sessions(self) -> Row:
        size = await self.crank_bytes()
        each = max(4, self.count // 25)
        async with self.host("many") as host:
            sessions = [await host.spawn(Keeper) for _ in range(256)]
            text = said()

            async def keep(s: Any) -> None:
                for _ in range(each):
                    await s.keep(text)

            async def run() -> float:
                begin = time.perf_counter()
                async with trio.open_nursery() as nursery:
                    for s in sessions:
                        nursery.start_soon(keep, s)
                return 256 * each / (time.perf_counter() - begin)

            await run()
            rate, base, ratio = await against_floor(self.folder, size, self.count, self.rounds, run)
        detail = f"{rate:,.0f}/s against {base:,.0f}/s of {size} bytes"
        return Row("256 sessions at once (× floor)", ratio, 2.0, False, detail)

    async def long_session(self, name: str, turns: int) -> None:
        """A store with a session `s` of so many turns."""
        if (self.folder / name).exists():
            return
        async with self.host(name) as host:
            s = await host.spawn(Session, "s")
            for _ in range(turns):
                await s.turn(said())

    async def snapshot(self) -> list[Row]:
        turns = 10_000 // self.scale
        await self.long_session("long", turns)
        written, spent = [], []
        async with self.host("long") as host:
            s = await host.get("s")
            await s.turn(said())
            await s.snapshot()
            for _ in range(self.rounds * 3):
                await s.turn(said())
                before = await self.end(host)
                gc.collect()
                begin = time.thread_time()
                await s.snapshot()
                spent.append((time.thread_time() - begin) * 1000)
                written.append(await self.end(host) - before)
        name = f"snapshot after one turn on a {turns:,}-turn session"
        return [
            Row(f"{name} (KB written)", statistics.median(written) / 1024, 64, True, f"most {max(written) / 1024:.1f}"),
            Row(f"{name} (ms of CPU)", statistics.median(spent), 2, True, f"most {max(spent):.2f}"),
        ]

    async def cold_open(self) -> list[Row]:
        times = {}
        largest = max(2 * self.turns, 20_000 // self.scale)
        for turns in (20, self.turns, largest):
            name = f"cold-{turns}"
            await self.long_session(name, turns)
            samples = []
            for _ in range(self.rounds * 2):
                gc.collect()
                begin = time.perf_counter()
                async with self.host(name) as host:
                    s = await host.get("s")
                    await s.turn("hello")
                    samples.append((time.perf_counter() - begin) * 1000)
            times[turns] = statistics.median(samples)
        small, middle, large = times.values()
        detail = ", ".join(f"{turns:,}: {took:.2f} ms" for turns, took in times.items())
        return [
            Row(f"cold open and first reply at {self.turns:,} turns (ms)", middle, 5, True, detail),
            Row(f"cold open and first reply, {largest:,} turns (× that at 20)", large / small, 2, True, detail),
        ]

    async def fork(self) -> list[Row]:
        turns = self.turns
        await self.long_session(f"cold-{turns}", turns)
        taken, written, commits = [], [], []
        size = 0
        async with self.host(f"cold-{turns}") as host:
            s = await host.get("s")
            await s.turn(said())
            for _ in range(self.rounds * 5):
                before = await self.end(host)
                begin = time.perf_counter()
                await s.fork()
                taken.append((time.perf_counter() - begin) * 1000)
                size = await self.end(host) - before
                written.append(size)
                commits.append(1000 / floor(self.folder, size, 5))
        over = statistics.median(taken) - statistics.median(commits)
        detail = f"{statistics.median(taken):.2f} ms, one commit of the same bytes {statistics.median(commits):.2f} ms"
        return [
            Row(f"fork at {turns:,} turns (ms over one commit)", over, 1, True, detail),
            Row(
                f"fork at {turns:,} turns (KB of log)",
                statistics.median(written) / 1024,
                4,
                True,
                f"most {max(written)} B",
            ),
        ]

    async def observers(self) -> Row:
        many = 100_000 // self.scale
        async with self.host("observed") as host:
            s = await host.spawn(Keeper, "kept")
            text = said()

            async def run() -> float:
                begin = time.perf_counter()
                for _ in range(self.count):
                    await s.keep(text)
                return (time.perf_counter() - begin) / self.count * 1e6

            async def observe(n: int) -> None:
                async for _ in host.observe(f'(turn ? "session-{n}" . _)', after="head"):
                    pass

            alone, crowded = [], []
            await run()
            async with trio.open_nursery() as nursery:
                nursery.start_soon(observe, 0)
                await trio.sleep(0.1)
                alone = [await run() for _ in range(self.rounds)]
                for n in range(1, many):
                    nursery.start_soon(observe, n)
                    if n % 1000 == 0:
                        await trio.lowlevel.checkpoint()
                await trio.sleep(1)
                gc.collect()
                gc.freeze()
                crowded = [await run() for _ in range(self.rounds)]
                nursery.cancel_scope.cancel()
            gc.unfreeze()
        ratio = statistics.median(crowded) / statistics.median(alone)
        detail = f"{statistics.median(alone):.0f} µs with 1, {statistics.median(crowded):.0f} µs with {many:,}"
        return Row(f"append with {many:,} observers against 1 (×)", ratio, 2, True, detail)

    async def opening(self) -> Row:
        many = 100_000 // self.scale
        async with self.host("crowd") as host:
            for start in range(0, many, 500):
                async with trio.open_nursery() as nursery:
                    for n in range(start, min(many, start + 500)):
                        nursery.start_soon(host.spawn, Keeper, f"session-{n}")
        samples = []
        for _ in range(self.rounds):
            gc.collect()
            begin = time.perf_counter()
            async with self.host("crowd") as host:
                samples.append(time.perf_counter() - begin)
                held = len(host._engine.residents)
        detail = f"most {max(samples) * 1000:.1f} ms; {held} of them in memory"
        return Row(f"opening a store of {many:,} sessions (s)", statistics.median(samples), 1, True, detail)

    async def bytes_stored(self) -> Row:
        turns = 2000 // self.scale
        async with self.host("bytes") as host:
            s = await host.spawn(Session, "s")
            for _ in range(turns):
                await s.turn(said())
        size = self.size("bytes")
        uttered = 2 * PIECE * turns
        detail = f"{size:,} bytes for {uttered:,} in {turns:,} turns, log, pages and catalog"
        return Row("bytes stored per byte said, 1 KB each way", size / uttered, 2, True, detail)


NAMES: Final = ("one", "many", "snapshot", "cold", "fork", "observers", "opening", "bytes")


def rows_of(bench: Bench) -> Rows:
    """The rows of this file."""
    return {
        "one": bench.one_session,
        "many": bench.many_sessions,
        "snapshot": bench.snapshot,
        "cold": bench.cold_open,
        "fork": bench.fork,
        "observers": bench.observers,
        "opening": bench.opening,
        "bytes": bench.bytes_stored,
    }


if __name__ == "__main__":
    main(__doc__, NAMES, lambda folder, quick: rows_of(Bench(folder, quick)))
