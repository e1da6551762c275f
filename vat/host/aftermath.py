"""What comes of a salvage: the report, and what the new store says of it in its own chain and in those of sessions.

The one rule: whoever looks at the new store alone can see that something was lost, and of which sessions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import attrs

from dataspace.drafts import Draft
from dataspace.log.marks import ChainHead
from dataspace.log.salvaging import Chain
from dataspace.records import STORE_UID, Kind, Record, Salts
from dataspace.values import FrozenDict, FrozenList
from vat.heap.opcodes import Op

NAMED: Final = 1000
"""Sessions, and places, that are named in a record or a report; the others are counted."""
COUNTED: Final = ("message", "effect")
"""The counters that others have seen."""


@attrs.frozen
class LostSession:
    """A session of which not all is kept. `session` is its id, or its uid where nobody knows that.

    `kept`: the seq of its last record that is (0: none). `last`: the highest seq of it that was met. `why` is what is
    wrong with the first that is not kept.
    """

    session: str
    uid: str
    kept: int
    last: int
    why: str


@attrs.frozen
class TakenCell:
    """A piece of content that reads as erased, and no record says that it is: of which session (its id, or its uid),
    and which cell (`number`) of which of its records, by its seq and by its position in the old log."""

    session: str
    seq: int
    position: int
    number: int


@attrs.frozen
class LostCell:
    """A piece of content that is not what was written, and reads as erased in the new store: named as a `TakenCell` is,
    and `why`."""

    session: str
    seq: int
    position: int
    number: int
    why: str


@attrs.frozen
class Salvaged:
    """What came of a salvage: what is in the new store, and what is not.

    `sessions` are there, at least in part: `living` ones, and `deleted` ones, which had been deleted before. Of those
    in `lost` some are there in part; `gone` are sessions of which nothing is. `missing`: records that once were there
    and of which nothing is known, not even the session. `marked`: how many sessions say that they may have lost their
    end. `pageless`: sessions whose snapshots are not kept (the heap is the same without). `places`: what in the old log
    is damaged, as far as it was met. `away`: pieces of archived content that were in no archive that is there: they
    read as erased in the new store. `buried`: sessions that were deleted, and whose tombstones are not kept; they have
    new ones. `revived`: whether one may be there again that was deleted, since nothing that is left would tell.
    `unerased`: how many records cannot be read any more that may have said what is erased, so that it is there again.
    `taken`: the first pieces of content that read as erased, and no record says that they are, of `taken_in_all`: such
    a record is lost, or somebody took them out. `holes`: the first pieces of content, of `holes_in_all`, that are not
    what was written: they read as erased, and the sessions that they are of are kept behind them. `older_keys`: why the
    key file is not the newest one, with which more might be kept.
    """

    log: str
    records: int
    sessions: int
    checkpoints: int
    lost: tuple[LostSession, ...]
    missing: int
    marked: int
    pageless: tuple[str, ...]
    places: tuple[str, ...]
    away: int = 0
    buried: tuple[str, ...] = ()
    revived: bool = False
    unerased: int = 0
    older_keys: str = ""
    living: int = 0
    deleted: int = 0
    gone: int = 0
    taken: tuple[TakenCell, ...] = ()
    taken_in_all: int = 0
    holes: tuple[LostCell, ...] = ()
    holes_in_all: int = 0

    @property
    def whole(self) -> bool:
        """Whether nothing was lost."""
        lost = self.lost or self.missing or self.away or self.buried or self.older_keys or self.taken or self.holes
        return not lost


def notice(
    chain: ChainHead, source: str, found: Salvaged, erased: Mapping[int, Sequence[int]], now: int, salts: Salts
) -> Record:
    """The record of the store's own chain: from what, when, and what was lost; and which cells (-1: bodies of records)
    are not there, by the positions of their records, since they were erased or archived away."""
    draft = Draft(STORE_UID, chain[0] + 1, Kind.SALVAGED, now)
    lost = FrozenList([FrozenList([each.uid, each.kept, each.last]) for each in found.lost[:NAMED]])
    gone = [FrozenList([place, FrozenList(numbers)]) for place, numbers in sorted(erased.items())]
    said = {
        "from": source,
        "records": found.records,
        "sessions": found.sessions,
        "lost": len(found.lost),
        "missing": found.missing,
        "holes": found.holes_in_all,
    }
    draft.message = FrozenDict({**said, "chains": lost, "erased": FrozenList(gone)})
    draft.stated(draft.operation(), "salvaged", (), FrozenDict(said))
    return draft.seal(chain[1], salts)


def marked(chain: Chain, now: int, salts: Salts) -> Record:
    """The record of a session that may have lost its end: it counts on from the time, where it has never counted.

    So no message and no effect of it has the number of one that was lost, which others may have seen.
    """
    draft = Draft(chain.uid, chain.seq + 1, Kind.SALVAGED, max(now, chain.time))
    for what in COUNTED:
        draft.operation(Op.COUNTED, what, now)
    draft.message = FrozenDict({"at": chain.seq, "last": chain.last})
    if chain.id is not None:
        said = FrozenDict({"at": chain.seq, "lost": max(0, chain.last - chain.seq)})
        draft.stated(draft.operation(Op.STATED, 0), "salvaged", (chain.id,), said)
    draft.pending = chain.pending
    return draft.seal(chain.hash, salts)


def buried(chain: Chain, now: int, salts: Salts) -> Record:
    """The tombstone of a session that was deleted, in place of its own, which is lost or comes after what is lost."""
    draft = Draft(chain.uid, chain.seq + 1, Kind.DELETE, max(now, chain.time))
    # Like any tombstone it tells what the first record does, which goes: else the id would be free when that has gone.
    draft.message = FrozenDict({"id": name_of(chain), "by": "local", "via": "salvage", **chain.born})
    draft.stated(draft.operation(Op.STATED, 0), "deleted", (name_of(chain),), FrozenDict({}))
    return draft.seal(chain.hash, salts)


def name_of(chain: Chain) -> str:
    """What a session is called: its id, or its uid where nobody knows that."""
    return "(the store)" if chain.uid == STORE_UID else chain.id or chain.uid.hex()
