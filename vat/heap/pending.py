"""What a session waits for from outside, read from its heap: the effects that have no outcome yet.

The one rule: it only reads. Nothing is loaded into a host, run or settled by looking.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Literal, TypeVar

import attrs

from dataspace.catalog.recent import SessionRow
from dataspace.log.store import Stored
from snapshots.cache import PageCache
from snapshots.tree import Tree
from vat.heap.heap import Heap
from vat.heap.restore import Index, Lineage, reading

T = TypeVar("T")


@attrs.frozen
class OpenEffect:
    """An effect without an outcome: number `number` of session `session`, whose uid is `uid`.

    `started` says that it is on record that it began; only effects whose outcome a crash leaves unknown have that
    recorded; `began` is the seq of the record that says so of its newest start (0: that does not say its seq). An
    argument that is a view of a collection is given as its length in words.
    """

    id: str
    session: str
    uid: bytes
    number: int
    device: str
    method: str
    args: tuple[Any, ...]
    keywords: dict[str, Any]
    started: bool
    began: int = 0


def effects_in(heap: Heap, row: SessionRow) -> Iterator[OpenEffect]:
    """The open effects of a session whose heap this is, in the order in which they were wanted.

    A fork that has done nothing yet has none: what it inherited is its parent's.
    """
    if heap.forking:
        return

    def told(value: Any) -> Any:
        return f"({len(value)} items)" if isinstance(value, Tree) else heap.read(value)

    for number, entry in heap.system["effects"].items(loader=heap.memory.page):
        id, device, method, args, keywords, _, started, *began = entry
        named = {name: told(value) for name, value in keywords}
        yield OpenEffect(
            id.hex(), row.id, row.uid, number, device, method, tuple(map(told, args)), named, bool(started), *began
        )


def state_of(effect: OpenEffect, *, owned: bool) -> Literal["wanted", "started", "unknown"]:
    """How far an open effect is, as what is stored tells it; `owned`: whether a process may be at it."""
    return "wanted" if not effect.started else "started" if owned else "unknown"


def read_stored(
    row: SessionRow, catalog: Index, read: Callable[[int], Stored], cache: PageCache, look: Callable[[Heap, Lineage], T]
) -> T:
    """What a look at a session's heap at its head gives, from what is stored; with its lineage.

    Raises what a restore raises, and costs one.
    """
    lineage = Lineage(row.uid, catalog, read)
    return reading(lineage, catalog, cache, row.seq, lambda restored: look(restored.heap, lineage))
