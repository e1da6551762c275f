"""Making: the folder in which a store is copied or salvaged, beside the name that it gets when all of it is there.

Whoever makes it holds a lock on it, so that what a process left that was killed is told from what another one makes.

The one rule: one process makes it, gives it its name, and removes of it what it has made itself, nothing else.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Final, NamedTuple, Self

from dataspace.log.files import Files, SyncFailed, WriteFailed, refused
from dataspace.log.layout import Layout, PlaceTaken


class Way(NamedTuple):
    """What a store is made by: what the name of its folder ends with meanwhile, what it is called, what it makes."""

    suffix: str
    name: str
    whole: str


BACKUP: Final = Way("copying", "backup", "backup")
SALVAGE: Final = Way("salvaging", "salvage", "store")


class Making:
    """The folder `NEW.copying` (or as its `way` has it), until it is `NEW`. Made when it is entered, with the folders
    above it that are missing; gone again, with these, when it is left without `name`."""

    def __init__(self, new: Path, files: Files, way: Way = BACKUP) -> None:
        self.new = new.absolute()
        """The name that it gets."""
        self._way = way
        self._files = files
        self._made: list[Path] = []
        self._fd: int | None = None
        self._named = False
        self.layout = Layout(self.new.with_name(f"{self.new.name}.{way.suffix}"))
        self.left = ""
        """What of it could not be removed."""

    def __enter__(self) -> Self:
        """Raises `PlaceTaken`, `NoFolder`, `WriteFailed` or `SyncFailed`."""
        folder = self.layout.folder
        try:
            for path in reversed([path for path in folder.parents if not path.exists()]):
                if self._files.make_folder(path):
                    self._made.append(path)
            if not self._files.make_folder(folder):
                raise PlaceTaken(str(folder), *_who_has(folder, self._way))
            try:
                self._fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            except OSError as error:
                self._made.append(folder)  # made the moment before: where it is empty it is no other's
                raise refused(str(folder), error) from error
            with suppress(OSError):  # without a lock it is only told less well whose it is
                fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._files.make_folder(self.layout.log)
        except BaseException:
            self._remove()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._remove()

    def check(self) -> None:
        """Raise `PlaceTaken` where its name leads elsewhere by now: somebody has removed it, and may make another."""
        if not self._is_ours():
            raise PlaceTaken(str(self.layout.folder), f"it was removed while a {self._way.name} was made in it")

    def _is_ours(self) -> bool:
        if self._fd is None:
            return False
        held = os.fstat(self._fd)  # open, so that no other folder gets its inode
        try:
            found = os.stat(self.layout.folder)
        except OSError:
            return False
        return (found.st_dev, found.st_ino) == (held.st_dev, held.st_ino)

    def name(self) -> None:
        """Give it its name, durably. Raises `PlaceTaken`, `WriteFailed` or `SyncFailed`, and then it has not got it."""
        self.check()
        files = self._files
        files.rename(self.layout.folder, self.new)
        try:
            files.sync_folder(self.new.parent)
        except SyncFailed:
            files.rename(self.new, self.layout.folder)
            raise
        self._named = True

    def _remove(self) -> None:
        try:
            if not self._named and self._is_ours():
                self._take_away()
            if not self._named:
                self._remove_folders(reversed(self._made))
        finally:
            if self._fd is not None:
                os.close(self._fd)
                self._fd = None

    def _take_away(self) -> None:
        layout = self.layout
        own = [layout.format, layout.head, layout.keys]
        own += [path.with_name(f"{path.name}.new") for path in own]
        own += [layout.segment(number) for number in layout.segments()]
        for path in own:
            if path.exists():
                with suppress(WriteFailed):
                    self._files.remove(path)
        self._remove_folders((layout.log, layout.folder))
        if layout.folder.exists():
            self.left = str(layout.folder)

    def _remove_folders(self, folders: Iterable[Path]) -> None:
        for folder in folders:
            if folder.exists():
                with suppress(WriteFailed):
                    self._files.remove_folder(folder)


def _who_has(folder: Path, way: Way) -> tuple[str, str]:
    """Whether a folder is being made, or left of a process that was killed; and what to do then."""
    with suppress(OSError):
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return f"another {way.name} to this place is being made", "wait for that"
        finally:
            os.close(fd)
    return f"it is left of a {way.name} that was interrupted, and is no {way.whole}", "remove it"
