"""The actors and devices of the crash suites: small, and everything about them can be seen from outside.

The one rule: a device writes into the journal before it answers, so that what the world saw outlives the store.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from vat.devices.devices import Effect, effect
from vat.heap.refs import Promise, Ref
from vat.objects.actor import Actor, actor
from vat.objects.collections import List, Map, Set
from vat.objects.types import read

Note = Callable[[str, str, Any], None]
"""Told of each call of a device: the device, the effect's id, what it was called with."""


@actor("crash.counter", version=1)
class Counter(Actor):
    """Counts, keeps what it was given, states facts, speaks to others and to devices."""

    count: int = 0
    friend: Ref | None = None
    seen: List[str]
    held: Map[str, Any]
    kept: Map[str, str]
    names: Set[str]

    def add(self, who: str) -> int:
        self.count += 1
        self.seen.append(who)
        self.names.add(who)
        self.assert_fact("crash.added", self.session_id, who, n=self.count)
        return self.count

    def put(self, key: str, text: str) -> int:
        self.kept[key] = text
        return len(self.kept)

    def fail(self, who: str) -> int:
        self.add(who)
        raise ValueError(f"{who} was one too many")

    def claim(self, key: str) -> bool:
        self.held[key] = list(self.assert_fact("crash.held", self.session_id, key))
        return True

    def drop(self, key: str) -> bool:
        self.retract(self.held.pop(key))
        return True

    def meet(self, other: Ref) -> bool:
        self.friend = other
        return True

    def greet(self, who: str) -> Promise:
        assert self.friend is not None
        return self.tell(self.friend, who)

    def tell(self, other: Ref, who: str) -> Promise:
        return other.add(who).then(self._told, who, broken=self._untold)

    def _told(self, count: int, who: str) -> str:
        self.seen.append(f"told {who}")
        return f"{who} is number {count}"

    def _untold(self, error: Exception, who: str) -> str:
        self.seen.append(f"{type(error).__name__} for {who}")
        return type(error).__name__

    def pay(self, amount: int) -> Promise:
        self.count += 1
        return self.device("bank").pay(amount).then(self._paid, broken=self._unpaid)

    def _paid(self, receipt: str) -> str:
        self.seen.append(f"paid {receipt}")
        return receipt

    def _unpaid(self, error: Exception) -> str:
        self.seen.append(f"unpaid {type(error).__name__}")
        return type(error).__name__

    def ask(self, question: str) -> Promise:
        return self.device("oracle").ask(question, self.seen.view()).then(self._answered)

    def _answered(self, answer: str) -> str:
        self.seen.append(answer)
        return answer

    @read
    def state(self) -> dict[str, Any]:
        return {
            "count": self.count,
            "seen": list(self.seen),
            "held": sorted(self.held),
            "kept": dict(self.kept),
            "names": list(self.names),
        }


class Bank:
    """A device whose calls must not be repeated."""

    def __init__(self, note: Note) -> None:
        self._note = note

    @effect()
    async def pay(self, effect: Effect, amount: int) -> str:
        self._note("bank", effect.id, amount)
        return f"receipt {amount}"


class Oracle:
    """A device that may be asked again."""

    def __init__(self, note: Note) -> None:
        self._note = note

    @effect(on_crash="retry")
    async def ask(self, effect: Effect, question: str, seen: Any) -> str:
        self._note("oracle", effect.id, question)
        return f"{question}? {len(seen)}"
