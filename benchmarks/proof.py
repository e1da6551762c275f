"""What checkpoints and receipts cost, held against the same work without them, in the same run.

    python -m benchmarks.proof [--quick] [--store FOLDER] [ROW ...]

The work is that of 256 sessions at once. With a signer the log is signed whenever it falls idle; with receipts every
call is given one.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import trio

from benchmarks.core import Keeper, said
from benchmarks.rows import Row, Rows, main
from dataspace.proofs.signers import SigningKey
from keeve.api import open_host

KEY: Final = SigningKey.of_seed(bytes(32))
SESSIONS: Final = 256


class Bench:
    """Where the rows are measured, and how many rounds each takes."""

    def __init__(self, folder: Path, quick: bool) -> None:
        self.folder = folder
        self.rounds = 3 if quick else 7
        self.sessions = SESSIONS
        self.each = 4 if quick else 12
        self.records = 2_000 if quick else 20_000

    @asynccontextmanager
    async def host(self, name: str, *, signs: bool) -> AsyncIterator[Any]:
        async with open_host(self.folder / name, actors=[Keeper], signer=KEY if signs else None) as host:
            yield host

    async def _rate(self, sessions: list[Any], **how: Any) -> float:
        text = said()

        async def keep(s: Any) -> None:
            for _ in range(self.each):
                await s.keep(text, **how)

        begin = time.perf_counter()
        async with trio.open_nursery() as nursery:
            for s in sessions:
                nursery.start_soon(keep, s)
        return len(sessions) * self.each / (time.perf_counter() - begin)

    async def _against_plain(self, name: str, **how: Any) -> Row:
        plain, signed = [], []
        async with self.host("plain", signs=False) as one, self.host("signed", signs=True) as other:
            unsigned = [await one.spawn(Keeper) for _ in range(self.sessions)]
            sessions = [await other.spawn(Keeper) for _ in range(self.sessions)]
            for round_ in range(self.rounds + 1):
                rates = await self._rate(unsigned), await self._rate(sessions, **how)
                if round_:  # the first one warms up
                    plain.append(rates[0])
                    signed.append(rates[1])
        ratio = statistics.median(a / b for a, b in zip(signed, plain, strict=True))
        detail = f"{statistics.median(signed):,.0f}/s, without {statistics.median(plain):,.0f}/s"
        return Row(name, ratio, 0.9, False, detail)

    async def signing(self) -> Row:
        """Throughput of a host that signs, against one that does not."""
        return await self._against_plain("256 sessions at once, with a signer (× without)")

    async def receipts(self) -> Row:
        """The same when each call is given a receipt."""
        return await self._against_plain("256 sessions at once, a receipt for each call (× without)", receipt=True)

    async def proving(self) -> Row:
        """A receipt of an old record, which is not in memory, in a long log."""
        taken = []
        async with self.host("long", signs=True) as host:
            s = await host.spawn(Keeper, "s")
            for at in range(0, self.records, 500):
                async with trio.open_nursery() as nursery:
                    for _ in range(at, min(at + 500, self.records)):
                        nursery.start_soon(s.keep, "x")
        async with self.host("long", signs=True) as host:
            host.checkpoint()
            for number in range(1, 200):
                seq = 1 + number * 7919 % self.records
                begin = time.perf_counter()
                host.receipt("s", seq)
                taken.append((time.perf_counter() - begin) * 1000)
        detail = f"most {max(taken):.2f} ms"
        return Row(f"a receipt of an old record among {self.records:,} (ms)", statistics.median(taken), 1, True, detail)


NAMES: Final = ("signing", "receipts", "proving")


def rows_of(bench: Bench) -> Rows:
    """The rows of this file."""
    return {"signing": bench.signing, "receipts": bench.receipts, "proving": bench.proving}


if __name__ == "__main__":
    main(__doc__, NAMES, lambda folder, quick: rows_of(Bench(folder, quick)))
