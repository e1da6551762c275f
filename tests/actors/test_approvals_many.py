"""Very many calls that wait for a person: each costs the same, and none is kept when nobody waits for it."""

from __future__ import annotations

from typing import Any

import pytest

from actors.approvals import Approvals, NothingWaits
from actors.tools import CallRefused
from dataspace.drafts import read_deeds
from dataspace.values import freeze
from snapshots.pages import decode_tree
from tests.actors.driving import Driven
from tests.actors.test_session_many_calls import worked
from tests.actors.toolcalls import a_call
from vat.heap.messages import Call
from vat.heap.opcodes import Op
from vat.heap.refs import Promise, Ref, cancel
from vat.objects.actor import Actor, actor
from vat.objects.collections import List


@actor("approvals.crowd", version=1)
class Crowd(Actor):
    approvals: Approvals
    asked: List[Any]
    heard: List[str]

    def ask(self, *ids: str) -> None:
        for id in ids:
            promise = self.approvals.ask(a_call("drop", {"table": "users"}, id))
            promise.then(self.said, id, broken=self.broke)
            self.asked.append(promise)

    def said(self, approved: bool, id: str) -> None:
        self.heard.append(id)

    def broke(self, error: Exception, id: str) -> None:
        self.heard.append(f"{id}: {type(error).__name__}")

    def give_up(self, count: int) -> None:
        for promise in self.asked[:count]:
            cancel(promise, LookupError("never mind"))


def crowd() -> Driven:
    return Driven(Crowd, {})


def tell(driven: Driven, method: str, id: str) -> None:
    """A person says something about a call. Raises what the approvals raise."""
    heap = driven.vat.heap
    number = next(actor for actor in heap.actors() if heap.state(actor).type == "keeve.approvals")
    said: list[Any] = []
    driven.note(driven.vat.take(Call(number, method, freeze([id]), reply=said.append)))
    if not said[0].succeeded:
        raise NothingWaits(id, ())


def held(driven: Driven) -> list[int]:
    """How much is held of what waits, and of the ids that were ever given to what did."""
    heap = driven.vat.heap
    [fields] = [heap.state(n).fields for n in heap.actors() if heap.state(n).type == "keeve.approvals"]
    return [fields[name].count for name in ("_wanted", "_numbers")]


@pytest.mark.parametrize("restarts", [False, True])
def test_what_nobody_waits_for_any_more_is_not_kept(restarts: bool) -> None:
    driven = crowd()
    driven.call("ask", "a", "b", "c", "d")
    if restarts:
        driven.restart()
    assert held(driven) == [4, 4]
    driven.call("give_up", 2)
    assert held(driven) == [2, 4]
    tell(driven, "approve", "c")
    tell(driven, "refuse", "d")
    assert held(driven) == [0, 4]
    assert driven.read("heard") == ["a: LookupError", "b: LookupError", "c", f"d: {CallRefused.__name__}"]
    for id in "abcd":
        with pytest.raises(NothingWaits):
            tell(driven, "approve", id)


def test_calls_that_are_called_alike_wait_each_under_its_own_id() -> None:
    driven = crowd()
    driven.call("ask", "a", "a.3", "a", "a", "a")
    assert held(driven) == [5, 5]
    driven.call("give_up", 1)
    driven.call("ask", "a")
    assert held(driven) == [5, 6]


def test_twice_as_many_that_wait_cost_twice_as_much() -> None:
    costs = []
    for count in (150, 300):
        driven, ids = crowd(), [f"c{n}" for n in range(count)]

        def decide(driven: Driven = driven, ids: list[str] = ids) -> None:
            driven.call("ask", *ids)
            for id in reversed(ids):
                tell(driven, "approve", id)

        costs.append(worked(decide))
        assert driven.read("heard") == ids[::-1]
    assert costs[1] < 2.3 * costs[0]


def test_asking_does_what_records_of_it_have() -> None:
    """A part of a fiber may have asked, and is run again with the code of today: it must do the same."""
    driven = crowd()
    step = driven.vat.take(Call(1, "ask", freeze(["a"])))
    deeds = read_deeds(step.record.deeds, ref=Ref, promise=Promise, tree=decode_tree)
    did = [(Op(kind).name, *(args[1:2] if kind in (Op.SET, Op.CHANGE) else ())) for kind, *args in deeds.operations]
    own = did[: did.index(("STATED",)) + 1]
    assert own == [
        ("BEGIN",),
        ("SET", "_asked"),
        ("MADE",),
        ("MADE",),
        ("REACTS",),
        ("HELD",),
        ("CHANGE", "_wanted"),
        ("CHANGE", "_numbers"),
        ("STATED",),
    ]
