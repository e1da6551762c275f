"""The turns that wait until those before them are over.

    _wait(n)     what begins turn n is owed (`owe`): its caller has the promise of what comes of it
    _admit()     the first of them begins
    _drop(n)     it was ended, or its caller gave it up, while it waited: its promise breaks at once

The one rule: a turn is in `_queue` from its acceptance until it begins or ends, unless it begins at once.
"""

from __future__ import annotations

from typing import Any

from actors.messages import named
from vat.heap.refs import Promise
from vat.objects.actor import Actor, state_own
from vat.objects.collections import Map
from vat.objects.owing import fail, owe, owes, pay


class Queueing(Actor):
    """The part of a session that lets one turn begin after another."""

    _queue: Map[int, int]
    """The turns that wait, and the promise that lets each begin; by number, since one that is held outlives its end."""

    def _wait(self, n: int) -> Promise:
        """A turn waits from now on; gives the promise of what comes of it."""
        admitted = owe(self)
        self._queue[n] = admitted.id
        admitted.then(None, n, broken=self._unbegun)
        return admitted.then(self._begin, n)

    def _admit(self) -> None:
        """Those before it are over: the turn that has waited longest begins in this crank, if there is one."""
        for admitted in map(Promise, self._queue.values()):
            if owes(self, admitted):  # it is not being given up in this very crank
                pay(self, admitted)
                return

    def _drop(self, n: int, error: Exception, label: str, /, **said: Any) -> None:
        """End a turn that waits; the fact `label` says how."""
        admitted = Promise(self._queue.pop(n))
        state_own(self, label, n, self.session_id, **said)
        fail(self, admitted, error)

    def _unbegun(self, error: Exception, n: int) -> None:
        """A turn will never begin: it was dropped, or whoever has its promise gave it up."""
        if n in self._queue:
            del self._queue[n]
            state_own(self, "turn-failed", n, self.session_id, error=named(error))

    def _first(self) -> int | None:
        """The turn that has waited longest."""
        return next(iter(self._queue), None)

    # What the turn says.

    def _begin(self, before: Any, n: int) -> Promise:
        """Begin a turn; gives the promise of its output."""
        raise NotImplementedError
