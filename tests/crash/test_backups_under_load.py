"""Backups of stores in which something happens at every call that they make, and backups that are killed.

What happens is turns, sessions, forks, deletions, erasures, `gc`, archives and their way back, and another key for the
store at rest. A backup is then the log up to some position, as it is; sound, complete, and without anything that was
erased by then. KEEVE_SEED replays what was done.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from actors.session import Session
from dataspace.log.backup import backup
from dataspace.log.copy_check import CopyCheck
from dataspace.log.files import Files
from dataspace.log.rekeying import rekeyed
from keeve import blocking
from keeve.errors import NothingToArchive, PlaceTaken
from keeve.testing.crashes import CrashFiles
from tests.crash.crash_suites import FULL
from tests.dataspace.segment_folders import content, opened
from vat.host.settings import Settings

pytestmark = pytest.mark.crash

ROOT = Path(__file__).parents[2]
SEED = int(os.environ.get("KEEVE_SEED", random.randrange(1 << 32)))
RUNS = 20 if FULL else 2
ACTS = 40
"""Things that are done during one backup, at the most: fewer than it begins again."""
TAKES = 12
"""Those of them, at the most, that are done after it was checked, and take something away."""
OPTIONS: dict[str, Any] = {"settings": Settings(reclaim=None, first_snapshot=3), "segment_bytes": 6000}


class _Calls:
    """The system's calls, with something done before each of a backup's, until it gets its name."""

    def __init__(self, act: Callable[[], None]) -> None:
        self._act = act

    def __getattr__(self, name: str) -> Any:
        call = getattr(os, name)

        def acted(*arguments: Any) -> Any:
            if name == "rename" and str(arguments[0]).endswith(".copying"):
                self._act = _nothing  # what comes after the last look came after the backup
            self._act()
            return call(*arguments)

        return acted


def _nothing() -> None:
    """What is done after the last look."""


class World:
    """A store in which things happen, and what has to be true of it."""

    def __init__(self, folder: Path, chance: random.Random, *, served: bool, sealed: bool) -> None:
        self.folder = folder
        self.chance = chance
        self.key = chance.randbytes(32) if sealed else None
        self._host = blocking.open_host(folder, key=self.key, **OPTIONS) if served else None
        self.said: dict[str, list[tuple[int, str]]] = {}
        """What was said in which turn, of the sessions that live."""
        self.erased: set[str] = set()
        self.deleted: set[str] = set()
        self.done: list[str] = []
        self._left = self._takes = 0
        self._count = 0

    @contextmanager
    def host(self) -> Iterator[Any]:
        """The host of it; one that is there for as long as this takes, of a store at rest."""
        if self._host is not None:
            yield self._host
            return
        with blocking.open_host(self.folder, key=self.key, **OPTIONS) as host:
            yield host

    def close(self) -> None:
        if self._host is not None:
            self._host.close()

    def act(self) -> None:
        """Do something, now and then."""
        if self._left and self.chance.random() < 0.25:
            self._left -= 1
            self.something()

    def begin(self) -> None:
        self._left, self._takes = ACTS - TAKES, TAKES

    def take(self) -> None:
        """Have something go: all kinds the first time, then one or other of them now and then."""
        if self._takes == TAKES:
            self.do("turn", "erase", "delete", "rekey")
            self._takes -= 4
        elif self._takes and self.chance.random() < 0.7:
            self._takes -= 1
            self.do(self.chance.choice(("delete", "erase", "rekey", "reclaim")))

    def something(self) -> None:
        names = ["turn"] * 6 + ["spawn", "fork", "delete", "erase", "reclaim", "archive", "bring_back", "snapshot"]
        self.do(self.chance.choice([*names, "rekey"]))

    def do(self, *names: str) -> None:
        for name in names:
            if not self.said:
                self._spawn()
            self.done.append(name)
            getattr(self, f"_{name}")()

    def _session(self) -> str:
        return self.chance.choice(sorted(self.said))

    def _new(self) -> str:
        self._count += 1
        return f"s{self._count}"

    def _spawn(self) -> None:
        with self.host() as host:
            id = self._new()
            host.spawn(Session, id)
            self.said[id] = []

    def _turn(self) -> None:
        with self.host() as host:
            id = self._session()
            self._count += 1
            text = f"said {self._count} " + f"{self.chance.getrandbits(64):x} " * self.chance.randrange(1, 60)
            host.get(id).turn(text)
            self.said[id].append((len(self.said[id]) + 1, text))

    def _fork(self) -> None:
        with self.host() as host:
            id, into = self._session(), self._new()
            host.get(id).fork(into=into)
            self.said[into] = list(self.said[id])

    def _snapshot(self) -> None:
        with self.host() as host:
            host.get(self._session()).snapshot()

    def _delete(self) -> None:
        with self.host() as host:
            id = self._session()
            host.delete(id)
            del self.said[id]
            self.deleted.add(id)

    def _erase(self) -> None:
        with self.host() as host:
            left = [
                (id, *each) for id, said in sorted(self.said.items()) for each in said if each[1] not in self.erased
            ]
            if left:
                id, n, text = self.chance.choice(left)
                host.erase(id, turn=n)
                self.erased.add(text)

    def _reclaim(self) -> None:
        with self.host() as host:
            host.reclaim()

    def _archive(self) -> None:
        with self.host() as host, suppress(NothingToArchive):
            host.archive(self.folder.with_name("archive"), keep=self.chance.randrange(3))

    def _bring_back(self) -> None:
        with self.host() as host, suppress(NothingToArchive):
            host.bring_back()

    def _rekey(self) -> None:
        if self.key is None or self._host is not None:
            return  # only a store at rest is given another key
        new = self.chance.randbytes(32)
        rekeyed(self.folder, self.key, lambda: new, Files(), os.urandom)
        self.key = new


def records(folder: Path, key: bytes | None) -> list[tuple[int, bytes]]:
    """The position and hash of each record of a store."""
    store = opened(folder, readonly=True, key=key)
    try:
        return [(each.header.position, each.header.hash) for each in store.scan()]
    finally:
        store.close()


@pytest.mark.parametrize("sealed", [False, True], ids=["plain", "encrypted"])
@pytest.mark.parametrize("served", [True, False], ids=["served", "at rest"])
@pytest.mark.parametrize("run", range(RUNS))
def test_a_backup_under_load_is_the_log_up_to_some_position(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: int, served: bool, sealed: bool
) -> None:
    print(f"KEEVE_SEED={SEED}")
    world = World(tmp_path / "data", random.Random(f"{SEED} {run} {served} {sealed}"), served=served, sealed=sealed)
    look = CopyCheck.look

    def looked(*arguments: Any) -> None:
        world.act()
        look(*arguments)
        world.done.append("looked")
        world.take()

    monkeypatch.setattr(CopyCheck, "look", looked)
    for _ in range(30):
        world.something()
    world.do("spawn", "turn", "fork")  # so that there is something to take
    before = len(records(tmp_path / "data", world.key))
    world.begin()
    done = backup(tmp_path / "data", tmp_path / "new", files=Files(_Calls(world.act)))  # type: ignore[arg-type] # all of os
    print(*world.done)
    world.close()
    copied, there = records(tmp_path / "new", world.key), records(tmp_path / "data", world.key)
    assert copied == there[: done.position]
    assert done.position >= before
    assert (done.troubles, len(there) > before) == ((), True)
    raw = b"".join(content(tmp_path / "new" / "log").values())
    assert not [text for text in world.erased if text.encode() in raw]
    kept = [tmp_path / "archive"] if (tmp_path / "archive").exists() else []
    with blocking.open_host(tmp_path / "new", key=world.key, archives=kept, **OPTIONS) as host:
        report = host.verify()
        assert report.sound, report.troubles
        known = {row.id for row in host.sessions(limit=1000)}
        assert not known & world.deleted
        for id in sorted(known & world.said.keys()):
            history = [text for text in host.get(id).history if isinstance(text, str)]
            assert not world.erased & set(history)
        host.spawn(Session, "goes on").turn("going on")


@pytest.mark.parametrize("sealed", [False, True], ids=["plain", "encrypted"])
def test_a_backup_that_is_killed_leaves_no_backup_and_the_store_as_it_was(tmp_path: Path, sealed: bool) -> None:
    """At any call that changes something the process ends, and nothing of ours is run any more."""
    world = World(tmp_path / "data", random.Random(f"{SEED} killed"), served=False, sealed=sealed)
    print(f"KEEVE_SEED={SEED}")
    for _ in range(12):
        world.something()
    before = content(tmp_path / "data")
    files = CrashFiles()
    backup(tmp_path / "data", tmp_path / "whole", files=files)
    whole = content(tmp_path / "whole")
    calls = range(1, len(files.names) + 1)
    chosen = calls if FULL else sorted({*world.chance.sample(calls, 3), *calls[-3:]})
    for at in chosen:
        new = tmp_path / f"new{at}"
        code = (
            "from pathlib import Path; import sys; from dataspace.log.backup import backup\n"
            "from keeve.testing.crashes import CrashFiles\n"
            f"backup(Path(sys.argv[1]), Path(sys.argv[2]), files=CrashFiles({at}, hard=True))"
        )
        ended = subprocess.run(
            [sys.executable, "-c", code, str(tmp_path / "data"), str(new)], cwd=ROOT, capture_output=True, check=False
        )
        assert ended.returncode == 137, ended.stderr
        assert content(tmp_path / "data") == before
        if new.exists():
            assert content(new) == whole
        elif (tmp_path / f"new{at}.copying").exists():
            with pytest.raises(PlaceTaken, match="left of a backup that was interrupted"):
                backup(tmp_path / "data", new)
        else:
            assert backup(tmp_path / "data", new).troubles == ()
