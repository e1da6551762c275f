"""The calls that wait for a person, read from a session's heap: for whoever looks at a store and loads nothing.

The one rule: it says what `waiting()` of the same actors would say.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs

from actors.approvals import ASKING
from vat.heap.entries import KEPT, SETTLER, STATE
from vat.heap.heap import Heap


@attrs.frozen
class WaitingCall:
    """A call that waits for approval: `id` and `turn` as its facts name them, `since` in seconds since 1970.

    `actor` is the number of the actor that can be told, `promise` that of the promise which its approval settles.
    """

    session: str
    id: str
    turn: int
    name: str
    arguments: Any
    since: float
    actor: int
    promise: int


def asking_people(heap: Heap) -> Iterator[int]:
    """The numbers of the actors that can ask a person, and can be told: none costs nothing, any costs all actors."""
    if any(heap.types.get(name, (0, 0))[1] for name in ASKING):
        yield from (actor for actor in heap.actors() if heap.state(actor).type in ASKING)


def approvals_in(heap: Heap, session: str) -> Iterator[WaitingCall]:
    """The calls of a session that wait, in the order of the actors and in which they were asked for.

    Costs all actors, where there are any that ask for approval.
    """
    for actor in asking_people(heap):
        state = heap.state(actor)
        for _, stored in state.fields["_wanted"].items(loader=heap.page):
            entry = heap.find("promises", stored["promise"].id)
            if entry is None or entry[STATE] >= KEPT or list(entry[SETTLER]) != ["actor", actor]:
                continue
            said: Any = heap.read(stored)
            function = said["call"]["function"]
            yield WaitingCall(
                session,
                said["id"],
                said["turn"],
                function["name"],
                function.get("arguments"),
                said["since"],
                actor,
                said["promise"].id,
            )
