"""A fiber in memory: its coroutine, its context variables, and the promises that the heap keeps for its locals.

The one rule: it holds promises weakly, since only the fiber's own locals are to keep one.
"""

from __future__ import annotations

from collections.abc import Coroutine
from contextvars import copy_context
from typing import Any
from weakref import ref

from vat.heap.refs import Promise
from vat.objects.types import Method


class Fiber:
    """A coroutine in memory: how far it is, and the promises that the heap keeps for it, for as long as it has them."""

    __slots__ = ("awaited", "context", "coroutine", "found", "kept", "wait")

    def __init__(self, coroutine: Coroutine[Any, Any, Any], found: Method) -> None:
        self.coroutine = coroutine
        self.found = found
        self.context = copy_context()
        """What it sets of context variables is its own."""
        self.wait: Any = None
        self.kept: dict[int, ref[Promise]] = {}
        self.awaited: dict[int, ref[Promise]] = {}
        """What its last wait was for: a local may still have it."""

    def forget(self) -> list[int]:
        """Keep no more what no local has any more: it is not awaited any more. Gives what that was."""
        if not self.kept:
            return []
        gone = [promise for promise, there in self.kept.items() if there() is None]
        for promise in gone:
            del self.kept[promise]
        return gone
