"""Promises: made, waited for, followed, settled, and what reacts to them.

A promise is an entry in the heap (`vat.heap.entries`). It is pending, follows another one, or
is settled: kept with a value, or broken with a failure. What waits for it is a list of *reactions*, each saying where
the outcome goes (`vat.heap.opcodes.To`).

The one rule: every promise that is not settled has somebody who will settle it. So one is made only when who settles
it is sure to be there, and one whose settler was undone is undone with it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from dataspace import values
from dataspace.in_logs import in_log
from dataspace.interrupts import is_interrupt
from dataspace.values import FrozenList, Value
from vat.crank.deliveries import Delivery
from vat.crank.keeping import Keeping
from vat.crank.transaction import Savepoint
from vat.crank.whole import whole
from vat.errors import FiberDiverged, PromiseCycle, PromiseGone
from vat.failures import exception_of, failure_of
from vat.heap.cycles import cycle
from vat.heap.entries import HELD, KEPT, PAYLOAD, PENDING, REACTIONS, SETTLER, STATE, Then, comes_of
from vat.heap.messages import Outcome
from vat.heap.opcodes import Op, To
from vat.heap.past import NotYet
from vat.heap.refs import NearMethod, Promise
from vat.heap.stored import listed, mapped
from vat.objects.types import Field, Method

_HOLDING: Final = (To.ANSWER, To.FIBER)
"""What knows the promise that it waits for by its number."""


class Promises(Keeping):
    """A transaction that knows promises."""

    __slots__ = ()

    def make(self, *settler: Any) -> Promise:
        """A new promise."""
        number = self.number("promise")
        self.do(Op.MADE, number, FrozenList(settler))
        promise = Promise(number)
        making = self.progress.making
        if making is not None:
            making.append(promise)
        return promise

    def entry(self, promise: values.Promise) -> Sequence[Any]:
        """A promise as the heap has it. Raises `PromiseGone`."""
        entry: Sequence[Any] | None = self.heap.find("promises", promise.id)
        if entry is None:
            raise PromiseGone(
                f"promise {promise.id} is over: it was settled, and nothing in the heap kept it; keep it in a field "
                "while it is wanted"
            )
        return entry

    def outcome(self, promise: values.Promise) -> Outcome | None:
        """What came of a promise; None before that."""
        entry = self.entry(promise)
        state = entry[STATE]
        return Outcome(state == KEPT, entry[PAYLOAD]) if state >= KEPT else None

    @whole
    def react(
        self, promise: values.Promise, kept: Any, broken: Any, args: tuple[Any, ...], keywords: dict[str, Any]
    ) -> Promise:
        """A reaction to a promise; gives the promise for what it returns."""
        self.entry(promise)
        kept_actor, kept_name = _named(kept)
        broken_actor, broken_name = _named(broken)
        known = self.known(kept_actor, kept_name) if kept is not None else self.known(broken_actor, broken_name)
        taken, named = self.arguments(known, args, keywords, after=1)
        result = self.make("reaction", promise.id)
        reaction = [To.THEN, kept_actor, kept_name, broken_actor, broken_name]
        self.wait(promise, [*reaction, listed(taken), mapped(named), result.id])
        return result

    def resolve(self, outcome: Outcome | Promise, result: Sequence[Any]) -> None:
        """What a delivery gave goes where it belongs."""
        if isinstance(outcome, Promise):
            self.wait(outcome, result)
        else:
            self.pass_on(result, outcome)

    def wait(self, promise: values.Promise, result: Sequence[Any]) -> None:
        """Pass the outcome of `promise` on to `result`: now if it is there, or else when it comes."""
        outcome = self.outcome(promise)
        if outcome is not None:
            self.pass_on(result, outcome)
        elif result[0] == To.OUTSIDE:
            self.progress.answer = Promise(promise.id)
        elif result[0] != To.FOLLOW:
            self.note(Op.REACTS, promise.id, listed(result))
        elif (way := cycle(self.heap, result[1], promise.id)) is not None:
            self.settle(result[1], self.failed(PromiseCycle(f"promise {result[1]} would follow itself: {way}")))
        elif self._nothing_holds(result[1]):
            self.note(Op.PASSED, result[1], promise.id)
        else:
            self.note(Op.FOLLOWS, result[1], promise.id)
            self.note(Op.REACTS, promise.id, listed(result))

    def _nothing_holds(self, promise: int) -> bool:
        """Whether a promise is known only to what reacts to it. So a loop of reactions costs one promise."""
        entry = self.heap.find("promises", promise)
        return not (
            entry[HELD] or any(reaction[0] in _HOLDING for reaction in entry[REACTIONS]) or self._is_looked_at(promise)
        )

    def _is_looked_at(self, promise: int) -> bool:
        """Whether a caller outside waits for a promise, a fiber may have it in a local, or this crank gives it."""
        answer = self.progress.answer
        return (
            promise in self.progress.watched
            or (isinstance(answer, Promise) and answer.id == promise)
            or self.heap.find("owned", promise) is not None
        )

    def heard(self, promise: int) -> bool:
        """Whether anybody would learn of it if a promise broke: who waits, reacts to that, or may still look at it."""
        todo = [promise]
        while todo:
            number = todo.pop()
            entry = self.heap.find("promises", number)
            if entry is None:
                continue
            if entry[HELD] or self._is_looked_at(number):
                return True
            for reaction in entry[REACTIONS]:
                if reaction[0] == To.FOLLOW:
                    todo.append(reaction[1])
                elif reaction[0] == To.THEN and reaction[Then.BROKEN] is None:
                    todo.append(reaction[Then.RESULT])
                else:
                    return True
        return False

    def forsaken(self, promise: int, told: Collection[int] = ()) -> bool:
        """Whether nobody waits for a promise, nor for any that it comes of, by another way. Fibers that are `told`
        already do not count, nor does who owes it."""
        here, before = promise, 0
        while (entry := self.heap.find("promises", here)) is not None and not self._used(here, before, told):
            other = comes_of(entry)
            if other is None:
                return True
            here, before = other, here
        return False

    def _used(self, promise: int, but: int, told: Collection[int]) -> bool:
        """Whether anybody waits for a promise, or for one that follows it, or has it, but for what `but` is for."""
        todo = [promise]
        while todo:
            here = todo.pop()
            entry = self.heap.find("promises", here)
            if entry is None:
                continue
            settler = entry[SETTLER]
            owner = settler[1] if entry[STATE] == PENDING and settler[0] == "actor" else 0
            if (entry[HELD] and not owner) or self._is_looked_at(here):
                return True
            for reaction in entry[REACTIONS]:
                kind = reaction[0]
                if kind == To.FOLLOW:
                    if reaction[1] != but:
                        todo.append(reaction[1])
                elif kind == To.THEN:
                    # Who owes it has it in a field, and looks to what it made of it.
                    if reaction[Then.RESULT] != but and owner not in (reaction[1], reaction[Then.BROKEN_ACTOR]):
                        return True
                elif kind != To.FIBER or reaction[1] not in told:
                    return True
        return False

    def unheard(
        self, actor: int, method: str, outcome: Outcome, *, lost: FiberDiverged | None = None
    ) -> Mapping[str, str]:
        """Note for the host's log that a method has failed and nobody waits for it, or is `lost`, since it cannot go on
        where it waited. Gives the error in words."""
        failure = self.heap.read(outcome.payload)
        error = {name: str(failure[name]) for name in ("error", "message")}
        said = in_log(exception_of(failure) if lost is None else lost)
        try:
            type = self.heap.state(actor).type
        except LookupError:
            type = "what is gone"
        what = "nobody waits for what failed" if lost is None else "a method that waited is over"
        self.progress.unheard.append(f"{what}: {type}.{method} (actor {actor}): {said}")
        return error

    def settle(self, promise: int, outcome: Outcome) -> None:
        """Give a promise its outcome, and pass it on to all that waits for it. Settled ones stay as they are."""
        settling, settled = self.progress.settling, self.progress.settled
        settling.append((promise, outcome))
        if len(settling) > 1:  # the loop below is at it
            return
        while settling:
            promise, outcome = settling[0]
            entry = self.heap.find("promises", promise)
            if entry is not None and entry[STATE] < KEPT:
                self.note(Op.FULFILLED if outcome.succeeded else Op.BROKE, promise, outcome.payload)
                settled.append((promise, outcome))
                for reaction in entry[REACTIONS]:
                    self.pass_on(reaction, outcome)
            settling.popleft()

    def pass_on(self, result: Sequence[Any], outcome: Outcome) -> None:
        """An outcome reaches where it goes."""
        kind = result[0]
        if kind == To.OUTSIDE:
            self.progress.answer = outcome
        elif kind == To.FOLLOW:
            self.settle(result[1], outcome)
        elif kind == To.THEN:
            self._react(result, outcome)
        elif kind == To.ANSWER:
            self.note(Op.ANSWERED, result[1], result[2], *self.leaving(outcome))
        elif kind == To.REPLY:
            self.reply(result[1], result[2], outcome)
        elif kind == To.FIBER:
            self.fibers.wake(result[1], outcome)
        else:
            self.resend(result)

    def _react(self, reaction: Sequence[Any], outcome: Outcome) -> None:
        _, kept_actor, kept, broken_actor, broken, args, keywords, result = reaction
        goal = (To.FOLLOW, result)
        if outcome.succeeded and kept is not None:
            self.progress.queue.append(Delivery(kept_actor, kept, [outcome.payload, *args], keywords, goal))
        elif not outcome.succeeded and broken is not None:
            self.progress.queue.append(Delivery(broken_actor, broken, args, keywords, goal, outcome.payload))
        else:
            self.settle(result, outcome)

    def failed(self, error: BaseException, undone: Collection[str] = ()) -> Outcome:
        """An exception as an outcome; `undone` are the fields whose changes went with it."""
        seq = self.record.seq - self.progress.silent
        failure = {**failure_of(error), "in": f"session {self.id!r} at seq {seq}"}
        if undone:
            failure["undone"] = list(undone)
        return Outcome(False, self.keep(failure, "the error"))

    def fail(self, error: BaseException, undone: Collection[str] = ()) -> Outcome:
        """Record that a delivery failed; gives what its promise breaks with."""
        outcome = self.failed(error, undone)
        self.progress.failure = error
        self.note(Op.FAILED, outcome.payload)
        return outcome

    # What raises is undone in this order, and no other. What could not be read ends the crank, whatever was made of it:
    # so that comes first. The error becomes a value after the undoing, which would undo that too, and is recorded last,
    # where what it stands for has gone from the record.

    def failed_at(self, savepoint: Savepoint, error: BaseException, owner: int = 0) -> Outcome:
        """A delivery that began at the savepoint has raised: it is undone, and this is what it came to.

        Of an `owner` it tells which of its fields were changed: of a fiber's, which may have thought to clean up.
        Raises what ends the crank: Ctrl-C, and what could not be read, or not yet. If the undoing is cut off, so does
        that.
        """
        if is_interrupt(error) or isinstance(error, NotYet):
            raise error
        self.sound()
        undone = self.changed(savepoint, owner) if owner else ()
        self.rollback(savepoint)
        self.progress.torn = None
        return self.fail(error, undone)

    def call_failed_at(
        self, savepoint: Savepoint, torn: BaseException | None, error: BaseException, actor: int, method: str
    ) -> Outcome:
        """A near call that began at the savepoint, with that as `torn`, has raised: it is undone within its delivery.

        Until that is done the delivery counts as torn: whoever catches what cuts the undoing off finds half of it.
        """
        self.progress.torn = error
        self.sound()
        self.rollback(savepoint)
        outcome = self.failed(error)
        self.note(Op.UNDONE, actor, self.word(method, "a method"), outcome.payload)
        self.progress.torn = torn
        return outcome

    def returned(self, found: Method, result: Any) -> Outcome | Promise:
        """What a method returned: a promise as it is, anything else in stored form. Raises `NotAValue`."""
        if found.mark_result is not None:
            result = found.mark_result(result)
        if isinstance(result, values.Promise):
            self.entry(result)
            # Not another one: who has it in a local is seen to have it by the object.
            return result if type(result) is Promise else Promise(result.id)
        return Outcome(True, self.keep(result, found.answer))

    # What others know.

    def known(self, actor: int | None, name: str | None) -> Method | Field | None:
        """What a name of an actor is, if that can be said now."""
        raise NotImplementedError

    def arguments(
        self, found: Any, args: Sequence[Any], keywords: Mapping[str, Any], mode: int = 0, after: int = 0
    ) -> tuple[list[Value], dict[str, Value]]:
        """Arguments in stored form."""
        raise NotImplementedError

    def leaving(self, outcome: Outcome) -> Outcome:
        """An outcome as those outside of the vat are given it."""
        raise NotImplementedError

    def reply(self, uid: bytes, promise: int, outcome: Outcome) -> None:
        """Send an outcome to the promise of another vat."""
        raise NotImplementedError

    def resend(self, result: Sequence[Any]) -> None:
        """Send what waited until a promise that it is to carry was settled."""
        raise NotImplementedError


def _named(method: Any) -> tuple[int | None, str | None]:
    """The actor and the name of a method that a reaction calls."""
    if method is None:
        return None, None
    return method_of(method)


def method_of(method: Any) -> tuple[int, str]:
    """The actor and the name of a bound method, or of a near one. Raises `TypeError` for anything else."""
    if isinstance(method, NearMethod):
        return method.ref.actor, method.name
    owner = getattr(method, "__self__", None)
    if hasattr(type(owner), "__keeve_root__"):
        return owner.ref.actor, method.__name__  # type: ignore[union-attr]  # it is an actor
    raise TypeError(f"{method!r} cannot be called later: name a method of an actor, self.name or near(ref).name")
