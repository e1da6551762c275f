"""Promises: settled once, by whoever is to settle them, whatever happens in between."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from vatmaker import World, assert_restores, dump, operations
from waiters import Waiter, done, run, script

from dataspace.values import NotAValue
from vat.errors import OutsideCrank, PromiseGone
from vat.heap.opcodes import Op
from vat.heap.refs import Promise, cancel, near

outside: list[Any] = []


@pytest.fixture
def world():
    return World(Waiter)


@pytest.fixture
def waiter(world):
    return world.spawn(Waiter)


def test_a_caller_gets_what_the_promise_comes_to_in_the_same_crank(world, waiter):
    assert done(world, waiter, go=lambda me: me.ref.note(5)) == 5
    assert waiter.vat.seq == 2
    assert waiter.heap.system["promises"].count == 0, "nothing refers to it"
    assert_restores(world, waiter)


def test_a_reaction_is_called_with_the_value_and_its_own_arguments(world, waiter):
    assert done(world, waiter, go=lambda me: me.ref.note(1).then(me.note, 2, 3, key="k")) == 1
    assert world.ask(waiter, "log") == [[1], [1, 2, 3, "k"]]


def test_a_broken_promise_calls_the_other_reaction_and_goes_on_with_what_it_returns(world, waiter):
    def go(me):
        return me.ref.fail("gone").then(me.note, broken=me._broken).then(me.note)

    assert done(world, waiter, go=go) == "mended"
    assert world.ask(waiter, "log") == [["ValueError", "gone"], ["mended"]]
    assert_restores(world, waiter)


def test_without_a_method_for_it_what_happened_goes_on(world, waiter):
    assert done(world, waiter, go=lambda me: me.ref.note(1).then(None, broken=me._broken)) == 1
    outcome = run(world, waiter, go=lambda me: me.ref.fail("on").then(me.note))
    assert (outcome.payload["error"], outcome.payload["message"]) == ("ValueError", "on")


def test_a_reaction_to_a_settled_promise_runs_in_this_crank(world, waiter):
    def go(me):
        me.kept = me.ref.note(1)

    done(world, waiter, go=go)
    assert done(world, waiter, go=lambda me: me.kept.then(me.note, "late")) == 1
    assert world.ask(waiter, "log") == [[1], [1, "late"]]


def test_a_promise_that_passes_on_what_happened_is_there_until_the_end_of_the_crank(world, waiter):
    def go(me):
        me.kept = me.ref.note(1)

    done(world, waiter, go=go)
    assert done(world, waiter, go=lambda me: me.kept.then(None, broken=me._broken)) == 1
    assert done(world, waiter, go=lambda me: me.kept.then(None).then(None).then(me.note, 2)) == 1
    assert_restores(world, waiter)


def test_what_waits_for_an_effect_waits_over_a_restart(world, waiter):
    assert run(world, waiter, go=lambda me: me.device("d").call(1).then(me.note, "x")) is None
    answers = waiter.answers
    assert not answers
    again = world.reload(waiter)
    assert dump(again.heap) == dump(waiter.heap)
    world.settle(again, "value")
    assert world.ask(again, "log") == [["value", "x"]]
    assert_restores(world, again)


def test_a_caller_waits_until_it_is_there(world, waiter):
    assert run(world, waiter, go=lambda me: me.device("d").call(1)) is None
    world.settle(waiter, [1, 2])
    assert [answer.payload for answer in waiter.answers] == [[1, 2]]
    assert not waiter.vat.waiters


def test_a_broken_effect_breaks_with_its_own_reason_after_a_restart_too(world, waiter):
    """Invariant 15."""

    def go(me):
        me.kept = me.device("d").call()

    done(world, waiter, go=go)
    world.settle(waiter, error={"error": "TimeoutError", "message": "too late"})
    again = world.reload(waiter)
    assert done(world, again, go=lambda me: me.kept.then(me.note, broken=me._broken)) == "mended"
    assert world.ask(again, "log") == [["TimeoutError", "too late"]]


def test_a_promise_in_a_field_keeps_what_came_of_it(world, waiter):
    def go(me):
        me.kept = {"deep": [me.ref.note("v")]}

    done(world, waiter, go=go)
    [op] = [op for op in operations(waiter.records[-1]) if op[0] == Op.HELD]
    entry = waiter.heap.find("promises", op[1])
    assert (entry[0], entry[1], entry[4]) == (2, "v", True)
    assert done(world, waiter, go=lambda me: me.kept["deep"][0].then(me.note, "again")) == "v"
    assert_restores(world, waiter)


def test_a_promise_that_is_kept_after_it_was_settled_is_kept(world, waiter):
    def go(me):
        promise = me.ref.note("v")
        me.ref.run("keep", promise)

    def keep(me, promise):
        me.kept = promise

    done(world, waiter, go=go, keep=keep)
    assert world.ask(waiter, "kept") == "v", "a field that is a promise reads as what came of it"


def test_a_promise_that_is_kept_only_after_it_was_settled_is_kept(world, waiter):
    promises = []

    def go(me):
        promises.append(me.ref.note("v"))
        promises[0].then(me.run)

    def keep(me):
        me.kept = promises[0]

    done(world, waiter, go=go, v=keep)
    assert world.ask(waiter, "kept") == "v"
    assert_restores(world, waiter)


def test_a_read_of_a_field_waits_for_its_promise_without_a_record(world, waiter):
    def go(me):
        me.kept = me.device("d").call()

    done(world, waiter, go=go)
    head = waiter.vat.seq
    assert world.tell(waiter, "kept") is None
    answers = waiter.answers
    assert waiter.vat.seq == head
    world.settle(waiter, 7)
    assert [answer.payload for answer in answers] == [7]


def test_a_promise_in_a_result_goes_out_as_its_value_or_not_at_all(world, waiter):
    def go(me):
        me.kept = me.ref.note("v")

    done(world, waiter, go=go)
    assert done(world, waiter, go=lambda me: {"a": [me.kept]}) == {"a": ["v"]}
    outcome = run(world, waiter, go=lambda me: {"a": [me.device("d").call()]})
    assert outcome.payload["error"] == "NotAValue"
    assert "return the promise itself" in outcome.payload["message"]
    assert_restores(world, waiter)


def test_a_broken_promise_in_a_result_breaks_it(world, waiter):
    def go(me):
        me.kept = me.ref.fail("inside")

    done(world, waiter, go=go)
    outcome = run(world, waiter, go=lambda me: [me.kept])
    assert (outcome.payload["error"], outcome.payload["message"]) == ("ValueError", "inside")


def test_a_promise_that_is_over_says_so(world, waiter):
    def go(me):
        outside[:] = [me.ref.note(1)]

    def keep(me):
        me.kept = outside[0]

    done(world, waiter, go=go)
    script["late"] = lambda me: outside[0].then(me.note)
    with pytest.raises(PromiseGone, match="is over"):
        world.ask(waiter, "run", "late")
    script["back"] = lambda me: outside[0]
    with pytest.raises(PromiseGone, match="is over"):
        world.ask(waiter, "run", "back")
    script["keep"] = keep
    with pytest.raises(NotAValue, match="kept: promise 1 is over"):
        world.ask(waiter, "run", "keep")
    with pytest.raises(OutsideCrank):
        outside[0].then(None)
    assert_restores(world, waiter)


def test_a_caller_outside_cannot_bring_a_promise(world, waiter):
    with pytest.raises(NotAValue, match="argument 1: a promise stays in its vat"):
        world.ask(waiter, "note", Promise(1))


def test_a_promise_is_no_truth(world, waiter):
    outcome = run(world, waiter, go=lambda me: bool(me.ref.note(1)))
    assert "has no value yet" in outcome.payload["message"]


def test_only_methods_react(world, waiter):
    outcome = run(world, waiter, go=lambda me: me.ref.note(1).then(lambda value: value))
    assert "name a method of an actor" in outcome.payload["message"]
    assert waiter.heap.system["promises"].count == 0, "undone with the delivery that made them"


def test_a_method_of_another_actor_reacts(world, waiter):
    def go(me):
        other = me.spawn(Waiter)
        me.kept = other
        return me.ref.note(4).then(near(other).note, "there")

    assert done(world, waiter, go=go) == 4
    assert done(world, waiter, go=lambda me: near(me.kept).log()) == [[4, "there"]]


def test_a_send_whose_argument_is_refused_leaves_no_promise(world, waiter):
    def go(me):
        for attempt in (
            lambda: me.ref.note(object()),
            lambda: me.device("d").call(object()),
            lambda: me.ref.note(1).then(me.note, object()),
        ):
            with suppress(TypeError):
                attempt()
        return "on"

    assert done(world, waiter, go=go) == "on"
    assert waiter.heap.system["promises"].count == 0
    assert_restores(world, waiter)


def test_an_effect_is_given_up_and_its_promise_breaks_with_the_reason(world, waiter):
    def go(me):
        me.kept = me.device("d").call()
        return me.kept.then(None, broken=me._broken)

    assert run(world, waiter, go=go) is None
    answers = waiter.answers
    assert done(world, waiter, go=lambda me: cancel(me.kept, ValueError("enough"))) is True
    assert [answer.payload for answer in answers] == ["mended"]
    assert world.ask(waiter, "log") == [["ValueError", "enough"]]
    assert waiter.steps[-2].cancelled == [1]
    assert done(world, waiter, go=lambda me: cancel(me.kept, ValueError("again"))) is False
    assert_restores(world, waiter)


def test_what_a_reaction_has_begun_is_given_up_with_the_promise_that_comes_of_it(world, waiter):
    def go(me):
        me.kept = me.device("d").call().then(me.again).then(me.note)

    done(world, waiter, go=go)
    world.settle(waiter, "first")
    assert waiter.heap.system["effects"].count == 1
    assert done(world, waiter, go=lambda me: cancel(me.kept, ValueError("enough"))) is True
    assert waiter.heap.system["effects"].count == 0
    assert_restores(world, waiter)


def test_a_reaction_that_raises_breaks_what_waits_for_it(world, waiter):
    outcome = run(world, waiter, go=lambda me: me.ref.note("x").then(me.fail))
    assert (outcome.payload["error"], outcome.payload["message"]) == ("ValueError", "x")
    assert_restores(world, waiter)


def test_promises_of_a_delivery_that_failed_are_undone_with_it(world, waiter):
    def go(me):
        me.kept = me.device("d").call().then(me.note)
        raise KeyError("undone")

    assert run(world, waiter, go=go).payload["error"] == "KeyError"
    assert waiter.heap.system["promises"].count == 0
    assert waiter.heap.system["effects"].count == 0
    assert_restores(world, waiter)
