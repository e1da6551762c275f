"""What checkpoints, receipts and encryption cost, against the same work without them in the same run; and verifying.

    python -m benchmarks.proof [--quick] [--store FOLDER] [ROW ...]

The work is that of 256 sessions at once. With a signer the log is signed whenever it falls idle; with receipts every
call is given one, which nobody makes a text of. Both cost against a host without a signer, in turn with it. What they
cost is CPU time, which a busy machine changes less than the rate. A log is verified in memory, on one core: frames,
bodies, cells, chains, commits and the tree.
"""

from __future__ import annotations

import gc
import os
import statistics
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any, Final
from zlib import crc32

import trio

from benchmarks.core import Keeper, said
from benchmarks.rows import Row, Rows, main
from dataspace.checkpoints.checking import Notes
from dataspace.log.layout import Layout
from dataspace.log.opening import still
from dataspace.log.verdicts import SegmentBytes
from dataspace.log.verify import Verification
from dataspace.proofs.signers import SigningKey
from keeve.api import now, open_host
from vat.host.salvaging import salvage

KEY: Final = SigningKey.of_seed(bytes(32))
SESSIONS: Final = 256


class Bench:
    """Where the rows are measured, and how many rounds each takes."""

    def __init__(self, folder: Path, quick: bool) -> None:
        self.folder = folder
        self.rounds = 3 if quick else 7
        self.sessions = SESSIONS
        self.each = 3 if quick else 6
        self.records = 2_000 if quick else 20_000

    @asynccontextmanager
    async def host(self, name: str, *, signs: bool = False, seals: bool = False) -> AsyncIterator[Any]:
        signer, key = KEY if signs else None, bytes(32) if seals else None
        async with open_host(self.folder / name, actors=[Keeper], signer=signer, key=key) as host:
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

    async def _cost(self, sessions: list[Any], **how: Any) -> tuple[float, float]:
        """The CPU time of a crank in µs, all threads, with what its host does once it is idle; and cranks a second."""
        gc.collect()  # one that looks at all that both hosts hold would fall into some measurements and not into others
        begin = time.process_time()
        rate = await self._rate(sessions, **how)
        await trio.sleep(0.1)
        return (time.process_time() - begin) * 1e6 / (len(sessions) * self.each), rate

    async def _against_plain(self, name: str, *, seals: bool = False, **how: Any) -> Row:
        ratios, rates, plain, extra = [], [], [], []
        which = "sealed" if seals else "signed"
        async with self.host("plain") as one, self.host(which, signs=not seals, seals=seals) as other:
            without = [await one.spawn(Keeper) for _ in range(self.sessions)]
            sessions = [await other.spawn(Keeper) for _ in range(self.sessions)]
            for round_ in range(self.rounds * 4 + 1):
                # In turn, and each first as often as the other: a machine that is busy is so for both.
                if round_ % 2:
                    least, least_rate = await self._cost(without)
                    cost, rate = await self._cost(sessions, **how)
                else:
                    cost, rate = await self._cost(sessions, **how)
                    least, least_rate = await self._cost(without)
                if round_:  # the first one warms up
                    ratios.append(cost / least)
                    rates.append(rate / least_rate)
                    plain.append(least)
                    extra.append(cost - least)
        ratio, spent, more = statistics.median(ratios), statistics.median(plain), statistics.median(extra)
        detail = f"{more:+.1f} µs of CPU for a crank of {spent:.0f}; rate × {statistics.median(rates):.2f}"
        return Row(f"CPU of a crank, {self.sessions} sessions at once, {name} (× without)", ratio, 1.1, True, detail)

    async def signing(self) -> Row:
        """What a signer costs: the log is signed whenever it falls idle."""
        return await self._against_plain("with a signer")

    async def receipts(self) -> Row:
        """What a receipt for each call costs, with the signer."""
        return await self._against_plain("a receipt for each", receipt=True)

    async def sealing(self) -> Row:
        """What it costs that the store is encrypted."""
        return await self._against_plain("in an encrypted store", seals=True)

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

    async def verifying(self) -> list[Row]:
        """Records of 256 sessions, each with a text of 1 KB beside it: verified frame by frame, and salvaged."""
        async with self.host("verified", signs=True) as host:
            sessions = [await host.spawn(Keeper) for _ in range(self.sessions)]
            for _ in range(max(self.records // (self.sessions * self.each), 1)):
                await self._rate(sessions)
        layout = Layout(self.folder / "verified")
        rates, hashed = [], []
        with still(layout) as (segments, evidence):
            whole = [SegmentBytes(number, bytes(data[0 : len(data)])) for number, data in segments]
            for _ in range(3 * self.rounds):  # what else runs on the machine only makes it slower
                notes = Notes()
                begin = time.process_time()
                check = Verification(whole, evidence, tree=notes.tree, note=notes.note)
                assert list(check.findings()) == []
                rates.append(check.counts.records / (time.process_time() - begin))
                hashed.append(_hashing(whole, check.counts.records))
        records = check.counts.records
        rate, least = max(rates), min(hashed)
        detail = f"{records:,} records of {check.counts.bytes // records} bytes; {1e6 / rate:.1f} µs each"
        detail += f", of which SHA-256 and CRC-32 alone take {1e6 * least / records:.1f}"
        row = Row("records verified a second, on one core (thousands)", rate / 1000, 100, False, detail)
        begin = time.process_time()
        found = salvage(layout.folder, self.folder / "salvaged", now=now, salts=os.urandom)
        took = time.process_time() - begin
        assert found.whole
        return [row, Row("records salvaged a second (thousands)", records / took / 1000, 5, False, detail)]


def _hashing(segments: Sequence[SegmentBytes], records: int) -> float:
    """The seconds that the hashes and checksums of so many records take, and nothing else: no look can be quicker."""
    share = sum(len(segment.data) for segment in segments) // records
    header, content = bytes(140), bytes(share - 140)
    begin = time.process_time()
    for _ in range(records):
        for _ in range(5):  # the record, its leaf and its node; the two parts of its body
            sha256(header).digest()
        sha256(header[:64]).digest()
        sha256(content).digest()
        for _ in range(4):  # the headers of the record and of its cell, and what they begin with
            crc32(header)
        crc32(header)
        crc32(content)
    return time.process_time() - begin


NAMES: Final = ("signing", "receipts", "sealing", "proving", "verifying")


def rows_of(bench: Bench) -> Rows:
    """The rows of this file."""
    return {
        "signing": bench.signing,
        "receipts": bench.receipts,
        "proving": bench.proving,
        "sealing": bench.sealing,
        "verifying": bench.verifying,
    }


if __name__ == "__main__":
    main(__doc__, NAMES, lambda folder, quick: rows_of(Bench(folder, quick)))
