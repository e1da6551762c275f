"""Due: the timers that one vat in memory waits for, and those that are over and not on record yet.

    add  ->  waited for, and due when its time has come  ->  leave  ->  on record, when the vat is durable so far

Times are in seconds since 1970, `now` in microseconds.

The one rule: a timer is in here from when it is wanted until it is on record that it is over.
"""

from __future__ import annotations

from typing import NamedTuple

from sortedcontainers import SortedDict


class _Left(NamedTuple):
    at: float
    seq: int


class Due:
    """The timers of a vat, by number. Each call costs O(log n), and what is due or on its way to the log."""

    __slots__ = ("_at", "_left", "_order", "newest")

    def __init__(self) -> None:
        self._at: dict[int, float] = {}
        self._order: SortedDict[tuple[float, int], None] = SortedDict()
        self._left: dict[int, _Left] = {}  # the oldest first
        self.newest = 0
        """The highest number that was ever added."""

    def add(self, number: int, at: float) -> None:
        """A timer is wanted."""
        self._at[number] = at
        self._order[at, number] = None
        self.newest = max(self.newest, number)

    def leave(self, number: int, seq: int, durable: int) -> None:
        """An effect is over, be it a timer or not: that is on record when the vat, which is durable up to `durable`, is
        so up to `seq`."""
        at = self._at.pop(number, None)
        if at is not None:
            del self._order[at, number]
            self._forget(durable)
            self._left[number] = _Left(at, seq)

    def numbers(self, now: int) -> list[int]:
        """Those that are due, in the order of their times."""
        found: list[int] = []
        for at, number in self._order:
            if at * 1_000_000 > now:
                break
            found.append(number)
        return found

    def waits(self, now: int, upto: float, durable: int) -> bool:
        """Whether one up to the number `upto` is due, and it is not on record that it is over."""
        self._forget(durable)
        if any(number <= upto and left.at * 1_000_000 <= now for number, left in self._left.items()):
            return True
        return any(number <= upto for number in self.numbers(now))

    def _forget(self, durable: int) -> None:
        while self._left:
            number = next(iter(self._left))
            if self._left[number].seq > durable:
                break
            del self._left[number]

    def __len__(self) -> int:
        return len(self._at) + len(self._left)
