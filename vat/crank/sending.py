"""Sending: to actors of this vat, to other vats, to devices; and what a value becomes on its way out.

What leaves the vat names it in its refs, and has the values of promises in their place. A message that is to carry a
promise which is not settled waits for it; a result or a device's argument that does is refused.

The one rule: nothing leaves from here. What is to leave is an operation, and noted for when the record is durable.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from dataspace import values
from dataspace.values import MAX_DEPTH, NotAValue, Value
from vat.crank.deliveries import Delivery
from vat.crank.progress import HERE, OUTWARD
from vat.crank.promises import Promises
from vat.crank.whole import whole
from vat.errors import PromiseGone
from vat.heap.entries import BROKEN, KEPT, PAYLOAD, PENDING, SETTLER, STATE, Effect, effect_id, root_of
from vat.heap.indexes import effect_of
from vat.heap.messages import UNIVERSAL, Outcome
from vat.heap.opcodes import Op, To
from vat.heap.refs import DIRECTORY, Promise, Ref
from vat.heap.stored import PLAIN, listed, mapped
from vat.objects.types import Method
from vat.objects.views import View


class _Unsettled(Exception):
    """A promise without a value was to leave the vat."""

    def __init__(self, promise: values.Promise) -> None:
        super().__init__(promise)
        self.promise = promise


class _Broken(Exception):
    """A broken promise was to leave the vat."""

    def __init__(self, failure: Value) -> None:
        super().__init__(failure)
        self.failure = failure


class Sending(Promises):
    """A transaction that sends."""

    __slots__ = ()

    @whole
    def send(self, to: Ref, method: str, args: tuple[Any, ...], keywords: dict[str, Any]) -> Promise:
        """An eventual send: near ones are deliveries of this crank, far ones leave when it is durable.

        Gives the promise for the result. Raises `NotAValue` for arguments that are none.
        """
        self.changes()
        method = self.word(method, "a method")
        session = None if to.session == self.uid else to.session
        if session is None and method not in UNIVERSAL:
            kept, named = self.arguments(self.known(to.actor, method), args, keywords)
            result = self.make("send")
            self.progress.queue.append(Delivery(to.actor, method, kept, named, (To.FOLLOW, result.id)))
            return result
        target = Ref(session, to.actor)
        try:
            kept, named = self.arguments(None, args, keywords, OUTWARD)
        except _Unsettled as unsettled:
            # It waits here until what it is to carry is there.
            kept, named = self.arguments(None, args, keywords)
            result = self.make("send")
            self.wait(unsettled.promise, [To.RESEND, target, method, listed(kept), mapped(named), result.id])
        except _Broken as broken:
            result = self.make("send")
            self.settle(result.id, Outcome(False, broken.failure))
        else:
            result = self.make("send")
            self._dispatch(target, method, kept, named, result.id)
        return result

    def _dispatch(
        self, to: Ref, method: str, args: Sequence[Value], keywords: Mapping[str, Value], result: int
    ) -> None:
        if to.session == DIRECTORY:
            self._want("directory", method, args, keywords, [], result)
            return
        said = {"to": to.actor, "method": method, "args": listed(args), "keywords": mapped(keywords), "promise": result}
        self._out(self.uid if to.session is None else to.session, said)

    def _out(self, uid: bytes, said: Mapping[str, Value]) -> None:
        number = self.heap.count("message")
        message = mapped(said)
        self.note(Op.SENT, number, uid, message)
        self.progress.sent.append((number, uid, message))

    def resend(self, result: Sequence[Any]) -> None:
        _, to, method, args, keywords, promise = result
        try:
            kept = [self._left(arg) for arg in args]
            named = {name: self._left(arg) for name, arg in keywords.items()}
        except _Unsettled as unsettled:
            self.wait(unsettled.promise, result)
        except _Broken as broken:
            self.settle(promise, Outcome(False, broken.failure))
        except (NotAValue, PromiseGone) as error:
            self.settle(promise, self.failed(error))
        else:
            self._dispatch(to, method, kept, named, promise)

    def reply(self, uid: bytes, promise: int, outcome: Outcome) -> None:
        succeeded, payload = self.leaving(outcome)
        self._out(uid, {"settle": promise, "succeeded": succeeded, "payload": payload})

    # Arguments, and what leaves.

    def arguments(
        self, found: Any, args: Sequence[Any], keywords: Mapping[str, Any], mode: int = HERE, after: int = 0
    ) -> tuple[list[Value], dict[str, Value]]:
        """Arguments in stored form, for the method or field `found` if it is known, from the place `after` on.

        Raises `NotAValue`.
        """
        keep = self.keep
        marks: Mapping[str | int, Any] = found.marks if type(found) is Method else {}
        kept: list[Value] = []
        for place, arg in enumerate(args, after):
            mark = marks.get(place)
            kept.append(keep(arg if mark is None else mark(arg), f"argument {place + 1}", mode))
        if not keywords:
            return kept, {}
        named: dict[str, Value] = {}
        for name, arg in keywords.items():
            mark = marks.get(name)
            named[self.word(name, "an argument")] = keep(arg if mark is None else mark(arg), f"argument {name}", mode)
        return kept, named

    def carried(self, promise: values.Promise, depth: int = 0) -> Value:
        entry = self.entry(promise)
        if entry[STATE] < KEPT:
            raise _Unsettled(promise)
        if entry[STATE] == BROKEN:
            raise _Broken(entry[PAYLOAD])
        return self._left(entry[PAYLOAD], depth)

    def _left(self, stored: Value, depth: int = 0) -> Value:
        """A stored value as it leaves: the very same when there is nothing in it to change."""
        kind = type(stored)
        if kind in PLAIN:
            return stored
        if kind is Ref:
            if stored.session is not None:
                return stored
            self.hand(stored.actor)
            return Ref(self.uid, stored.actor)
        if kind is Promise:
            return self.carried(stored, depth)
        if not isinstance(stored, dict | list):
            return stored
        if depth >= MAX_DEPTH:
            why = f"nested more than {MAX_DEPTH} deep with the values of its promises, one of which may hold itself"
            raise NotAValue("the value", kind, why)
        if isinstance(stored, dict):
            items = {key: self._left(item, depth + 1) for key, item in stored.items()}
            return stored if all(items[key] is item for key, item in stored.items()) else mapped(items)
        left = [self._left(item, depth + 1) for item in stored]
        return stored if all(map(lambda new, old: new is old, left, stored)) else listed(left)

    def leaving(self, outcome: Outcome) -> Outcome:
        if type(outcome.payload) in PLAIN:
            return outcome
        try:
            return Outcome(outcome.succeeded, self._left(outcome.payload))
        except _Broken as broken:
            return Outcome(False, broken.failure)
        except _Unsettled as unsettled:
            why = f"promise {unsettled.promise.id} in it has no value yet; return the promise itself"
            return self.failed(NotAValue("the result", Promise, why))
        except (NotAValue, PromiseGone) as error:
            return self.failed(error)

    # Effects.

    @whole
    def want(self, device: str, method: str, args: Sequence[Any], keywords: Mapping[str, Any]) -> Promise:
        """An effect: the host carries it out when this crank is durable. Views are allowed as arguments.

        Gives the promise for the outcome. Raises `NotAValue`.
        """
        self.changes()
        device, method = self.word(device, "a device"), self.word(method, "a method")
        views: list[Value] = []
        plain = [self._viewed(arg, place, views) for place, arg in enumerate(args)]
        others = {name: self._viewed(arg, name, views) for name, arg in keywords.items()} if keywords else keywords
        try:
            kept, named = self.arguments(None, plain, others, OUTWARD)
        except _Unsettled as unsettled:
            why = f"promise {unsettled.promise.id} has no value yet: call the device in a reaction to it"
            raise NotAValue(f"an argument of {device}.{method}", Promise, why) from None
        except _Broken as broken:
            result = self.make("effect", device, method)
            self.settle(result.id, Outcome(False, broken.failure))
            return result
        result = self.make("effect", device, method)
        self._want(device, method, kept, named, views, result.id)
        return result

    def _viewed(self, arg: Any, place: int | str, views: list[Value]) -> Any:
        if not isinstance(arg, View) or not arg.within(self.heap.views):
            return arg
        views.append(listed([place, arg.number]))
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
        id = bytes.fromhex(effect_id(self.powers.log_id, self.uid, self.record.seq, number))
        self.note(Op.WANTED, number, id, device, method, listed(args), mapped(keywords), listed(views), result)
        self.progress.wanted.append(number)

    def want_again(self, promise: int, entry: Sequence[Any]) -> None:
        """Want what an effect's entry says, which has gone without an outcome, for the same promise."""
        keywords = mapped(dict(entry[Effect.KEYWORDS]))
        self._want(entry[Effect.DEVICE], entry[Effect.METHOD], entry[Effect.ARGS], keywords, [], promise)

    def timer(self, seconds: float) -> Promise:
        """The promise of the effect that ends when so many seconds have passed since this crank began."""
        return self.want("timer", "until", (self.deadline(seconds),), {})

    def deadline(self, seconds: float) -> float:
        """When so many seconds have passed since this crank began, in seconds since 1970.

        By the clock itself, which a vat's time is ahead of when it was set back. Raises `TypeError` or `ValueError` for
        no number of seconds.
        """
        if isinstance(seconds, bool) or not isinstance(seconds, int | float):
            raise TypeError(f"a number of seconds is wanted, not {seconds!r}")
        if not seconds > -math.inf:  # which nan is not either
            raise ValueError(f"{seconds} is no number of seconds that can pass: give 0 or more")
        self.changes()
        time, clock = self.time, self.powers.clock()
        if clock < time:
            self.note(Op.CLOCKED, clock)
        return min(time, clock) / 1_000_000 + seconds

    def begun(self, promise: values.Promise) -> bool:
        """Whether what settles a promise may have begun outside: see `vat.heap.refs.begun`."""
        root, entry = root_of(self.heap, promise.id)
        if entry is None or entry[STATE] != PENDING:
            return True
        if entry[SETTLER][0] == "actor":
            return False
        number = effect_of(self.heap, root)
        if number is None or self.heap.find("effects", number)[Effect.STARTED]:
            return True
        begun = self.powers.begun(self.uid, number)
        self.note(Op.LOOKED, number, begun)
        return begun

    @whole
    def cancel(self, promise: values.Promise, error: Exception) -> bool:
        """Give up what settles a promise: an effect, or a fiber, which gets `error`. False when there is neither."""
        self.changes()
        return self.give_up(promise.id, self.failed(error))

    def give_up(self, promise: int, failure: Outcome) -> bool:
        """Give up the effects and fibers that a promise waits for, through all that these wait for."""
        first = True
        given_up = False
        todo, seen = [promise], {promise}
        while todo:
            further = self._give_up(todo.pop(), failure)
            if first:
                first, given_up = False, further is not None
            for other in reversed(further or ()):
                if other not in seen:
                    seen.add(other)
                    todo.append(other)
        return given_up

    def forsake(self, actor: int, waited: Sequence[int], held: Sequence[int], failure: Outcome) -> None:
        """A fiber of an actor has broken: give up what it `waited` for and nobody else does.

        Of what else it `held`, what other actors owe, as a call that waits for a person. What has begun outside, and is
        on record as that, goes on to its end.
        """
        todo = [*waited, *(promise for promise in held if self._root(promise)[:1] == ("actor",))]
        seen = set(todo)
        told: set[int] = set()
        for promise in todo:
            settler = self._root(promise)
            if not settler or settler[-1] is True or settler == ("actor", actor) or not self.forsaken(promise, told):
                continue
            if settler[0] == "fiber":
                told.add(settler[1])
            for other in self._give_up(promise, failure) or ():
                if other not in seen:
                    seen.add(other)
                    todo.append(other)

    def _root(self, promise: int) -> tuple[Any, ...]:
        """Who is to settle what a promise comes down to, () if it is settled. An effect with whether it has begun."""
        root, entry = root_of(self.heap, promise)
        if entry is None or entry[STATE] != PENDING:
            return ()
        if entry[SETTLER][0] != "effect":
            return tuple(entry[SETTLER])
        number = effect_of(self.heap, root)
        return ("effect", number, number is None or bool(self.heap.find("effects", number)[Effect.STARTED]))

    def _give_up(self, promise: int, failure: Outcome) -> Sequence[int] | None:
        """Give up what settles a promise: gives what that waits for, or None if there is nothing to give up."""
        root, entry = root_of(self.heap, promise)
        if entry is None or entry[STATE] != PENDING:
            return None
        settler = entry[SETTLER]
        if settler[0] == "fiber":
            return self.fibers.throw(settler[1], failure)
        if settler[0] != "actor":  # who owes it is told by `owes`
            number = effect_of(self.heap, root)
            if number is None:
                return None
            started = bool(self.heap.find("effects", number)[Effect.STARTED])
            # Not on record, since no part of a fiber is told of it: only reactions of this crank, which run once.
            self.progress.given_up[root] = started or self.powers.begun(self.uid, number)
            self.do(Op.ENDED, number)
            self.progress.cancelled.append(number)
        self.settle(root, failure)
        return ()
