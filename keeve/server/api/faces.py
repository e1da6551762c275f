"""What the operations give, made of what the host gives.

The one rule: the same fields as `keeve --json` has.
"""

from __future__ import annotations

from typing import Any

from dataspace.catalog.recent import SessionRow
from keeve.faces import event_face, face, session_face, utc_time
from vat.devices.timers import deadline_of
from vat.host.host import Host
from vat.host.resolving import EffectStatus

__all__ = ["effect_face", "event_face", "row_face"]

LATEST = 253_370_764_800
"""Seconds since 1970 until the year 9999."""


def row_face(host: Host, row: SessionRow) -> dict[str, Any]:
    """A session; for a fork its parent's name is looked up."""
    return session_face(row, None if row.parent is None else parent_of(host, row))


def parent_of(host: Host, row: SessionRow) -> str | None:
    """The id of the session that this one was forked from, as its first record says it."""
    if row.deleted:
        return None
    event = next(host.query("(forked . _)", session=row.uid), None)
    name = None if event is None else event.value.keywords.get("from")
    return name if isinstance(name, str) else None


def effect_face(effect: EffectStatus) -> dict[str, Any]:
    """An effect without an outcome; when it is due, if it is a timer."""
    is_timer = (effect.device, effect.method) == ("timer", "until")
    at = deadline_of(effect.args, effect.keywords) if is_timer else None
    return {
        "id": effect.id,
        "session": effect.session,
        "device": effect.device,
        "method": effect.method,
        "args": face(list(effect.args)),
        "keywords": face(dict(effect.keywords)),
        "state": effect.state,
        "due": None if at is None else utc_time(max(1, int(min(at, LATEST) * 1_000_000))),
    }
