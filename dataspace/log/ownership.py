"""Owning a store: a lock that one process holds, and an epoch that says whose turn it is.

The lock is on the file's inode, so the same store by another path, or twice in one process, is the same
lock. A forked child shares its parent's; it is told apart by its process id, and gives up its copy. The
lock file says the process and the epoch, each under its name, for people and for whoever finds the store owned.

The one rule: an owner looks before every write. What it wrote in the lock file, and the files that it
opened, must still be what the paths lead to.
"""

from __future__ import annotations

import fcntl
import os
import re
import weakref
from pathlib import Path
from typing import ClassVar

from dataspace.errors import KeeveError
from dataspace.log.files import Files, open_plain
from dataspace.log.store import StaleOwner, StoreMoved, StoreOwned

_CLAIM = re.compile(rb"pid (?P<pid>\d{1,10})\nepoch (?P<epoch>\d{1,20})\n *\n?")
_FORMER = re.compile(rb"epoch (?P<epoch>\d{20}) process (?P<pid>\d{10})\n")
"""What was written before: the epoch stood first there, and was taken for the process."""
_LENGTH = 46
PLAUSIBLE = 1 << 31
"""A file beside the log that names an epoch from here on is damaged: believing it could use up the numbers."""
_TICK = 20_000
"""Microseconds within which two changes of a folder may bear the same time."""


class NoLocks(KeeveError, quotes=False):
    """Nobody can own a store on this file system: it gives no locks."""

    usage: ClassVar[bool] = True

    def __init__(self, path: str, reason: str) -> None:
        self.path = path
        self.reason = reason
        super().__init__(
            f"{path} cannot be locked ({reason}), so that nothing would keep two hosts from writing at once: put the "
            "store on a local file system"
        )


class Ownership:
    """A store's lock, held by this process until `release`."""

    def __init__(self, path: Path, files: Files) -> None:
        """Take the lock at `path`. Raises `StoreOwned` or `NoLocks`, and leaves nothing behind but the file."""
        self._path = str(path)
        self._folder = str(path.parent)
        self._files = files
        while True:
            fd = files.open(path, create=True)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                claim = _read(fd)
                files.close(fd)
                raise StoreOwned(self._folder, claim and claim[1]) from None
            except OSError as error:
                files.close(fd)
                raise NoLocks(self._folder, error.strerror or str(error)) from error
            held = os.fstat(fd)
            if _identity(self._path) == (held.st_dev, held.st_ino):
                break
            files.close(fd)  # the file was replaced between opening and locking it: this lock is nobody's
        self._fd: int | None = fd
        self._identity = (held.st_dev, held.st_ino)
        self._process = os.getpid()
        self._claim = b""
        self._seen = (0, 0)
        found = _read(fd)
        self.epoch = found[0] if found and found[0] < PLAUSIBLE else 0
        """The epoch of this owner; until `claim`, of the one before."""
        _HELD.add(self)

    def claim(self, epoch: int) -> None:
        """Begin an epoch: an owner of an earlier one, wherever it is, may write no more.

        Not synced: the log's own records carry the epoch.
        """
        assert self._fd is not None
        self._claim = (b"pid %d\nepoch %d\n" % (self._process, epoch)).ljust(_LENGTH - 1) + b"\n"
        self._files.write(self._fd, 0, self._claim)
        self.epoch = epoch

    def check(self, folder: str, segment: str, inode: int, now: int) -> None:
        """Look, before a write, whether all is as we left it: the lock, and `segment`, which is in `folder`.

        `now` is the time in microseconds. Raises `StoreOwned` in a forked child, `StoreMoved` or
        `StaleOwner`. Takes a few µs.
        """
        self.check_process()
        fd = self._fd
        assert fd is not None
        try:
            lock = os.stat(self._path)
            names = os.stat(folder)
            changed = names.st_mtime_ns // 1000
            if (names.st_ino, changed) != self._seen or now - changed < _TICK:
                # Not at every write: a file whose times were asked for is given new ones by its next write,
                # and a sync then takes half as long again. The folder's time tells when a name changed.
                found = os.stat(segment).st_ino
                if found != inode:
                    raise StoreMoved(self._folder, f"{segment} is another file")
                self._seen = (names.st_ino, changed)
        except OSError as error:
            raise StoreMoved(self._folder, f"{error.filename} is not there") from None
        if (lock.st_dev, lock.st_ino) != self._identity:
            raise StoreMoved(self._folder, f"{self._path} is another file")
        if os.pread(fd, _LENGTH, 0) != self._claim:
            claim = _read(fd)
            raise StaleOwner(self._folder, self.epoch, claim and claim[0])

    def check_process(self) -> None:
        """Raise `StoreOwned` in a forked child."""
        if os.getpid() != self._process:
            raise StoreOwned(self._folder, self._process)

    def release(self) -> None:
        """Let another owner in. A second call does nothing."""
        fd, self._fd = self._fd, None
        _HELD.discard(self)
        if fd is not None and os.getpid() == self._process:
            self._files.close(fd)

    def forget(self) -> None:
        """In a forked child: close its copy, which would keep the lock held when the owner has gone."""
        fd, self._fd = self._fd, None
        if fd is not None:
            os.close(fd)


def _read(fd: int) -> tuple[int, int] | None:
    """Epoch and process of a lock file; None when it says neither."""
    text = os.pread(fd, _LENGTH, 0)
    match = _CLAIM.fullmatch(text) or _FORMER.fullmatch(text)
    return (int(match["epoch"]), int(match["pid"])) if match else None


def owner_of(lock: Path) -> int | None:
    """The process that holds the store whose lock file this is; None when nobody does, 0 when /proc does not show it.

    Takes no lock: whoever opens the store meanwhile does not meet us.
    """
    try:
        with open(open_plain(lock), "rb") as file:
            found = os.fstat(file.fileno())
            claim = _read(file.fileno())
    except OSError:
        return None
    try:
        locks = Path("/proc/locks").read_text()
    except OSError:
        # No /proc: whoever is named in the file, if that process is there.
        return claim[1] if claim is not None and _runs(claim[1]) else None
    where = f"{os.major(found.st_dev):02x}:{os.minor(found.st_dev):02x}:{found.st_ino}"
    for line in locks.splitlines():
        words = line.split()
        if len(words) >= 6 and words[1] == "FLOCK" and words[5] == where:
            # A process of another container has no number here; the file says what it is there.
            return int(words[4]) if words[4].isdigit() and int(words[4]) > 0 else 0
    return None


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _identity(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


_HELD: weakref.WeakSet[Ownership] = weakref.WeakSet()
"""The locks that this process holds."""


def _forget_all() -> None:
    for held in list(_HELD):
        held.forget()
    _HELD.clear()


os.register_at_fork(after_in_child=_forget_all)
