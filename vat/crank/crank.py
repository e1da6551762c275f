"""A crank: one message, and all that it causes inside its vat, run until the vat is quiet.

    the message's delivery, then in order its near sends and promise reactions, until nothing is left

Each delivery and each near call has a savepoint; one that raises is undone to it, the promise for its result breaks
with the error, and the record says so. A crank that does not come to an end is undone whole, and what waited for its
deliveries breaks.

A crank is one object that knows more with each of these files, from the bottom:

    transaction  the record in progress, operations, savepoints, and undoing
    keeping      values: what is stored of one, and what of one that comes or leaves
    promises     made, followed, settled; where outcomes go
    sending      messages, effects, giving up
    acting       fields, actors, refs, facts, subscriptions, time and chance
    finding      what a name of an actor is, through narrowed refs
    crank        deliveries, one after the other

Each uses those beneath it, and leaves to those above it what they alone know (`NotImplementedError` beneath says what
that is). It is a ladder, and not parts that hold each other, since all of it works on one heap and one `Progress`, and
what actors' handles hold is that one object. `fibers`, which has a state of its own, is a part of it.

The one rule: nothing here waits, and nothing leaves. What goes to other vats, devices and callers is only noted
(`sent`, `wanted`, `answer`), for the vat to pass on when the record is durable.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextvars import copy_context
from typing import Any, Final, NamedTuple

from dataspace.values import Value
from snapshots.keyed import MapTree
from snapshots.tree import Tree
from vat.crank.deliveries import Delivery
from vat.crank.fibers import Fibers
from vat.crank.finding import BuiltIn, Finding
from vat.crank.powers import Powers
from vat.errors import CrankOverrun, FiberDiverged
from vat.failures import exception_of
from vat.heap.heap import Heap
from vat.heap.messages import Outcome
from vat.heap.opcodes import Op, To
from vat.heap.past import Past
from vat.heap.refs import Promise, Ref, running
from vat.heap.stored import listed, mapped
from vat.objects.actor import facade
from vat.objects.fields import beginning
from vat.objects.types import Field, Method, Types

DELIVERIES: Final = 10_000
"""A crank with more than so many fails whole. Not counted: that fibers which waited before it go on, each once."""


_BEGIN: Final = Op.BEGIN


class Doing(NamedTuple):
    """What a crank is at: an actor's type, its id, and the method that runs."""

    type: str
    actor: int
    method: str


class Crank(Finding):
    """The cranks of a vat. `begin`, one of the three ways to run it, and `end`."""

    __slots__ = ()
    fibers: Fibers

    def __init__(self, heap: Heap, types: Types, uid: bytes, id: str, powers: Powers, past: Past | None = None) -> None:
        super().__init__(heap, types, uid, id, powers)
        self.fibers = Fibers(self, past)

    @property
    def doing(self) -> Doing | None:
        """What runs now; for those who look from another thread at a crank that runs long."""
        progress = self.progress
        doing = progress.at
        if progress.draft is None or doing is None:
            return None
        try:
            return Doing(self.heap.state(doing[0]).type, *doing)
        except LookupError:
            return Doing("?", *doing)

    # Running.

    def run(self, delivery: Delivery) -> None:
        """The message's delivery and all that follows from it. The heap must be as after the last crank."""
        self.progress.queue.append(delivery)
        self._run()

    def settle_and_run(self, outcomes: Mapping[int, Outcome]) -> None:
        """Promises have their outcomes from outside; and all that follows from it."""
        for promise, outcome in outcomes.items():
            self.settle(promise, outcome)
        self._run()

    def end_fibers(self, lost: Mapping[int, FiberDiverged]) -> None:
        """Fibers are over that cannot come back, and why; and all that follows from it."""
        outcomes = {fiber: self.failed(why) for fiber, why in lost.items()}
        for fiber, outcome in outcomes.items():
            self.fibers.end(fiber, outcome, lost[fiber])
        self._run()

    def end(self) -> None:
        super().end()
        if self.fibers.gone:
            self.fibers.bury()

    def abandon(self) -> None:
        super().abandon()
        if self.fibers.gone:
            self.fibers.bury()

    def _run(self) -> None:
        before, running.crank = running.crank, self
        try:
            self._drain()
        finally:
            running.crank = before
        self.sound()

    def _drain(self) -> None:
        """Deliver until nothing is left. What does not end is undone; those who waited for it learn of that."""
        queue = self.progress.queue
        while queue:
            base, first, told = self.savepoint(), tuple(queue), len(self.progress.unheard)
            count = 0
            while count < DELIVERIES:
                item = queue.popleft()
                if isinstance(item, Delivery) or item.seq == self.record.seq:
                    count += 1
                if isinstance(item, Delivery):
                    copy_context().run(self._deliver, item)  # it sets context variables for itself alone
                else:
                    self.fibers.resume(item)
                if not queue:
                    return
            overrun = CrankOverrun(
                f"more than {DELIVERIES} deliveries in one crank of {self.id!r}, "
                f"the last of {queue[0].method!r}: does it send to itself without end? Use several messages"
            )
            queue.clear()
            self.rollback(base)
            del self.progress.unheard[told:]
            outcome = self.fail(overrun)
            # These outcomes settle promises from before the crank, of which there is an end.
            for item in first:
                if isinstance(item, Delivery):
                    self.pass_on(item.result, outcome)
                else:
                    self.fibers.give_up(item, outcome)

    def _deliver(self, delivery: Delivery) -> None:
        heap, progress = self.heap, self.progress
        progress.new_moment()
        if not progress.silent:
            self.record.operations.append(_begun(delivery))
        savepoint = self.savepoint()
        try:
            found, actor = delivery.found or self.find(delivery.actor, delivery.method, inner=delivery.stated)
            args = [heap.read(arg) for arg in delivery.args]
            if delivery.failure is not None:
                args.insert(0, exception_of(heap.read(delivery.failure)))
            keywords = {name: heap.read(value) for name, value in delivery.keywords.items()}
            outcome = self._call(found, actor, delivery.actor, args, keywords)
            if progress.torn is not None:
                raise progress.torn
        except BaseException as error:  # noqa: BLE001  # whatever user code raises fails its delivery, `sys.exit()` as well
            outcome = self.failed_at(savepoint, error)
            if delivery.result[0] == To.FOLLOW and not self.heard(delivery.result[1]):
                self.unheard(delivery.actor, delivery.method, outcome)
        self.resolve(outcome, delivery.result)

    def call(
        self, to: Ref, method: str, args: tuple[Any, ...], keywords: dict[str, Any], *, inner: bool = False
    ) -> Any:
        """Call an actor of this vat at once; undone whole when it raises, and the error is the caller's.

        `inner` methods are for the actor itself, and for one that it is a part of.
        """
        savepoint, progress = self.savepoint(), self.progress
        doing, torn = progress.at, progress.torn
        read = self.heap.read
        try:
            found, actor = self.find(to.actor, method, inner=inner)
            kept, named = self.arguments(found, args, keywords)
            if type(found) is Method and found.waits:
                return self._call_async(found, actor, to.actor, kept, named)
            outcome = self._call(
                found, actor, to.actor, [read(arg) for arg in kept], {name: read(arg) for name, arg in named.items()}
            )
        except BaseException as error:
            self.call_failed_at(savepoint, torn, error, to.actor, method)
            raise
        finally:
            progress.at = doing
        return outcome if isinstance(outcome, Promise) else read(outcome.payload)

    def runs(self, actor: int) -> bool:
        """Whether it is a method of that actor that runs now."""
        at = self.progress.at
        return at is not None and at[0] == actor

    def _call_async(
        self, found: Method, actor: int, addressed: int, args: Sequence[Value], keywords: Mapping[str, Value]
    ) -> Promise:
        """A near call of an async method: it starts at once, and whatever comes of it, a promise has it."""
        self.changes()
        progress, read = self.progress, self.heap.read
        moment = progress.keep_moment()
        progress.new_moment()
        self.note(Op.CALLED, addressed, found.name, listed(args), mapped(keywords))
        savepoint, torn = self.savepoint(), progress.torn
        outcome: Outcome | Promise
        try:
            outcome = self._call(
                found,
                actor,
                addressed,
                [read(arg) for arg in args],
                {name: read(arg) for name, arg in keywords.items()},
            )
        except Exception as error:  # noqa: BLE001  # whatever it is, the promise has it
            outcome = self.call_failed_at(savepoint, torn, error, addressed, found.name)
        finally:
            progress.back_to(moment)
        if isinstance(outcome, Promise):
            return outcome
        promise = self.make("send")
        self.settle(promise.id, outcome)
        return promise

    def _call(
        self,
        found: Method | Field | BuiltIn,
        actor: int,
        addressed: int,
        args: Sequence[Any],
        keywords: Mapping[str, Any],
    ) -> Outcome | Promise:
        """Call a method, or read a field."""
        progress = self.progress
        progress.at = (actor, found.name)
        before = progress.read_only
        progress.read_only = before or isinstance(found, Field) or found.read
        try:
            if isinstance(found, Field):
                return self._read(actor, found, args, keywords)
            if isinstance(found, Method):
                result = found.function(facade(self, actor), *args, **keywords)
                return self.fibers.start(found, actor, result) if found.waits else self.returned(found, result)
            return Outcome(True, self.keep(found.function(self, addressed, *args, **keywords), found.name))
        finally:
            progress.read_only = before

    def _read(self, actor: int, field: Field, args: Sequence[Any], keywords: Mapping[str, Any]) -> Outcome | Promise:
        if args or keywords:
            raise TypeError(f"{field.name} is a field and takes no arguments")
        self.fits(actor, field)
        self.there(actor, field)
        fields = self.fields(actor)
        stored = fields[field.name] if field.name in fields else beginning(field, {}, self.keep)
        page = self.heap.page
        if isinstance(stored, Promise):
            return stored
        if isinstance(stored, MapTree):
            entries = dict(stored.items(loader=page))
            if not all(type(key) is str for key in entries):
                raise TypeError(f"{field.name} has keys that are no str, so it is no value: read it with a method")
            return Outcome(True, mapped(entries))
        return Outcome(True, listed(stored.walked(page)) if isinstance(stored, Tree) else stored)


def _begun(delivery: Delivery) -> Sequence[Any]:
    """The operation with which a delivery begins: it changes nothing."""
    if not delivery.stated:
        return (_BEGIN, delivery.actor, delivery.method)
    said: list[Any] = [_BEGIN, delivery.actor, delivery.method, listed(delivery.args)]
    if delivery.keywords or delivery.failure is not None:
        said.append(mapped(delivery.keywords))
    if delivery.failure is not None:
        said.append(delivery.failure)
    return said
