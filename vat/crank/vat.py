"""A vat: one session's heap, its place in its chain, and what it does with one message at a time.

`take` runs one message as a crank and gives a `Step`: the record, and what may leave the vat once that record is
durable. The vat may go on to the next message at once. What it records by itself is in `chain` and `upkeep`.

The one rule: no I/O but loading its own pages, no clock, no waiting. Powers are passed in, steps are given out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Final

from dataspace.errors import KeeveError
from dataspace.remedies import Remedy
from dataspace.values import FrozenDict, FrozenList, NotAValue, Value, digest_of
from vat.crank.chain import HeapPages, Step, known_request, request_key, whole
from vat.crank.deliveries import Delivery
from vat.crank.finding import EVERY_REF
from vat.crank.powers import Powers
from vat.crank.progress import INWARD
from vat.crank.upkeep import Upkeep
from vat.errors import Forked, NothingTakenUp, Refused
from vat.failures import content_in
from vat.heap.deadlines import deadline_in, is_timer
from vat.heap.entries import Effect, pending_outside
from vat.heap.limits import limits_of
from vat.heap.messages import RUNTIME, Asker, Call, Detach, Ended, Message, Observed, Outcome, Settled, said_by
from vat.heap.opcodes import Op, To
from vat.heap.refs import Promise
from vat.heap.stored import listed, mapped

__all__ = [
    "EVERY_REF",
    "HeapPages",
    "Powers",
    "RequestConflict",
    "Step",
    "Vat",
    "known_request",
    "request_digest",
    "request_key",
    "whole",
]


_OUTSIDE = (To.OUTSIDE,)


NEW_REQUEST: Final = Remedy("new-request", "; use a new request id for something new")


class RequestConflict(KeeveError):
    """A request id came again with other content; the first one's answer stands."""

    usage = True

    def __init__(self, request: str, session: str) -> None:
        super().__init__(
            f"request {request!r} to session {session!r} was already made with other content: "
            f"a retry must repeat what was sent{NEW_REQUEST()}"
        )


class Vat(Upkeep):
    """The vat of a session."""

    __slots__ = ()

    def take(self, message: Message) -> Step:
        """Run one message. Raises `RequestConflict`, `NoSuchMethod`, `OtherParameters` and the like to a caller
        outside, without a trace.

        Everything else that goes wrong is in the step, as a failure. What cannot be read, and Ctrl-C, end the crank as
        if it had never been, and are raised.
        """
        self._fit()
        try:
            return self._TAKES[type(message)](self, message)
        except BaseException:
            self.crank.abandon()
            raise

    # Messages from outside of all vats.

    def _called(self, call: Call) -> Step:
        if call.sender is not None:
            return self._called_from(call, *call.sender)
        crank, asker = self.crank, call.asker
        key = request_key(asker)
        if key is not None and (repeated := self.repeated(call)) is not None:
            return repeated
        found = crank.find(call.to, call.method)
        if getattr(found[0], "read", True):  # fields are only read
            return self._asked(call, found)
        draft = self._begin(asker)
        args, keywords = crank.arguments(found[0], call.args, call.keywords, INWARD)
        crank.must_take(found[0], found[1], args, keywords)
        draft.message = _said(call, args, keywords)
        crank.run(Delivery(call.to, call.method, args, keywords, _OUTSIDE, None, False, found))
        answer = self._answer()
        if isinstance(answer, Promise):
            self._may_wait()
            if key is not None:
                crank.note(Op.ASKED, key, call.digest, answer.id)
                crank.note(Op.REACTS, answer.id, FrozenList([To.ANSWER, key, call.digest]))
            step = self._seal()
            self._let_wait(call, answer)
            return step
        answer = crank.leaving(answer)
        if key is not None:
            crank.note(Op.ANSWERED, key, call.digest, *answer)
        outcome = self._outside(answer)
        step = self._seal()
        if call.reply is not None:
            step.replies.append((call.reply, outcome))
        return step

    def _asked(self, call: Call, found: Any) -> Step:
        """A read: nothing is recorded, but that a ref is handed out for the first time, where that can be recorded."""
        crank = self.crank
        self._begin(call.asker, silent=True)
        args, keywords = crank.arguments(found[0], call.args, call.keywords, INWARD)
        crank.must_take(found[0], found[1], args, keywords)
        crank.run(Delivery(call.to, call.method, args, keywords, _OUTSIDE, None, False, found))
        answer = self._answer()
        step = Step(None, failure=crank.progress.failure)
        if isinstance(answer, Promise):
            self._may_wait()
            self._let_wait(call, answer)
        else:
            outcome = self._outside(crank.leaving(answer))
            if call.reply is not None:
                step.replies.append((call.reply, outcome))
        lent = crank.progress.lent
        crank.end()
        if lent and self.powers.writes:
            self._begin(call.asker).message = _said(call, args, keywords)
            for actor in lent:
                crank.hand(actor)
            replies = step.replies
            step = self._seal()
            step.replies.extend(replies)
        return step

    def _answer(self) -> Outcome | Promise:
        """What the message's own delivery came to, by the end of the crank."""
        answer = self.crank.progress.answer
        assert answer is not None
        if isinstance(answer, Promise):
            return self.crank.outcome(answer) or answer
        return answer

    def _may_wait(self) -> None:
        """Raise `NothingTakenUp` where what a caller would wait for never comes."""
        if not self.powers.carries:
            raise NothingTakenUp(self.id)

    def _let_wait(self, call: Call, promise: Promise) -> None:
        if call.reply is not None:
            self.waiters.setdefault(promise.id, []).append(call.reply)
            call.waits = promise.id

    def repeated(self, call: Call) -> Step | None:
        """The answer of the first time to a request that was made before; None for a new one.

        Raises `RequestConflict` when it had other content then.
        """
        known = known_request(self.heap, call.asker)
        if known is None:
            return None
        digest, promise, succeeded, payload = known
        if digest not in (call.digest, call.plain):
            raise RequestConflict(str(call.asker.request), self.id)
        step = Step(None)
        if promise is not None:
            self._may_wait()
            self._let_wait(call, Promise(promise))
        elif call.reply is not None:
            step.replies.append((call.reply, self._outside(Outcome(succeeded, payload))))
        return step

    def allow(self, actor: int, method: str) -> None:
        """Raise unless a ref to `actor` may ask for a `snapshot` or a `fork`, which the host carries out.

        Raises `NoSuchActor`, `Refused` or `Revoked`.
        """
        target, read_only = self.crank.reach(actor, method)
        self.heap.state(target)
        if read_only:
            raise Refused(
                f"this ref to {self.id!r} is read only, and {method!r} is more than that: ask for a wider one"
            )

    # Messages from other vats.

    def has(self, uid: bytes, number: int) -> bool:
        """Whether the message of that number from vat `uid` is recorded here."""
        last = self.heap.find("senders", uid)
        return last is not None and number <= last

    def _called_from(self, call: Call, uid: bytes, number: int, promise: int) -> Step:
        if self.has(uid, number):
            return Step(None, acknowledged=(uid, number))
        crank = self.crank
        draft = self._begin(call.asker)
        crank.note(Op.RECEIVED, uid, number)
        goal = (To.REPLY, uid, promise)
        found = crank.sought(call.to, call.method)
        try:
            args, keywords = crank.arguments(found and found[0], call.args, call.keywords, INWARD)
        except NotAValue as error:
            draft.message = _said(call, (), {})
            crank.pass_on(goal, crank.fail(error))
        else:
            draft.message = _said(call, args, keywords)
            crank.run(Delivery(call.to, call.method, args, keywords, goal, None, False, found))
        return self._seal((uid, number))

    def answer(self, call: Call, outcome: Outcome) -> Step:
        """Record a call that was carried out beside the actors, and its answer: to another vat, or to a request id."""
        self._fit()
        crank = self.crank
        try:
            draft = self._begin(call.asker)
            args, keywords = crank.arguments(None, call.args, call.keywords, INWARD)
            draft.message = _said(call, args, keywords)
            kept = Outcome(outcome.succeeded, crank.keep(outcome.payload, "the answer", INWARD))
            key = request_key(call.asker)
            if call.sender is not None:
                uid, number, promise = call.sender
                crank.note(Op.RECEIVED, uid, number)
                crank.reply(uid, promise, kept)
            elif key is not None:
                crank.note(Op.ANSWERED, key, call.digest, *crank.leaving(kept))
            told = self._outside(crank.leaving(kept))
            step = self._seal(call.sender and call.sender[:2])
        except BaseException:
            crank.abandon()
            raise
        if call.reply is not None:
            step.replies.append((call.reply, told))
        return step

    def _settled(self, message: Settled) -> Step:
        uid, number = message.uid, message.number
        if number is not None and self.has(uid, number):
            return Step(None, acknowledged=(uid, number))
        said = {"from": uid, "number": number, "settle": message.promise}
        acknowledged = None if number is None else (uid, number)
        asker = Asker("vat", f"vat:{uid.hex()}")
        return self._come_to(asker, said, message.promise, message.outcome, "the answer", acknowledged)

    # Messages from the host.

    def _ended(self, message: Ended) -> Step:
        entry = self.heap.find("effects", message.effect)
        if entry is None:  # it was settled before, or belongs to a parent
            return Step(None, ended=message.effect)
        device, method, promise = entry[Effect.DEVICE], entry[Effect.METHOD], entry[Effect.PROMISE]
        outcome = message.outcome._replace(payload=self.crank.marked(promise, message.outcome))
        said = {"effect": message.effect, **said_by(message.by)}
        due = deadline_in(self.heap, entry) if outcome.succeeded and is_timer(entry) else None
        return self._come_to(
            Asker("device", f"device:{device}"),
            said,
            promise,
            outcome,
            f"what {device}.{method} gave",
            due=due,
            by=message.by,
        )

    def _come_to(
        self,
        asker: Asker,
        said: Mapping[str, Any],
        promise: int,
        outcome: Outcome,
        what: str,
        acknowledged: tuple[bytes, int] | None = None,
        due: float | None = None,
        by: Asker | None = None,
    ) -> Step:
        """A promise has its outcome from outside; that of a timer at the time for which it was `due`. The request with
        which somebody gave it is answered."""
        crank = self.crank
        draft = self._begin(asker)
        try:
            given = outcome.payload if outcome.succeeded else content_in(outcome.payload)
            outcome = Outcome(outcome.succeeded, crank.keep(given, what, INWARD))
        except NotAValue as error:
            outcome = crank.failed(error)
        draft.message = mapped({**said, "succeeded": outcome.succeeded, "payload": outcome.payload})
        if "effect" in said:
            crank.note(Op.ENDED, said["effect"])
            crank.progress.due = due
            if by is not None and (key := request_key(by)) is not None:
                crank.note(Op.ANSWERED, key, by.sent, True, None)
        elif said["number"] is not None:
            crank.note(Op.RECEIVED, said["from"], said["number"])
        crank.settle_and_run({promise: outcome})
        return self._seal(acknowledged, said.get("effect"))

    def _observed(self, message: Observed) -> Step:
        entry = self.heap.find("subscriptions", message.subscription)
        if entry is None:
            return Step(None)
        _, actor, method, _ = entry
        crank = self.crank
        draft = self._begin(Asker("dataspace", "observe"))
        found = crank.sought(actor, method, inner=True)
        args, _ = crank.arguments(found and found[0], [message.event], {}, INWARD)
        draft.message = mapped({"subscription": message.subscription, "event": args[0]})
        crank.note(Op.OBSERVED, message.subscription, message.cursor)
        crank.run(Delivery(actor, method, args, {}, _OUTSIDE, None, False, found))
        return self._seal()

    def _detached(self, message: Detach) -> Step:
        """The first crank of a fork: whatever waits for the outside breaks with `Forked`.

        But for what limits a wait that goes on: that is measured here as well, to the same moment.
        """
        heap, crank = self.heap, self.crank
        if not heap.forking:
            return Step(None)
        self._begin(RUNTIME["detach"]).message = FrozenDict({"detach": True})
        # Between cranks a promise that is pending waits for an effect, or for another vat. What reacts to one or
        # follows one comes to its end through it.
        waiting = {promise: None for promise, entry in heap.entries("promises") if pending_outside(entry)}
        limits = limits_of(heap, waiting)
        crank.note(Op.DETACHED, self.seq + 1)
        for promise, limit in limits.items():
            del waiting[promise]
            crank.want_again(promise, limit)
        crank.progress.subscriptions = True
        failure = crank.failed(Forked(f"this was asked by {self.id!r}'s parent before the fork; ask again from here"))
        crank.settle_and_run(dict.fromkeys(waiting, failure))
        return self._seal()

    _TAKES: ClassVar[dict[type, Callable[[Vat, Any], Step]]] = {
        Call: _called,
        Settled: _settled,
        Ended: _ended,
        Observed: _observed,
        Detach: _detached,
    }


def _said(call: Call, args: Sequence[Value], keywords: Mapping[str, Value]) -> FrozenDict:
    """A call as its record has it."""
    said: dict[str, Any] = {"to": call.to, "method": call.method, "args": listed(args)}
    if keywords:
        said["keywords"] = mapped(keywords)
    if call.sender is not None:
        said["from"], said["number"], said["promise"] = call.sender
        said["via"] = call.asker.via
    else:
        said["by"], said["via"] = call.asker.by, call.asker.via
        if call.asker.request is not None:
            said["request"] = call.asker.request
    return mapped(said)


def request_digest(method: str, args: Sequence[Value], keywords: Mapping[str, Value]) -> bytes:
    """What tells whether a request is the same: its method and arguments, whatever the order of their keys."""
    return digest_of([method, list(args), dict(keywords)])
