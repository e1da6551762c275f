"""The real program on the real disk, while its system calls fail, or kill it.

`strace` makes them, so nothing of ours stands between: Python's own calls, SQLite's and the store's are all met. A few
calls by default, and half of the harms, every one with KEEVE_CRASH=full; KEEVE_SEED replays the choice.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
import trio

from actors.models import EchoModel
from keeve.api import open_host
from tests.crash.crash_suites import FULL
from tests.crash.real_program import FORKED_AFTER, TURNS

pytestmark = pytest.mark.crash

ROOT = Path(__file__).parents[2]
SEED = int(os.environ.get("KEEVE_SEED", random.randrange(1 << 32)))
STRACE = shutil.which("strace")
CALLS = "pwrite64,fdatasync,fsync,ftruncate,rename,unlink,mkdir,openat"
HARMS = (
    ("pwrite64", "error=ENOSPC:when={}"),
    ("pwrite64", "error=ENOSPC:when={}+"),
    ("pwrite64", "error=EIO:when={}"),
    ("fdatasync", "error=EIO:when={}"),
    ("fsync", "error=EIO:when={}"),
    ("ftruncate", "error=EIO:when={}"),
    ("rename", "error=ENOSPC:when={}"),
    ("pwrite64", "signal=KILL:when={}"),
    ("fdatasync", "signal=KILL:when={}"),
    ("fsync", "signal=KILL:when={}"),
    ("ftruncate", "signal=KILL:when={}"),
    ("rename", "signal=KILL:when={}"),
    ("unlink", "signal=KILL:when={}"),
)
DONE = ["spawned", *(f"turn {n}" for n in range(FORKED_AFTER)), "snapshot", "forked"]
DONE += [*(f"turn {n}" for n in range(FORKED_AFTER, TURNS)), "turn in the fork"]

needs_strace = pytest.mark.skipif(
    STRACE is None or subprocess.run([STRACE, "true"], capture_output=True, check=False).returncode != 0,
    reason="there is no strace here, or it may not trace",
)


def run(folder: Path, *harm: str) -> tuple[list[str], int]:
    """Run the program, with what strace is told besides: gives what it printed, and its exit code."""
    traced = [str(STRACE), "-f", "--seccomp-bpf", "-qq", "-o", str(folder.with_name("trace")), *harm] if harm else []
    command = [*traced, sys.executable, "-m", "tests.crash.real_program", str(folder)]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert "Traceback" not in ended.stderr, ended.stderr
    return ended.stdout.splitlines(), ended.returncode


def calls(folder: Path) -> Counter[str]:
    """How often the program makes each call when nothing happens to it."""
    said, code = run(folder, "-e", f"trace={CALLS}")
    assert (said, code) == (DONE, 0)
    lines = folder.with_name("trace").read_text().splitlines()
    return Counter(line.split(maxsplit=1)[1].split("(")[0] for line in lines if "(" in line)


def acknowledged(said: list[str]) -> list[str]:
    """What the program was not refused."""
    return [line for line in said if not line.startswith("refused")]


async def kept(folder: Path) -> None:
    """All is there, once, and sound; what was refused in the first run comes last."""
    async with open_host(folder, devices={"model": EchoModel()}) as host:
        assert (await host.verify()).sound
        s, f = await host.get("s"), await host.get("f")
        assert sorted(await s.history) == [f"turn {n}" for n in range(TURNS)]
        *shared, aside = await f.history
        assert aside == "aside"
        assert len({*shared}) == len(shared)
        assert {*shared} <= {*await s.history}
        for session in (s, f):
            said = [message["role"] for message in await session.messages]
            assert said == ["user", "assistant"] * (len(said) // 2)


async def holds(folder: Path, said: list[str]) -> None:
    """What was acknowledged is there, and nothing that was never asked for."""
    async with open_host(folder, devices={"model": EchoModel()}) as host:
        assert (await host.verify()).sound
        there = {row.id for row in host.sessions()}
        assert ("s" in there) or "spawned" not in said
        assert ("f" in there) or "forked" not in said
        if "s" in there:
            history = await (await host.get("s")).history
            assert history == sorted(history, key=lambda turn: int(turn.split()[1]))
            assert len(set(history)) == len(history)
            assert set(history) >= {line for line in said if line.startswith("turn ") and line != "turn in the fork"}


@needs_strace
def test_a_program_whose_system_calls_fail_or_kill_it_loses_nothing(tmp_path: Path) -> None:
    """Invariants 1, 6, 11 and 12."""
    print(f"KEEVE_SEED={SEED}")
    chance = random.Random(SEED)
    (tmp_path / "whole").mkdir()
    many = calls(tmp_path / "whole" / "store")
    trio.run(kept, tmp_path / "whole" / "store")
    for call, harm in HARMS if FULL else HARMS[SEED % 2 :: 2]:
        count = many[call]
        chosen = range(1, count + 1) if FULL else [chance.randrange(1, count + 1)] if count else []
        for at in chosen:
            folder = tmp_path / f"{call} {harm.format(at)}" / "store"
            folder.parent.mkdir()
            said, code = run(folder, "-e", f"trace={call}", "-e", f"inject={call}:{harm.format(at)}")
            assert code in ((0,) if "error" in harm else (0, -9, 137)), (call, harm, at, said)
            if (folder / "format").exists():
                shutil.copytree(folder, folder.with_name("copy"))
                trio.run(holds, folder.with_name("copy"), said)
            else:
                assert not acknowledged(said), (call, harm, at, said)
            again, code = run(folder)
            assert (acknowledged(again), code) == (again, 0), (call, harm, at)
            trio.run(kept, folder)
            shutil.rmtree(folder.parent)
