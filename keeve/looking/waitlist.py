"""What sessions wait for, in an order that stays, and a page after another: by their ids, first those that are known to
have asked for something, then those that only wait for these.

The one rule: a page begins behind the one before it, whatever was settled meanwhile.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Generator, Iterable, Iterator
from functools import partial
from typing import Any, Final, TypeAlias

import trio

from dataspace.catalog.recent import SessionRow
from dataspace.errors import KeeveError
from dataspace.observe.cursor import BadCursor
from keeve.looking.parts import AT_ONCE, LOOKED_AT, Room, numbers_in, weight
from keeve.looking.reading import CACHE, Reading, StateOf
from keeve.looking.waiting import UnreadSession, Waits, approval_face, effect_face, fiber_face, waits_of
from snapshots.cache import PageCache
from vat.heap.pending import OpenEffect

KINDS: Final = ("unreadable", "effects", "approvals", "fibers")
"""What is told of a session, in this order."""
BEHIND: Final = len(KINDS)
"""Stands for a kind behind all that a session has."""
LOOKED_INTO: Final = 1_000
"""Sessions that are restored for one page."""

Order: TypeAlias = tuple[Any, ...]
"""Where something stands: whether its session only waits for others (0, 1), the session's id, the kind, and the numbers
that the kind has. The first two are those of a session, `()` is the beginning."""

Found: TypeAlias = tuple[Order, Waits | UnreadSession]


def order_in(text: str) -> Order:
    """The place that is written so; "" is the beginning. Raises `BadCursor`.

    >>> order_in("0.1.17:s1"), written(order_in("0.1.17:s1"))
    ((0, 's1', 1, 17), '0.1.17:s1')
    """
    if not text:
        return ()
    numbers, colon, id = text.partition(":")
    first, *rest = numbers_in(numbers) or (2,)
    if not colon or first > 1 or not rest:
        raise BadCursor(text)
    return (first, id, *rest)


def written(order: Order) -> str:
    """A place as text."""
    first, id, *rest = order
    return f"{'.'.join(map(str, (first, *rest)))}:{id}"


def all_waits(store: Reading) -> Iterator[Waits | UnreadSession | None]:
    """What all sessions wait for: of those with pending work, those that may wait for a person, and who waits for them.

    See `in_order`.
    """
    return (None if each is None else each[1] for each in in_order(store))


def in_order(store: Reading, after: Order = ()) -> Iterator[Found | None]:
    """The same behind a place, each session with its own; of the session in which that lies, all.

    None stands where something was read and nothing found, so that others can have their turns often.

    A fiber that waits for nothing but a promise that an actor of a user's own owes is not found here.
    Costs a restore of each session with pending work, of each that has ever asked for approval, and of its forks; of
    those before the place only once all behind it are told.
    """
    cache = PageCache(CACHE)
    rows: dict[bytes, SessionRow] = {}
    for uid in [*store.catalog.with_pending(), *(yield from _asking_people(store))]:
        if (row := _there(store, uid)) is not None:
            rows[uid] = row
        yield None
    passed: list[SessionRow] = []
    askers: deque[bytes] = deque()
    for row in sorted(rows.values(), key=_id):
        if (0, row.id, BEHIND) <= after:
            passed.append(row)
        else:
            found = _found(store, row, cache)
            askers += _askers(found)
            yield (0, row.id), found
    for row in passed:
        askers += _askers(_found(store, row, cache))
        yield None
    others: dict[str, Waits | UnreadSession] = {}
    while askers:
        uid = askers.popleft()
        other = None if uid in rows else _there(store, uid)
        if other is not None:
            rows[uid] = other
            others[other.id] = found = _found(store, other, cache)
            askers += _askers(found)
        yield None
    for id in sorted(others):
        if (1, id, BEHIND) > after:
            yield (1, id), others[id]


def _id(row: SessionRow) -> str:
    return row.id


def _there(store: Reading, uid: bytes) -> SessionRow | None:
    row = store.catalog.by_uid(uid)
    return None if row is None or row.deleted or not store.reaches(row) else row


def _found(store: Reading, row: SessionRow, cache: PageCache) -> Waits | UnreadSession:
    try:
        return waits_of(store, row, cache)
    except KeeveError as error:
        return UnreadSession(row.id, error)


def _askers(found: Waits | UnreadSession) -> list[bytes]:
    return [] if isinstance(found, UnreadSession) else sorted(found.askers)


def _asking_people(store: Reading) -> Generator[None, None, list[bytes]]:
    """The sessions that have ever asked for approval, and their forks, which may wait for it as well."""
    asked = yield from _stating(store, "approval-wanted")
    found = dict.fromkeys(asked)
    for uid in (yield from _stating(store, "forked")) if asked else ():
        yield None
        row = store.catalog.by_uid(uid)
        while row is not None and row.parent is not None:
            if row.parent in asked:
                found[uid] = None
            row = store.catalog.by_uid(row.parent)
    return list(found)


def _stating(store: Reading, label: str) -> Generator[None, None, dict[bytes, None]]:
    """The sessions that have stated a fact with this label, in the order in which they did."""
    found: dict[bytes, None] = {}
    for position in store.catalog.positions(label=label):
        address = store.catalog.at(position)
        if address is not None:
            found[store.store.read(address).header.uid] = None
        yield None
    return found


# Pages.


async def page_in_order(
    store: Reading,
    waits: Iterable[Found | None],
    after: Order = (),
    limit: int = LOOKED_AT,
    kinds: Collection[str] = KINDS,
    effect: str = "",
) -> dict[str, Any]:
    """What these wait for behind a place, in JSON by its kind, as far as there is room. `next` is what `after` is for
    the next page, None at the end; `truncated` says of which kinds there is more of the session where this one ends.

    kinds: those that are told; effect: of effects, those whose ids begin so. Others have their turns meanwhile.
    """
    told: dict[str, list[dict[str, Any]]] = {kind: [] for kind in KINDS}
    room, behind, state_of, looked = Room(limit), after, store.state_of(), 0
    for each in waits:
        await trio.lowlevel.checkpoint()
        if each is None:
            continue
        session, found = each
        items = (item for item in _items(store, found, state_of, effect) if KINDS[item[0][0]] in kinds)
        for number, (of, face) in enumerate(items, 1):
            if number % AT_ONCE == 0:
                await trio.lowlevel.checkpoint()
            kind, place = KINDS[of[0]], (*session, *of)
            if place <= behind:
                continue
            if not room:
                more = {kind, *(KINDS[of[0]] for of, _ in items)}
                return {**told, "truncated": [kind for kind in KINDS if kind in more], "next": written(behind)}
            told[kind].append(said := face())
            room.take(weight(said))
            behind = place
        behind, looked = max(behind, (*session, BEHIND)), looked + 1
        if looked == LOOKED_INTO:
            return {**told, "truncated": [], "next": written(behind)}
    return {**told, "truncated": [], "next": None}


def _items(
    store: Reading, found: Waits | UnreadSession, state_of: StateOf, effect: str
) -> Iterator[tuple[tuple[int, ...], Callable[[], dict[str, Any]]]]:
    """What is told of a session, in order: where it stands, and what makes its face."""
    if isinstance(found, UnreadSession):
        yield (0,), lambda: {"session": found.session, "what": str(found.error)}
        return
    for one in found.effects:
        if one.id.startswith(effect):
            yield (1, one.number), partial(_effect_face, one, state_of)
    for call in sorted(found.approvals, key=lambda call: (call.actor, call.promise)):
        yield (2, call.actor, call.promise), partial(approval_face, call)
    for fiber in found.fibers:
        yield (3, fiber.number), partial(fiber_face, fiber, found, store)


def _effect_face(effect: OpenEffect, state_of: StateOf) -> dict[str, Any]:
    return effect_face(effect, state_of(effect))
