"""Methods that could not go on where they waited, in words: what the runtime has stated of them lately.

The one rule: it only reads, and costs the facts `fiber-failed` of the store.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from dataspace.errors import KeeveError
from dataspace.observe.events import Event
from keeve.api import now
from keeve.cli.text import counted, local_time
from keeve.looking import Reading
from vat.errors import FiberDiverged

LATELY: Final = 7 * 24 * 3_600_000_000
"""Microseconds for which one is told of."""

NEWEST: Final = 5
"""How many are told of one by one."""


def lost_lately(read: Reading) -> list[str]:
    """The newest of the methods that broke since their code is another now; and how many there were before these."""
    found: deque[Event] = deque(maxlen=NEWEST)
    count, since = 0, now() - LATELY
    try:
        for event in read.space.query("(fiber-failed . _)"):
            error = event.value.keywords.get("error")
            if event.time >= since and isinstance(error, dict) and error.get("error") == FiberDiverged.__name__:
                found.append(event)
                count += 1
    except KeeveError:  # damage is told of by who looks for it
        pass
    before = [f"{counted(count - NEWEST, 'method')} before these"] if count > NEWEST else []
    return before + [_said(event) for event in found]


def _said(event: Event) -> str:
    told = event.value.keywords
    what = f"{told.get('type')}.{told.get('method')} of session {event.value.fields[-1]}"
    return (
        f"{what} could not go on where it waited, since its code is another now, and is over: {local_time(event.time)}"
    )
