"""Effects that have an outcome, read from the records with which they had it: how each ended, when, and by whom.

A heap knows of an effect only for as long as it is open. What became of one is in the record that took its outcome, and
which one that was in the record that wanted it.

The one rule: it only reads, from the newest record back and no further than it is told; and of an outcome it tells the
kind and nothing that was said.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any, Final

import attrs

from dataspace.catalog.recent import SessionRow
from dataspace.drafts import read_deeds
from dataspace.errors import KeeveError
from dataspace.log.store import Stored
from dataspace.records import Header, Kind
from vat.heap.opcodes import Op
from vat.heap.restore import Index, Lineage

MOST: Final = 2_000
"""Records that are looked at for one effect."""

_SAYING: Final = (Kind.SPAWN, Kind.CRANK)


@attrs.frozen
class Settled:
    """What became of effect `id` of the session with that uid, at `time` (µs since 1970).

    how: `value`, `error` (whose class is `error`), or `given up` by the session itself. by, via: who settled it by
    hand, and in which way; "" where its device did.
    """

    id: str
    uid: bytes
    time: int
    how: str
    error: str = ""
    by: str = ""
    via: str = ""

    @property
    def words(self) -> str:
        """The same, as the end of a sentence that begins with the effect."""
        at = f"{datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=self.time):%Y-%m-%dT%H:%M:%SZ}"
        if self.how == "given up":
            return f"its session gave it up at {at}"
        what = "a value" if self.how == "value" else f"the error {self.error or 'that it broke with'}"
        who = f"was settled at {at} by {self.by} ({self.via})" if self.by else f"ended by itself at {at}"
        return f"it {who}, with {what}"


def settled_in(records: Iterable[Stored], begins: str) -> Iterator[Settled | None]:
    """The effects that have an outcome and whose ids begin so, from these records, the newest first.

    None stands for each record that was read, so that others can have their turns. A record that cannot be read hides
    no other. An effect that was wanted in none of the first `MOST` of them is not found.
    """
    ended: dict[tuple[bytes, int], tuple[Header, Mapping[str, Any]]] = {}
    for stored in islice(records, MOST):
        yield None
        header = stored.header
        if header.kind not in _SAYING:
            continue
        try:
            deeds = read_deeds(stored.body().deeds)
        except (KeeveError, ValueError):
            continue
        for operation in reversed(deeds.operations):
            if operation[0] == Op.ENDED:
                ended[header.uid, operation[1]] = header, deeds.message
            elif operation[0] == Op.WANTED and operation[2].hex().startswith(begins):
                found = ended.get((header.uid, operation[1]))
                yield None if found is None else _settled(operation[2].hex(), operation[1], *found)


def of_session(row: SessionRow, catalog: Index, read: Callable[[int], Stored]) -> Iterator[Stored]:
    """The records of a session itself, the newest first."""
    lineage = Lineage(row.uid, catalog, read)
    return _readable(lineage.at, range(row.seq, row.parent_seq, -1))


def of_log(head: int, at: Callable[[int], int | None], read: Callable[[int], Stored]) -> Iterator[Stored]:
    """The records of a log from the position `head` back; `at` tells where each lies."""

    def record(position: int) -> Stored | None:
        address = at(position)
        return None if address is None else read(address)

    return _readable(record, range(head, 0, -1))


def _readable(record: Callable[[int], Stored | None], numbers: Iterable[int]) -> Iterator[Stored]:
    for number in numbers:
        try:
            stored = record(number)
        except KeeveError:
            continue
        if stored is not None:
            yield stored


def _settled(id: str, number: int, header: Header, message: Mapping[str, Any]) -> Settled:
    if message.get("effect") != number:
        return Settled(id, header.uid, header.time, "given up")
    by, via = message.get("by", ""), message.get("via", "")
    if message["succeeded"]:
        return Settled(id, header.uid, header.time, "value", "", by, via)
    payload = message["payload"]
    error = payload.get("error") if isinstance(payload, Mapping) else None
    return Settled(id, header.uid, header.time, "error", error if isinstance(error, str) else "", by, via)
