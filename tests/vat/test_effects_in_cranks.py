"""Effects as a crank sees them: wanted by a record, with arguments that stay what they were, and settled once."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from vatmaker import ROOT, World, assert_restores, dump, everything, operations, said

from dataspace.values import CellRef, Text
from vat.crank.chain import Chain
from vat.heap.entries import effect_id
from vat.heap.opcodes import Op
from vat.heap.refs import DIRECTORY, Ref, cancel, near
from vat.objects.actor import Actor, Device, actor
from vat.objects.collections import List, Map
from vat.objects.views import view_of

script: dict[str, Any] = {}
views: list[Any] = []


@actor("effects.user", version=1)
class User(Actor):
    model: Device = "model"
    kept: Any = None
    log: List[Any]
    items: List[Any]
    named: Map[str, Any]

    def run(self, name: str = "go", *args: Any) -> Any:
        return script[name](self, *args)

    def note(self, value: Any) -> Any:
        self.log.append(value)
        return value

    def write(self, text: Text) -> None:
        self.log.append(len(text))

    def _handle(self, error: Exception) -> Any:
        return script["again"](self, error)

    def _broken(self, error: Exception) -> None:
        self.log.append([type(error).__name__, str(error)])


@pytest.fixture
def world():
    return World(User)


@pytest.fixture
def user(world):
    return world.spawn(User)


def run(world, session, **functions):
    script.update(functions)
    return world.tell(session, "run", next(iter(functions)))


def test_an_effect_is_wanted_by_the_record_and_has_an_id_for_ever(world, user):
    run(world, user, go=lambda me: me.model.complete([1], temperature=0.5))
    assert world.wanted.popleft() == (user.vat, 1)
    id, device, method, args, keywords, promise, started = user.heap.find("effects", 1)
    assert (device, method, args, keywords) == ("model", "complete", [[1]], [["temperature", 0.5]])
    assert id.hex() == effect_id(b"L" * 16, user.vat.uid, 2, 1)
    assert (promise, started) == (1, False)
    assert user.records[-1].pending == 1
    assert_restores(world, user)


def test_that_it_starts_is_a_record_of_its_own(world, user):
    run(world, user, go=lambda me: me.model.complete())
    user.keep(user.vat.started(1))
    assert user.heap.find("effects", 1)[6] is True
    assert user.vat.started(9) is None
    assert_restores(world, user)


def test_a_start_that_an_earlier_version_has_recorded_comes_to_the_entry_that_its_snapshots_hold(
    world, user, monkeypatch
):
    operate = Chain._operate
    with monkeypatch.context() as earlier:
        earlier.setattr(Chain, "_operate", lambda chain, draft, op, effect, seq: operate(chain, draft, op, effect))
        run(world, user, go=lambda me: me.model.complete())
        user.keep(user.vat.started(1))
    assert len(user.heap.find("effects", 1)) == 7
    assert_restores(world, user)
    user.keep(user.vat.started(1))
    assert user.heap.find("effects", 1)[7] == user.vat.seq
    assert_restores(world, user)


def test_an_outcome_settles_the_promise_and_ends_the_effect(world, user):
    run(world, user, go=lambda me: me.model.complete().then(me.note))
    world.settle(user, {"text": "hi"})
    assert world.ask(user, "log") == [{"text": "hi"}]
    assert user.heap.system["effects"].count == 0
    assert user.records[-1].pending == 0
    assert said(user.records[-1])["effect"] == 1
    assert_restores(world, user)


def test_an_outcome_that_comes_again_changes_nothing(world, user):
    """Invariant 14."""
    run(world, user, go=lambda me: me.model.complete().then(me.note))
    world.settle(user, 1)
    head = user.vat.seq
    assert world.settle(user, 2, effect=1).record is None
    assert user.vat.seq == head
    assert world.ask(user, "log") == [1]


def test_an_outcome_that_is_no_value_breaks_the_promise(world, user):
    run(world, user, go=lambda me: me.model.complete().then(None, broken=me._broken))
    world.settle(user, {"a": object()})
    [[kind, message]] = world.ask(user, "log")
    assert kind == "NotAValue"
    assert message.startswith("what model.complete gave.a")
    assert user.heap.system["effects"].count == 0


def test_an_outcome_is_kept_as_the_reaction_to_it_says(world, user):
    run(world, user, go=lambda me: me.model.complete().then(me.write))
    world.settle(user, "tiny")
    assert type(said(user.records[-1])["payload"]) is CellRef
    assert b"tiny" not in user.records[-1].deeds


def test_a_view_goes_to_a_device_as_it_was_and_costs_nothing(world, user):
    run(world, user, fill=lambda me: me.items.extend(f"line {n}" for n in range(1000)))
    run(world, user, go=lambda me: me.items.append("x") or me.model.complete(me.items.view(), tools=me.named.view()))
    assert len(everything(user.records[-1])) < 700
    run(world, user, clear=lambda me: me.items.clear())
    user.snapshot()
    again = world.reload(user)
    entry = again.heap.find("effects", 1)
    messages = view_of(again.heap, entry[3][0])
    assert len(messages) == 1001
    assert messages[-1] == "x"
    assert dict(view_of(again.heap, dict(entry[4])["tools"])) == {}
    assert_restores(world, again)


def test_a_view_of_what_was_undone_is_not_taken_for_another(world, user):
    def go(me):
        me.items.append("mine")
        with suppress(ValueError):
            near(me.ref).run("inner")
        mine = me.items.view()
        me.model.complete(mine, views[0])
        return

    def inner(me):
        me.items.append("undone")
        views[:] = [me.items.view()]
        raise ValueError

    run(world, user, go=go, inner=inner)
    args = user.heap.find("effects", 1)[3]
    assert list(view_of(user.heap, args[0])) == ["mine"]
    assert args[1] == ["mine", "undone"], "it is copied: the record has no such view"
    assert_restores(world, user)


def test_a_view_from_an_earlier_crank_is_copied(world, user):
    def keep(me):
        me.items.append(1)
        views[:] = [me.items.view()]

    run(world, user, keep=keep)

    def go(me):
        me.items.append(2)
        me.model.complete(me.items.view(), views[0])

    run(world, user, go=go)
    assert user.heap.find("effects", 1)[3][1] == [1]
    assert_restores(world, user)


def test_a_view_inside_an_argument_is_copied(world, user):
    run(world, user, go=lambda me: me.items.append(1) or me.model.complete({"messages": me.items.view()}))
    assert user.heap.find("effects", 1)[3] == [{"messages": [1]}]
    assert_restores(world, user)


def test_a_view_of_an_empty_collection_that_was_never_used_can_be_given(world, user):
    run(world, user, go=lambda me: me.model.complete(me.items.view()))
    assert len(view_of(user.heap, user.heap.find("effects", 1)[3][0])) == 0
    assert_restores(world, user)


def test_a_device_can_be_called_by_name_and_as_a_function(world, user):
    run(world, user, go=lambda me: me.device("clock")(5))
    assert user.heap.find("effects", 1)[1:4] == ["clock", "call", [5]]


def test_a_promise_without_a_value_is_no_argument_of_a_device(world, user):
    outcome = run(world, user, go=lambda me: me.model.complete(me.model.complete()))
    assert "call the device in a reaction to it" in outcome.payload["message"]
    assert user.heap.system["effects"].count == 0


def test_a_settled_promise_is_given_by_value_and_a_broken_one_breaks(world, user):
    def keep(me):
        me.kept = me.ref.note("v")

    run(world, user, keep=keep)
    run(world, user, go=lambda me: me.model.complete([me.kept]))
    assert user.heap.find("effects", 1)[3] == [["v"]]

    def broken(me):
        me.kept = me.ref.nope()

    run(world, user, broken=broken)
    assert run(world, user, go=lambda me: me.model.complete(me.kept)).payload["error"] == "NoSuchMethod"
    assert user.heap.system["effects"].count == 1


def test_the_directory_is_asked_by_an_effect(world, user):
    run(world, user, go=lambda me: me.directory.spawn("chat.session", "s9"))
    assert user.heap.find("effects", 1)[1:4] == ["directory", "spawn", ["chat.session", "s9"]]
    assert not world.sent
    world.settle(user, Ref(b"n" * 16, ROOT))
    assert user.answers[0].payload == Ref(b"n" * 16, ROOT)
    assert len(DIRECTORY) == 16


def test_nothing_is_wanted_by_a_delivery_that_failed(world, user):
    def go(me):
        me.model.complete("canary " * 99)
        raise ValueError

    run(world, user, go=go)
    assert not world.wanted
    assert user.heap.system["effects"].count == 0
    assert b"canary" not in everything(user.records[-1])
    run(world, user, go=lambda me: me.model.complete())
    assert user.heap.find("effects", 2) is not None, "its number is not given again"
    assert_restores(world, user)


def test_in_a_fork_what_waits_for_an_effect_breaks_and_the_parent_goes_on(world, user):
    run(world, user, go=lambda me: me.model.complete().then(me.note, broken=me._broken))
    child = world.fork(user)
    [[kind, message]] = world.ask(child, "log")
    assert kind == "Forked"
    assert "before the fork" in message
    assert child.heap.system["effects"].count == 0
    assert not child.heap.forking
    world.settle(user, "the parent's")
    assert world.ask(user, "log") == ["the parent's"]
    assert world.settle(child, "late", effect=1).record is None
    for session in (user, child):
        assert_restores(world, session)


def test_a_reaction_in_a_fork_may_ask_again_from_there(world, user):
    def again(me, error):
        return me.model.complete("again").then(me.note)

    script["again"] = again
    run(world, user, go=lambda me: me.model.complete("first").then(me.note, broken=me._handle))
    child = world.fork(user)
    assert [entry[3] for _, entry in child.heap.entries("effects")] == [["again"]]
    world.settle(child, "child's")
    assert world.ask(child, "log") == ["child's"]
    assert_restores(world, child)


def test_a_fork_of_what_waits_for_nothing_needs_no_crank_of_its_own(world, user):
    run(world, user, go=lambda me: me.log.append(1))
    child = world.fork(user)
    assert [record.kind for record in child.records] == [record.kind for record in user.records[:2]] + [4]
    assert dump(child.heap)["actors"] == dump(user.heap)["actors"]


def test_the_pages_of_parent_and_fork_are_never_taken_for_each_other(world, user):
    """Invariant 27."""
    run(world, user, go=lambda me: me.items.extend(range(100)))
    child = world.fork(user)
    run(world, user, one=lambda me: me.items.append("parent"))
    run(world, child, two=lambda me: me.items.append("child"))
    user.snapshot()
    child.snapshot()
    assert world.ask(user, "items") == [*range(100), "parent"]
    assert world.ask(child, "items") == [*range(100), "child"]
    for session in (user, child):
        assert world.ask(world.reload(session), "items")[-1] in ("parent", "child")
        assert_restores(world, session)


def test_subscriptions_bring_events_exactly_once_whatever_becomes_of_them(world, user):
    def go(me):
        return me.observe("(my.fact . _)", me.note)

    number = run(world, user, go=go).payload
    assert user.steps[-1].subscriptions
    assert user.heap.find("subscriptions", number)[3] == "cursor"
    world.observed(user, number, {"n": 1}, "after 1")
    assert world.ask(user, "log") == [{"n": 1}]
    assert user.heap.find("subscriptions", number)[3] == "after 1"
    run(world, user, bad=lambda me: me.observe("(my.fact . _)", me.run, after="start"))
    step = world.observed(user, 2, "nope", "after 2")
    assert step.failure is not None
    assert user.heap.find("subscriptions", 2)[3] == "after 2", "an event that cannot be handled is not brought again"
    run(world, user, stop=lambda me: me.unobserve(number))
    assert world.observed(user, number, {}, "after 3").record is None
    assert run(world, user, odd=lambda me: me.observe("(a.b)", me.note, after="now")).payload["error"] == "ValueError"
    assert [op[0] for op in operations(user.records[-2])].count(Op.UNSUBSCRIBED) == 1
    assert_restores(world, user)


def test_a_cancellation_that_is_undone_stops_no_effect(world, user):
    def go(me):
        me.kept = me.device("d").call()

    def undone(me):
        cancel(me.kept, ValueError("enough"))
        raise LookupError("no")

    def does(me):
        cancel(me.kept, ValueError("enough"))

    run(world, user, go=go)
    assert not run(world, user, undone=undone).succeeded
    assert not user.steps[-1].cancelled
    run(world, user, does=does)
    assert user.steps[-1].cancelled == [1]
    assert_restores(world, user)
