"""A store on a real ext4, on a disk that records what reaches it: what a power cut can leave is made from the record.

All that was written before the last sync is on the disk; of what came after it, any writes, any sectors of each, in any
order. ext4 then puts itself right, as after a real power cut, and the store opens on what it gives.

A few states by default, hundreds with KEEVE_CRASH=full; KEEVE_SEED replays the choice.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import attrs
import pytest
import trio

from actors.models import EchoModel
from actors.session import Session
from dataspace.log.files import Files
from keeve.api import open_host
from keeve.testing.disk import SECTOR
from tests.crash.block_file import NAME, Write, recorded
from tests.crash.crash_suites import FULL
from vat.host.settings import Settings

pytestmark = pytest.mark.crash

ROOT = Path(__file__).parents[2]
SEED = int(os.environ.get("KEEVE_SEED", random.randrange(1 << 32)))
SIZE = 16 << 20
STATES = 300 if FULL else 12
TURNS = 12
ECHO = {"model": EchoModel()}
"""A model of its own, and no stand-in: it goes on with what a dead host has left."""


SYSTEM = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
"""Where the programs are that only root uses: in nobody's own path."""


def missing() -> str:
    """Why there can be no such disk here; nothing when there can."""
    if os.geteuid() != 0:
        return "only root may mount"
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        return "there is no /dev/fuse"
    absent = [name for name in ("mount", "umount", "losetup", "mkfs.ext4") if shutil.which(name, path=SYSTEM) is None]
    if absent:
        return f"there is no {absent[0]}"
    tried = subprocess.run(["losetup", "--find"], capture_output=True, check=False, env={**os.environ, "PATH": SYSTEM})
    return "" if tried.returncode == 0 else "there is no loop device"


needs_ext4 = pytest.mark.skipif(bool(missing()), reason=missing())


def tool(*command: str | Path) -> str:
    """Run a program of the system; gives what it prints."""
    ended = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, "PATH": SYSTEM})
    assert ended.returncode == 0, f"{command}: {ended.stderr}"
    return ended.stdout.strip()


@contextmanager
def mounted(image: Path, at: Path) -> Iterator[Path]:
    """The ext4 in a file, which may be one that records."""
    at.mkdir(exist_ok=True)
    device = tool("losetup", "--find", "--show", image)
    with ExitStack() as stack:
        stack.callback(tool, "losetup", "--detach", device)
        tool("mount", "-t", "ext4", device, at)
        stack.callback(tool, "umount", at)
        yield at


@contextmanager
def recording(folder: Path, record: Path) -> Iterator[Path]:
    """A disk with a new ext4 on it, which records."""
    folder.mkdir()
    command = [sys.executable, "-m", "tests.crash.block_file", str(folder), str(SIZE), str(record)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        assert server.stdout.readline() == "mounted\n"
        try:
            tool("mkfs.ext4", "-q", "-E", "nodiscard,lazy_itable_init=0,lazy_journal_init=0", folder / NAME)
            yield folder / NAME
        finally:
            tool("umount", folder)


class NoSync(Files):
    """A file layer that leaves out what it is told to sync."""

    def sync(self, fd: int) -> None:
        """Nothing."""


@attrs.frozen
class Told:
    """Something that was acknowledged, and how much had been recorded by then."""

    what: str
    after: int


async def converse(folder: Path, record: Path, files: Files) -> list[Told]:
    """A conversation, with a fork in the middle."""
    told: list[Told] = []

    def acknowledged(what: str) -> None:
        told.append(Told(what, record.stat().st_size))

    settings = Settings(first_snapshot=2, snapshot_records=6)
    async with open_host(folder, devices=ECHO, files=files, settings=settings, segment_bytes=30_000) as host:
        s = await host.spawn(Session, "s")
        for n in range(TURNS):
            await s.turn(f"{n} " + "x" * 700)
            acknowledged(f"turn {n}")
            if n == TURNS // 2:
                await s.fork(into="f")
                acknowledged("fork")
    return told


def power_cut(writes: list[Write], at: int, into: Path, chance: random.Random) -> None:
    """The disk as a power cut after `at` writes and syncs may have left it."""
    synced = max((n for n in range(at) if writes[n].offset is None), default=0)
    disk = bytearray(SIZE)
    for write in writes[:synced]:
        _put(disk, write.offset, write.data)
    unsynced = [write for write in writes[synced:at] if write.offset is not None]
    kind = chance.choice(("none", "all", "writes", "sectors"))
    chance.shuffle(unsynced)
    for write in unsynced if kind != "none" else ():
        assert write.offset is not None
        if kind == "all" or (kind == "writes" and chance.random() < 0.5):
            _put(disk, write.offset, write.data)
        elif kind == "sectors":
            for start in range(0, len(write.data), SECTOR):
                if chance.random() < 0.5:
                    _put(disk, write.offset + start, write.data[start : start + SECTOR])
    into.write_bytes(disk)


def _put(disk: bytearray, offset: int | None, data: bytes) -> None:
    if offset is not None:
        disk[offset : offset + len(data)] = data


async def check(folder: Path, told: set[str]) -> None:
    """All that was acknowledged is there, once, in order, and it goes on."""
    if not told and not (folder / "format").exists():
        return
    async with open_host(folder, devices=ECHO) as host:
        assert (await host.verify()).sound
        there = {row.id for row in host.sessions()}
        assert "f" in there or "fork" not in told
        s = await host.spawn(Session, "s") if "s" not in there else await host.get("s")
        heard = [int(said.split()[0]) for said in await s.history]
        assert heard == list(range(len(heard)))
        lost = [n for n in range(len(heard), TURNS) if f"turn {n}" in told]
        assert not lost, f"turns {lost} are lost"
        assert await s.turn("on") == "on"


def states(tmp_path: Path, files: Files, seed: int, count: int) -> Iterator[str]:
    """What is wrong in each of the states that power cuts may leave; nothing in those where all is well."""
    record, image, at = tmp_path / "record", tmp_path / "image", tmp_path / "mounted"
    with recording(tmp_path / "recorder", record) as disk, mounted(disk, at):
        tool("sync")
        made = record.stat().st_size
        told = trio.run(converse, at / "store", record, files)
    writes = recorded(record)
    first = next(n for n, write in enumerate(writes) if write.end >= made)
    chance = random.Random(seed)
    for _ in range(count):
        cut = chance.randrange(first + 1, len(writes) + 1)
        power_cut(writes, cut, image, chance)
        known = {each.what for each in told if each.after <= writes[cut - 1].end}
        with mounted(image, at):
            try:
                trio.run(check, at / "store", known)
            except AssertionError as error:
                yield f"after {cut} of {len(writes)}: {error}"
            else:
                yield ""


@needs_ext4
def test_a_power_cut_on_a_real_file_system_loses_nothing_acknowledged(tmp_path: Path) -> None:
    """Invariants 1, 4 and 6."""
    print(f"KEEVE_SEED={SEED}")
    assert [wrong for wrong in states(tmp_path, Files(), SEED, STATES) if wrong] == []


@needs_ext4
def test_without_syncs_a_real_file_system_loses_what_was_acknowledged(tmp_path: Path) -> None:
    """Invariant 45: fsync."""
    assert any(states(tmp_path, NoSync(), 1, 12))
