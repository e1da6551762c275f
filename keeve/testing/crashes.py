"""Crashes, power cuts and failing disks, for stores under test.

`CrashFiles` is a file layer on system calls that are counted, and that can be told to fail or to die at one
of them. It remembers what was written and what was synced, so that `power_cut` can build, in another
folder, what a machine that lost its power might have left on the disk.

    files = CrashFiles(at=7)                      # the process dies in the 7th call that changes something
    with suppress(SimulatedCrash):
        ...                                       # open a store with files=files and use it
    files.power_cut(folder, elsewhere, "sectors", seed=1)

The one rule: it is stricter than any disk. What was not synced may be lost, whole or in part, in any order.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from dataspace.log.files import Files
from keeve.testing.disk import Disk, Mode

CRASH_AT = "KEEVE_CRASH_AT"
"""Environment variable: `n` or `n:bytes`. A process that uses `crash_files_from` dies at its n-th call."""


class SimulatedCrash(BaseException):
    """The process has died, as far as the store knows. Not an `Exception`: nothing may go on after it."""

    def __init__(self, operation: int, what: str) -> None:
        self.operation = operation
        self.what = what
        super().__init__(f"simulated crash at operation {operation}: {what}")


class CrashingCalls:
    """System calls that are counted from 1. Only those that change something count.

    `at` is the call to die in, before it does anything; a write first puts down its first `partial` bytes.
    Once dead, every call raises, and all that was open is closed, so that locks are free. `failures` says
    with which errno a call fails; a failing write puts down `partial` bytes too.
    """

    def __init__(self, disk: Disk, at: int | None, partial: int, hard: bool) -> None:
        self.disk = disk
        self.count = 0
        self.at = at
        self.partial = partial
        self.hard = hard
        self.dead = False
        self.syncs = True
        self.lies = False
        self.failures: dict[int, int] = {}
        self.names: list[str] = []
        self._open: dict[int, str] = {}

    def _step(self, what: str) -> bool:
        """Count a call. False when it is the one to die in or to fail at."""
        if self.dead:
            raise SimulatedCrash(self.count, what)
        self.count += 1
        self.names.append(what)
        return self.count != self.at and self.count not in self.failures

    def _pass(self, what: str) -> None:
        """Count a call, and do not come back from the one to die in or to fail at."""
        if not self._step(what):
            raise self._end(what)

    def _end(self, what: str) -> BaseException:
        """Fail or die, as it was told: what to raise."""
        error = self.failures.get(self.count)
        if error is not None:
            return OSError(error, os.strerror(error))
        if self.hard:
            os._exit(137)
        self.dead = True
        for fd in self._open:
            os.close(fd)
        self._open.clear()
        return SimulatedCrash(self.count, what)

    def open(self, path: str, flags: int, mode: int = 0o777, /) -> int:
        made = bool(flags & os.O_CREAT) and not os.path.exists(path)
        if made:
            self._pass(f"create {path}")
        if self.dead:
            raise SimulatedCrash(self.count, f"open {path}")
        fd = os.open(path, flags, mode)
        self._open[fd] = path
        if not flags & os.O_DIRECTORY:
            self.disk.opened(path, fd, made=made)
        return fd

    def close(self, fd: int, /) -> None:
        if self._open.pop(fd, None) is not None:
            os.close(fd)

    def pwrite(self, fd: int, data: bytes | memoryview, offset: int, /) -> int:
        what = f"write {len(data)} bytes at {offset}"
        if self._step(what):
            os.pwrite(fd, data, offset)
            self.disk.wrote(fd, offset, bytes(data))
            return len(data)
        part = bytes(data[: self.partial])
        self.partial = 0
        if part:
            os.pwrite(fd, part, offset)
            self.disk.wrote(fd, offset, part)
            if self.failures.get(self.count) is not None and len(part) < len(data):
                self.failures.setdefault(self.count + 1, self.failures[self.count])
                return len(part)
        raise self._end(what)

    def fdatasync(self, fd: int, /) -> None:
        if not self._step("sync"):
            if self.lies and self.count in self.failures:
                self.disk.forgot(fd)
            raise self._end("sync")
        if self.syncs:
            self.disk.synced(fd)

    def fsync(self, fd: int, /) -> None:
        path = self._open.get(fd, "?")
        self._pass(f"sync folder {path}")
        if self.syncs:
            self.disk.synced_folder(path)

    def ftruncate(self, fd: int, length: int, /) -> None:
        self._pass(f"truncate to {length}")
        os.ftruncate(fd, length)
        self.disk.truncated(fd, length)

    def rename(self, source: str, target: str, /) -> None:
        self._pass(f"rename {source} to {target}")
        self.disk.seen(source)
        self.disk.seen(target)
        os.rename(source, target)
        self.disk.renamed(source, target)

    def unlink(self, path: str, /) -> None:
        self._pass(f"remove {path}")
        self.disk.seen(path)
        os.unlink(path)
        self.disk.removed(path)

    def mkdir(self, path: str, mode: int = 0o777, /) -> None:
        if os.path.exists(path):
            raise FileExistsError(path)
        self._pass(f"make folder {path}")
        os.mkdir(path, mode)
        self.disk.made_folder(path)

    def rmdir(self, path: str, /) -> None:
        self._pass(f"remove folder {path}")
        os.rmdir(path)
        self.disk.removed(path)


class CrashFiles(Files):
    """The file layer of a store on a machine that is about to die.

    `at` and `partial` say when and how, see `crash` too. With `hard` the process itself ends, with exit code
    137. With `syncs=False` the disk forgets to sync and says that it did: to prove that a test would notice. With
    `lies=True` a sync that is told to fail does so once, and what it was for is never written by a later one, though it
    can be read: as some systems do. `disk` is that of an earlier one, when the machine has not been started again.
    """

    def __init__(
        self,
        at: int | None = None,
        *,
        partial: int = 0,
        hard: bool = False,
        syncs: bool = True,
        lies: bool = False,
        disk: Disk | None = None,
    ) -> None:
        self.disk = disk or Disk()
        self._crashing = CrashingCalls(self.disk, at, partial, hard)
        self._crashing.syncs = syncs
        self._crashing.lies = lies
        super().__init__(self._crashing)

    @property
    def count(self) -> int:
        """How many calls have changed something so far."""
        return self._crashing.count

    @property
    def names(self) -> list[str]:
        """What these calls were."""
        return self._crashing.names

    @property
    def dead(self) -> bool:
        """Whether the crash has happened."""
        return self._crashing.dead

    def crash(self, after: int = 0, *, partial: int = 0) -> None:
        """Die in a call from now on: the next one, or the one after so many."""
        self._crashing.at = self._crashing.count + after + 1
        self._crashing.partial = partial

    def spare(self) -> None:
        """Die in no call that begins from now on. One that has begun may be the one to die in."""
        self._crashing.at = None

    def fail(self, error: int, after: int = 0, *, partial: int = 0, times: int = 1) -> None:
        """Let calls fail with an errno from now on: the next one, or the one after so many. A write first
        puts down `partial` bytes, as a short write does."""
        first = self._crashing.count + after + 1
        self._crashing.partial = partial
        self._crashing.failures.update(dict.fromkeys(range(first, first + times), error))

    def power_cut(self, folder: Path, into: Path, mode: Mode, seed: int = 0) -> None:
        """Build at `into` what a power cut might have left of `folder`: see `keeve.testing.disk.Mode`.

        Only what went through this file layer is known to have been synced or not; the rest is taken to be
        on the disk.
        """
        self.disk.power_cut(folder, into, mode, seed)


def crash_files_from(environment: Mapping[str, str]) -> Files:
    """The file layer for a process that may be told to die by `KEEVE_CRASH_AT` in its environment."""
    said = environment.get(CRASH_AT)
    if not said:
        return Files()
    at, _, partial = said.partition(":")
    return CrashFiles(int(at), partial=int(partial or 0), hard=True)
