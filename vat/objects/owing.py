"""Promises that an actor makes and settles itself, in a later message: `owe`, and then `pay` or `fail`.

    def ask(self) -> Promise:
        self.waiting = owe(self)
        return self.waiting

    def answer(self, value) -> None:
        pay(self, self.waiting, value)

Such a promise survives like any other, and a fork has its own of it. It breaks with `Unpaid` when nothing reaches the
actor any more.

The one rule: who owes a promise is its settler, and nobody else is.
"""

from __future__ import annotations

from typing import Any

from dataspace import values
from vat.errors import NotOwed, PromiseGone
from vat.heap.entries import KEPT, SETTLER, STATE
from vat.heap.messages import Outcome
from vat.heap.refs import Promise
from vat.objects.actor import Actor


def owe(actor: Actor) -> Promise:
    """A promise that this actor will settle. Keep it in a field, or it can never be settled."""
    promise: Promise = actor._crank.make("actor", actor._actor)
    return promise


def owes(actor: Actor, promise: values.Promise) -> bool:
    """Whether this actor has yet to settle that promise: it owes it, and nobody has given up waiting."""
    try:
        entry = actor._crank.entry(promise)
    except PromiseGone:
        return False
    return bool(entry[STATE] < KEPT and list(entry[SETTLER]) == ["actor", actor._actor])


def pay(actor: Actor, promise: values.Promise, value: Any = None) -> None:
    """Fulfil a promise that this actor owes. Raises `NotOwed` for another, `NotAValue`."""
    _check(actor, promise)
    crank = actor._crank
    crank.settle(promise.id, Outcome(True, crank.keep(value, "what was owed")))


def fail(actor: Actor, promise: values.Promise, error: Exception) -> None:
    """Break a promise that this actor owes. Raises `NotOwed` for another."""
    _check(actor, promise)
    actor._crank.settle(promise.id, actor._crank.failed(error))


def _check(actor: Actor, promise: values.Promise) -> None:
    actor._crank.changes()
    if not owes(actor, promise):
        raise NotOwed(
            f"promise {promise.id} is not owed by this actor, or is settled: settle what owe(self) gave, and once"
        )
