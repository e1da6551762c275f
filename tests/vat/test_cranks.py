"""Cranks: one message and all that follows from it, as one record."""

from __future__ import annotations

from contextlib import suppress

import pytest
from clerks import Clerk, run, script
from vatmaker import ROOT, World, assert_restores, operations, said

from dataspace.values import FrozenDict
from vat.errors import Deleted, ReadOnly, Reentered
from vat.heap.messages import NOBODY, Call
from vat.heap.opcodes import Op
from vat.heap.refs import Ref, near


@pytest.fixture
def world():
    return World(Clerk)


@pytest.fixture
def clerk(world):
    return world.spawn(Clerk)


def test_a_message_is_one_record(world, clerk):
    assert world.ask(clerk, "add", 2) == 2
    record = clerk.records[-1]
    assert (record.seq, clerk.vat.seq, clerk.vat.hash) == (2, 2, record.hash)
    assert said(record) == {"to": ROOT, "method": "add", "args": [2], "by": "local", "via": "test"}
    assert [op[0] for op in operations(record)] == [Op.BEGIN, Op.SET, Op.CHANGE]
    assert_restores(world, clerk)


def test_near_sends_and_what_follows_from_them_are_the_same_crank(world, clerk):
    def go(me):
        me.ref.add(1).then(me.add, broken=me.add)
        return me.count

    assert run(world, clerk, go=go) == 0
    assert world.ask(clerk, "count") == 2
    assert clerk.vat.seq == 2
    begun = [(op[2], op[3] if len(op) > 3 else None) for op in operations(clerk.records[-1]) if op[0] == Op.BEGIN]
    assert begun == [("run", None), ("add", [1]), ("add", [1])], "the message says the first one's arguments"
    assert_restores(world, clerk)


def test_a_vat_is_not_entered_again_in_the_middle_of_a_crank(world, clerk):
    def go(me):
        me.count = 5
        for enter in (
            lambda: clerk.vat.take(Call(ROOT, "add")),
            lambda: clerk.vat.take(Call(ROOT, "look")),
            lambda: clerk.vat.snapshot(),
            lambda: clerk.vat.collect(),
            lambda: clerk.vat.forget(),
            lambda: clerk.vat.upgrade(),
        ):
            clerk.vat.acked.add(1)
            with pytest.raises(Reentered):
                enter()
        clerk.vat.acked.clear()
        return me.count

    assert run(world, clerk, go=go) == 5
    assert_restores(world, clerk)


def test_another_vat_may_take_a_message_meanwhile(world, clerk):
    other = world.spawn(Clerk, "s2")

    def go(me):
        world.ask(other, "add", 3)
        me.ref.add(4)
        return me.count

    assert run(world, clerk, go=go) == 0
    assert world.ask(clerk, "count") == 4
    assert world.ask(other, "count") == 3


def test_time_never_goes_back(world, clerk):
    """Invariant 29."""
    times = []

    def go(me):
        times.append(me.now())
        return

    run(world, clerk, go=go)
    world.now -= 500_000_000
    run(world, clerk, go=go)
    assert times[1] >= times[0]
    assert clerk.records[-1].time >= clerk.records[-2].time
    assert_restores(world, clerk)


def test_chance_is_recorded_and_each_delivery_has_its_own(world, clerk):
    drawn = []

    def go(me):
        drawn.append([me.random.integer(0, 10**9), me.random.integer(0, 10**9), me.new_id(), me.new_id()])
        if len(drawn) == 1:
            me.ref.run("go")
        return

    run(world, clerk, go=go)
    assert len({number for row in drawn for number in row}) == 8
    assert [op[0] for op in operations(clerk.records[-1])].count(Op.SEEDED) == 1


def test_chance_that_was_drawn_in_vain_is_drawn_anew(world, clerk):
    def go(me):
        with suppress(ValueError):
            near(me.ref).run("inner")
        return me.random.integer(0, 10**9)

    def inner(me):
        me.random.random()
        raise ValueError

    run(world, clerk, go=go, inner=inner)
    kinds = [op[0] for op in operations(clerk.records[-1])]
    assert kinds.count(Op.SEEDED) == 1, "the record has the seed that counts"


def test_a_read_may_draw_but_records_nothing(world, clerk):
    head = clerk.vat.seq
    script["draw"] = lambda me: [me.new_id(), me.random.bytes(4)]
    first, second = world.ask(clerk, "peek", "draw"), world.ask(clerk, "peek", "draw")
    assert first[0] != second[0]
    assert first[1] != second[1]
    assert clerk.vat.seq == head


def test_a_read_within_a_crank_changes_nothing_but_the_caller_may(world, clerk):
    def go(me):
        me.count = 3
        with pytest.raises(ReadOnly):
            near(me.ref).peek("sneak")
        return near(me.ref).look()

    assert run(world, clerk, go=go, sneak=lambda me: setattr(me, "count", 9)) == 3
    assert_restores(world, clerk)


def test_the_crank_says_what_it_is_at(world, clerk):
    seen = []

    def go(me):
        seen.append(clerk.vat.crank.doing)
        near(me.ref).run("inner")
        seen.append(clerk.vat.crank.doing)

    def inner(me):
        seen.append(clerk.vat.crank.doing)

    run(world, clerk, go=go, inner=inner)
    assert [tuple(doing) for doing in seen] == [("cranks.clerk", ROOT, "run")] * 3
    assert clerk.vat.crank.doing is None


def test_every_vat_describes_itself_without_a_record(world, clerk):
    world.ask(clerk, "add")
    head = clerk.vat.seq
    described = world.ask(clerk, "describe")
    assert described["id"] == "s1"
    assert described["uid"] == clerk.vat.uid.hex()
    assert (described["type"], described["version"]) == ("cranks.clerk", 1)
    assert (described["seq"], described["hash"]) == (head, clerk.vat.hash.hex())
    assert (described["actors"], described["effects"], described["messages"], described["subscriptions"]) == (
        1,
        0,
        0,
        0,
    )
    assert described["fields"] == ["count", "log"]
    assert described["time"] == clerk.heap.time / 1e6
    assert clerk.vat.seq == head
    assert run(world, clerk, go=lambda me: near(me.ref).describe())["seq"] == head


def test_a_deleted_session_takes_nothing(world, clerk):
    """Invariant 25."""
    clerk.keep(clerk.vat.delete(NOBODY))
    with pytest.raises(Deleted, match="never comes back"):
        world.ask(clerk, "add")


def test_the_asker_is_known_to_the_actor(world, clerk):
    assert run(world, clerk, go=lambda me: [me.asker.by, me.asker.via, me.asker.request, me.session_id]) == [
        "local",
        "test",
        None,
        "s1",
    ]


def test_a_caller_outside_gets_refs_that_name_the_vat(world, clerk):
    made = run(world, clerk, go=lambda me: {"me": me.ref, "it": me})
    assert made == FrozenDict({"me": Ref(clerk.vat.uid, ROOT), "it": Ref(clerk.vat.uid, ROOT)})
