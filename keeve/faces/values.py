"""The JSON face of what the commands tell: values, facts, events, sessions.

JSON has fewer kinds of value than Keeve. What it cannot carry becomes an object with one key that begins with `$`:

| value | in JSON |
|---|---|
| bytes | `{"$bytes": "base64"}` |
| symbol | `{"$symbol": "name"}` |
| NaN, infinities | `{"$float": "nan"}`, `"inf"`, `"-inf"` |
| ref, promise | `{"$ref": "text"}`, `{"$promise": number}` |
| blob | `{"$blob": {"media_type": ..., "content": base64}}` |
| erased content | `{"$erased": true}` |
| an object with a key that begins with `$` | `{"$object": [[key, value], ...]}` |
| a Map with such a key, or one that is no text | `{"$map": [[key, value], ...]}` |

The one rule: two different values have two different faces.
"""

from __future__ import annotations

import math
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from dataspace.catalog.recent import SessionRow
from dataspace.observe.events import Event
from dataspace.values import Blob, Erased, Promise, Ref, Symbol, render


def face(value: Any) -> Any:
    """What `json.dumps` writes for a value."""
    kind = type(value)
    if value is None or kind in (str, int, bool):
        return value
    if kind is float:
        return value if math.isfinite(value) else {"$float": str(value)}
    if isinstance(value, Symbol):
        return {"$symbol": value.name}
    if isinstance(value, bytes):
        return {"$bytes": b64encode(value).decode()}
    if isinstance(value, Blob):
        return {"$blob": {"media_type": value.media_type, "content": b64encode(value.content).decode()}}
    if isinstance(value, Erased):
        return {"$erased": True}
    if isinstance(value, Ref):
        return {"$ref": render(value)}
    if isinstance(value, Promise):
        return {"$promise": value.id}
    if isinstance(value, Mapping):
        if any(key.startswith("$") for key in value):
            return {"$object": [[key, face(item)] for key, item in value.items()]}
        return {key: face(item) for key, item in value.items()}
    if isinstance(value, Sequence):
        return [face(item) for item in value]
    raise TypeError(f"{kind.__name__} has no face in JSON")


_CALENDAR: Final = -62_135_510_400, 253_402_128_000
"""The seconds between which all zones have a date: a day from each end of the years 1 to 9999."""


def date_of(time: int) -> datetime:
    """The date of a time (µs since 1970), to the second. A time that no calendar has, as a clock or a witness may give
    it, has the nearest one.

    >>> date_of(1 << 63).year
    9999
    """
    return datetime.fromtimestamp(min(max(time // 1_000_000, _CALENDAR[0]), _CALENDAR[1]), UTC)


def utc_time(time: int) -> str:
    """A time (µs since 1970) for machines.

    >>> utc_time(1_700_000_000_000_001)
    '2023-11-14T22:13:20.000001Z'
    """
    return f"{date_of(time):%Y-%m-%dT%H:%M:%S}.{time % 1_000_000:06}Z"


def event_face(event: Event) -> dict[str, Any]:
    """An event."""
    fact = event.value
    return {
        "position": event.position,
        "session": event.session,
        "seq": event.seq,
        "operation": event.operation,
        "kind": event.kind,
        "label": fact.label,
        "fields": face(fact.fields),
        "keywords": face(fact.keywords),
        "captures": face({**event.captures.named, **{str(n): value for n, value in enumerate(event.captures.values)}}),
        "text": str(fact),
        "time": utc_time(event.time),
        "hash": event.hash.hex(),
        "cursor": str(event.cursor),
    }


def fork_face(into: object, at: object, child: SessionRow | None) -> dict[str, Any]:
    """A fork that a session's record tells of: its id, and from where on; `child` is what the catalog knows of it."""
    deleted = child is not None and bool(child.deleted)
    return {"session": str(into), "at": at if type(at) is int else 0, "deleted": deleted}


def session_face(row: SessionRow, parent: SessionRow | None) -> dict[str, Any]:
    """What the catalog knows of a session, and of the one that it was forked from."""
    of = None if parent is None else parent.id
    deleted = parent is not None and bool(parent.deleted)
    return {
        "id": row.id,
        "uid": row.uid.hex(),
        "type": row.type,
        "seq": row.seq,
        "position": row.position,
        "hash": row.hash.hex(),
        "forked_from": None if row.parent is None else {"session": of, "at": row.parent_seq, "deleted": deleted},
        "pending": row.pending,
        "deleted": bool(row.deleted),
        "created": utc_time(row.created),
        "updated": utc_time(row.updated),
    }


def value_of(given: Any) -> Any:
    """The value whose face is `given`. Raises `ValueError` for what is no face of a value that can be given."""
    if isinstance(given, list):
        return [value_of(item) for item in given]
    if not isinstance(given, dict):
        return given
    if not any(key.startswith("$") for key in given):
        return {key: value_of(item) for key, item in given.items()}
    try:
        [(kind, inside)] = given.items()
        if kind == "$symbol":
            return Symbol(inside)
        if kind == "$bytes":
            return b64decode(inside, validate=True)
        if kind == "$float" and inside in ("nan", "inf", "-inf"):
            return float(inside)
        if kind == "$blob" and inside.keys() == {"media_type", "content"}:
            return Blob(inside["media_type"], b64decode(inside["content"], validate=True))
        if kind == "$object":
            return {key: value_of(item) for key, item in inside}
    except (ValueError, TypeError, AttributeError):
        pass  # which of these it was says less than what it should have been
    raise ValueError(
        f"an object with a key that begins with $ is a value that JSON has not got: {sorted(given)!r:.80} is none"
    )
