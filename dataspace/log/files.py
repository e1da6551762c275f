"""Files: the few calls by which a log reaches the disk. Each says what it makes durable.

What was written is durable after `sync` of that file; that a name exists, or no longer does, after
`sync_folder` of the folder that holds it. Until then a power cut may leave any part of it.

The one rule: whatever in the log writes does so through the one `Files` that it was given. That stands on
a handful of system calls, which are passed in: a test puts a disk that fails, or a machine that dies
between two of them, in their place.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import ClassVar, Final, Protocol

from dataspace.errors import KeeveError
from dataspace.remedies import Remedy

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_FORBIDDEN = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})
_NO_PLACE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG, errno.ELOOP, errno.EINVAL})


class WriteFailed(KeeveError, quotes=False):
    """The disk refused a write. `undone`: whether the file is again as it was before."""

    advice: ClassVar[str] = "this write is not in the log, and all before it is; look at the disk, then try again"

    def __init__(self, path: str, reason: str, undone: bool) -> None:
        self.path = path
        self.reason = reason
        self.undone = undone
        what = self.advice if undone else "what it left could not be undone either; open the store again"
        super().__init__(f"{path}: write failed ({reason}): {what}")


MAKE_SPACE: Final = Remedy("make-space", "make space, then try again")


class DiskFull(WriteFailed, quotes=False):
    """There was no space for a write. What was durable before is intact."""

    advice = f"this write is not in the log, and all before it is; {MAKE_SPACE()}"


OWN_FOLDER: Final = Remedy("own-folder", "use a folder of its own, or only read the store (readonly=True)")


class NotWritable(WriteFailed, quotes=False):
    """This user may not write there, or nobody may."""

    advice = f"this process may not write there; {OWN_FOLDER()}"


class NoFolder(KeeveError, quotes=False):
    """No folder can be made at that path: what is above it holds none."""

    usage = True

    def __init__(self, path: str, reason: str) -> None:
        self.path = path
        self.reason = reason
        super().__init__(f"no folder can be made at {path} ({reason}): name a place for the store that can hold one")


class ReadFailed(KeeveError, quotes=False):
    """What is there could not be read. It is never taken for nothing."""

    def __init__(self, path: str, reason: str) -> None:
        self.path = path
        self.reason = reason
        super().__init__(
            f"{path}: cannot be read ({reason}): nothing was changed; look at the disk, at what lies there and at "
            "who may read it, then try again"
        )

    @classmethod
    def of(cls, path: str, error: OSError) -> ReadFailed:
        """The error for what the system said of a path, or of another that it names itself."""
        return cls(str(error.filename or path), error.strerror or str(error))


class SyncFailed(KeeveError, quotes=False):
    """The disk could not say that what was written is durable.

    Not to be tried again: the kernel may have dropped the pages, and a second sync would succeed for nothing.
    """

    def __init__(self, path: str, reason: str) -> None:
        self.path = path
        self.reason = reason
        super().__init__(f"{path}: sync failed ({reason}): what was written last may be lost; open the store again")


def refused(path: str, error: OSError, *, undone: bool = True) -> WriteFailed:
    """The error for what the system said of writing to a path."""
    kind = DiskFull if error.errno in _FULL else NotWritable if error.errno in _FORBIDDEN else WriteFailed
    return kind(path, error.strerror or str(error), undone)


def open_plain(path: Path) -> int:
    """A descriptor to read the file at `path`. Raises `OSError` when it is no plain file: never waits for a pipe.

    Where a file stands in the place of a folder above it, nothing is at `path`.
    """
    try:
        fd = _open_quietly(os.open, str(path), os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except NotADirectoryError as error:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path)) from error
    try:
        _check_plain(path, fd)
    except OSError:
        os.close(fd)
        raise
    return fd


def _open_quietly(open: Callable[[str, int, int], int], path: str, flags: int) -> int:
    """Open a file so that reading it leaves its times as they are, where the system lets us.

    A read that sets the time of access makes the file's inode dirty, and the next fdatasync then writes that, too: half
    as much again for each commit.
    """
    try:
        return open(path, flags | getattr(os, "O_NOATIME", 0), 0o600)
    except PermissionError:  # not ours; whether we may open it at all is seen now
        return open(path, flags, 0o600)


def _check_plain(path: Path, fd: int) -> None:
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        raise OSError(errno.EINVAL, "it is not a plain file", str(path))


def small_file(path: Path, most: int) -> bytes | None:
    """The content of a plain file of at most `most` bytes; None when there is none such. Raises `ReadFailed`."""
    try:
        fd = open_plain(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ReadFailed.of(str(path), error) from error
    try:
        data = os.read(fd, most + 1)
    except OSError as error:
        raise ReadFailed.of(str(path), error) from error
    finally:
        os.close(fd)
    return data if len(data) <= most else None


class SystemCalls(Protocol):
    """What `Files` needs of the system: these functions of `os`."""

    def open(self, path: str, flags: int, mode: int = ..., /) -> int: ...
    def close(self, fd: int, /) -> None: ...
    def pwrite(self, fd: int, data: bytes | memoryview, offset: int, /) -> int: ...
    def fdatasync(self, fd: int, /) -> None: ...
    def fsync(self, fd: int, /) -> None: ...
    def ftruncate(self, fd: int, length: int, /) -> None: ...
    def rename(self, source: str, target: str, /) -> None: ...
    def unlink(self, path: str, /) -> None: ...
    def mkdir(self, path: str, mode: int = ..., /) -> None: ...
    def rmdir(self, path: str, /) -> None: ...


class Files:
    """The file layer of one store."""

    def __init__(self, calls: SystemCalls = os) -> None:
        self._calls = calls
        self._pwrite = calls.pwrite
        self._fdatasync = calls.fdatasync
        self._paths: dict[int, str] = {}

    def open(self, path: Path, *, create: bool = False) -> int:
        """A descriptor to read and write the plain file `path`. With `create` an empty one is made where there is
        none; its name is durable after `sync_folder`. Raises `WriteFailed`."""
        flags = os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK | (os.O_CREAT if create else 0)
        try:
            fd = _open_quietly(self._calls.open, str(path), flags)
            try:
                _check_plain(path, fd)
            except OSError:
                self._calls.close(fd)
                raise
        except OSError as error:
            raise refused(str(path), error) from error
        self._paths[fd] = str(path)
        return fd

    def close(self, fd: int) -> None:
        """Forget a descriptor. Makes nothing durable."""
        self._paths.pop(fd, None)
        self._calls.close(fd)

    def write(self, fd: int, offset: int, data: bytes, size: int | None = None) -> None:
        """Put all of `data` at `offset` of an open file. Not durable before `sync`.

        With `size`, the length of the file before, whole or not at all: a write that stops half-way is undone
        by cutting the file back to `size` and putting zeros where there were zeros before, so it must go to
        the end of the file or over zeros. Without it, what was there is not put back: only for bytes that
        are the same, or that can be made again. Raises `WriteFailed` or `DiskFull`.
        """
        written = 0
        try:
            written = self._pwrite(fd, data, offset)
            while written < len(data):
                count = self._pwrite(fd, memoryview(data)[written:], offset + written)
                if count == 0:
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                written += count
        except OSError as error:
            undone = size is not None and self._undo(fd, offset, len(data), size)
            raise refused(self._paths[fd], error, undone=undone) from error

    def _undo(self, fd: int, offset: int, length: int, size: int) -> bool:
        over = min(offset + length, size) - offset
        try:
            self._calls.ftruncate(fd, size)
            return over <= 0 or self._pwrite(fd, bytes(over), offset) == over
        except OSError:
            return False

    def sync(self, fd: int) -> None:
        """Make the content and the length of an open file durable. Raises `SyncFailed`."""
        try:
            self._fdatasync(fd)
        except OSError as error:
            raise SyncFailed(self._paths[fd], error.strerror or str(error)) from error

    def truncate(self, fd: int, length: int) -> None:
        """Cut an open file off at `length`. Durable after `sync`."""
        try:
            self._calls.ftruncate(fd, length)
        except OSError as error:
            raise refused(self._paths[fd], error) from error

    def replace(self, path: Path, data: bytes, *, durable: bool = True) -> None:
        """Put `data` in the place of the whole file at `path`. Durable when this returns; a crash leaves the
        old file or the new one. What it raises leaves the old one, unless the last sync failed.

        Without `durable` nothing is synced, and a power cut may leave anything: for what can be made again."""
        aside = path.with_name(path.name + ".new")
        with self.naming(path.parent) if durable else nullcontext():
            fd = self.open(aside, create=True)
            try:
                self.truncate(fd, 0)
                self.write(fd, 0, data, 0)
                if durable:
                    self.sync(fd)
            except (WriteFailed, SyncFailed):
                with suppress(OSError):
                    self._calls.unlink(str(aside))
                raise
            finally:
                self.close(fd)
            self.rename(aside, path)

    def rename(self, path: Path, to: Path) -> None:
        """Give a file another name, taking the place of what had it. Durable after `sync_folder` of both."""
        try:
            self._calls.rename(str(path), str(to))
        except OSError as error:
            raise refused(str(to), error) from error

    def remove(self, path: Path) -> None:
        """Take a name away. Durable after `sync_folder`."""
        try:
            self._calls.unlink(str(path))
        except OSError as error:
            raise refused(str(path), error) from error

    def make_folder(self, path: Path) -> bool:
        """Make a folder where there is none; gives whether it did. Durable then.

        Raises `NoFolder`, `WriteFailed` or `SyncFailed`, and leaves none.
        """
        try:
            self._calls.mkdir(str(path), 0o700)
        except FileExistsError:
            return False
        except OSError as error:
            if error.errno in _NO_PLACE:
                raise NoFolder(str(path), error.strerror or str(error)) from error
            raise refused(str(path), error) from error
        try:
            self.sync_folder(path.parent)
        except SyncFailed:
            with suppress(OSError):
                self._calls.rmdir(str(path))
            raise
        return True

    def remove_folder(self, path: Path) -> None:
        """Take an empty folder away. Durable after `sync_folder` of the one above."""
        try:
            self._calls.rmdir(str(path))
        except OSError as error:
            raise refused(str(path), error) from error

    def sync_folder(self, path: Path) -> None:
        """Make durable which names a folder holds. Raises `SyncFailed`."""
        try:
            with self.naming(path):
                pass
        except WriteFailed as error:
            raise SyncFailed(str(path), error.reason) from error

    @contextmanager
    def naming(self, path: Path) -> Iterator[None]:
        """Names in a folder are changed meanwhile, and durable at its end. Raises `SyncFailed`; or `WriteFailed` before
        anything is changed, where the folder cannot be opened: a process that has no descriptor left for it has lost
        nothing."""
        try:
            fd = self._calls.open(str(path), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise refused(str(path), error) from error
        try:
            yield
            try:
                self._calls.fsync(fd)
            except OSError as error:
                raise SyncFailed(str(path), error.strerror or str(error)) from error
        finally:
            self._calls.close(fd)
