"""Finding: where in the log what is asked for of a session begins, without reading all that lies before it.

The one rule: what is read follows from what is asked for, and not from how long a session is.
"""

from __future__ import annotations

from typing import Final

from dataspace.catalog.recent import SessionRow
from dataspace.patterns import parse
from keeve.errors import Archived, SessionDamaged
from vat.host.host import Host

TURN: Final = parse("(turn . _)")


def before_turn(host: Host, row: SessionRow, number: int) -> int:
    """A position behind which a session, or its ancestors, accepted the turns from `number` on, and none before it.

    Turns are accepted in the order of their numbers, so it is found by halving: some 20 records are read.
    """
    low, high = 0, row.position
    while low < high:
        middle = (low + high) // 2
        found = _next_turn(host, row, middle)
        if found is not None and found < number:
            low = middle + 1
        else:
            high = middle
    return low


def _next_turn(host: Host, row: SessionRow, after: int) -> int | None:
    """The number of the first turn that was accepted behind a position. What cannot be read is passed over."""
    while True:
        try:
            event = next(host.query(TURN, session=row.uid, lineage=True, after=after), None)
        except (SessionDamaged, Archived) as missed:
            after = max(missed.position, after + 1)
            continue
        return None if event is None else int(event.value.fields[0])


def before_last(host: Host, row: SessionRow, count: int) -> int:
    """The position before the newest `count` records of a session, its ancestors' among them."""
    first = row.seq - count
    return host.headers(row.id, after=first - 1, limit=1)[0].position if first > 0 else 0
