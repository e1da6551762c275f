"""What sessions wait for, in an order that stays, and a page after another: by their ids those that are known to have
asked for something, and behind each of them those that only wait for it, with those that wait for these behind them.

The one rule: a page begins behind the one before it, whatever was settled meanwhile, and restores nothing that is told
before its place but what leads to that.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterable, Iterator
from functools import partial
from itertools import chain
from typing import Any, Final, TypeAlias
from urllib.parse import quote, unquote

import trio

from dataspace.catalog.recent import SessionRow
from dataspace.errors import KeeveError
from dataspace.log.archives import Archived
from dataspace.observe.cursor import BadCursor
from keeve.looking.parts import AT_ONCE, LOOKED_AT, Room, numbers_in, weight
from keeve.looking.reading import CACHE, Reading, StateOf
from keeve.looking.waiting import UnreadSession, Waits, approval_face, effect_face, fiber_face, promise_face, waits_of
from snapshots.cache import PageCache
from vat.heap.pending import OpenEffect

KINDS: Final = ("unreadable", "effects", "approvals", "fibers", "promises")
"""What is told of a session, in this order."""
BEHIND: Final = len(KINDS)
"""Stands for a kind behind all that a session has."""
LOOKED_INTO: Final = 1_000
"""Sessions that are restored for one page, besides those that lead to its place."""

Path: TypeAlias = tuple[str, ...]
"""Where a session stands: by its id; one that only waits for another, behind the path of that."""

Order: TypeAlias = tuple[Any, ...]
"""Where something stands: the path of its session, the kind, the numbers that the kind has. `()` is the beginning."""

Found: TypeAlias = tuple[Path, Waits | UnreadSession]


def order_in(text: str) -> Order:
    """The place that is written so; "" is the beginning. Raises `BadCursor`.

    >>> order_in("1.17:s1/a%2Fb"), written(order_in("1.17:s1/a%2Fb"))
    ((('s1', 'a/b'), 1, 17), '1.17:s1/a%2Fb')
    """
    if not text:
        return ()
    numbers, colon, path = text.partition(":")
    if not colon or not numbers:
        raise BadCursor(text)
    return (tuple(map(unquote, path.split("/"))), *numbers_in(numbers))


def written(order: Order) -> str:
    """A place as text."""
    path, *numbers = order
    return f"{'.'.join(map(str, numbers))}:{'/'.join(quote(id, safe='') for id in path)}"


def all_waits(store: Reading) -> Iterator[Waits | UnreadSession | None]:
    """What all sessions wait for: of those with pending work, those that may wait for a person, and who waits for them.

    See `in_order`.
    """
    return (None if each is None else each[1] for each in in_order(store))


def in_order(store: Reading, after: Order = ()) -> Iterator[Found | None]:
    """The same behind a place, each session with its path; of the session in which that lies, all.

    Each stands for a restore: of a session with pending work, one that has ever asked for approval, or a fork of that,
    or of one that waits for them. Those that only lead to the place are there as well, as if they waited for nothing.
    None stands where something else was read, so that others can have their turns often.

    A fiber that waits for nothing but a promise that an actor of a user's own owes is not found here. Who waits for
    several sessions is told once, behind the first of them, if each has a path of one id; else maybe on several pages.
    Who waits for one that cannot be read is not found behind it, and behind others only on the page that tells of that.
    """
    cache = PageCache(CACHE)
    rows: dict[bytes, SessionRow] = {}
    for uid in [*store.catalog.with_pending(), *(yield from _asking_people(store))]:
        if (row := _there(store, uid)) is not None:
            rows[uid] = row
        yield None
    told = set(rows)
    place: Path = after[0] if after else ()
    for first in sorted(rows.values(), key=_id):
        ahead: list[tuple[Path, SessionRow]] = [((), first)]
        while ahead:
            behind, row = ahead.pop()
            path = (*behind, row.id)
            if path < place[: len(path)] or (behind and row.uid in told):
                continue
            found = _found(store, row, cache)
            if isinstance(found, UnreadSession):
                rows.pop(row.uid, None)  # who waits for it is not found behind it
            elif behind and _first_of(found, rows, first.id) not in (None, behind):
                yield path, Waits()
                continue
            told.add(row.uid)
            yield path, Waits() if (path, BEHIND) <= after else found
            there: list[SessionRow] = []
            for uid in _askers(found) - told:
                if (asker := _there(store, uid)) is not None:
                    there.append(asker)
                yield None
            ahead += [(path, asker) for asker in sorted(there, key=_id, reverse=True)]


def _first_of(waits: Waits, rows: dict[bytes, SessionRow], last: str) -> Path | None:
    """The path of the first of these, up to the last, for which a fiber waits, or else a promise."""
    sources = chain(waits.promises, *(fiber.sources for fiber in waits.fibers))
    awaited = (rows.get(source.uid) for source in sources)
    first = min((row.id for row in awaited if row is not None and row.id <= last), default=None)
    return None if first is None else (first,)


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


def _askers(found: Waits | UnreadSession) -> frozenset[bytes]:
    return frozenset() if isinstance(found, UnreadSession) else found.askers


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
        path, found = each
        items = (item for item in _items(store, path[-1], found, state_of, effect) if KINDS[item[0][0]] in kinds)
        for number, (of, face) in enumerate(items, 1):
            if number % AT_ONCE == 0:
                await trio.lowlevel.checkpoint()
            kind, place = KINDS[of[0]], (path, *of)
            if place <= behind:
                continue
            if not room:
                more = {kind, *(KINDS[of[0]] for of, _ in items)}
                return {**told, "truncated": [kind for kind in KINDS if kind in more], "next": written(behind)}
            told[kind].append(said := face())
            room.take(weight(said))
            behind = place
        behind, looked = max(behind, (path, BEHIND)), looked + 1
        if looked >= LOOKED_INTO and behind > after:
            return {**told, "truncated": [], "next": written(behind)}
    return {**told, "truncated": [], "next": None}


def _items(
    store: Reading, session: str, found: Waits | UnreadSession, state_of: StateOf, effect: str
) -> Iterator[tuple[tuple[int, ...], Callable[[], dict[str, Any]]]]:
    """What is told of a session, in order: where it stands, and what makes its face."""
    if isinstance(found, UnreadSession):
        away = isinstance(found.error, Archived)
        yield (0,), lambda: {"session": found.session, "what": str(found.error), "away": away}
        return
    for one in found.effects:
        if one.id.startswith(effect):
            yield (1, one.number), partial(_effect_face, one, state_of)
    for call in sorted(found.approvals, key=lambda call: (call.actor, call.promise)):
        yield (2, call.actor, call.promise), partial(approval_face, call)
    for fiber in found.fibers:
        yield (3, fiber.number), partial(fiber_face, fiber, found, store)
    for source in found.promises:
        yield (4, source.promise), partial(promise_face, session, source, found, store)


def _effect_face(effect: OpenEffect, state_of: StateOf) -> dict[str, Any]:
    return effect_face(effect, state_of(effect))
