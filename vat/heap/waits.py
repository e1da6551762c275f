"""What a session and its fibers wait for, read from its heap.

A fiber waits for promises; what each of them comes down to (an effect, another fiber, an actor that owes it, another
session) is found by following what settles it.

The one rule: it only reads. Nothing is loaded into a host, run or settled by looking.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Literal, TypeAlias

import attrs

from dataspace.catalog.recent import SessionRow
from vat.heap.entries import KEPT, REACTIONS, SETTLER, STATE, Effect, root_of
from vat.heap.fibers import ACTOR, ALL, ALL_WITHIN, EVERY, EVERY_WITHIN, FIRST, METHOD, PARTS, SEQ, VERSION, WAITING
from vat.heap.heap import Heap
from vat.heap.opcodes import To
from vat.heap.restore import Lineage

Mode: TypeAlias = Literal["all", "first", "values", "all-within", "values-within"]

_MODES: Final[dict[int, Mode]] = {
    ALL: "all",
    FIRST: "first",
    EVERY: "values",
    ALL_WITHIN: "all-within",
    EVERY_WITHIN: "values-within",
}


@attrs.frozen
class Source:
    """What settles a promise that is waited for, or another one that this comes of: `promise`.

    `number` is that of an open effect, a fiber, or an actor that owes it; `uid` is another session's, which is to
    answer. A message on its way within the session has neither.
    """

    promise: int
    kind: Literal["effect", "fiber", "actor", "session", "message"]
    number: int = 0
    uid: bytes = b""


@attrs.frozen
class WaitingFiber:
    """Fiber `number` of session `session`: an async method of an actor, that waits.

    `seq` and `since` (µs since 1970) are those of the record with which its last part began. It goes on when `all` that
    it waits for is settled, or the `first` of it, or when all have `values` or one is broken; `within` a limit, that of
    all but the last, or the last. `sources` is what is not settled.
    """

    session: str
    number: int
    actor: int
    type: str
    method: str
    version: int
    parts: int
    seq: int
    since: int
    mode: Mode
    sources: tuple[Source, ...]


def fibers_in(heap: Heap, row: SessionRow, lineage: Lineage) -> Iterator[WaitingFiber]:
    """The fibers of a session whose heap and lineage these are. Costs the open effects, and a record for each fiber."""
    effects = {entry[Effect.PROMISE]: number for number, entry in heap.entries("effects")}
    for number, entry in heap.entries("fibers"):
        mode, *waits = entry[WAITING]
        sources = [source_of(heap, promise, effects) for promise in waits]
        yield WaitingFiber(
            row.id,
            number,
            entry[ACTOR],
            heap.state(entry[ACTOR]).type,
            entry[METHOD],
            entry[VERSION],
            entry[PARTS],
            entry[SEQ],
            lineage.at(entry[SEQ]).header.time,
            _MODES[mode],
            tuple(source for source in sources if source is not None),
        )


def source_of(heap: Heap, promise: int, effects: dict[int, int]) -> Source | None:
    """What settles a promise; None if it is settled. `effects` are the open ones, by the promise of each."""
    root, entry = root_of(heap, promise)
    if entry is None:
        return Source(root, "message")
    if entry[STATE] >= KEPT:
        return None
    kind, *which = entry[SETTLER]
    if kind == "effect" and root in effects:
        return Source(root, "effect", effects[root])
    if kind in ("fiber", "actor"):
        return Source(root, kind, *which)
    uid = heap.find("awaiting", root)
    return Source(root, "message" if uid is None else "session", uid=uid or b"")


def owed_in(heap: Heap) -> list[Source]:
    """What settles the promises of a session that are not settled, each once. Costs all promises."""
    effects = {entry[Effect.PROMISE]: number for number, entry in heap.entries("effects")}
    found = [source_of(heap, promise, effects) for promise, _ in heap.entries("promises")]
    return sorted({source for source in found if source is not None}, key=lambda source: source.promise)


def askers_in(heap: Heap) -> set[bytes]:
    """The uids of other sessions that wait for this one's answers. Costs all promises."""
    return {
        reaction[1] for _, entry in heap.entries("promises") for reaction in entry[REACTIONS] if reaction[0] == To.REPLY
    }
