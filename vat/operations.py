"""Operations: the only ways in which a heap changes, and what each one does to it.

A record's operations are a flat list in order, each `[opcode, ...]`. While a crank runs, each is applied and
written down in one go; a restore applies the same list again, without running any user code. `APPLY` is the
table of what they do; those that change nothing stand for the reader of the log.

The one rule: an operation's effect follows from its arguments and the heap alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import Any, Final

from dataspace.values import FrozenList
from snapshots.keyed import MapTree, SetTree
from snapshots.lists import ListTree
from vat.heap import PARENTAL, Heap, State


class Op(IntEnum):
    """Opcodes. Numbers are for ever; the arguments stand behind each."""

    BEGIN = 0
    """actor, method, args: a delivery begins (args only where the message does not say them)"""
    FAILED = 1
    """failure: the delivery, or near call, that ends here was undone"""
    SET = 2
    """actor, field, value"""
    CHANGE = 3
    """actor, field, verb, args…: a collection changes"""
    SPAWNED = 4
    """actor, type, version, fields"""
    COLLECTED = 6
    """actors, promises: nothing reached them"""
    COUNTED = 7
    """counter, number: given, and undone with who asked for it"""
    MADE = 8
    """promise, settler"""
    HELD = 9
    """promise: something in the heap refers to it"""
    FOLLOWS = 10
    """promise, other"""
    REACTS = 11
    """promise, reaction"""
    FULFILLED = 12
    """promise, value"""
    BROKE = 13
    """promise, failure"""
    SENT = 14
    """number, uid, message: to another vat"""
    RECEIVED = 15
    """uid, number: the message's"""
    ACKED = 16
    """numbers of messages that their receivers have"""
    WANTED = 17
    """number, id, device, method, args, keywords, views, promise: an effect"""
    STARTED = 18
    """number of an effect that is about to be carried out"""
    ENDED = 19
    """number of an effect that has its outcome"""
    ASKED = 20
    """request key, digest of the content, promise"""
    ANSWERED = 21
    """request key, digest of the content, whether it succeeded, value or failure"""
    STATED = 22
    """whether it may be retracted (0 no, 1 yes, 2 presence): a fact, which stands in the facts"""
    RETRACTED = 23
    """seq, operation"""
    HANDED = 24
    """actor: a ref to it left the vat"""
    NARROWED = 25
    """facet, target, methods, read only"""
    REVOKED = 26
    """facet"""
    SUBSCRIBED = 27
    """number, pattern, actor, method, cursor"""
    OBSERVED = 28
    """number, cursor"""
    UNSUBSCRIBED = 29
    """number"""
    VIEWED = 30
    """actor, field: a view, numbered within the record"""
    SEEDED = 31
    """bytes that the crank's randomness comes from"""
    DETACHED = 32
    """a fork lets go of what belongs to its parent"""
    PASSED = 33
    """promise, other: what waits for the one waits for the other from now on; the one is gone"""


class Verb(IntEnum):
    """What `CHANGE` does to a collection."""

    APPEND = 0
    EXTEND = 1
    INSERT = 2
    REPLACE = 3
    DELETE = 4
    CLEAR = 5
    PUT = 6
    REMOVE = 7
    ADD = 8
    DISCARD = 9


VERBS: Final[tuple[Callable[[Any, Sequence[Any], Any], Any], ...]] = (
    lambda tree, args, loader: tree.append(args[0], loader),
    lambda tree, args, loader: tree.extend(args[0], loader),
    lambda tree, args, loader: tree.insert(args[0], args[1], loader),
    lambda tree, args, loader: tree.set(args[0], args[1], loader),
    lambda tree, args, loader: tree.delete(args[0], loader),
    lambda tree, args, loader: type(tree)(),
    lambda tree, args, loader: tree.put(args[0], args[1], loader),
    lambda tree, args, loader: tree.remove(args[0], loader),
    lambda tree, args, loader: tree.add(args[0], loader),
    lambda tree, args, loader: tree.remove(args[0], loader),
)

COLLECTIONS: Final = (None, ListTree, MapTree, SetTree, None)
"""The tree of each `Shape`."""

PENDING, FOLLOWING, KEPT, BROKEN = range(4)
"""States of a promise."""

FOLLOW, ANSWER, REPLY = 1, 2, 3
"""Kinds of reaction that matter here: a promise follows, a request is answered, another vat is."""


def _set(heap: Heap, actor: int, field: str, value: Any) -> None:
    heap.touch(heap.state(actor), field, value)


def _change(heap: Heap, actor: int, field: str, verb: int, *args: Any) -> None:
    state = heap.state(actor)
    heap.touch(state, field, VERBS[verb](state.fields[field], args, heap.memory.page))


def _spawned(heap: Heap, actor: int, type: str, version: int, fields: Any) -> None:
    heap.counted("actor", actor)
    # Collections are given by their kind and begin empty.
    made = {name: TREES[value.kind]() if isinstance(value, TREE_KINDS) else value for name, value in fields.items()}
    heap.add(State(actor, type, version, made))


TREES: Final[dict[int, Any]] = {tree.kind: tree for tree in (ListTree, MapTree, SetTree)}
TREE_KINDS: Final = (ListTree, MapTree, SetTree)


def _collected(heap: Heap, actors: Sequence[int], promises: Sequence[int]) -> None:
    for actor in actors:
        heap.remove(actor)
        heap.drop("handed", actor)
        heap.drop("facets", actor)
    for promise in promises:
        heap.drop("promises", promise)


def _made(heap: Heap, promise: int, settler: Any) -> None:
    heap.counted("promise", promise)
    heap.keep("promises", promise, FrozenList([PENDING, None, FrozenList(), settler, False]))


def _held(heap: Heap, promise: int) -> None:
    entry = heap.find("promises", promise)
    if entry is not None:
        heap.keep("promises", promise, FrozenList([*entry[:4], True]))


def _follows(heap: Heap, promise: int, other: int) -> None:
    entry = heap.find("promises", promise)
    heap.keep("promises", promise, FrozenList([FOLLOWING, other, *entry[2:]]))


def _passed(heap: Heap, promise: int, other: int) -> None:
    waiting = heap.find("promises", promise)[2]
    state, payload, reactions, settler, held = heap.find("promises", other)
    heap.drop("promises", promise)
    heap.keep("promises", other, FrozenList([state, payload, FrozenList([*reactions, *waiting]), settler, held]))
    for reaction in waiting:
        if reaction[0] == FOLLOW:
            _follows(heap, reaction[1], other)


def _reacts(heap: Heap, promise: int, reaction: Any) -> None:
    state, payload, reactions, settler, held = heap.find("promises", promise)
    entry = FrozenList([state, payload, FrozenList([*reactions, reaction]), settler, held])
    heap.keep("promises", promise, entry)


def _fulfilled(heap: Heap, promise: int, value: Any) -> None:
    _settled(heap, promise, KEPT, value)


def _broke(heap: Heap, promise: int, failure: Any) -> None:
    _settled(heap, promise, BROKEN, failure)


def _settled(heap: Heap, promise: int, state: int, payload: Any) -> None:
    entry = heap.find("promises", promise)
    if entry is None:
        return
    if entry[4]:
        heap.keep("promises", promise, FrozenList([state, payload, FrozenList(), None, True]))
    else:  # nothing in the heap refers to it
        heap.drop("promises", promise)


def _sent(heap: Heap, number: int, uid: bytes, message: Any) -> None:
    heap.counted("message", number)
    heap.keep("outbox", number, FrozenList([uid, message]))


def _received(heap: Heap, uid: bytes, number: int) -> None:
    heap.keep("senders", uid, number)


def _acked(heap: Heap, numbers: Sequence[int]) -> None:
    for number in numbers:
        heap.drop("outbox", number)


def _wanted(
    heap: Heap,
    number: int,
    id: bytes,
    device: str,
    method: str,
    args: Sequence[Any],
    keywords: dict[str, Any],
    views: Sequence[Sequence[Any]],
    promise: int,
) -> None:
    heap.counted("effect", number)
    if views:
        args, keywords = list(args), dict(keywords)
        for place, view in views:
            if isinstance(place, str):
                keywords[place] = heap.views[view]
            else:
                args[place] = heap.views[view]
    entry = [id, device, method, FrozenList(args), FrozenList(list(keywords.items())), promise, False]
    heap.keep("effects", number, FrozenList(entry))


def _started(heap: Heap, number: int) -> None:
    entry = heap.find("effects", number)
    heap.keep("effects", number, FrozenList([*entry[:6], True]))


def _ended(heap: Heap, number: int) -> None:
    heap.drop("effects", number)


def _asked(heap: Heap, key: str, digest: bytes, promise: int) -> None:
    heap.keep("requests", key, FrozenList([digest, promise, False, None]))


def _answered(heap: Heap, key: str, digest: bytes, succeeded: bool, payload: Any) -> None:
    heap.keep("requests", key, FrozenList([digest, None, succeeded, payload]))


def _handed(heap: Heap, actor: int) -> None:
    heap.put(heap.system, "handed", heap.system["handed"].add(actor, heap.memory.page))


def _narrowed(heap: Heap, facet: int, target: int, methods: Any, read_only: bool) -> None:
    heap.counted("actor", facet)
    heap.keep("facets", facet, FrozenList([target, methods, read_only, False]))


def _revoked(heap: Heap, facet: int) -> None:
    target, methods, read_only, _ = heap.find("facets", facet)
    heap.keep("facets", facet, FrozenList([target, methods, read_only, True]))


def _subscribed(heap: Heap, number: int, pattern: str, actor: int, method: str, cursor: str) -> None:
    heap.counted("subscription", number)
    heap.keep("subscriptions", number, FrozenList([pattern, actor, method, cursor]))


def _observed(heap: Heap, number: int, cursor: str) -> None:
    entry = heap.find("subscriptions", number)
    if entry is not None:
        heap.keep("subscriptions", number, FrozenList([*entry[:3], cursor]))


def _unsubscribed(heap: Heap, number: int) -> None:
    heap.drop("subscriptions", number)


def fact_key(seq: int, operation: int) -> int:
    """The key of a retractable fact in the heap."""
    return seq << 24 | operation


def _stated(heap: Heap, mode: int, seq: int = 0, operation: int = 0) -> None:
    if mode:
        heap.keep("facts", fact_key(seq, operation), mode == 2)


def _retracted(heap: Heap, seq: int, operation: int) -> None:
    heap.drop("facts", fact_key(seq, operation))


def _viewed(heap: Heap, actor: int, field: str) -> None:
    heap.views.append(heap.state(actor).fields[field])


def _detached(heap: Heap) -> None:
    for name in PARENTAL:
        heap.put(heap.system, name, type(heap.system[name])())
    for promise, entry in list(heap.system["promises"].items(loader=heap.memory.page)):
        kept = [reaction for reaction in entry[2] if reaction[0] not in (ANSWER, REPLY)]
        if len(kept) < len(entry[2]):
            heap.keep("promises", promise, FrozenList([entry[0], entry[1], FrozenList(kept), entry[3], entry[4]]))
    heap.forking = False


def _nothing(heap: Heap, *args: Any) -> None:
    pass


APPLY: Final[dict[int, Callable[..., None]]] = {
    Op.BEGIN: _nothing,
    Op.FAILED: _nothing,
    Op.SET: _set,
    Op.CHANGE: _change,
    Op.SPAWNED: _spawned,
    Op.COLLECTED: _collected,
    Op.COUNTED: Heap.counted,
    Op.MADE: _made,
    Op.HELD: _held,
    Op.FOLLOWS: _follows,
    Op.REACTS: _reacts,
    Op.FULFILLED: _fulfilled,
    Op.BROKE: _broke,
    Op.SENT: _sent,
    Op.RECEIVED: _received,
    Op.ACKED: _acked,
    Op.WANTED: _wanted,
    Op.STARTED: _started,
    Op.ENDED: _ended,
    Op.ASKED: _asked,
    Op.ANSWERED: _answered,
    Op.STATED: _stated,
    Op.RETRACTED: _retracted,
    Op.HANDED: _handed,
    Op.NARROWED: _narrowed,
    Op.REVOKED: _revoked,
    Op.SUBSCRIBED: _subscribed,
    Op.OBSERVED: _observed,
    Op.UNSUBSCRIBED: _unsubscribed,
    Op.VIEWED: _viewed,
    Op.SEEDED: _nothing,
    Op.DETACHED: _detached,
    Op.PASSED: _passed,
}


def apply(heap: Heap, operations: Sequence[Sequence[Any]]) -> None:
    """Apply a record's operations to the heap as it was before it."""
    for operation in operations:
        APPLY[operation[0]](heap, *operation[1:])
    heap.settle()
