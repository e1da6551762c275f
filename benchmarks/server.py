"""What it costs to reach a session through the server, against the same turns in process in the same run.

    python -m benchmarks.server [--quick] [--store FOLDER] [ROW ...]

The server is a process of its own, at a port of this machine, with a store beside that of the host in process. A turn
says 1 KB, and the echo model says it again. Both are measured in turn, medians of several rounds. Who asks shares the
machine with the server: on few cores what a client costs is in the numbers. Nothing is promised of them.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Final, TypeAlias
from urllib.parse import quote

import trio

import keeve.client
from actors.session import Session
from benchmarks.core import said
from benchmarks.rows import Row, Rows, main
from benchmarks.serving import Http, Served, room_for, served
from keeve.api import open_host

Ask: TypeAlias = Callable[[str], Awaitable[Any]]
"""Has a session take a turn, and waits for its answer."""
Run: TypeAlias = Callable[[], Awaitable[Any]]

API: Final = "/api/v1/sessions"
TURNS: Final = quote("(turn . _)")


class Bench:
    """Where the rows are measured, and how many rounds each takes."""

    def __init__(self, folder: Path, quick: bool) -> None:
        self.folder = folder
        self.rounds = 3 if quick else 7
        self.count = 100 if quick else 400
        self.each = 4 if quick else 16
        self.many = 64
        self.busy = 256
        self.idle = 1000

    # Where turns are taken.

    @asynccontextmanager
    async def in_process(self, name: str, sessions: int) -> AsyncIterator[tuple[Any, list[Ask]]]:
        """A host, and turns of so many sessions of its: `s0`, `s1` and so on."""
        async with open_host(self.folder / f"{name}-in-process") as host:
            yield host, [(await host.spawn(Session, f"s{n}")).turn for n in range(sessions)]

    @asynccontextmanager
    async def over_http(self, server: Served, sessions: int) -> AsyncIterator[list[Ask]]:
        """Turns of so many sessions, each asked for over a connection of its own, which is kept."""
        async with AsyncExitStack() as connections:
            asks: list[Ask] = []
            for n in range(sessions):
                http = await connections.enter_async_context(server.http())
                await http.ask("POST", API, {"id": f"s{n}"})
                asks.append(_turn_of(http, f"{API}/s{n}/turn"))
            yield asks

    # Rows.

    async def http(self) -> list[Row]:
        """Turns over HTTP: one after another, and 64 at once."""
        many = self.many
        async with (
            self.in_process("http", many) as (_, here),
            served(self.folder / "http") as server,
            self.over_http(server, many) as there,
        ):
            one = await self._rates({"here": lambda: self._one(here[0]), "there": lambda: self._one(there[0])})
            all_ = await self._rates({"here": lambda: self._all(here), "there": lambda: self._all(there)})
        return [
            _against("turns over HTTP, one after another", one),
            _against(f"turns over HTTP, {many} at once", all_),
        ]

    async def refs(self) -> list[Row]:
        """Turns over refs: one after another, many at once, and each of a session that is only promised."""
        rows = []
        async with (
            self.in_process("refs", self.many) as (host, here),
            served(self.folder / "refs") as server,
            keeve.client.connect(server.store) as client,
        ):
            for n in range(self.many):
                await client.spawn(Session, f"s{n}")
            async with keeve.client.connect(server.address, token=server.token) as other:
                for name, through in (("a Unix socket", client), ("a WebSocket", other)):
                    rows += await self._refs(name, through, host, here)
        return rows

    async def _refs(self, name: str, client: keeve.client.Client, host: Any, here: list[Ask]) -> list[Row]:
        there: list[Ask] = [(await client.get(f"s{n}")).turn for n in range(self.many)]

        async def found_here(text: str) -> None:
            await (await host.get("s0")).turn(text)

        async def found(text: str) -> None:
            await (await client.get("s0")).turn(text)

        async def pipelined(text: str) -> None:
            await client.get("s0").turn(text)

        one = await self._rates({"here": lambda: self._one(here[0]), "there": lambda: self._one(there[0])})
        all_ = await self._rates({"here": lambda: self._all(here), "there": lambda: self._all(there)})
        by_promise = await self._rates(
            {
                "here": lambda: self._one(found_here),
                "there": lambda: self._one(pipelined),
                "waiting": lambda: self._one(found),
            }
        )
        waiting = _ratio(by_promise["waiting"], by_promise["here"])
        return [
            _against(f"turns over refs through {name}, one after another", one),
            _against(f"turns over refs through {name}, {self.many} at once on one connection", all_),
            _against(
                f"a session got and its turn, pipelined through {name}",
                by_promise,
                f"; {waiting:.2f} if the session is waited for first",
            ),
        ]

    async def observers(self) -> list[Row]:
        """What idle observers cost: a server that has them and one that has none, in turn, and the memory of each."""
        idle = self.idle
        room_for(2 * idle)
        async with (
            served(self.folder / "alone") as alone,
            served(self.folder / "observed") as observed,
            self.over_http(alone, 1) as without,
            self.over_http(observed, 1) as crowded,
            observed.http() as http,
            AsyncExitStack() as connections,
        ):
            await http.ask("POST", API, {"id": "idle"})
            await self._one(crowded[0])
            before = observed.memory
            for _ in range(idle):
                stream = await connections.enter_async_context(observed.http())
                await stream.follow(f"/api/v1/dataspace?pattern={TURNS}&session=idle&after=head", b"event: caught-up")
            grown = observed.memory - before
            rates = await self._rates({"here": lambda: self._one(without[0]), "there": lambda: self._one(crowded[0])})
        ratio = _ratio(rates["here"], rates["there"])
        detail = (
            f"{1e6 / statistics.median(rates['there']):.0f} µs, {1e6 / statistics.median(rates['here']):.0f} without"
        )
        return [
            Row.shown(f"a turn over HTTP with {idle:,} idle observers (× without)", ratio, detail),
            Row.shown("memory of an idle observer, in the server (KB)", grown / idle / 1024, f"{grown:,} B in all"),
        ]

    async def latency(self) -> list[Row]:
        """How long a turn takes while many sessions are busy: over HTTP, and in process."""
        busy, each = self.busy, max(1, self.each // 4)
        room_for(2 * busy)
        async with (
            self.in_process("latency", busy) as (_, here),
            served(self.folder / "latency") as server,
            self.over_http(server, busy) as there,
        ):
            least, taken = await _latencies(here, 1), await _latencies(there, 1)  # these warm up
            least.clear()
            taken.clear()
            for _ in range(self.rounds):
                least += await _latencies(here, each)
                taken += await _latencies(there, each)
        rows = []
        for name, at in (("p50", 0.5), ("p99", 0.99)):
            ours, its = _quantile(taken, at), _quantile(least, at)
            detail = f"{ours * 1000:.1f} ms, in process {its * 1000:.1f} ms; {len(taken):,} turns"
            rows.append(
                Row.shown(f"{name} of a turn over HTTP, {busy} busy sessions (× in process)", ours / its, detail)
            )
        return rows

    # Measuring.

    async def _rates(self, runs: Mapping[str, Run]) -> dict[str, list[float]]:
        """The rates of several ways, in turn, `rounds` times."""
        rates: dict[str, list[float]] = {name: [] for name in runs}
        for round_ in range(self.rounds + 1):
            for name, run in runs.items():
                rate = await run()
                if round_:  # the first one warms up
                    rates[name].append(rate)
        return rates

    async def _one(self, ask: Ask) -> float:
        """Turns a second, one after another."""
        text = said()
        begin = time.perf_counter()
        for _ in range(self.count):
            await ask(text)
        return self.count / (time.perf_counter() - begin)

    async def _all(self, asks: list[Ask]) -> float:
        """Turns a second, each session one after another and all sessions at once."""
        begin = time.perf_counter()
        await _latencies(asks, self.each)
        return len(asks) * self.each / (time.perf_counter() - begin)


def _turn_of(http: Http, path: str) -> Ask:
    async def turn(text: str) -> None:
        await http.ask("POST", path, {"input": text})

    return turn


async def _latencies(asks: list[Ask], each: int) -> list[float]:
    """The seconds that each turn has taken, `each` of every session one after another, all sessions at once."""
    text = said()
    taken: list[float] = []

    async def turns(ask: Ask) -> None:
        for _ in range(each):
            begin = time.perf_counter()
            await ask(text)
            taken.append(time.perf_counter() - begin)

    async with trio.open_nursery() as nursery:
        for ask in asks:
            nursery.start_soon(turns, ask)
    return taken


def _quantile(values: list[float], at: float) -> float:
    return sorted(values)[min(int(at * len(values)), len(values) - 1)]


def _ratio(some: list[float], others: list[float]) -> float:
    """The median of the ratios of each round."""
    return statistics.median(a / b for a, b in zip(some, others, strict=True))


def _against(name: str, rates: Mapping[str, list[float]], more: str = "") -> Row:
    """What has come of the rates `there` and `here`, in process."""
    there, here = rates["there"], rates["here"]
    detail = f"{statistics.median(there):,.0f}/s against {statistics.median(here):,.0f}/s in process{more}"
    return Row.shown(f"{name} (× in process)", _ratio(there, here), detail)


NAMES: Final = ("http", "refs", "observers", "latency")


def rows_of(bench: Bench) -> Rows:
    """The rows of this file."""
    return {"http": bench.http, "refs": bench.refs, "observers": bench.observers, "latency": bench.latency}


if __name__ == "__main__":
    main(__doc__, NAMES, lambda folder, quick: rows_of(Bench(folder, quick)))
