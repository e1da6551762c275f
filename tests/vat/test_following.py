"""Promises that follow one another: in chains, in loops, in circles."""

from __future__ import annotations

import pytest
from vatmaker import World, assert_restores
from waiters import Waiter, done, run, script

from vat.errors import PromiseCycle


@pytest.fixture
def world():
    return World(Waiter)


@pytest.fixture
def waiter(world):
    return world.spawn(Waiter)


def test_a_chain_of_ten_thousand_promises_is_settled_without_recursion(world, waiter):
    assert world.ask(waiter, "down", 5000) == "bottom"
    assert waiter.heap.system["promises"].count == 0


def test_a_chain_that_waits_for_an_effect_is_settled_without_recursion(world, waiter):
    def go(me):
        promise = me.device("d").call()
        for _ in range(3000):
            promise = promise.then(None, broken=me._broken)
        return promise

    assert run(world, waiter, go=go) is None
    world.settle(waiter, "through")
    assert waiter.answers[0].payload == "through"
    assert waiter.heap.system["promises"].count == 0
    assert_restores(world, waiter)


def test_a_loop_of_reactions_costs_one_promise(world, waiter):
    def go(me, *_):
        return me.device("d").call().then(me.run)

    assert run(world, waiter, go=go) is None
    for _ in range(30):
        world.settle(waiter, "go")
    assert waiter.heap.system["promises"].count <= 3
    assert_restores(world, waiter)


def test_a_caller_of_a_loop_of_reactions_waits_until_its_end(world, waiter):
    def go(me, *_):
        return me.device("d").call().then(me.run)

    assert run(world, waiter, go=go, end=lambda me: "the end") is None
    answers = waiter.answers
    for name in ("go", "go", "end"):
        assert not answers
        world.settle(waiter, name)
    assert [answer.payload for answer in answers] == ["the end"]
    assert waiter.heap.system["promises"].count == 0


def test_a_request_that_loops_is_known_by_its_promise_all_the_while(world, waiter):
    def go(me, *_):
        return me.device("d").call().then(me.run)

    script.update(go=go, end=lambda me: "the end")
    assert world.tell(waiter, "run", "go", request="r1") is None
    again = world.reload(waiter)
    for _ in range(3):
        world.settle(again, "go")
    assert world.tell(again, "run", "go", request="r1") is None
    answers = again.answers
    world.settle(again, "end")
    assert [answer.payload for answer in answers] == ["the end"]
    assert world.ask(world.reload(again), "run", "go", request="r1") == "the end"


def test_a_promise_in_a_field_is_there_whatever_it_comes_to_follow(world, waiter):
    def go(me):
        me.kept = me.ref.run("slow")

    done(world, waiter, go=go, slow=lambda me: me.device("d").call())
    assert world.tell(waiter, "kept") is None
    answers = waiter.answers
    world.settle(waiter, "slowly")
    assert [answer.payload for answer in answers] == ["slowly"]
    assert world.ask(waiter, "kept") == "slowly"
    assert_restores(world, waiter)


def test_a_promise_that_would_follow_itself_breaks(world, waiter):
    def go(me):
        me.kept = me.ref.run("mine")

    done(world, waiter, go=go, mine=lambda me: me.kept)
    with pytest.raises(PromiseCycle):
        world.ask(waiter, "kept")
    assert_restores(world, waiter)


def test_a_circle_of_promises_breaks(world, waiter):
    def go(me):
        me.kept = [me.device("d").call().then(me.run, broken=me._broken)]
        first = me.ref.run("second")
        second = me.ref.run("first")
        me.kept = [first, second]
        return first

    outcome = run(world, waiter, go=go, first=lambda me: me.kept[0], second=lambda me: me.kept[1])
    assert outcome.payload["error"] == "PromiseCycle"
    assert_restores(world, waiter)


def test_a_promise_that_holds_itself_is_no_value_for_others(world, waiter):
    def go(me):
        me.kept = me.ref.run("mine")

    done(world, waiter, go=go, mine=lambda me: {"me": [me.kept]})
    outcome = run(world, waiter, give=lambda me: [me.kept])
    assert outcome.payload["error"] == "NotAValue"
    assert "one of which may hold itself" in outcome.payload["message"]
    assert world.tell(waiter, "kept").payload["error"] == "NotAValue"
    assert run(world, waiter, want=lambda me: me.device("d").call(me.kept)).payload["error"] == "NotAValue"
    assert done(world, waiter, on=lambda me: "on") == "on"
    assert_restores(world, waiter)
