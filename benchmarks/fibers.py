"""What fibers cost, held against what is measured in the same run.

    python -m benchmarks.fibers [--quick] [--store FOLDER] [ROW ...]

The await is of a device that answers at once, so that what is measured is the way there and back: the crank that wants
the effect, its outcome as a message, and the fiber's next part in the crank of that.
"""

from __future__ import annotations

import gc
import resource
import statistics
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import trio

from benchmarks.core import PIECE, Keeper, said
from benchmarks.rows import Row, Rows, main
from keeve.api import open_host
from vat.devices.devices import Effect, effect
from vat.objects.actor import Actor, Device, actor
from vat.objects.collections import List


class Answers:
    """A device that answers at once, and one that answers when it is told to."""

    def __init__(self) -> None:
        self.bell = trio.Event()

    @effect(on_crash="retry")
    async def now(self, effect: Effect, text: str) -> str:
        """The text."""
        return text

    @effect(on_crash="retry")
    async def later(self, effect: Effect) -> None:
        """Nothing, once the bell has rung."""
        await self.bell.wait()


@actor("bench.loop", version=1)
class Loop(Actor):
    """Awaits in a loop, as an agent does."""

    answers: Device = "answers"  # type: ignore[assignment]  # a field of that kind is given a name
    kept: List[str]

    async def ask(self, texts: list[str]) -> int:
        """Awaits once for each text, and keeps what comes."""
        for text in texts:
            self.kept.append(await self.answers.now(text))
        return len(self.kept)

    async def ask_and_wait(self, times: int, text: str) -> int:
        """Awaits so many times, and then for the bell."""
        for _ in range(times):
            self.kept.append(await self.answers.now(text))
        self.assert_fact("bench.waits")
        await self.answers.later()
        self.assert_fact("bench.over")
        return len(self.kept)


class Bench:
    """Where the rows are measured, and how many rounds each takes."""

    def __init__(self, folder: Path, quick: bool) -> None:
        self.folder = folder
        self.rounds = 3 if quick else 7
        self.count = 100 if quick else 500
        self.awaits = 100 if quick else 1000
        self.fibers = 1000 if quick else 10_000

    @asynccontextmanager
    async def host(self, name: str, answers: Answers) -> AsyncIterator[Any]:
        async with open_host(self.folder / name, actors=[Keeper, Loop], devices={"answers": answers}) as host:
            yield host

    async def awaiting(self) -> Row:
        """An await of a fiber against a plain crank, in turn."""
        async with self.host("await", Answers()) as host:
            keeper, loop = await host.spawn(Keeper), await host.spawn(Loop)
            texts = [said() for _ in range(self.count)]
            plain, awaited = [], []
            for round_ in range(self.rounds + 1):
                begin = time.perf_counter()
                for text in texts:
                    await keeper.keep(text)
                middle = time.perf_counter()
                await loop.ask(texts)
                end = time.perf_counter()
                if round_:  # the first one warms up
                    plain.append((middle - begin) / self.count * 1e6)
                    awaited.append((end - middle) / self.count * 1e6)
        ratio = statistics.median(a / b for a, b in zip(awaited, plain, strict=True))
        detail = f"{statistics.median(awaited):.0f} µs, a plain crank {statistics.median(plain):.0f} µs"
        return Row("an await of a fiber against a plain crank (×)", ratio, 2, True, detail)

    async def restoring(self) -> Row:
        """From opening the store to the answer of a fiber that has awaited many times, and is run again; and how much
        that is of what as many plain cranks take here, which tells a slow machine from slow code."""
        text = said()[: PIECE // 4]
        taken, plain = [], []
        for round_ in range(self.rounds):
            name = f"restore-{round_}"
            with trio.CancelScope() as gone:
                async with self.host(name, Answers()) as host, trio.open_nursery() as nursery:
                    s = await host.spawn(Loop, "s")
                    nursery.start_soon(s.ask_and_wait, self.awaits, text)
                    await _stated(host, "bench.waits", 1)
                    gone.cancel()
            answers = Answers()
            gc.collect()
            begin = time.perf_counter()
            async with self.host(name, answers) as host:
                answers.bell.set()
                await _stated(host, "bench.over", 1)
                taken.append((time.perf_counter() - begin) * 1000)
                keeper = await host.spawn(Keeper)
                begin = time.perf_counter()
                for _ in range(self.count):
                    await keeper.keep(text)
                plain.append((time.perf_counter() - begin) * 1000 / self.count * self.awaits)
        share = statistics.median(one / other for one, other in zip(taken, plain, strict=True))
        cranks = f"× {share:.2f} of {self.awaits:,} plain cranks, {statistics.median(plain):.0f} ms"
        detail = f"most {max(taken):.1f} ms; {cranks}"
        name = f"from opening to the end of a fiber that has awaited {self.awaits:,} times (ms)"
        return Row(name, statistics.median(taken), 100, True, detail)

    async def waiting(self) -> Row:
        """The memory of fibers that wait, in sessions of a hundred each."""
        async with self.host("waiting", Answers()) as host, trio.open_nursery() as nursery:
            sessions = [await host.spawn(Loop) for _ in range(self.fibers // 100)]
            gc.collect()
            before = _resident()
            for s in sessions:
                for _ in range(100):
                    nursery.start_soon(s.ask_and_wait, 0, "")
            await _stated(host, "bench.waits", self.fibers)
            gc.collect()
            grown = _resident() - before
            nursery.cancel_scope.cancel()
        detail = f"{grown / 1024:,.0f} KB for {self.fibers:,}, with their callers and effects"
        return Row("memory of a fiber that waits (KB)", grown / self.fibers / 1024, 16, True, detail)


async def _stated(host: Any, label: str, times: int) -> None:
    """Wait until a fact has been stated so many times."""
    left = times
    async for _ in host.observe(f"({label} . _)", after="start"):
        left -= 1
        if not left:
            return


def _resident() -> int:
    """Bytes of memory that this process has now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


NAMES: Final = ("await", "restore", "waiting")


def rows_of(bench: Bench) -> Rows:
    """The rows of this file."""
    return {"await": bench.awaiting, "restore": bench.restoring, "waiting": bench.waiting}


if __name__ == "__main__":
    main(__doc__, NAMES, lambda folder, quick: rows_of(Bench(folder, quick)))
