"""Handles: the refs that a connection was given, by number, and values on their way in and out.

    out     a ref becomes a number of this connection, counted each time that it is sent
    in      a number becomes the ref again; a ref that names a session and an actor is refused, whoever made it up

The one rule: **a client holds what it was given, and nothing else.** What it releases is gone here, and at the end of
the connection all of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dataspace.values import Promise, Ref, Value
from keeve.wire.guarding import TooMany
from keeve.wire.sturdy import BadRef
from vat.host.outside import HostRef, place, replaced


class Handles:
    """The refs of a connection. `sturdy` makes the lasting form of one."""

    def __init__(self, sturdy: Callable[[bytes, int], str], limit: int) -> None:
        self._sturdy = sturdy
        self._limit = limit
        self._refs: dict[int, HostRef[Any]] = {}
        self._numbers: dict[HostRef[Any], int] = {}
        self._counts: dict[int, int] = {}
        self._told: dict[int, list[Any]] = {}
        self._next = 1

    def __len__(self) -> int:
        return len(self._refs)

    def find(self, ref: Ref) -> HostRef[Any]:
        """The ref of that number. Raises `BadRef` for one that this connection does not have."""
        if ref.session is not None:
            raise BadRef("a session and an actor do not make one")
        found = self._refs.get(ref.actor)
        if found is None:
            raise BadRef(f"this connection has none of number {ref.actor}, or has released it")
        return found

    def outward(self, value: Value) -> tuple[Value, list[list[Any]]]:
        """A value as it is sent, and what is told of the refs in it: of each its number, its sturdy form, and words.

        That is told each time, since a client may just have released what it was told before. Raises `TooMany`, and
        then has given none.
        """
        given: list[int] = []

        def change(item: Any) -> Any:
            if not isinstance(item, HostRef):
                return item
            number = self._numbers.get(item)
            if number is None:
                number = self._add(item)
            self._counts[number] += 1
            given.append(number)
            return Ref(None, number)

        try:
            sent = replaced(value, change)
        except BaseException:
            self.take_back(given)
            raise
        return sent, [self._told[number] for number in dict.fromkeys(given)]

    def _add(self, ref: HostRef[Any]) -> int:
        if len(self._refs) >= self._limit:
            raise TooMany("refs", self._limit, "release those that are not needed any more")
        number, self._next = self._next, self._next + 1
        self._refs[number], self._numbers[ref], self._counts[number] = ref, number, 0
        self._told[number] = [number, self._sturdy(*place(ref)), repr(ref)]
        return number

    def release(self, number: int, count: int) -> None:
        """A client does not need a ref any more that was sent to it so many times. One that is not there is let be."""
        ref = self._refs.get(number)
        if ref is not None:
            self._counts[number] -= count
            if self._counts[number] <= 0:
                del self._refs[number], self._numbers[ref], self._counts[number], self._told[number]

    def take_back(self, numbers: list[int]) -> None:
        """Refs that were to be sent are not."""
        for number in numbers:
            self.release(number, 1)


def inward(value: Value, ref: Callable[[Ref], Any], promise: Callable[[Promise], Any]) -> Any:
    """A value that came, with what `ref` and `promise` make of those in it."""

    def change(item: Any) -> Any:
        if isinstance(item, Ref):
            return ref(item)
        return promise(item) if isinstance(item, Promise) else item

    return replaced(value, change)
