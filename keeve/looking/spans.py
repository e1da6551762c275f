"""Where in the log the turns of a session ran: one at a time, in the order of their numbers. So each began where the
last of those before it was over; and what a model has said behind that is of this one, up to where it was over itself.

The one rule: as far as it is known which turns are over, none has begun while one before it is not.
"""

from __future__ import annotations

from math import inf


class TurnSpans:
    """What is known of it. `over`: how many turns were over at the beginning, or shortly before that; None where that
    is not known: those that are not seen to end are taken for over then."""

    def __init__(self, over: int | None) -> None:
        self._over = over
        self._ends: dict[int, int] = {}

    def ended(self, number: int, position: int) -> None:
        """A turn was over, by the record at that position."""
        self._ends[number] = position

    @property
    def newest(self) -> int:
        """Where the last of them was over; 0 where none was."""
        return max(self._ends.values(), default=0)

    def of(self, number: int, accepted: int = 0) -> tuple[float, float]:
        """The positions between which a turn ran that was accepted at one: the first is infinite for one that has not
        begun, or was over at the beginning, the second for one that is not over."""
        over = self._over
        if over is not None and (number <= over or any(n not in self._ends for n in range(over + 1, number))):
            return inf, inf
        before = (end for n, end in self._ends.items() if n < number)
        return max(accepted, max(before, default=0)), self._ends.get(number, inf)
