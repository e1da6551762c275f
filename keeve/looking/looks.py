"""Every look that there is, by name.

The one rule: what a look takes and gives is JSON, so that it can be asked for over a connection.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, ClassVar, Final

from dataspace.errors import KeeveError
from dataspace.observe.cursor import Cursor
from dataspace.observe.events import Held
from dataspace.observe.holding import Place
from keeve.faces import face, utc_time
from keeve.looking import pages, sessions
from keeve.looking.parts import PAGE, part_of
from keeve.looking.proofs import checkpoint_said, receipt_said, words_of
from keeve.looking.reading import Reading


class NoSuchLook(KeeveError, LookupError):
    """A store is to be looked at in a way that is not known, as by a client of another version."""

    usage: ClassVar[bool] = True

    def __init__(self, what: str) -> None:
        super().__init__(f"{what!r:.60} is no look at a store: update the older of client and server")


async def _facts(
    store: Reading, pattern: str, at: int | None, session: str | None, lineage: bool, after: str = "0"
) -> dict[str, Any]:
    """A part of what holds; `next` and `at` are what `after` and `at` are for the one behind it."""
    uid = None if session is None else store.session(session).uid
    holding = store.space.holding(pattern, at=at, after=Place.parse(after), session=uid, lineage=lineage)
    facts, behind = await part_of(holding, held_face, sees=lambda held: store.sees(held.session, held.uid))
    return {"facts": facts, "at": holding.at, "next": behind and str(behind)}


def held_face(held: Held) -> dict[str, Any]:
    """A fact that holds, in JSON."""
    fact = held.fact
    captures = {**held.captures.named, **{str(n): value for n, value in enumerate(held.captures.values)}}
    return {
        "position": held.position,
        "session": held.session,
        "seq": held.handle.seq,
        "operation": held.handle.operation,
        "label": fact.label,
        "fields": face(fact.fields),
        "keywords": face(fact.keywords),
        "captures": face(captures),
        "text": str(fact),
        "time": utc_time(held.time),
    }


async def _checkpoint(store: Reading, since: int | None) -> dict[str, Any]:
    return checkpoint_said(store.proofs, since)


async def _keys(store: Reading) -> dict[str, Any]:
    return {"keys": store.proofs.keys()}


async def _receipt(store: Reading, id: str, seq: int, checkpoint: str | None, words: bool) -> dict[str, Any]:
    receipt = store.proofs.receipt(store.session(id).id, seq, checkpoint)
    return receipt_said(receipt, words_of(store.space, receipt) if words else None)


async def _end(store: Reading, until: int | str | None) -> dict[str, Any]:
    """Where reading ends that is to end at a place, if that is there yet, or else at the head."""
    places, head = store.space.places, store.space.cursor
    end = head if until is None else places.at(Cursor.parse(until) if isinstance(until, str) else until)
    return {"cursor": str(min(head, end, key=lambda place: place.position))}


LOOKS: Final[Mapping[str, Callable[..., Awaitable[dict[str, Any]]]]] = {
    "chain": pages.chain,
    "checkpoint": _checkpoint,
    "end": _end,
    "facts": _facts,
    "keys": _keys,
    "lacking": sessions.lacking,
    "messages": pages.messages,
    "receipt": _receipt,
    "row": sessions.row,
    "sessions": sessions.list_sessions,
    "settled": sessions.settled,
    "show": sessions.show,
    "state": sessions.state,
    "waiting": sessions.waiting,
    "waits": sessions.waits,
}
"""Each is given a store, and what it takes besides by name."""

BY_NUMBER: Final = frozenset(("chain", "messages"))
"""Those whose `after` is a number."""


async def look(store: Reading, what: str, how: Mapping[str, Any]) -> dict[str, Any]:
    """Have a store looked at. Raises `NoSuchLook`, `TypeError` for what a look does not take, and what it raises.

    Of a `limit` that is more than one answer may have, or nothing, the answer has what it may; it says what follows.
    """
    done = LOOKS.get(what)
    if done is None:
        raise NoSuchLook(what)
    given = dict(how)
    if "limit" in given:
        given["limit"] = max(1, min(_number("limit", given["limit"]), PAGE))
    if what in BY_NUMBER and "after" in given:
        given["after"] = max(0, _number("after", given["after"]))
    return await done(store, **given)


def _number(name: str, said: Any) -> int:
    if type(said) is not int:
        raise TypeError(f"{name} is a number, not a {type(said).__name__}")
    return said
