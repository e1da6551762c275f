"""Where archives are: folders that the environment names, for stores whose archives were moved; and those that somebody
names who asks a server from elsewhere.

The one rule: a folder that is not there is no error; what is in it is away, and is asked for by name when it is needed.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import ClassVar, Final

from dataspace.errors import KeeveError
from dataspace.log.archives import NotAnArchive, archive_of
from dataspace.log.segments import SegmentStore

VARIABLE: Final = "KEEVE_ARCHIVES"


class NotFromTheRoot(KeeveError, ValueError):
    """A folder of a server's machine is not named from its root."""

    usage: ClassVar[bool] = True
    remedy: ClassVar[str] = "name it from the root, on the machine that has the store"

    def __init__(self, path: object) -> None:
        self.path = path
        self.what = f"{path!r:.200} is no whole path: which folder is meant, nobody can say"
        super().__init__(f"{self.what}; {self.remedy}")


def from_root(path: object) -> Path:
    """A folder that was named from another machine, or from another folder of this one. Raises `NotFromTheRoot`."""
    if not isinstance(path, str) or not Path(path).is_absolute():
        raise NotFromTheRoot(path)
    return Path(path)


def archives_from(environ: Mapping[str, str]) -> list[Path]:
    """The folders that the environment names, separated as those of PATH are."""
    return [Path(each) for each in environ.get(VARIABLE, "").split(os.pathsep) if each]


def look_in(store: SegmentStore, folders: Iterable[str | os.PathLike[str]]) -> None:
    """Have a store look for what was archived in these folders first. Raises `NotAnArchive` for one of another log."""
    for folder in reversed([Path(each) for each in folders]):
        of = archive_of(folder)
        if folder.exists() and of != store.log_id:
            raise NotAnArchive(folder, "there is none in it" if of is None else f"it is that of log {of.hex()}")
        store.archives.also(folder)
