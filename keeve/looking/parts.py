"""How much one answer has: so many items, so many bytes, and so much that was looked at for it. Where it ends, whoever
wants more goes on from what it says.

The one rule: an answer costs what it may have, never what the store has; and others have their turns meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, TypeVar

import trio

from dataspace.catalog.recent import SessionRow
from dataspace.observe.cursor import BadCursor, number_in
from dataspace.observe.events import Held
from dataspace.observe.holding import Holding, Place

ROOM: Final = 4 << 20
"""Characters of what was said that one answer has, about; it has one item at least, however long that is."""
LOOKED_AT: Final = 10_000
"""What is looked at for one answer, of which most may not be for who asks."""
AT_ONCE: Final = 100
"""What is looked at before others have a turn."""
PAGE: Final = 1_000
"""Items that one answer has."""


T = TypeVar("T")


class Room:
    """Whether there is room for more in an answer. Its first item always has some."""

    def __init__(self, items: int = PAGE) -> None:
        self._items = items
        self._characters = ROOM
        self._looks = LOOKED_AT

    def __bool__(self) -> bool:
        return self._items > 0 and self._characters > 0

    def take(self, characters: int) -> None:
        """An item has that many."""
        self._items -= 1
        self._characters -= characters

    def grows(self, characters: int) -> None:
        """An item that was taken has so many more."""
        self._characters -= characters

    def looks(self) -> bool:
        """Something more is looked at; whether that is not too much by now."""
        self._looks -= 1
        return self._looks > 0


def weight(value: Any) -> int:
    """About how many characters a value has, as it is written."""
    kind = type(value)
    if kind is int or kind is float or value is None or kind is bool:
        return 8
    if isinstance(value, str | bytes):
        return len(value) + 2
    if isinstance(value, dict):
        return sum(len(name) + weight(item) for name, item in value.items()) + 2
    if isinstance(value, list | tuple):
        return sum(map(weight, value)) + 2
    return 64


async def rows_of(
    listed: Callable[..., list[SessionRow]],
    reaches: Callable[[SessionRow], bool],
    prefix: str,
    after: str,
    limit: int,
    deleted: bool,
) -> tuple[list[SessionRow], str | None]:
    """The sessions of a list that are there for who asks, as far as there is room, and `after` of the next part."""
    found: list[SessionRow] = []
    room = Room(limit)
    while True:
        page = listed(prefix, after=after, limit=AT_ONCE, deleted=deleted)
        for row in page:
            if reaches(row):
                if not room:
                    return found, after
                found.append(row)
                room.take(0)
            after = row.id
            if not room.looks():
                return found, after
        await trio.lowlevel.checkpoint()
        if len(page) < AT_ONCE:
            return found, None


async def some_of(faces: Iterable[dict[str, Any]], room: Room) -> tuple[list[dict[str, Any]], bool]:
    """As many as there is room for, and whether there are more. Others have their turns meanwhile."""
    found: list[dict[str, Any]] = []
    for each in faces:
        if not room:
            return found, True
        found.append(each)
        room.take(weight(each))
        if len(found) % AT_ONCE == 0:
            await trio.lowlevel.checkpoint()
    return found, False


async def page_of(
    items: Iterable[T],
    face: Callable[[T], dict[str, Any]],
    place: Callable[[T], tuple[int, ...]],
    after: str = "",
    limit: int = PAGE,
) -> tuple[list[dict[str, Any]], str | None]:
    """The faces of the items behind the place `after`, as far as there is room; and the place of the last one, None
    where there are no more. Whether there is still an item at that place or not, nothing is told twice.

    items: in the order of their places. Others have their turns meanwhile. Raises `BadCursor`.
    """
    found: list[dict[str, Any]] = []
    room, behind = Room(limit), numbers_in(after)
    for number, item in enumerate(items, 1):
        if number % AT_ONCE == 0:
            await trio.lowlevel.checkpoint()
        if place(item) <= behind:
            continue
        if not room:
            return found, ".".join(map(str, behind))
        found.append(face(item))
        room.take(weight(found[-1]))
        behind = place(item)
    return found, None


def numbers_in(text: str) -> tuple[int, ...]:
    """The numbers of a place in a list of what waits, as it is written; of "" none. Raises `BadCursor`.

    >>> numbers_in("3.17"), numbers_in("")
    ((3, 17), ())
    """
    numbers = tuple(number for part in text.split(".") if (number := number_in(part)) is not None) if text else ()
    if text and len(numbers) != text.count(".") + 1:
        raise BadCursor(text)
    return numbers


def all_of(held: Held) -> bool:
    """Whoever asks sees all."""
    return True


async def part_of(
    holding: Holding, face: Callable[[Held], T], limit: int = PAGE, sees: Callable[[Held], bool] = all_of
) -> tuple[list[T], Place | None]:
    """The faces of what holds, as far as there is room, and the place behind it; None where that was all."""
    found: list[T] = []
    room, behind = Room(limit), holding.place
    async for held in holding:
        if sees(held):
            if not room:
                return found, behind
            found.append(face(held))
            room.take(weight(held.fact.fields) + weight(held.fact.keywords))
        behind = holding.place
        if not room.looks():
            return found, behind
    return found, None
