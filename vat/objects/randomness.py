"""Randomness inside a crank: the same numbers from the same seed, on every Python.

A stream of bytes, SHA-256 of the seed and a counter. The one rule: nothing of `random` is used, whose methods may
give other numbers in another version.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import Any, TypeVar

T = TypeVar("T")


class Random:
    """Numbers that follow from `seed`."""

    def __init__(self, seed: bytes) -> None:
        self._seed = seed
        self._block = 0
        self._rest = b""

    def bytes(self, count: int) -> bytes:
        """`count` random bytes. Raises `ValueError` for a negative count."""
        if count < 0:
            raise ValueError(f"{count} bytes cannot be drawn: give a count from 0 on")
        while len(self._rest) < count:
            self._rest += sha256(b"keeve random 1\n%b%d" % (self._seed, self._block)).digest()
            self._block += 1
        taken, self._rest = self._rest[:count], self._rest[count:]
        return taken

    def random(self) -> float:
        """A float from 0, inclusive, to 1, exclusive; 53 bits."""
        return (int.from_bytes(self.bytes(7), "big") >> 3) / (1 << 53)

    def integer(self, low: int, high: int) -> int:
        """A whole number from `low` to `high`, both inclusive, each as likely. Raises `ValueError` for none."""
        span = high - low + 1
        if span < 1:
            raise ValueError(f"there is no number from {low} to {high}: give the smaller one first")
        size = (span.bit_length() + 7) // 8
        limit = (1 << 8 * size) // span * span
        while True:
            number = int.from_bytes(self.bytes(size), "big")
            if number < limit:
                return low + number % span

    def choice(self, items: Sequence[T]) -> T:
        """One of the items. Raises `ValueError` when there are none."""
        return items[self.integer(0, len(items) - 1)]

    def shuffled(self, items: Sequence[T]) -> list[T]:
        """The items in a random order, as a new list."""
        mixed: list[Any] = list(items)
        for at in range(len(mixed) - 1, 0, -1):
            other = self.integer(0, at)
            mixed[at], mixed[other] = mixed[other], mixed[at]
        return mixed
