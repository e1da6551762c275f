"""Entries of the heap's own collections: what stands at which place of them. Those of fibers are in `vat.heap.fibers`.

A *promise* is pending, follows another one, or is settled. Its settler says who will settle it: `[effect, …]`,
`[send]`, `[reaction, promise]`, `[fiber, number]` or `[actor, id]`; `[send, promise]` of a message that has to wait, or
had to, for a promise that it carries. What waits for the promise is a list of reactions, each of which begins with one
of `vat.heap.opcodes.To`.

The one rule: places are part of the format. They are never given a new meaning; what is new comes at the end.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import Any, Final, Protocol

from vat.heap.stored import listed

PENDING, FOLLOWING, KEPT, BROKEN = range(4)
"""States of a promise."""

STATE, PAYLOAD, REACTIONS, SETTLER, HELD = range(5)
"""The places of a promise. Its payload is its value, what broke it, or the promise that it follows; it is held when
something in the heap refers to it."""


class Effect:
    """The places of an effect without an outcome. Keywords are pairs. BEGAN is the seq of the record of its newest
    start: it is not there before, nor where an earlier version has recorded that."""

    ID, DEVICE, METHOD, ARGS, KEYWORDS, PROMISE, STARTED, BEGAN = range(8)


class Facet:
    """The places of a narrowed ref. No methods are all of them."""

    TARGET, METHODS, READ_ONLY, REVOKED = range(4)


class Then:
    """The places of a reaction that calls a method (`To.THEN`)."""

    KEPT_ACTOR, KEPT, BROKEN_ACTOR, BROKEN, ARGS, KEYWORDS, RESULT = range(1, 8)


class Resend:
    """The places of a message that waits for a promise that it is to carry (`To.RESEND`)."""

    REF, METHOD, ARGS, KEYWORDS, RESULT = range(1, 6)


_OUTSIDE: Final = ("effect", "send")
_COMES: Final = ("reaction", "send")


class Finds(Protocol):
    """Has the entries: a heap."""

    def find(self, name: str, key: int) -> Any: ...


def pending_outside(entry: Sequence[Any]) -> bool:
    """Whether a promise waits for what is to come from outside, or for a message on its way."""
    return bool(entry[STATE] == PENDING and entry[SETTLER][0] in _OUTSIDE)


def with_reactions(entry: Sequence[Any], reactions: Iterable[Any]) -> Sequence[Any]:
    """The entry of a promise for which that waits."""
    state, payload, _, settler, held = entry
    return listed([state, payload, listed(reactions), settler, held])


def comes_of(entry: Sequence[Any]) -> int | None:
    """The promise that one follows, reacts to, or waits to carry; None if there is none, or it is settled itself."""
    if entry[STATE] == FOLLOWING:
        followed: int = entry[PAYLOAD]
        return followed
    if entry[STATE] == PENDING and entry[SETTLER][0] in _COMES and len(entry[SETTLER]) > 1:
        other: int = entry[SETTLER][1]
        return other
    return None


def root_of(heap: Finds, promise: int) -> tuple[int, Sequence[Any] | None]:
    """What a promise comes down to: the one at the end of those that it follows or comes of, and its entry, if any."""
    while True:
        entry = heap.find("promises", promise)
        if entry is None:
            return promise, None
        if entry[STATE] == FOLLOWING:
            promise = entry[PAYLOAD]
        elif entry[STATE] == PENDING and entry[SETTLER][0] == "reaction":
            promise = entry[SETTLER][1]
        else:
            return promise, entry


def effect_id(log_id: bytes, session: bytes, seq: int, number: int) -> str:
    """The id of the effect `number` wanted by the record `seq` of a session (its uid): 32 hex digits.

    It is fixed when the effect is wanted and the same in every attempt, so that the other side can tell that it has
    seen a request before.
    """
    text = b"keeve effect\0%d:%b%b" % (len(log_id), log_id, session)
    return sha256(text + seq.to_bytes(8) + number.to_bytes(8)).hexdigest()[:32]
