"""Operations: the only ways in which a heap changes, and what each one does to it.

A record's operations are a flat list in order, each `[opcode, ...]`. While a crank runs, each is applied and
written down in one go; a restore applies the same list again, without running any user code. `APPLY` is the
table of what they do; those that change nothing stand for the reader of the log.

The one rule: an operation's effect follows from its arguments and the heap alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from dataspace.drafts import Handle
from dataspace.records import Kind
from dataspace.values import FrozenList
from snapshots.keyed import MapTree, SetTree
from snapshots.lists import ListTree
from vat.heap import fibers, indexes
from vat.heap.entries import (
    BROKEN,
    FOLLOWING,
    HELD,
    KEPT,
    PENDING,
    REACTIONS,
    STATE,
    Effect,
    Resend,
    Then,
    with_reactions,
)
from vat.heap.heap import PARENTAL, Heap, State
from vat.heap.opcodes import Op, To
from vat.heap.stored import listed

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

_NOTHING: Final = FrozenList()
_TIMED: Final = frozenset({Kind.CRANK, Kind.SPAWN})
"""The records whose time an actor has seen."""

COLLECTIONS: Final = (None, ListTree, MapTree, SetTree, None, None)
"""The tree of each `Shape`."""


def _set(heap: Heap, actor: int, field: str, value: Any) -> None:
    heap.touch(heap.state(actor), field, value)


def _change(heap: Heap, actor: int, field: str, verb: int, *args: Any) -> None:
    state = heap.state(actor)
    heap.touch(state, field, VERBS[verb](state.fields[field], args, heap.page))


def _spawned(heap: Heap, actor: int, type: str, version: int, fields: Mapping[str, Any]) -> None:
    heap.counted("actor", actor)
    heap.add(State(actor, type, version, dict(fields)))


def _upgraded(heap: Heap, actor: int, version: int, kept: Mapping[str, str], fields: Mapping[str, Any]) -> None:
    old = heap.state(actor)
    made = {name: old.fields[former] for name, former in kept.items()}
    heap.add(State(actor, old.type, version, made | dict(fields)))


def _collected(heap: Heap, actors: Sequence[int], promises: Sequence[int]) -> None:
    for actor in actors:
        if heap.find("facets", actor) is not None:
            heap.drop("facets", actor)
        else:
            heap.remove(actor)
    for promise in promises:
        heap.drop("promises", promise)
    heap.set_life("swept", heap.counters["actor"] + heap.counters["promise"])


def _made(heap: Heap, promise: int, settler: Any) -> None:
    heap.counted("promise", promise)
    heap.put_entry("promises", promise, FrozenList([PENDING, None, _NOTHING, settler, False]))


def _held(heap: Heap, promise: int) -> None:
    entry = heap.find("promises", promise)
    if entry is not None:
        heap.put_entry("promises", promise, listed([*entry[:HELD], True]))


def _follows(heap: Heap, promise: int, other: int) -> None:
    entry = heap.find("promises", promise)
    heap.put_entry("promises", promise, listed([FOLLOWING, other, *entry[REACTIONS:]]))


def _passed(heap: Heap, promise: int, other: int) -> None:
    waiting = heap.find("promises", promise)[REACTIONS]
    entry = heap.find("promises", other)
    heap.drop("promises", promise)
    heap.put_entry("promises", other, with_reactions(entry, [*entry[REACTIONS], *waiting]))
    for reaction in waiting:
        if reaction[0] == To.FOLLOW:
            _follows(heap, reaction[1], other)
        elif reaction[0] == To.THEN:
            _comes_of(heap, reaction[Then.RESULT], "reaction", other)
        elif reaction[0] == To.RESEND:
            _comes_of(heap, reaction[Resend.RESULT], "send", other)


def _comes_of(heap: Heap, promise: int, settler: str, other: int) -> None:
    """What a promise comes of is that now; whoever gives it up, or is to wait for it, must find it."""
    entry = heap.find("promises", promise)
    if entry is not None and entry[STATE] == PENDING:
        state, payload, reactions, _, held = entry
        heap.put_entry("promises", promise, listed([state, payload, reactions, FrozenList([settler, other]), held]))


def _reacts(heap: Heap, promise: int, reaction: Any) -> None:
    entry = heap.find("promises", promise)
    heap.put_entry("promises", promise, with_reactions(entry, [*entry[REACTIONS], reaction]))
    if reaction[0] == To.RESEND:
        _comes_of(heap, reaction[Resend.RESULT], "send", promise)


def _fulfilled(heap: Heap, promise: int, value: Any) -> None:
    _settled(heap, promise, KEPT, value)


def _broke(heap: Heap, promise: int, failure: Any) -> None:
    _settled(heap, promise, BROKEN, failure)


def _settled(heap: Heap, promise: int, state: int, payload: Any) -> None:
    held = heap.find("promises", promise)[HELD]
    heap.drop("awaiting", promise)
    heap.put_entry("promises", promise, listed([state, payload, _NOTHING, None, held]))
    if not held:
        heap.loosen(promise)


def _sent(heap: Heap, number: int, uid: bytes, message: Any) -> None:
    heap.counted("message", number)
    heap.put_entry("outbox", number, listed([uid, message]))
    if "promise" in message:
        heap.put_entry("awaiting", message["promise"], uid)


def _received(heap: Heap, uid: bytes, number: int) -> None:
    heap.put_entry("senders", uid, number)


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
        args = listed(args)
    pairs = listed(map(listed, keywords.items())) if keywords else _NOTHING
    indexes.effect_wanted(heap, promise, number)
    heap.put_entry("effects", number, listed([id, device, method, args, pairs, promise, False]))


def _started(heap: Heap, number: int, *seq: int) -> None:
    # Records of earlier versions have no seq, and must come to the entry that their snapshots hold.
    entry = heap.find("effects", number)
    heap.put_entry("effects", number, listed([*entry[: Effect.STARTED], True, *seq]))


def _ended(heap: Heap, number: int) -> None:
    indexes.effect_ended(heap, number)
    heap.drop("effects", number)


def _asked(heap: Heap, key: str, digest: bytes, promise: int) -> None:
    heap.put_entry("requests", key, FrozenList([digest, promise, False, None]))


def _answered(heap: Heap, key: str, digest: bytes, succeeded: bool, payload: Any) -> None:
    heap.put_entry("requests", key, listed([digest, None, succeeded, payload]))


def _stated(heap: Heap, mode: int, seq: int = 0, operation: int = 0) -> None:
    if mode:
        heap.put_entry("facts", fact_key(seq, operation), mode == 2)


def _retracted(heap: Heap, seq: int, operation: int) -> None:
    heap.drop("facts", fact_key(seq, operation))


def fact_key(seq: int, operation: int) -> int:
    """The key in the heap of a fact that may be retracted."""
    return seq << 24 | operation


def fact_handle(key: int) -> Handle:
    """The inverse of `fact_key`."""
    return Handle(key >> 24, key & 0xFFFFFF)


def _handed(heap: Heap, actor: int) -> None:
    heap.put(heap.system, "handed", heap.system["handed"].add(actor, heap.page))


def _narrowed(heap: Heap, facet: int, target: int, methods: Any, read_only: bool) -> None:
    heap.counted("actor", facet)
    heap.put_entry("facets", facet, FrozenList([target, methods, read_only, False]))


def _revoked(heap: Heap, facet: int) -> None:
    target, methods, read_only, _ = heap.find("facets", facet)
    heap.put_entry("facets", facet, FrozenList([target, methods, read_only, True]))


def _subscribed(heap: Heap, number: int, pattern: str, actor: int, method: str, cursor: str) -> None:
    heap.counted("subscription", number)
    heap.put_entry("subscriptions", number, FrozenList([pattern, actor, method, cursor]))


def _observed(heap: Heap, number: int, cursor: str) -> None:
    entry = heap.find("subscriptions", number)
    if entry is not None:
        heap.put_entry("subscriptions", number, FrozenList([*entry[:3], cursor]))


def _unsubscribed(heap: Heap, number: int) -> None:
    heap.drop("subscriptions", number)


def _viewed(heap: Heap, actor: int, field: str) -> None:
    heap.views.append(heap.state(actor).fields[field])


def _detached(heap: Heap, seq: int) -> None:
    for name in PARENTAL:
        heap.put(heap.system, name, type(heap.system[name])())
    indexes.effects_gone(heap)
    for promise, entry in heap.entries("promises"):
        own = [reaction for reaction in entry[REACTIONS] if reaction[0] not in (To.ANSWER, To.REPLY)]
        if len(own) < len(entry[REACTIONS]):
            heap.put_entry("promises", promise, with_reactions(entry, own))
    heap.set_life("forking", 0)
    heap.set_life("born", seq)


def _nothing(heap: Heap, *args: Any) -> None:
    pass


APPLY: Final[dict[int, Callable[..., None]]] = {
    Op.BEGIN: _nothing,
    Op.FAILED: _nothing,
    Op.SET: _set,
    Op.CHANGE: _change,
    Op.SPAWNED: _spawned,
    Op.UPGRADED: _upgraded,
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
    Op.UNDONE: _nothing,
    Op.SUSPENDED: fibers.suspended,
    Op.RESUMED: fibers.resumed,
    Op.RETURNED: fibers.returned,
    Op.CALLED: _nothing,
    Op.CLOCKED: _nothing,
    Op.LOOKED: _nothing,
}


def follow(heap: Heap, kind: int, operations: Sequence[Sequence[Any]], time: int) -> None:
    """Bring a heap to the end of a record of that kind and time, by those of its operations that are not done yet."""
    if kind == Kind.FORKED:
        heap.leave()
        return
    for operation in operations:
        APPLY[operation[0]](heap, *operation[1:])
    complete(heap, kind, time)


def complete(heap: Heap, kind: int, time: int) -> None:
    """A record of that kind and time is done: nothing of it is undone any more."""
    heap.complete()
    if kind in _TIMED:
        heap.time = time
