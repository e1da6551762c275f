"""A crank: one message, and all that it causes inside its vat, run until the vat is quiet.

    the message's delivery, then in order its near sends and promise reactions, until nothing is left

Each delivery and each near call has a savepoint; one that raises is undone to it, the promise for its result breaks
with the error, and the record says so. What a crank does is a list of operations (`vat.operations`): each is
applied to the heap and written into the draft in one go, by `do`.

The one rule: nothing here waits, and nothing leaves. What goes to other vats, devices and callers is only noted
(`sent`, `wanted`, `answer`), for the vat to pass on when the record is durable.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Container, Mapping, Sequence
from hashlib import sha256
from typing import Any, Final, NamedTuple

from dataspace import values
from dataspace.drafts import Draft, Handle
from dataspace.drafts import Mark as DraftMark
from dataspace.records import Kind
from dataspace.values import FrozenDict, FrozenList, NotAValue, Text, Value, freeze, scalar_key
from vat.actor import Actor, facade, fill
from vat.collections import View
from vat.errors import CrankOverrun, NoSuchMethod, PromiseCycle, ReadOnly, Refused, Revoked, exception_of, failure_of
from vat.heap import Heap, State
from vat.messages import NOBODY, Asker, Outcome
from vat.operations import ANSWER, APPLY, BROKEN, COLLECTIONS, FOLLOW, FOLLOWING, KEPT, REPLY, Op, Verb, fact_key
from vat.randomness import Random
from vat.refs import DIRECTORY, NearMethod, Promise, Ref, running
from vat.types import ActorType, Method, Shape, Types

DELIVERIES: Final = 10_000
"""A crank with more than so many fails whole."""

UNIVERSAL: Final = frozenset({"snapshot", "fork"})
"""What every vat understands and the vat itself carries out, between cranks."""


class To:
    """Where an outcome goes: the kinds of reaction that a promise keeps."""

    THEN = 0  # kept's actor and method, broken's actor and method, args, keywords, result promise
    FOLLOW = FOLLOW  # promise
    ANSWER = ANSWER  # request key, digest
    REPLY = REPLY  # uid, promise of that vat
    RESEND = 4  # ref, method, args, keywords, result promise
    OUTSIDE = 5  # the caller of this message; never kept


class Delivery(NamedTuple):
    """One method call to come. `args` are stored values, `first` a Python argument before them (an exception)."""

    actor: int
    method: str
    args: Sequence[Value]
    keywords: Mapping[str, Value]
    result: Sequence[Any]
    first: Any = None
    stated: bool = True
    """Whether the record must say the arguments: the message's own delivery has them there."""


class Savepoint(NamedTuple):
    heap: int
    draft: DraftMark
    queue: int
    sent: int
    wanted: int
    cancelled: int
    settled: int
    counters: dict[str, int]


class CrankDraft(Draft):
    """The record of a crank; hands the refs and promises in what it is given to the crank."""

    __slots__ = ("crank",)
    crank: Crank

    def reference(self, value: values.Ref | values.Promise) -> Value:
        return self.crank.reference(value)


class Crank:
    """The crank that makes record `seq` of chain `uid`."""

    def __init__(
        self,
        heap: Heap,
        types: Types,
        uid: bytes,
        seq: int,
        time: int,
        *,
        id: str,
        log_id: bytes,
        entropy: Any,
        head: Any,
        asker: Asker = NOBODY,
        read_only: bool = False,
        watched: Container[int] = (),
    ) -> None:
        self.heap = heap
        self.types = types
        self.uid = uid
        self.id = id
        self.time = max(time, heap.time)
        self.asker = asker
        self.draft = CrankDraft(uid, seq, Kind.CRANK, self.time)
        self.draft.crank = self
        self.read_only = read_only
        self.sent: list[tuple[int, bytes, Value]] = []
        """Messages to other vats: number, uid, message (stored)."""
        self.wanted: list[int] = []
        """Numbers of the effects that it wants."""
        self.cancelled: list[int] = []
        """Numbers of the effects that it gives up."""
        self.watched = watched
        """Promises that callers outside wait for."""
        self.answer: Outcome | Promise | None = None
        """What the caller outside gets: an outcome, or the promise that will have it."""
        self.settled: dict[int, Outcome] = {}
        """Promises that got their outcome."""
        self.failure: BaseException | None = None
        """The last exception that a delivery was undone for, with its traceback."""
        self._queue: deque[Delivery] = deque()
        self._outward = False
        self._log_id = log_id
        self._entropy = entropy
        self._head = head
        self._random: Random | None = None
        self._ids = 0

    # Operations.

    def do(self, *operation: Any) -> None:
        """Apply an operation and write it down."""
        if self.read_only:
            raise ReadOnly("this method is marked @read, or was called through a read-only ref, and changes something")
        APPLY[operation[0]](self.heap, *operation[1:])
        self.draft.operations.append(operation)

    def keep(self, value: Any, path: str = "value") -> Value:
        """The stored form of a value. Raises `NotAValue`."""
        return freeze(value, self.draft, path)

    def key(self, value: Any, path: str = "key") -> Value:
        """The stored form of a key, which is never a cell. Raises `NotAValue` for what is no scalar."""
        kept = self.reference(value) if isinstance(value, values.Ref) else freeze(value, None, path)
        scalar_key(kept)
        return kept

    def change(self, state: State, field: str, verb: Verb, *args: Value) -> None:
        """Change a collection."""
        self.do(Op.CHANGE, state.id, field, int(verb), *args)

    def assign(self, state: State, field: str, value: Value) -> None:
        """Set a field."""
        self.do(Op.SET, state.id, field, value)

    def view(self, state: State, field: str) -> int:
        """Take a view; gives its number within the record."""
        if self.read_only:
            return -1
        self.do(Op.VIEWED, state.id, field)
        return len(self.heap.views) - 1

    def reference(self, value: values.Ref | values.Promise) -> Value:
        """A ref or promise as it is kept here, or, while a message is frozen, as others will see it."""
        if isinstance(value, values.Promise):
            return self._passed(value) if self._outward else self._held(value)
        session = None if value.session == self.uid else value.session
        if session is None and self._outward:
            if not self.read_only and not self.heap.system["handed"].contains(value.actor, self.heap.memory.page):
                self.do(Op.HANDED, value.actor)
            session = self.uid
        return Ref(session, value.actor)

    def _held(self, promise: values.Promise) -> Promise:
        entry = self.heap.find("promises", promise.id)
        if entry is not None and not entry[4]:
            self.do(Op.HELD, promise.id)
        return Promise(promise.id)

    def _passed(self, promise: values.Promise) -> Value:
        # A promise stays in its vat; what goes out is its value.
        entry = self.heap.find("promises", promise.id)
        if entry is None or entry[0] < KEPT:
            raise _Unsettled(promise.id)
        if entry[0] == BROKEN:
            raise exception_of(self.heap.read(entry[1]))
        return freeze(self.heap.read(entry[1]), self.draft)

    def outward(self, value: Any, path: str) -> Value:
        """The stored form of what leaves this vat: its refs name it."""
        self._outward = True
        try:
            return freeze(value, self.draft, path)
        finally:
            self._outward = False

    # Running.

    def run(self, delivery: Delivery) -> None:
        """The message's delivery and all that follows from it. The heap must be as after the last crank."""
        base = self._savepoint()
        running.crank = self
        try:
            self._queue.append(delivery)
            self._drain(base)
        finally:
            running.crank = None

    def settle_and_run(self, promise: int, outcome: Outcome) -> None:
        """A promise has its outcome from outside; and all that follows from it."""
        base = self._savepoint()
        running.crank = self
        try:
            self.settle(promise, outcome)
            self._drain(base)
        finally:
            running.crank = None

    def _drain(self, base: Savepoint) -> None:
        count = 0
        while self._queue:
            count += 1
            if count > DELIVERIES:
                overrun = CrankOverrun(
                    f"more than {DELIVERIES} deliveries in one crank of {self.id!r}, "
                    f"the last of {self._queue[0].method!r}: does it send to itself without end?"
                )
                self._rollback(base)
                self._queue.clear()
                self.failure = overrun
                self.settled.clear()
                self.do(Op.FAILED, failure_of(overrun))
                self.answer = Outcome(False, failure_of(overrun))
                return
            self._deliver(self._queue.popleft())

    def _deliver(self, delivery: Delivery) -> None:
        heap = self.heap
        if not self.read_only:
            if delivery.stated:
                said = [delivery.actor, delivery.method, FrozenList(delivery.args), FrozenDict(delivery.keywords)]
                self.do(Op.BEGIN, *said)
            else:
                self.do(Op.BEGIN, delivery.actor, delivery.method)
        savepoint = self._savepoint()
        try:
            method, state = self.find(delivery.actor, delivery.method, inner=delivery.stated)
            args = [heap.read(arg) for arg in delivery.args]
            if delivery.first is not None:
                args.insert(0, delivery.first)
            keywords = {name: heap.read(value) for name, value in delivery.keywords.items()}
            outcome = self._call(method, state, args, keywords)
        except Exception as error:  # noqa: BLE001  # whatever user code raises fails its delivery
            self._rollback(savepoint)
            outcome = self._failed(error)
        if isinstance(outcome, Promise):
            self._await(outcome, delivery.result)
        else:
            self._pass(delivery.result, outcome)

    def _failed(self, error: Exception) -> Outcome:
        failure = self.keep(failure_of(error))
        self.failure = error
        if not self.read_only:
            self.do(Op.FAILED, failure)
        return Outcome(False, failure)

    def _call(self, method: Method | str, state: State, args: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
        """Call a method, or read a field: gives a Promise or an Outcome."""
        if isinstance(method, str):
            return Outcome(True, self.keep(_read_field(self, state, method, args, keywords), method))
        was_read_only = self.read_only
        self.read_only = was_read_only or method.read
        try:
            result = method.function(facade(self, state), *args, **keywords)
            if isinstance(result, values.Promise):
                return Promise(result.id)
            if method.mark_result is not None:
                result = method.mark_result(result)
            if isinstance(result, Actor):
                result = result.ref
            elif isinstance(result, View):
                result = _copied(result)
            return Outcome(True, self.keep(result, f"the result of {method.name}"))
        finally:
            self.read_only = was_read_only

    def find(self, actor: int, name: str, *, inner: bool = False) -> tuple[Method | str, State]:
        """What a name of an actor is: a method, or the name of a public field. Goes through facets.

        `inner` methods, with an underscore before their name, are found only for what this vat asks of itself.

        Raises `NoSuchActor`, `NoSuchMethod`, `Refused` or `Revoked`.
        """
        facet = self.heap.find("facets", actor)
        if facet is not None:
            target, methods, read_only, revoked = facet
            if revoked:
                raise Revoked(f"the ref to {self.id!r} was revoked by who handed it on")
            if methods is not None and name not in methods:
                raise Refused(f"this ref to {self.id!r} does not reach {name!r}: it was narrowed to {list(methods)}")
            found, state = self.find(target, name)
            if read_only and isinstance(found, Method) and not found.read:
                raise Refused(f"this ref to {self.id!r} is read only, and {name!r} is not marked @read")
            return found, state
        state = self.heap.state(actor)
        described = self.types[state.type]
        method = described.methods.get(name)
        if method is None and inner:
            method = described.inner.get(name)
        if method is not None:
            return method, state
        field = described.fields.get(name)
        if field is not None and field.public:
            return name, state
        known = sorted([*described.methods, *(field.name for field in described.fields.values() if field.public)])
        raise NoSuchMethod(f"{described.name} has no method or public field {name!r}; it has {', '.join(known)}")

    # Savepoints.

    def _savepoint(self) -> Savepoint:
        heap = self.heap
        return Savepoint(
            heap.mark(),
            self.draft.mark(),
            len(self._queue),
            len(self.sent),
            len(self.wanted),
            len(self.cancelled),
            len(self.settled),
            dict(heap.counters),
        )

    def _rollback(self, savepoint: Savepoint) -> None:
        heap = self.heap
        heap.rollback(savepoint.heap)
        self.draft.rollback(savepoint.draft)
        while len(self._queue) > savepoint.queue:
            self._queue.pop()
        del self.sent[savepoint.sent :]
        del self.wanted[savepoint.wanted :]
        del self.cancelled[savepoint.cancelled :]
        while len(self.settled) > savepoint.settled:
            self.settled.popitem()
        views = sum(1 for operation in self.draft.operations if operation[0] == Op.VIEWED)
        del heap.views[views:]
        if self.read_only:
            return
        for what, number in heap.counters.items():
            if number != savepoint.counters[what]:  # given numbers are not given again
                self.do(Op.COUNTED, what, number)

    # What actors do.

    def call(self, to: Ref, method: str, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """Call an actor of this vat at once; undone whole when it raises, and the error is the caller's."""
        savepoint = self._savepoint()
        try:
            found, state = self.find(to.actor, method)
            kept, named = self.arguments(found, args, keywords, self.keep)
            read = [self.heap.read(arg) for arg in kept]
            outcome = self._call(found, state, read, {name: self.heap.read(arg) for name, arg in named.items()})
        except Exception as error:
            self._rollback(savepoint)
            if not self.read_only:
                self.do(Op.FAILED, self.keep(failure_of(error)))
            raise
        return outcome if isinstance(outcome, Promise) else self.heap.read(outcome.payload)

    def arguments(
        self, method: Method | str | None, args: Sequence[Any], keywords: Mapping[str, Any], keep: Any
    ) -> tuple[list[Value], dict[str, Value]]:
        """Arguments in stored form; those for parameters annotated `Text` become cells."""
        marks: Mapping[str | int, Any] = method.marks if isinstance(method, Method) else {}
        kept = [
            keep(marks[place](arg) if place in marks else arg, f"argument {place + 1}")
            for place, arg in enumerate(args)
        ]
        named = {
            name: keep(marks[name](arg) if name in marks else arg, f"argument {name}") for name, arg in keywords.items()
        }
        return kept, named

    def marked(self, promise: int, outcome: Outcome) -> Value:
        """What an effect gave, marked as the reaction to its promise says that it takes it."""
        entry = self.heap.find("promises", promise)
        if outcome.succeeded and entry is not None:
            for reaction in entry[2]:
                if reaction[0] == To.THEN and reaction[2] is not None:
                    found = self._method_for_texts(reaction[1], reaction[2])
                    if isinstance(found, Method) and 0 in found.marks:
                        return found.marks[0](outcome.payload)
        return outcome.payload

    def make(self, *settler: Any) -> Promise:
        """A new promise."""
        promise = self.heap.count("promise")
        self.do(Op.MADE, promise, FrozenList(settler))
        return Promise(promise)

    def send(self, to: Ref, method: str, args: tuple[Any, ...], keywords: dict[str, Any]) -> Promise:
        """An eventual send: near ones are deliveries of this crank, far ones leave when it is durable."""
        result = self.make("send")
        self._send(to, method, args, keywords, result.id)
        return result

    def _send(self, to: Ref, method: str, args: Sequence[Any], keywords: Mapping[str, Any], result: int) -> None:
        session = None if to.session == self.uid else to.session
        if session is None and method not in UNIVERSAL:
            known = self._method_for_texts(to.actor, method)
            kept, named = self.arguments(known, args, keywords, self.keep)
            self._queue.append(Delivery(to.actor, method, kept, named, (To.FOLLOW, result)))
            return
        try:
            kept, named = self.arguments(None, args, keywords, self.outward)
        except _Unsettled as unsettled:
            # It waits here until what it is to carry is there.
            args, keywords = self.arguments(None, args, keywords, self.keep)
            target = Ref(session, to.actor)
            reaction = [To.RESEND, target, method, FrozenList(args), FrozenDict(keywords), result]
            self._await(Promise(unsettled.promise), reaction)
            return
        if session == DIRECTORY:
            self._want("directory", method, kept, named, [], result)
            return
        number = self.heap.count("message")
        message = FrozenDict(
            {"to": to.actor, "method": method, "args": FrozenList(kept), "keywords": FrozenDict(named)}
            | {"promise": result}
        )
        uid = self.uid if session is None else session
        self.do(Op.SENT, number, uid, message)
        self.sent.append((number, uid, message))

    def _method_for_texts(self, actor: int, name: str) -> Method | str | None:
        try:
            return self.find(actor, name, inner=True)[0]
        except Exception:  # noqa: BLE001  # the delivery itself will say what is wrong
            return None

    def want(self, device: str, method: str, args: Sequence[Any], keywords: Mapping[str, Any]) -> Promise:
        """An effect: the host carries it out when this crank is durable. Views are allowed as arguments."""
        views: list[Sequence[Any]] = []
        plain: list[Any] = []
        for place, arg in enumerate(args):
            plain.append(self._viewed(arg, place, views))
        named = {name: self._viewed(arg, name, views) for name, arg in keywords.items()}
        try:
            kept, kept_named = self.arguments(None, plain, named, self.outward)
        except _Unsettled as unsettled:
            raise NotAValue(
                f"an argument of {device}.{method}",
                Promise,
                f"promise {unsettled.promise} has no value yet: call the device in a reaction to it",
            ) from None
        result = self.make("effect", device, method)
        self._want(device, method, kept, kept_named, views, result.id)
        return result

    def _viewed(self, arg: Any, place: int | str, views: list[Sequence[Any]]) -> Any:
        if not isinstance(arg, View):
            return arg
        if arg.number is None or arg.number >= len(self.heap.views):
            return _copied(arg)
        views.append(FrozenList([place, arg.number]))
        return None

    def _want(
        self,
        device: str,
        method: str,
        args: Sequence[Value],
        keywords: Mapping[str, Value],
        views: Sequence[Any],
        result: int,
    ) -> None:
        number = self.heap.count("effect")
        name = b"%b%b%d/%d" % (self._log_id, self.uid, self.draft.seq, number)
        id = sha256(b"keeve effect 1\n" + name).digest()[:16]
        self.do(
            Op.WANTED, number, id, device, method, FrozenList(args), FrozenDict(keywords), FrozenList(views), result
        )
        self.wanted.append(number)

    def spawn(self, cls: type, fields: Mapping[str, Any]) -> Ref:
        """A new actor of this vat."""
        actor = self.heap.count("actor")
        self.begin(actor, self.types.add(cls), fields)
        return Ref(None, actor)

    def begin(self, actor: int, described: ActorType, fields: Mapping[str, Any]) -> None:
        """A new actor's first state. Raises `TypeError` or `NotAValue` for fields that do not fit."""
        self.do(Op.SPAWNED, actor, described.name, described.version, initial_fields(described, fields, self.keep))
        fill(facade(self, self.heap.state(actor)), fields)

    def narrow(self, target: int, methods: Sequence[str] | None, read_only: bool) -> Ref:
        """A ref that reaches less."""
        facet = self.heap.count("actor")
        self.do(Op.NARROWED, facet, target, None if methods is None else FrozenList(methods), read_only)
        return Ref(None, facet)

    def revoke(self, facet: Ref) -> None:
        """Take a narrowed ref back. Raises `Refused` for one that is not narrowed, or another vat's."""
        session = None if facet.session == self.uid else facet.session
        if session is not None or self.heap.find("facets", facet.actor) is None:
            raise Refused("only a ref that was narrowed here can be revoked: keep what narrow() gave you")
        self.do(Op.REVOKED, facet.actor)

    def state_fact(self, mode: int, label: str, fields: Sequence[Any], keywords: Mapping[str, Any]) -> Handle:
        """State a fact; `mode` is 0 (for ever), 1 (may be retracted) or 2 (presence)."""
        draft = self.draft
        self._outward = True
        try:
            # Refs in a fact are handed out, by operations of their own that must stand before it.
            kept = [freeze(field, draft, f"{label}[{n}]") for n, field in enumerate(fields)]
            named = {name: freeze(value, draft, f"{label}.{name}") for name, value in keywords.items()}
        finally:
            self._outward = False
        at = len(draft.operations)
        if mode:
            self.do(Op.STATED, mode, draft.seq, at)
        else:
            self.do(Op.STATED, mode)
        draft.stated(at, label, kept, named)
        return Handle(draft.seq, at)

    def retract(self, handle: Sequence[int]) -> None:
        """Take a fact back. Raises `Refused` when the handle names none that this session holds."""
        seq, operation = handle
        if self.heap.find("facts", fact_key(seq, operation)) is None:
            raise Refused(f"({seq}, {operation}) is no fact that {self.id!r} has asserted and not retracted")
        at = len(self.draft.operations)
        self.do(Op.RETRACTED, seq, operation)
        self.draft.retracted(at, Handle(seq, operation))

    def observe(self, pattern: str, actor: int, method: str, after: str) -> int:
        """Subscribe an actor to the dataspace; gives the subscription's number."""
        number = self.heap.count("subscription")
        cursor = self._head() if after == "head" else "start"
        self.do(Op.SUBSCRIBED, number, pattern, actor, method, cursor)
        return number

    def unobserve(self, number: int) -> None:
        """End a subscription, if there is one of that number."""
        self.do(Op.UNSUBSCRIBED, number)

    def random(self) -> Random:
        """This crank's randomness."""
        if self._random is None:
            seed = self._entropy(16)
            self.do(Op.SEEDED, seed)
            self._random = Random(seed)
        return self._random

    def new_id(self) -> str:
        """32 hex digits that no other crank gives."""
        self._ids += 1
        return sha256(b"keeve id 1\n%b%d/%d" % (self.uid, self.draft.seq, self._ids)).hexdigest()[:32]

    # Promises.

    def react(
        self, promise: Promise, kept: Any, broken: Any, args: tuple[Any, ...], keywords: dict[str, Any]
    ) -> Promise:
        """A reaction to a promise; gives the promise for what it returns."""
        result = self.make("reaction")
        taken, named = self.arguments(None, args, keywords, self.keep)
        kept_actor, kept_name = _named(kept)
        broken_actor, broken_name = _named(broken)
        reaction = [To.THEN, kept_actor, kept_name, broken_actor, broken_name]
        self._await(promise, [*reaction, FrozenList(taken), FrozenDict(named), result.id])
        return result

    def settle(self, promise: int, outcome: Outcome) -> None:
        """Give a promise its outcome, and pass it on to all that waits for it. Settled ones stay as they are."""
        entry = self.heap.find("promises", promise)
        if entry is None or entry[0] >= KEPT:
            return
        self.do(Op.FULFILLED if outcome.succeeded else Op.BROKE, promise, outcome.payload)
        self.settled[promise] = outcome
        for reaction in entry[2]:
            self._pass(reaction, outcome)

    def _await(self, promise: Promise, result: Sequence[Any]) -> None:
        """Pass the outcome of `promise` on to `result`: now if it is there, or else when it comes."""
        entry = self.heap.find("promises", promise.id)
        if entry is None:
            raise NoSuchMethod(f"promise {promise.id} is over: it was settled, and nothing in the heap kept it")
        if entry[0] >= KEPT:
            self._pass(result, Outcome(entry[0] == KEPT, entry[1]))
        elif result[0] == To.OUTSIDE:
            self.answer = promise
        elif result[0] == To.FOLLOW and self._leads_to(promise.id, result[1]):
            cycle = PromiseCycle(f"promise {result[1]} would follow itself")
            self.settle(result[1], Outcome(False, self.keep(failure_of(cycle))))
        elif result[0] == To.FOLLOW and self._nothing_holds(result[1]):
            self.do(Op.PASSED, result[1], promise.id)
        else:
            if result[0] == To.FOLLOW:
                self.do(Op.FOLLOWS, result[1], promise.id)
            self.do(Op.REACTS, promise.id, FrozenList(result))

    def _nothing_holds(self, promise: int) -> bool:
        """Whether a promise is known only to what reacts to it. So a loop of reactions costs one promise."""
        _, _, reactions, _, held = self.heap.find("promises", promise)
        answer = self.answer
        return not (
            held
            or promise in self.watched
            or (isinstance(answer, Promise) and answer.id == promise)
            or any(reaction[0] == To.ANSWER for reaction in reactions)
        )

    def cancel(self, promise: values.Promise, error: Exception) -> bool:
        """Give up the effect that settles a promise, which breaks with `error`. False when there is none."""
        for number, entry in self.heap.system["effects"].items(loader=self.heap.memory.page):
            if entry[5] == promise.id:
                self.do(Op.ENDED, number)
                self.cancelled.append(number)
                self.settle(promise.id, Outcome(False, self.keep(failure_of(error))))
                return True
        return False

    def _leads_to(self, promise: int, goal: int) -> bool:
        while promise != goal:
            entry = self.heap.find("promises", promise)
            if entry is None or entry[0] != FOLLOWING:
                return False
            promise = entry[1]
        return True

    def _pass(self, result: Sequence[Any], outcome: Outcome) -> None:
        """An outcome reaches where it goes."""
        kind = result[0]
        if kind == To.OUTSIDE:
            self.answer = outcome
        elif kind == To.FOLLOW:
            self.settle(result[1], outcome)
        elif kind == To.THEN:
            self._react(result, outcome)
        elif kind == To.ANSWER:
            self.do(Op.ANSWERED, result[1], result[2], outcome.succeeded, outcome.payload)
        elif kind == To.REPLY:
            self.reply(result[1], result[2], outcome)
        else:
            self._resend(result)

    def _react(self, reaction: Sequence[Any], outcome: Outcome) -> None:
        _, kept_actor, kept, broken_actor, broken, args, keywords, result = reaction
        if outcome.succeeded and kept is not None:
            self._queue.append(Delivery(kept_actor, kept, [outcome.payload, *args], keywords, (To.FOLLOW, result)))
        elif not outcome.succeeded and broken is not None:
            error = exception_of(self.heap.read(outcome.payload))
            self._queue.append(Delivery(broken_actor, broken, args, keywords, (To.FOLLOW, result), error))
        else:
            self.settle(result, outcome)

    def reply(self, uid: bytes, promise: int, outcome: Outcome) -> None:
        """Send an outcome to the promise of another vat."""
        succeeded = outcome.succeeded
        try:
            payload = self.outward(self.heap.read(outcome.payload), "the result")
        except _Unsettled:
            succeeded = False
            error = NotAValue("the result", Promise, "a promise inside a value stays in its vat; return the promise")
            payload = self.keep(failure_of(error))
        number = self.heap.count("message")
        message = FrozenDict({"settle": promise, "succeeded": succeeded, "payload": payload})
        self.do(Op.SENT, number, uid, message)
        self.sent.append((number, uid, message))

    def _resend(self, result: Sequence[Any]) -> None:
        _, to, method, args, keywords, promise = result
        read = self.heap.read
        try:
            self._send(
                to, method, [read(arg) for arg in args], {name: read(arg) for name, arg in keywords.items()}, promise
            )
        except Exception as error:  # noqa: BLE001  # a promise that it was to carry broke, with whatever
            self.settle(promise, Outcome(False, self.keep(failure_of(error))))


class _Unsettled(Exception):
    """A promise without a value was to leave the vat."""

    def __init__(self, promise: int) -> None:
        super().__init__(promise)
        self.promise = promise


def initial_fields(described: Any, given: Mapping[str, Any], keep: Any) -> FrozenDict:
    """The fields of a new actor, its collections empty. Raises `TypeError` for one that is missing or not declared."""
    for name in given:
        if name not in described.fields:
            raise TypeError(f"{described.name} has no field {name!r}; it has {', '.join(described.fields) or 'none'}")
    fields: dict[str, Any] = {}
    for name, field in described.fields.items():
        tree = COLLECTIONS[field.shape]
        if tree is not None:
            fields[name] = tree()
        elif name in given:
            value = given[name]
            fields[name] = keep(Text(value) if field.text and type(value) is str else value, name)
        elif field.required:
            raise TypeError(f"{described.name} needs a value for its field {name!r}")
        else:
            fields[name] = field.default
    return FrozenDict(fields)


def _named(method: Any) -> tuple[int | None, str | None]:
    """The actor and the name of a method that a reaction calls."""
    if method is None:
        return None, None
    if isinstance(method, NearMethod):
        return method.ref.actor, method.name
    owner = getattr(method, "__self__", None)
    if isinstance(owner, Actor):
        return owner.ref.actor, method.__name__
    raise TypeError(f"then({method!r}): a reaction is a method of an actor, self.name or near(ref).name")


def _copied(view: Any) -> Any:
    return dict(view) if isinstance(view, Mapping) else list(view)


def _read_field(crank: Crank, state: State, name: str, args: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
    if args or keywords:
        raise TypeError(f"{name} is a field and takes no arguments")
    field = crank.types[state.type].fields[name]
    if field.shape in (Shape.LIST, Shape.MAP, Shape.SET):
        handle = getattr(facade(crank, state), name)
        return dict(handle) if field.shape is Shape.MAP else list(handle)
    return crank.heap.read(state.fields.get(name, field.default))
