"""Refs: near or far, handed out, narrowed and taken back."""

from __future__ import annotations

from typing import Any

import pytest
from vatmaker import ROOT, World, assert_restores, operations

from vat.errors import NoSuchActor, NoSuchMethod, OutsideCrank, Refused, Revoked
from vat.heap.opcodes import Op
from vat.heap.refs import NotNear, Ref, near
from vat.objects.actor import Actor, actor
from vat.objects.collections import List, Map
from vat.objects.types import read

script: dict[str, Any] = {}


@actor("refs.holder", version=1)
class Holder(Actor):
    count: int = 0
    held: Any = None
    others: List[Any]
    by_ref: Map[Any, Any]

    def run(self, name: str = "go", *args: Any) -> Any:
        return script[name](self, *args)

    def add(self, n: int = 1) -> int:
        self.count += n
        return self.count

    def hold(self, value: Any) -> Any:
        self.held = value
        return value

    @read
    def look(self) -> int:
        return self.count

    @read
    def lend(self) -> Any:
        return [self.others[0]]

    def make(self) -> Any:
        made = self.spawn(Holder)
        self.others.append(made)
        return None

    def give(self, *methods: str, read_only: bool = False) -> Any:
        return self.narrow(*methods, read_only=read_only)

    def take_back(self, ref: Any) -> None:
        self.revoke(ref)


@pytest.fixture
def world():
    return World(Holder)


@pytest.fixture
def holder(world):
    return world.spawn(Holder)


def run(world, session, **functions):
    script.clear()
    script.update(functions)
    return world.ask(session, "run", next(iter(functions)))


def handed(record):
    return [op[1] for op in operations(record) if op[0] == Op.HANDED]


def test_two_refs_to_one_actor_are_one_after_a_restart(world, holder):
    def go(me):
        made = me.spawn(Holder)
        me.held = {"a": made, "b": [made]}
        me.by_ref[made] = "mine"

    run(world, holder, go=go)
    again = world.reload(holder)

    def look(me):
        first, second = me.held["a"], me.held["b"][0]
        near(first).add(5)
        return [first == second, near(second).look(), me.by_ref[first]]

    assert run(world, again, look=look) == [True, 5, "mine"]
    assert_restores(world, again)


def test_a_ref_to_its_own_vat_becomes_near_when_it_comes_in(world, holder):
    me = Ref(holder.vat.uid, ROOT)
    assert world.ask(holder, "hold", [me]) == [me]
    assert run(world, holder, go=lambda me: [me.held == [me.ref], near(me.held[0]).look()]) == [True, 0]
    assert b"".join([holder.records[-2].deeds]).count(holder.vat.uid) == 0, "relative, so that a fork has its own"


def test_a_ref_that_goes_out_is_noted_once(world, holder):
    def go(me):
        me.held = me.spawn(Holder)
        return [me.held, me.held]

    run(world, holder, go=go)
    assert handed(holder.records[-1]) == [2]
    assert run(world, holder, go=lambda me: me.held) == Ref(holder.vat.uid, 2)
    assert handed(holder.records[-1]) == []
    assert_restores(world, holder)


def test_a_ref_that_a_read_hands_out_is_noted_too(world, holder):
    world.ask(holder, "make")
    head = holder.vat.seq
    assert world.ask(holder, "lend") == [Ref(holder.vat.uid, 2)]
    assert holder.vat.seq == head + 1
    assert handed(holder.records[-1]) == [2]
    assert world.ask(holder, "lend") == [Ref(holder.vat.uid, 2)]
    assert world.ask(holder, "others") == [Ref(holder.vat.uid, 2)]
    assert holder.vat.seq == head + 1, "once"
    assert_restores(world, holder)


def test_refs_in_facts_and_effects_go_out(world, holder):
    def go(me):
        first, second = me.spawn(Holder), me.spawn(Holder)
        me.assert_fact("refs.made", first)
        me.device("d").call({"to": second})

    run(world, holder, go=go)
    assert handed(holder.records[-1]) == [2, 3]
    [statement] = holder.records[-1].statements
    assert statement.fact.fields == (Ref(holder.vat.uid, 2),)
    assert holder.heap.find("effects", 1)[4 - 1] == [{"to": Ref(holder.vat.uid, 3)}]


def test_near_calls_at_once_and_only_in_this_vat(world, holder):
    def go(me):
        made = me.spawn(Holder)
        return [near(made).add(2), near(made).count(), near(made).add(3)]

    assert run(world, holder, go=go) == [2, 2, 5]
    with pytest.raises(NotNear, match="send to it instead"):
        run(world, holder, go=lambda me: near(Ref(b"x" * 16, 1)))
    with pytest.raises(NotNear):
        run(world, holder, go=lambda me: near("text"))


def test_outside_of_a_crank_a_ref_does_nothing_but_raise():
    with pytest.raises(OutsideCrank):
        Ref(None, 1).add(1)
    with pytest.raises(OutsideCrank):
        near(Ref(None, 1)).add(1)


def test_a_ref_to_nothing_breaks_the_promise(world, holder):
    with pytest.raises(NoSuchActor, match="there is no actor 99"):
        run(world, holder, go=lambda me: Ref(None, 99).add())


def test_private_methods_are_not_reached_through_a_ref(world, holder):
    for reach in (lambda me: me.ref._run, lambda me: near(me.spawn(Holder))._run):
        with pytest.raises(AttributeError, match="_run"):
            run(world, holder, go=reach)
    with pytest.raises(NoSuchMethod):
        world.ask(holder, "_run")


def test_a_narrowed_ref_reaches_only_what_it_names(world, holder):
    given = world.ask(holder, "give", "add", "look")
    to = given.actor
    assert world.ask(holder, "add", 2, to=to) == 2
    assert world.ask(holder, "look", to=to) == 2
    for method in ("hold", "count", "run"):
        with pytest.raises(Refused, match=f"does not reach {method!r}"):
            world.ask(holder, method, to=to)
    assert run(world, holder, go=lambda me: near(Ref(None, to)).add(1)) == 3
    with pytest.raises(Refused):
        run(world, holder, go=lambda me: Ref(None, to).hold(1))
    assert_restores(world, holder)


def test_a_read_only_ref_reaches_fields_and_what_is_marked_read(world, holder):
    to = world.ask(holder, "give", read_only=True).actor
    assert world.ask(holder, "look", to=to) == 0
    assert world.ask(holder, "count", to=to) == 0
    with pytest.raises(Refused, match="is read only"):
        world.ask(holder, "add", to=to)


def test_narrowing_can_be_asked_for_from_outside_and_only_adds_up(world, holder):
    first = world.ask(holder, "narrow", "add", "look")
    second = world.ask(holder, "narrow", "add", "hold", to=first.actor)
    third = world.ask(holder, "narrow", to=second.actor, read_only=True)
    assert world.ask(holder, "add", to=second.actor) == 1
    with pytest.raises(Refused):
        world.ask(holder, "hold", 1, to=second.actor)
    with pytest.raises(Refused):
        world.ask(holder, "look", to=second.actor)
    with pytest.raises(Refused):
        world.ask(holder, "add", to=third.actor)
    assert_restores(world, holder)


def test_a_revoked_ref_reaches_nothing_and_nor_does_what_was_narrowed_from_it(world, holder):
    first = world.ask(holder, "narrow", "add")
    second = world.ask(holder, "narrow", to=first.actor)
    world.ask(holder, "revoke", first)
    for to in (first.actor, second.actor):
        with pytest.raises(Revoked):
            world.ask(holder, "add", to=to)
        with pytest.raises(Revoked):
            world.ask(holder, "describe", to=to)
    assert world.ask(holder, "add") == 1
    again = world.reload(holder)
    with pytest.raises(Revoked):
        world.ask(again, "add", to=first.actor)


def test_only_who_stands_above_a_ref_revokes_it(world, holder):
    first = world.ask(holder, "narrow", "add")
    second = world.ask(holder, "narrow", to=first.actor)
    other = world.ask(holder, "narrow", "look")
    for through in (first, second, other):
        with pytest.raises(Refused, match="narrowed from this one"):
            world.ask(holder, "revoke", first, to=through.actor)
    with pytest.raises(Refused):
        world.ask(holder, "revoke", Ref(holder.vat.uid, ROOT))
    with pytest.raises(Refused):
        world.ask(holder, "revoke", "text")
    world.ask(holder, "revoke", second, to=first.actor)
    assert world.ask(holder, "add", to=first.actor) == 1
    world.ask(holder, "take_back", first)
    with pytest.raises(Revoked):
        world.ask(holder, "add", to=first.actor)
    assert_restores(world, holder)


def test_what_the_host_carries_out_is_allowed_by_the_same_rules(world, holder):
    named = world.ask(holder, "narrow", "add", "fork")
    reading = world.ask(holder, "narrow", read_only=True)
    vat = holder.vat
    vat.allow(ROOT, "fork")
    vat.allow(named.actor, "fork")
    with pytest.raises(Refused):
        vat.allow(named.actor, "snapshot")
    with pytest.raises(Refused, match="read only"):
        vat.allow(reading.actor, "snapshot")
    with pytest.raises(NoSuchActor):
        vat.allow(77, "fork")
    with pytest.raises(NoSuchMethod, match="between cranks"):
        run(world, holder, go=lambda me: near(me.ref).snapshot())


def test_a_snapshot_of_itself_is_a_message(world, holder):
    def go(me):
        me.ref.snapshot()

    run(world, holder, go=go)
    [(_, number, uid, message)] = world.sent
    assert (number, uid) == (1, holder.vat.uid)
    assert (message["to"], message["method"]) == (ROOT, "snapshot")
