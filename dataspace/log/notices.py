"""The records that are written of a store itself, in its own chain.

The one rule: they are like any other record, so that whoever reads the log needs to know nothing of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dataspace.drafts import Draft
from dataspace.log.frames import FORMAT
from dataspace.log.leaving import Names
from dataspace.log.marks import ChainHead
from dataspace.records import STORE_UID, ZERO_HASH, Kind, Record, Salts
from dataspace.values import FrozenDict, FrozenList


def created(log_id: bytes, time: int, salts: Salts) -> Record:
    """The first record of a store. `time` in microseconds since 1970."""
    draft = Draft(STORE_UID, 1, Kind.CREATED, time)
    draft.message = FrozenDict({"log_id": log_id, "format": FORMAT})
    return draft.seal(ZERO_HASH, salts)


def recovered(chain: ChainHead | None, cut: int, saved: str, time: int, salts: Salts) -> Record:
    """Says that `cut` bytes of a torn tail were cut off and saved under the name `saved`.

    It follows `chain`, the head of the store's own chain.
    """
    seq, previous = chain or (0, ZERO_HASH)
    draft = Draft(STORE_UID, seq + 1, Kind.RECOVERED, time)
    draft.message = FrozenDict({"cut": cut, "saved": saved})
    draft.stated(draft.operation(), "recovered", (), {"cut": cut})
    return draft.seal(previous, salts)


def erase(
    chain: ChainHead,
    session: bytes,
    name: str,
    parts: Mapping[int, Iterable[int]],
    said: Mapping[str, str | int],
    time: int,
    salts: Salts,
) -> Record:
    """Says that these cells are erased: their numbers, by the position of their record. `session` is where somebody
    asked for it, `name` its id, `said` who did, and for what."""
    draft = Draft(STORE_UID, chain[0] + 1, Kind.ERASE, time)
    cells = FrozenList([FrozenList([place, FrozenList(sorted(numbers))]) for place, numbers in sorted(parts.items())])
    draft.message = FrozenDict({"session": session, "cells": cells})
    draft.stated(draft.operation(), "erased", (name,), FrozenDict(said))
    return draft.seal(chain[1], salts)


def reclaimed(chain: ChainHead, deleted: int, erased: int, bodies: int, time: int, salts: Salts) -> Record:
    """Says that what the tombstones up to position `deleted`, and the erasures up to `erased`, stand for is gone:
    `bodies` of it since the last such record."""
    draft = Draft(STORE_UID, chain[0] + 1, Kind.RECLAIMED, time)
    draft.message = FrozenDict({"deleted": deleted, "erased": erased})
    draft.stated(draft.operation(), "reclaimed", (), FrozenDict({"bodies": bodies}))
    return draft.seal(chain[1], salts)


def archiving(chain: ChainHead, into: str, segment: int, names: Names, time: int, salts: Salts) -> Record:
    """Says which content of a segment is about to go to the archive at `into`."""
    draft = Draft(STORE_UID, chain[0] + 1, Kind.ARCHIVED, time)
    said = {"into": into, "segment": segment, "pieces": names.pieces}
    draft.message = FrozenDict({**said, "names": names.data})
    draft.stated(draft.operation(), "archiving", (), FrozenDict(said))
    return draft.seal(chain[1], salts)


def archived(chain: ChainHead, into: str, segments: int, pieces: int, size: int, time: int, salts: Salts) -> Record:
    """Says that so many pieces of content went from so many segments to the archive at `into`, with their bytes."""
    draft = Draft(STORE_UID, chain[0] + 1, Kind.ARCHIVED, time)
    said: dict[str, str | int] = {"into": into, "segments": segments, "pieces": pieces, "bytes": size}
    draft.message = FrozenDict({**said, "named": True})
    draft.stated(draft.operation(), "archived", (), FrozenDict(said))
    return draft.seal(chain[1], salts)


def brought_back(chain: ChainHead, upto: int, segments: int, pieces: int, time: int, salts: Salts) -> Record:
    """Says that so many pieces of content came back to so many segments, and that nothing of the records up to position
    `upto` is in an archive alone any more."""
    draft = Draft(STORE_UID, chain[0] + 1, Kind.ARCHIVED, time)
    said = {"segments": segments, "pieces": pieces}
    draft.message = FrozenDict({**said, "upto": upto})
    draft.stated(draft.operation(), "brought-back", (), FrozenDict(said))
    return draft.seal(chain[1], salts)
