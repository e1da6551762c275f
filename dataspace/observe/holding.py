"""One reading of what holds at a position, fact by fact, in the order of assertion.

The one rule: between two facts there is nothing but the place. So a reading can be left at any moment, by cancellation
too, and another one at the same position goes on from there, whatever was said meanwhile.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from dataspace.catalog.recall import Mistaken
from dataspace.observe.cursor import BadCursor, number_in
from dataspace.observe.events import Held
from dataspace.observe.search import Search


class Place(NamedTuple):
    """How far what holds was read: up to an operation of the record at a position, or with None all of that record."""

    position: int = 0
    operation: int | None = None

    def __str__(self) -> str:
        """
        >>> str(Place(12)), str(Place(12, 3))
        ('12', '12.3')
        """
        return f"{self.position}" if self.operation is None else f"{self.position}.{self.operation}"

    @classmethod
    def parse(cls, text: str) -> Place:
        """The place that `str` has written. Raises `BadCursor`.

        >>> Place.parse("12.3")
        Place(position=12, operation=3)
        """
        parts = [number_in(part) for part in text.split(".")]
        numbers = [part for part in parts if part is not None]
        if len(parts) > 2 or len(numbers) < len(parts):
            raise BadCursor(text)
        return cls(*numbers)


BEGIN: Final = Place()
"""Before all."""


class Holding:
    """What holds and matches, as an async iterator. `at` is the position, `place` how far it has come.

    Costs the records of the session, or else those with a fact of the label that stands; others have their turns
    meanwhile. Raises what a query does, when it comes to it.
    """

    def __init__(self, search: Search, at: int, after: Place) -> None:
        self.at = at
        self.place = after
        self._search = search
        self._steps = search.holding(at, after)

    def __aiter__(self) -> Holding:
        return self

    async def __anext__(self) -> Held:
        while True:
            await self._search.turns.gives_way()
            try:
                step = next(self._steps, None)
            except Mistaken:
                if not self._search.catalog.doubt():
                    raise
                self._steps = self._search.holding(self.at, self.place)
                continue
            if step is None:
                raise StopAsyncIteration
            if isinstance(step, Held):
                self.place = Place(step.position, step.handle.operation)
                return step
            self.place = Place(step)
