"""Facts as part of a record: stated, retracted, undone with their delivery."""

from __future__ import annotations

from typing import Any

import pytest
from vatmaker import World, assert_restores, everything

from dataspace.drafts import Assertion, Handle, Retraction, read_statements
from dataspace.facts import BadName, fact
from dataspace.records import split_cell
from dataspace.values import NotAValue, Text
from vat.errors import NoSuchFact
from vat.heap.messages import NOBODY
from vat.heap.refs import near
from vat.objects.actor import Actor, actor, state_own
from vat.objects.collections import List

script: dict[str, Any] = {}


@actor("facts.witness", version=1)
class Witness(Actor):
    handles: List[Any]

    def run(self, name: str = "go") -> Any:
        return script[name](self)


@pytest.fixture
def world():
    return World(Witness)


@pytest.fixture
def witness(world):
    return world.spawn(Witness)


def run(world, session, **functions):
    script.update(functions)
    return world.ask(session, "run", next(iter(functions)))


def stated(record):
    """What a reader of the log finds in the facts of a record."""
    return read_statements(record.facts, lambda cell: split_cell(record.cells[cell.number]).content)


def held(session):
    return [key for key, _ in session.heap.entries("facts")]


def test_a_session_states_its_birth(world, witness):
    [statement] = stated(witness.records[0])
    assert str(statement.fact) == '(spawn "s1" #:type "facts.witness" #:by "local" #:via "python")'


def test_a_fact_is_part_of_its_cranks_record(world, witness):
    def go(me):
        return list(me.assert_fact("shop.order", 1, "tea", to=["ann"], paid=True))

    handle = run(world, witness, go=go)
    record = witness.records[-1]
    [statement] = stated(record)
    assert statement == Assertion(handle[1], fact("shop.order", 1, "tea", to=["ann"], paid=True))
    assert record.statements == [statement]
    assert handle[0] == record.seq
    assert_restores(world, witness)


def test_long_content_in_a_fact_is_a_cell_that_the_operations_share(world, witness):
    long = "said " * 100

    def go(me):
        me.handles.append(long)
        me.assert_fact("my.said", Text("tiny"), text={"deep": [long]})

    run(world, witness, go=go)
    record = witness.records[-1]
    assert len(record.cells) == 2
    assert everything(record).count(long.encode()) == 1
    assert b"tiny" not in record.facts
    assert stated(record)[0].fact == fact("my.said", "tiny", text={"deep": [long]})


def test_a_fact_is_taken_back_by_its_handle(world, witness):
    def go(me):
        me.handles.append(me.assert_fact("my.state", "on"))

    run(world, witness, go=go)
    [key] = held(witness)
    again = world.reload(witness)
    run(world, again, back=lambda me: me.retract(me.handles[0]))
    assert stated(again.records[-1]) == [Retraction(1, Handle(2, key & 0xFFFFFF))]
    assert held(again) == []
    assert_restores(world, again)


def test_a_fact_may_be_taken_back_in_the_crank_that_stated_it(world, witness):
    run(world, witness, go=lambda me: me.retract(me.assert_fact("my.state", 1)))
    assert [type(one) for one in stated(witness.records[-1])] == [Assertion, Retraction]
    assert held(witness) == []
    assert_restores(world, witness)


@pytest.mark.parametrize("handle", [(2, 77), (99, 1), (-1, 1), (1, 1 << 30), ("a", 1), (1,), 5])
def test_what_is_not_stated_cannot_be_taken_back(world, witness, handle):
    run(world, witness, go=lambda me: me.handles.append(me.assert_fact("my.state", 1)))
    with pytest.raises((NoSuchFact, TypeError, ValueError)):
        run(world, witness, go=lambda me: me.retract(handle))
    assert len(held(witness)) == 1


def test_ones_own_session_cannot_be_denied(world, witness):
    """Facts without a dot are Keeve's and cannot be retracted."""
    with pytest.raises(NoSuchFact):
        run(world, witness, go=lambda me: me.retract((1, 1)))
    with pytest.raises(BadName, match="labels without a dot are Keeve's"):
        run(world, witness, go=lambda me: me.assert_fact("turn", 1))


def test_keeves_own_facts_are_for_ever(world, witness):
    run(world, witness, go=lambda me: state_own(me, "turn", 1, "s1", input="hello"))
    assert held(witness) == []
    assert str(stated(witness.records[-1])[0].fact) == '(turn 1 "s1" #:input "hello")'


@pytest.mark.parametrize(
    ("state", "error"),
    [
        (lambda me: me.assert_fact("my fact"), BadName),
        (lambda me: me.assert_fact("my.fact\ud800"), BadName),
        (lambda me: me.assert_fact(5), BadName),
        (lambda me: me.assert_fact("my.fact", **{"not a word": 1}), BadName),
        (lambda me: me.assert_fact("my.fact", object()), NotAValue),
        (lambda me: me.assert_fact("my.fact", key=[me.ref.run()]), NotAValue),
    ],
)
def test_what_is_no_fact_is_refused_and_leaves_nothing(world, witness, state, error):
    def go(me):
        me.assert_fact("my.good", 1)
        with pytest.raises(error):
            state(me)
        me.assert_fact("my.good", 2)

    script["go"] = lambda me: None
    run(world, witness, attempt=go)
    assert [str(one.fact) for one in stated(witness.records[-1])] == ["(my.good 1)", "(my.good 2)"]
    assert_restores(world, witness)


def test_facts_of_what_was_undone_are_undone_and_the_handles_of_others_still_fit(world, witness):
    """Invariant 5."""

    def go(me):
        first = me.assert_fact("my.state", "first", text="kept " * 99)
        with pytest.raises(ValueError, match="undone"):
            near(me.ref).run("inner")
        second = me.assert_fact("my.state", "second")
        me.handles.extend([first, second])

    def inner(me):
        me.assert_fact("my.state", "canary", text="canary " * 99)
        raise ValueError("undone")

    run(world, witness, go=go, inner=inner)
    record = witness.records[-1]
    assert b"canary" not in everything(record)
    ats = [statement.at for statement in stated(record)]
    assert [handle[1] for handle in world.ask(witness, "handles")] == ats
    run(world, witness, back=lambda me: [me.retract(handle) for handle in me.handles] and None)
    assert held(witness) == []
    assert_restores(world, witness)


def test_presence_is_retracted_when_the_session_is_deleted(world, witness):
    def go(me):
        me.assert_fact("my.presence", "here", presence=True)
        me.assert_fact("my.memory", "kept")

    run(world, witness, go=go)
    handles = [Handle(key >> 24, key & 0xFFFFFF) for key in held(witness)]
    witness.keep(witness.vat.delete(NOBODY))
    retracted, deleted = stated(witness.records[-1])
    assert retracted == Retraction(0, handles[0])
    assert str(deleted.fact) == '(deleted "s1")'
    assert witness.records[-1].pending == 0


def test_a_fork_retracts_its_own_presence_only_but_may_take_back_what_it_inherited(world, witness):
    def go(me):
        me.handles.append(me.assert_fact("my.presence", "parent", presence=True))
        me.handles.append(me.assert_fact("my.memory", "parent"))

    run(world, witness, go=go)
    child = world.fork(witness)
    run(world, child, mine=lambda me: me.assert_fact("my.presence", "child", presence=True) and None)
    own = child.records[-1].seq
    run(world, child, back=lambda me: me.retract(me.handles[1]))
    assert_restores(world, child)
    child.keep(child.vat.delete(NOBODY))
    assert [one.handle.seq for one in stated(child.records[-1]) if type(one) is Retraction] == [own]
    witness.keep(witness.vat.delete(NOBODY))
    assert [one.handle.seq for one in stated(witness.records[-1]) if type(one) is Retraction] == [2]


def test_snapshots_and_forks_are_stated(world, witness):
    witness.snapshot()
    [statement] = stated(witness.records[-1])
    assert statement.fact.label == "snapshot"
    assert statement.fact.keywords["seq"] == 2
    world.fork(witness)
    assert str(stated(witness.records[-1])[0].fact) == '(fork "s1" #:into "fork" #:at 2)'
    witness.keep(witness.vat.asked_to_restore(2, NOBODY))
    assert str(stated(witness.records[-1])[0].fact) == '(restore "s1" #:from 2)'
