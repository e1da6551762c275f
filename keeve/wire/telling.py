"""What is observed, as values and back: events, what holds, rows of the list of sessions, pieces of what effects tell.

The one rule: it is data at both ends. A ref in a fact names a session and an actor there, and reaches nothing: who
wants to reach it is given it by an actor.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from dataspace.catalog.recent import SessionRow
from dataspace.drafts import Handle
from dataspace.facts import Fact
from dataspace.observe.cursor import Cursor
from dataspace.observe.events import Away, Event, Held, Unreadable
from dataspace.patterns import Captures
from dataspace.values import FrozenDict, Ref, Value
from keeve.wire.frames import BadFrame
from vat.host.outside import replaced
from vat.host.pieces import Piece

ROW: Final = (
    *(
        "uid",
        "id",
        "type",
        "seq",
        "position",
        "hash",
        "parent",
        "parent_seq",
        "pending",
        "deleted",
        "created",
        "updated",
    ),
)
"""What a row of the list of sessions says, in this order, whatever else the catalog may know."""


def event_said(event: Event) -> list[Any]:
    """An event."""
    fact, captures = _fact(event.value, event.captures, event.uid)
    before = [event.position, event.session, event.uid, event.seq, event.operation, event.kind]
    return ["event", *before, fact, captures, event.time, event.hash, str(event.cursor)]


def unreadable_said(item: Unreadable) -> list[Any]:
    """What stands in the place of a record that cannot be read."""
    return [
        "away" if isinstance(item, Away) else "unreadable",
        item.position,
        item.session,
        item.uid,
        item.seq,
        item.what,
        str(item.cursor),
    ]


def piece_said(piece: Piece) -> list[Any]:
    """Something that a running effect told."""
    told = [piece.session, piece.effect, piece.device, piece.method, _distant(piece.value, None)]
    return ["piece", *told, piece.after, piece.missed]


def held_said(held: Held) -> list[Any]:
    """A fact that holds."""
    fact, captures = _fact(held.fact, held.captures, held.uid)
    return [list(held.handle), held.session, held.uid, fact, captures, held.position, held.time]


def row_said(row: SessionRow) -> list[Any]:
    """A row of the list of sessions."""
    return [getattr(row, name) for name in ROW]


def _fact(fact: Fact, captures: Captures, uid: bytes) -> tuple[list[Any], list[Any]]:
    return (
        [fact.label, _distant(list(fact.fields), uid), _distant(dict(fact.keywords), uid)],
        [_distant(captures.named, uid), _distant(list(captures.values), uid)],
    )


def _distant(value: Value, uid: bytes | None) -> Value:
    # So that it is never taken for the number of a ref of the connection.
    return replaced(value, lambda item: Ref(item.session or uid or bytes(16), item.actor) if _is_ref(item) else item)


def _is_ref(item: object) -> bool:
    return isinstance(item, Ref)


def event_of(said: list[Any]) -> Event:
    """The event that was told."""
    _, position, session, uid, seq, operation, kind, fact, captures, time, digest, cursor = said
    found = (_fact_of(fact), _captures_of(captures))
    return Event(position, session, uid, seq, operation, kind, *found, time, digest, Cursor.parse(cursor))


def unreadable_of(said: list[Any]) -> Unreadable:
    """What stands in a record's place."""
    kind, position, session, uid, seq, what, cursor = said
    return (Away if kind == "away" else Unreadable)(position, session, uid, seq, what, Cursor.parse(cursor))


def piece_of(said: list[Any]) -> Piece:
    """The piece that was told."""
    _, session, effect, device, method, value, after, missed = said
    return Piece(session, effect, device, method, value, after=after, missed=missed)


def held_of(said: list[Any]) -> Held:
    """The fact that holds."""
    handle, session, uid, fact, captures, position, time = said
    return Held(Handle(*handle), session, uid, _fact_of(fact), _captures_of(captures), position, time)


def row_of(said: list[Any]) -> SessionRow:
    """The row."""
    return SessionRow(**dict(zip(ROW, said, strict=True)))


def _fact_of(said: list[Any]) -> Fact:
    label, fields, keywords = said
    return Fact(label, tuple(fields), FrozenDict(keywords))


def _captures_of(said: list[Any]) -> Captures:
    named, values = said
    return Captures(dict(named), tuple(values))


_ITEMS: Final[Mapping[str, Callable[[list[Any]], Any]]] = {
    "event": event_of,
    "away": unreadable_of,
    "unreadable": unreadable_of,
    "piece": piece_of,
}


def item_of(said: Value) -> Any:
    """What an item of a stream is. Raises `BadFrame`."""
    return told(_ITEMS.get(said[0] if isinstance(said, list) and said else "", _unknown), said)


def told(read: Callable[[list[Any]], Any], said: Value) -> Any:
    """What `read` makes of something that came. Raises `BadFrame` where it is not as it should be."""
    try:
        return read(said)
    except (TypeError, ValueError, AttributeError, KeyError) as error:
        raise BadFrame(f"{said!r:.60} is not what is told ({error})") from error


def _unknown(said: list[Any]) -> Any:
    raise ValueError("its kind is not known")
