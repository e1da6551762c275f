"""Backup: a copy of a store's folder as it was at one moment, while its owner goes on.

It is made beside its place (`making`), copied (`copying`), checked there frame by frame (`copy_check`), and then given
its name. Right before that it is looked once more whether anything was deleted or erased in the store since, and
brought up to that if so. What is not copied: `token`, the lock, what recoveries have cut, the catalog (it is made
again), and `archived`: who opens the copy would have content go from archives of which the store has need.

The one rule: under the name of a backup there is a whole one, or nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import attrs

from dataspace.errors import KeeveError
from dataspace.log.archives import Archives
from dataspace.log.copy_check import CopyCheck
from dataspace.log.copying import Copy, Source, StillChanging
from dataspace.log.files import Files, SyncFailed, WriteFailed
from dataspace.log.findings import Finding
from dataspace.log.layout import check_new
from dataspace.log.making import Making
from dataspace.log.marks import Damage, Mark
from dataspace.log.publishing import pack

__all__ = ["Backup", "BackupFailed", "StillChanging", "backup"]

NAMED: Final = 1000
"""Troubles that are named; the others are counted."""


class BackupFailed(KeeveError, quotes=False):
    """A disk refused what a backup writes, or gave it back otherwise. Nothing was made; `left` is what of it could not
    be removed."""

    def __init__(self, path: str, reason: str, left: str = "") -> None:
        self.path = path
        self.reason = reason
        self.left = left
        then = f"what is left of it is {left}: remove that" if left else "nothing is left of it"
        super().__init__(
            f"{path}: the backup could not be written there ({reason}); {then}. The store is as it was: look at the "
            "disk of the backup, its space and who may write there, or name a place on another one"
        )


@attrs.frozen
class Backup:
    """A backup that was made: the store of log `log` up to `position`, whose record has that `hash`.

    `keys` is where the key file is (empty: the store is not encrypted); `archives` the folders in which more of its
    content is, which are not copied; `sealed` how many bodies nobody could look at, since that was done without a key.
    `troubles`: what in it is not as it was written, as in the store, the first of `troubles_in_all`.
    """

    folder: str
    log: str
    position: int
    hash: str
    segments: int
    bytes: int
    keys: str
    archives: tuple[str, ...]
    sealed: int
    troubles: tuple[str, ...]
    troubles_in_all: int


def backup(
    store: Path,
    new: Path,
    *,
    end: Callable[[], Mark] | None = None,
    files: Files | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
    damaged: Callable[[Mapping[bytes, Damage]], None] = lambda found: None,
) -> Backup:
    """Make a backup of the store at `store` at `new`, where nothing may be yet; a process may own it, and go on.

    All is in it that was durable when this was called, and nothing that was deleted or erased by when it got its name.
    `end` is the owner's durable end, where this is called in its process. `progress` is told of bytes, `damaged` of
    sessions in the store that are. Raises `NotAStore`, `PlaceTaken`, `NoFolder`, `BackupFailed`, `StillChanging`, what
    is wrong with the key file of an encrypted store (`KeyFileOlder` among it) or with a log of which nobody can say
    where it ends, and `ReadFailed`; then nothing was made. Costs a reading of all bytes, and another one to check them.
    """
    files = files or Files()
    source = Source(store, end)
    making = Making(new, files)
    try:
        check_new(source.layout, new)
        with making:
            return _made(source, making, files, progress, damaged)
    except (WriteFailed, SyncFailed) as error:
        raise BackupFailed(error.path, error.reason, making.left) from error
    finally:
        source.close()


def _made(
    source: Source,
    making: Making,
    files: Files,
    progress: Callable[[int, int], None],
    damaged: Callable[[Mapping[bytes, Damage]], None],
) -> Backup:
    copy, layout = Copy(source, making, files, progress), making.layout
    check = CopyCheck(layout)
    while True:
        changed = copy.bring_up()
        files.replace(layout.head, pack(source.log_id, source.epoch, copy.end))
        check.look(copy.end, changed)
        if copy.keys is not None:
            check.check_keys(copy.keys, str(source.layout.keys))
            files.replace(layout.keys, copy.keys.data)
        if check.findings:
            _compare(copy)
        layout.write_format(files, source.log_id)
        if copy.is_current():
            break
    damaged(check.damaged)
    check_new(source.layout, making.new)
    making.name()
    return _told(source, copy, check, making.new)


def _compare(copy: Copy) -> None:
    """See that what is wrong in the copy is so in the store as well. Raises `BackupFailed`."""
    spoilt = copy.spoilt()
    if spoilt is not None:
        raise BackupFailed(str(spoilt), "what was written there is read otherwise")


def _told(source: Source, copy: Copy, check: CopyCheck, new: Path) -> Backup:
    end, troubles = copy.end, [_said(each) for each in check.findings if not each.follows]
    return Backup(
        str(new),
        source.log_id.hex(),
        end.position,
        end.hash.hex(),
        end.segment,
        copy.bytes,
        "" if copy.keys is None else str(new / source.layout.keys.name),
        tuple(map(str, Archives(source.layout).places)),
        check.sealed,
        tuple(troubles[:NAMED]),
        len(troubles),
    )


def _said(found: Finding) -> str:
    session = "" if found.uid is None else f" (session {found.uid.hex()}, seq {found.seq})"
    return f"segment {found.segment}, offset {found.offset}: {found.what}{session}"
