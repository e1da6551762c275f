"""Where archives are now: folders that the environment names, for stores whose archives were moved.

The one rule: a folder that is not there is no error; what is in it is away, and is asked for by name when it is needed.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from dataspace.log.archives import NotAnArchive, archive_of
from dataspace.log.segments import SegmentStore

VARIABLE: Final = "KEEVE_ARCHIVES"


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
