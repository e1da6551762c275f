"""Collecting: what nothing reaches goes, in a crank of its own; what is reached, or was handed out, stays."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from vatmaker import ROOT, World, assert_restores, dump, operations, said

from dataspace.log.files import ReadFailed
from vat.crank.collecting import FEWEST, unreached, worthwhile
from vat.crank.fibers import Fibers
from vat.errors import NoSuchActor
from vat.heap.opcodes import Op
from vat.heap.refs import Ref, near
from vat.objects.actor import Actor, actor
from vat.objects.collections import List, Map, Set

script: dict[str, Any] = {}


@actor("collecting.node", version=1)
class Node(Actor):
    value: Any = None
    links: List[Any]
    by_key: Map[Any, Any]
    members: Set[Any]
    lines: List[str]

    def run(self, name: str = "go", *args: Any) -> Any:
        return script[name](self, *args)

    def link(self, *refs: Any) -> None:
        self.links.extend(refs)

    def note(self, value: Any) -> None:
        self.lines.append(str(value))


@pytest.fixture
def world():
    return World(Node)


@pytest.fixture
def node(world):
    return world.spawn(Node)


def run(world, session, **functions):
    script.update(functions)
    return world.tell(session, "run", next(iter(functions)))


def collect(session):
    return session.keep(session.vat.collect())


def test_what_nothing_reaches_goes_in_a_crank_of_its_own(world, node):
    def go(me):
        kept = me.spawn(Node)
        me.spawn(Node)
        me.value = {"deep": [kept]}

    run(world, node, go=go)
    step = collect(node)
    assert [list(op[1]) for op in operations(step.record) if op[0] == Op.COLLECTED] == [[3]]
    assert said(step.record) == {"collect": True}
    assert node.heap.actors() == [1, 2]
    with pytest.raises(NoSuchActor):
        world.ask(node, "value", to=3)
    assert node.vat.collect() is None
    assert_restores(world, node)


@pytest.mark.parametrize(
    "hold",
    [
        lambda me, made: setattr(me, "value", made),
        lambda me, made: me.links.append([1, {"a": made}]),
        lambda me, made: me.by_key.update({1: [made]}),
        lambda me, made: me.by_key.update([(made, 1)]),
        lambda me, made: me.members.add(made),
        lambda me, made: setattr(me, "value", me.narrow("run").actor and near(made).narrow("run")),
    ],
)
def test_it_is_reached_wherever_it_stands(world, node, hold):
    def go(me):
        hold(me, me.spawn(Node))
        me.spawn(Node)

    run(world, node, go=go)
    node.snapshot()
    again = world.reload(node)
    collect(again)
    assert 2 in again.heap.actors()
    assert 3 not in again.heap.actors()
    assert_restores(world, again)


def test_circles_that_nothing_reaches_go(world, node):
    def go(me):
        first, second = me.spawn(Node), me.spawn(Node)
        near(first).link(second)
        near(second).link(first)

    run(world, node, go=go)
    collect(node)
    assert node.heap.actors() == [1]
    assert_restores(world, node)


def test_what_was_handed_out_stays_until_it_is_revoked(world, node):
    def go(me):
        made = me.spawn(Node)
        return [made, near(me.spawn(Node)).narrow("note")]

    outcome = run(world, node, go=go)
    handed, facet = outcome.payload
    assert node.vat.collect() is None
    world.ask(node, "note", 1, to=facet.actor)

    def back(me):
        for one in (2, 3):
            near(Ref(None, one)).revoke(facet)

    assert run(world, node, back=back).succeeded is False, "only the one that it was narrowed from takes it back"
    run(world, node, back=lambda me: near(Ref(None, 3)).revoke(Ref(None, facet.actor)))
    collect(node)
    assert node.heap.actors() == [1, handed.actor]
    assert_restores(world, node)


def test_a_narrowed_ref_that_nobody_has_goes(world, node):
    run(world, node, go=lambda me: me.narrow("run") and None)
    collect(node)
    assert node.heap.system["facets"].count == 0
    assert_restores(world, node)


def test_what_a_promise_will_call_stays(world, node):
    def go(me):
        first, second, third = me.spawn(Node), me.spawn(Node), me.spawn(Node)
        me.device("d").call().then(near(first).note, broken=near(second).note)
        me.device("d").call().then(me.run, third)

    run(world, node, go=go)
    assert node.vat.collect() is None
    world.settle(node, 1)
    world.settle(node, error={"error": "ValueError", "message": "x"})
    collect(node)
    assert node.heap.actors() == [1]
    assert node.heap.system["promises"].count == 0
    assert_restores(world, node)


def test_what_observes_stays(world, node):
    def go(me):
        made = me.spawn(Node)
        return near(made).run("observe")

    script["observe"] = lambda me: me.observe("(a.b . _)", me.note)
    run(world, node, go=go)
    assert node.vat.collect() is None
    run(world, node, stop=lambda me: me.unobserve(1))
    collect(node)
    assert node.heap.actors() == [1]


def test_what_a_message_or_an_effect_on_its_way_refers_to_stays(world, node):
    peer = world.spawn(Node, "s2")

    def go(me):
        me.links.append(me.spawn(Node))
        me.device("d").call(me.links.view())
        me.links.clear()
        waiting = me.device("d").call()
        Ref(peer.vat.uid, ROOT).note([me.spawn(Node), waiting])

    run(world, node, go=go)
    assert node.vat.collect() is None
    assert_restores(world, node)


def test_settled_promises_that_nothing_refers_to_go(world, node):
    def go(me):
        me.value = [me.ref.run("one"), me.device("d").call()]

    script["one"] = lambda me: 1
    run(world, node, go=go)
    assert node.vat.collect() is None
    run(world, node, drop=lambda me: setattr(me, "value", None))
    collect(node)
    assert [promise for promise, _ in node.heap.entries("promises")] == [2], "the other one is not settled"
    world.settle(node, 5)
    assert_restores(world, node)
    collect(node)
    assert node.heap.system["promises"].count == 0


def test_a_settled_promise_keeps_what_came_of_it(world, node):
    def go(me):
        me.value = me.ref.run("make")

    script["make"] = lambda me: [me.spawn(Node)]
    run(world, node, go=go)
    assert node.vat.collect() is None
    assert node.heap.actors() == [1, 2]


def test_collecting_does_not_cost_the_length_of_a_history(world, node):
    """Invariant 36."""
    loads = []
    for lines in (1_000, 20_000):
        run(world, node, fill=lambda me, lines=lines: me.lines.extend(f"line {n}" for n in range(lines)))
        run(world, node, make=lambda me: me.spawn(Node) and None)
        node.snapshot()
        again = world.reload(node)
        again.log.loads = 0
        actors, _ = unreached(again.heap)
        assert actors
        loads.append(again.log.loads)
    assert loads[1] <= loads[0] + 1
    assert loads[1] < 10


def test_it_is_looked_for_when_half_as_much_was_made_as_there_is():
    assert not worthwhile(FEWEST - 1, 0, 0)
    assert worthwhile(FEWEST, 0, 10)
    assert not worthwhile(1_000, 0, 5_000)
    assert worthwhile(6_000, 1_000, 5_000)


def test_a_vat_says_when_it_is_worth_it(world, node):
    run(world, node, go=lambda me: [me.spawn(Node) for _ in range(FEWEST)] and None)
    assert node.vat.worth_collecting
    collect(node)
    assert not node.vat.worth_collecting
    assert not world.reload(node).vat.worth_collecting, "it is remembered over a restart"
    run(world, node, keep=lambda me: me.links.extend(me.spawn(Node) for _ in range(2 * FEWEST)))
    assert node.vat.worth_collecting
    assert node.vat.collect() is None
    assert not node.vat.worth_collecting, "it has looked"


def test_what_cannot_be_read_is_not_looked_for_again_at_once(world, node, monkeypatch):
    def unreadable(fibers):
        raise ReadFailed("log", "I/O error")

    monkeypatch.setattr(Fibers, "in_locals", unreadable)
    run(world, node, go=lambda me: [me.spawn(Node) for _ in range(FEWEST)])
    assert node.vat.worth_collecting
    with pytest.raises(ReadFailed):
        node.vat.collect()
    assert not node.vat.worth_collecting


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 8),
    st.lists(
        st.tuples(st.integers(1, 8), st.integers(1, 8), st.sampled_from(["value", "links", "by_key"])), max_size=14
    ),
    st.booleans(),
)
def test_exactly_what_the_first_actor_reaches_stays(count, edges, snapshot):
    world = World(Node)
    node = world.spawn(Node)

    def go(me):
        for _ in range(count - 1):
            me.spawn(Node)
        for source, target, where in edges:
            if source <= count and target <= count:
                near(Ref(None, source)).run("edge", Ref(None, target), where)

    def edge(me, target, where):
        if where == "value":
            me.value = [target, me.value]
        elif where == "links":
            me.links.append(target)
        else:
            me.by_key[target] = [target]

    run(world, node, go=go, edge=edge)
    if snapshot:
        node.snapshot()
        node = world.reload(node)
    reached, todo = {1}, [1]
    while todo:
        here = todo.pop()
        for source, target, _ in edges:
            if source == here and target <= count and target not in reached:
                reached.add(target)
                todo.append(target)
    node.keep(node.vat.collect())
    assert set(node.heap.actors()) == reached
    assert dump(node.heap)["types"] == {"collecting.node": (1, len(reached))}
    assert_restores(world, node)
