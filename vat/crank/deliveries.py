"""What a crank has still to do: method calls, and the next parts of fibers.

The one rule: all of it is data, made of stored values; nothing in the queue holds an object of the user's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from dataspace.values import Value
from vat.heap.messages import Outcome
from vat.heap.refs import Promise
from vat.objects.types import Method


class Delivery(NamedTuple):
    """One method call to come; all values are stored ones."""

    actor: int
    method: str
    args: Sequence[Value]
    keywords: Mapping[str, Value]
    result: Sequence[Any]
    """Where its outcome goes (`vat.heap.opcodes.To`)."""
    failure: Value = None
    """What a reaction is told of, before its arguments, as an exception."""
    stated: bool = True
    """Whether the record must say the arguments: the message's own delivery has them there."""
    found: Any = None
    """What `Crank.find` gave, for who has asked it already."""


class Resume(NamedTuple):
    """The next part of a fiber that is to come, unless that has gone on since the part that began at that moment."""

    fiber: int
    seq: int
    operation: int
    method: str
    failure: Value = None
    """What it is told of instead of what it waits for."""


class Parts(Protocol):
    """What runs the parts of fibers (`vat.crank.fibers.Fibers`), as far as those know it that a crank is made of."""

    live: dict[int, Any]
    runs: int

    def start(self, found: Method, actor: int, coroutine: Any) -> Outcome | Promise: ...
    def advance(
        self, number: int, fiber: Any, result: int, outcomes: Sequence[Sequence[Any] | None], failure: Any
    ) -> Outcome | Promise | None: ...
    def wake(self, number: int, outcome: Outcome) -> None: ...
    def throw(self, number: int, failure: Outcome) -> Sequence[int] | None: ...
    def undone(self, numbers: Sequence[int]) -> None: ...
