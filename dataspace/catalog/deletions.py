"""What is known of deletions beside the records that can be read, for a log in which tombstones may be lost.

A catalog file knows of them. It is copied, with its journal, and the copy is read: a transaction that a crash has cut
short is undone there. The key file knows whose keys were destroyed; and behind the place up to which a log can be read
there may be tombstones.

The one rule: the file itself, and its folder, are left as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from shutil import copyfile
from typing import NamedTuple

from dataspace.catalog.connections import FAILED, remove
from dataspace.catalog.naming import names_for
from dataspace.catalog.recent import SessionRow
from dataspace.catalog.tables import Tables
from dataspace.errors import KeeveError
from dataspace.log.beyond import tombstones_beyond
from dataspace.log.files import ReadFailed
from dataspace.log.segments import SegmentStore
from dataspace.log.store import Store

_JOURNAL = "-journal"


class Deletions(NamedTuple):
    """The sessions that were deleted, by their uids: all that have a tombstone up to the position `upto`. `wrong`
    says why a file that is there tells nothing."""

    upto: int = 0
    sessions: Mapping[bytes, SessionRow] = {}
    wrong: str = ""


def deletions_in(path: Path, aside: Path, log_id: bytes, secret: bytes | None) -> Deletions:
    """What the catalog at `path` says, if it is one of this log, by way of a copy at `aside`, which goes again.

    Never raises for what is wrong with it: whoever asks has a damaged disk.
    """
    try:
        copyfile(path, aside)
        with suppress(FileNotFoundError):
            copyfile(path.with_name(path.name + _JOURNAL), aside.with_name(aside.name + _JOURNAL))
        return _read(aside, log_id, secret)
    except FileNotFoundError:
        return Deletions()
    except OSError as error:
        return Deletions(wrong=f"it cannot be read ({error.strerror or error})")
    finally:
        remove(aside)


def _read(path: Path, log_id: bytes, secret: bytes | None) -> Deletions:
    try:
        tables = Tables(path, log_id, names_for(secret))
        try:
            if not tables.fits():
                return Deletions(wrong="it is no catalog of this log and version")
            return Deletions(tables.head().position, tables.deleted())
        finally:
            tables.close()
    except FAILED as error:
        return Deletions(wrong=f"it is damaged ({error})")


def deleted_beyond(store: Store, known: Iterable[SessionRow]) -> dict[bytes, int]:
    """The sessions of a store that can be read in part that were deleted behind that part, each with the position of
    its tombstone, or with the first one that cannot be read. `known` are those that a catalog of it knows.

    Costs a pass over what cannot be read of the log. Raises `ReadFailed` where the disk does not give that: a tombstone
    may lie there, and whoever was deleted would be there again.
    """
    end = store.head.position
    found = {row.uid: row.deleted for row in known if row.deleted > end}
    if isinstance(store, SegmentStore):
        found |= dict.fromkeys(store.destroyed, end + 1)
        try:
            with store.still() as (segments, _):
                found |= tombstones_beyond(segments, store.mark)
        except OSError as error:
            raise ReadFailed.of(str(store.folder), error) from error
        except ReadFailed:
            raise
        except KeeveError:
            pass  # what can be read can be, whatever else is damaged
    return found
