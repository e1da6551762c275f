"""The records that a store writes of itself, in its own chain.

The one rule: they are like any other record, so that whoever reads the log needs to know nothing of them.
"""

from __future__ import annotations

from dataspace.drafts import Draft
from dataspace.log.frames import FORMAT
from dataspace.log.marks import ChainHead
from dataspace.records import STORE_UID, ZERO_HASH, Kind, Record, Salts
from dataspace.values import FrozenDict


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
