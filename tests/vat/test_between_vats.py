"""Messages between vats, carried by hand: once, in order, and answered."""

from __future__ import annotations

from typing import Any

import pytest
from vatmaker import ROOT, World, assert_restores, dump, everything, said

from dataspace.values import CellRef, Text
from vat.heap.messages import Asker, Call, Outcome, Settled
from vat.heap.refs import Ref
from vat.objects.actor import Actor, actor
from vat.objects.collections import List

script: dict[str, Any] = {}


@actor("between.peer", version=1)
class Peer(Actor):
    peer: Any = None
    kept: Any = None
    log: List[Any]

    def run(self, name: str = "go", *args: Any) -> Any:
        return script[name](self, *args)

    def note(self, value: Any) -> Any:
        self.log.append(value)
        return value

    def write(self, text: Text) -> Text:
        return text

    def fail(self, text: str) -> None:
        self.log.append("undone")
        raise KeyError(text)

    def _broken(self, error: Exception) -> Any:
        self.log.append([type(error).__name__, str(error)])
        return None

    def ask_device(self) -> Any:
        return self.device("d").call()


@pytest.fixture
def world():
    return World(Peer)


@pytest.fixture
def pair(world):
    a, b = world.spawn(Peer, "a"), world.spawn(Peer, "b")
    script.clear()
    script["meet"] = lambda me, peer: setattr(me, "peer", peer)
    world.ask(a, "run", "meet", Ref(b.vat.uid, ROOT))
    world.ask(b, "run", "meet", Ref(a.vat.uid, ROOT))
    return a, b


def run(world, session, **functions):
    script.update(functions)
    return world.tell(session, "run", next(iter(functions)))


def test_a_message_arrives_and_its_answer_comes_back(world, pair):
    a, b = pair
    assert run(world, a, go=lambda me: me.peer.note([1, "x"]).then(me.note)) is None
    answers = a.answers
    assert world.ask(b, "log") == []
    world.carry()
    assert world.ask(b, "log") == [[1, "x"]]
    assert said(b.records[-1])["from"] == a.vat.uid
    world.carry()
    assert [answer.payload for answer in answers] == [[1, "x"]]
    assert world.ask(a, "log") == [[1, "x"]]
    for session in pair:
        assert_restores(world, session)


def test_an_error_comes_back_with_its_class_and_message(world, pair):
    a, b = pair
    run(world, a, go=lambda me: me.peer.fail("gone").then(None, broken=me._broken))
    world.carry_all()
    assert world.ask(a, "log") == [["KeyError", "'gone'"]]
    assert world.ask(b, "log") == []
    assert_restores(world, b)


@pytest.mark.parametrize("times", [1, 2, 5])
def test_a_message_that_is_brought_again_takes_effect_once(world, pair, times):
    """Invariant 9."""
    a, b = pair
    run(world, a, go=lambda me: [me.peer.note(n) for n in range(3)] and None)
    brought = list(world.sent)
    for _ in range(times):
        for sender, number, _, message in brought:
            step = world.take(b, world.arriving(sender, number, message))
            assert step.acknowledged == (a.vat.uid, number)
    assert world.ask(b, "log") == [0, 1, 2]
    again = world.reload(b)
    sender, number, _, message = brought[1]
    assert world.take(again, world.arriving(sender, number, message)).record is None
    assert_restores(world, b)


def test_an_answer_that_is_brought_again_takes_effect_once(world, pair):
    a, _ = pair
    run(world, a, go=lambda me: me.peer.note(1).then(me.note))
    world.carry()
    sender, number, _, message = world.sent[0]
    for _ in range(3):
        world.take(a, world.arriving(sender, number, message))
    assert world.ask(a, "log") == [1]


def test_an_answer_that_is_brought_again_later_brings_no_message_back(world, pair):
    """Invariant 9: who has had a later message has had all before it, however often they come."""
    a, b = pair
    run(world, a, go=lambda me: me.peer.note(1))
    world.carry()
    run(world, b, go=lambda me: me.peer.note("once"))
    answer, call = (world.arriving(sender, number, message) for sender, number, _, message in world.sent)
    recorded = [world.take(a, each).record is not None for each in (answer, call, answer, call)]
    assert recorded == [True, True, False, False]
    assert world.ask(a, "log") == ["once"]


def test_what_receivers_have_leaves_the_outbox_with_the_next_record(world, pair):
    a, b = pair
    run(world, a, go=lambda me: me.peer.note(1))
    assert a.heap.system["outbox"].count == 1
    assert a.heap.system["awaiting"].count == 1
    world.carry()
    assert a.vat.acked == {1}
    world.carry()
    assert a.heap.system["outbox"].count == 0
    assert a.heap.system["awaiting"].count == 0
    assert b.heap.system["outbox"].count == 1
    b.keep(b.vat.forget())
    assert b.heap.system["outbox"].count == 0
    assert b.vat.forget() is None
    for session in pair:
        assert_restores(world, session)


def test_a_ref_to_the_receiver_becomes_near_there_and_one_to_the_sender_far(world, pair):
    a, b = pair
    run(world, a, go=lambda me: me.peer.run("take", [me.ref, me.peer]), take=lambda me, refs: setattr(me, "kept", refs))
    world.carry()
    assert run(world, b, look=lambda me: me.kept[1] == me.ref).payload is True
    assert world.ask(b, "kept") == [Ref(a.vat.uid, ROOT), Ref(b.vat.uid, ROOT)]
    assert b.heap.state(ROOT).fields["kept"] == [Ref(a.vat.uid, ROOT), Ref(None, ROOT)]


def test_a_promise_that_is_settled_goes_as_its_value(world, pair):
    a, b = pair

    def go(me):
        me.kept = me.ref.note({"v": [1]})

    run(world, a, go=go)
    run(world, a, go=lambda me: me.peer.note(["got", me.kept]))
    world.carry()
    assert world.ask(b, "log") == [["got", {"v": [1]}]]


def test_a_message_waits_until_the_promise_in_it_is_settled(world, pair):
    a, b = pair

    def go(me):
        waiting = me.device("d").call()
        return me.peer.note({"deep": [waiting, me.device("d").call()]}).then(me.note)

    assert run(world, a, go=go) is None
    answers = a.answers
    assert not world.sent
    world.settle(a, "one")
    assert not world.sent
    a2 = world.reload(a)
    a2.vat.waiters.update(a.vat.waiters)
    world.settle(a2, Text("two"))
    world.carry_all()
    assert world.ask(b, "log") == [{"deep": ["one", "two"]}]
    assert answers[0].payload == {"deep": ["one", "two"]}
    assert_restores(world, a2)


def test_a_promise_that_breaks_breaks_the_message_that_was_to_carry_it(world, pair):
    a, _ = pair
    run(world, a, go=lambda me: me.peer.note(me.device("d").call()).then(None, broken=me._broken))
    world.settle(a, error={"error": "OSError", "message": "no line"})
    assert not world.sent
    assert world.ask(a, "log") == [["OSError", "no line"]]

    def broken(me):
        me.kept = me.ref.fail("before")

    run(world, a, broken=broken)
    assert run(world, a, go=lambda me: me.peer.note([me.kept])).payload["error"] == "KeyError"
    assert not world.sent
    assert_restores(world, a)


def test_a_result_that_is_a_promise_is_answered_when_it_is_there(world, pair):
    a, b = pair
    run(world, a, go=lambda me: me.peer.ask_device().then(me.note))
    world.carry()
    assert not world.sent
    again = world.reload(b)
    world.settle(again, 42)
    world.carry_all()
    assert world.ask(a, "log") == [42]
    assert_restores(world, again)


def test_content_stays_content_on_its_way(world, pair):
    a, b = pair
    run(world, a, go=lambda me: me.peer.write("tiny"))
    world.carry()
    assert type(said(b.records[-1])["args"][0]) is CellRef
    _, _, uid, message = world.sent[0]
    assert uid == a.vat.uid
    assert type(message["payload"]) is CellRef, "the result is declared Text"
    world.carry()
    assert type(said(a.records[-1])["payload"]) is CellRef
    assert b"tiny" not in a.records[-1].deeds


def test_a_long_answer_is_not_said_again_by_who_sends_it_on(world, pair):
    a, b = pair
    long = "content " * 200
    run(world, b, keep=lambda me: setattr(me, "kept", long))
    run(world, a, go=lambda me: me.peer.kept())
    world.carry()
    assert long.encode() not in everything(b.records[-1]), "it refers to the record that brought it"
    world.carry()
    assert everything(a.records[-1]).count(long.encode()) == 1
    for session in pair:
        assert_restores(world, session)


def test_what_cannot_be_a_message_is_answered_with_the_reason(world, pair):
    a, b = pair
    call = Call(ROOT, "note", [object()], asker=Asker("vat", "vat:a"), sender=(a.vat.uid, 7, 1))
    step = world.take(b, call)
    assert step.acknowledged == (a.vat.uid, 7)
    [(_, _, uid, message)] = world.sent
    assert (uid, message["settle"], message["succeeded"]) == (a.vat.uid, 1, False)
    assert message["payload"]["error"] == "NotAValue"
    assert_restores(world, b)


@pytest.mark.parametrize(("to", "method"), [(99, "note"), (ROOT, "nope"), (ROOT, "peer")])
def test_a_message_to_what_is_not_there_is_answered(world, pair, to, method):
    a, b = pair
    run(world, a, go=lambda me: getattr(Ref(b.vat.uid, to), method)(1))
    world.carry_all()
    assert a.answers[0].succeeded is False
    assert_restores(world, b)


def test_private_methods_are_not_reached_from_another_vat(world, pair):
    a, b = pair
    call = Call(ROOT, "_broken", ["x"], asker=Asker("vat", "vat:a"), sender=(a.vat.uid, 7, 1))
    world.take(b, call)
    [(_, _, _, message)] = world.sent
    assert (message["succeeded"], message["payload"]["error"]) == (False, "NoSuchMethod")
    assert world.ask(b, "log") == []


def test_a_narrowed_ref_works_from_afar_and_is_revoked_from_there_too(world, pair):
    a, b = pair

    def narrow(me):
        me.kept = me.peer.narrow("note")
        return me.kept

    run(world, a, go=narrow)
    world.carry_all()
    facet = a.answers[0].payload
    assert facet.session == b.vat.uid
    run(world, a, go=lambda me: facet.fail("x"))
    world.carry_all()
    assert a.answers[0].payload["error"] == "Refused"
    run(world, a, go=lambda me: me.peer.revoke(facet))
    world.carry_all()
    run(world, a, go=lambda me: facet.note(1))
    world.carry_all()
    assert a.answers[0].payload["error"] == "Revoked"


def test_an_answer_for_one_that_is_not_there_settles_the_promise(world, pair):
    a, b = pair
    run(world, a, go=lambda me: me.peer.note(1).then(None, broken=me._broken))
    failure = {"error": "Deleted", "message": "b has been deleted"}
    step = world.take(a, Settled(b.vat.uid, None, 1, Outcome(False, failure)))
    assert step.acknowledged is None
    assert world.ask(a, "log") == [["Deleted", "b has been deleted"]]


def test_a_late_answer_to_a_settled_promise_changes_nothing_but_the_senders_number(world, pair):
    a, b = pair
    before = dump(a.heap)["actors"]
    world.take(a, Settled(b.vat.uid, 9, 77, Outcome(True, 1)))
    assert dump(a.heap)["actors"] == before
    assert a.vat.has(b.vat.uid, 9)
    assert_restores(world, a)


def test_a_fork_answers_nobody_that_its_parent_was_asked_by(world, pair):
    """Invariant 9: the answer is the parent's to give."""
    a, b = pair
    run(world, a, go=lambda me: me.peer.ask_device().then(me.note, broken=me._broken))
    world.carry()
    child = world.fork(b, "b2")
    assert not world.sent, "though what it waited for broke with Forked"
    assert child.heap.system["promises"].count == 0
    world.settle(b, "the parent's")
    world.carry_all()
    assert world.ask(a, "log") == ["the parent's"]
    for session in (a, b, child):
        assert_restores(world, session)


def test_in_a_fork_what_waits_for_another_vat_breaks_even_when_the_message_has_arrived(world, pair):
    """Invariant 15."""
    a, b = pair
    run(world, a, go=lambda me: me.peer.ask_device().then(me.note, broken=me._broken))
    world.carry()
    a.keep(a.vat.forget())
    child = world.fork(a, "a2")
    assert world.ask(child, "log")[0][0] == "Forked"
    assert child.heap.system["promises"].count == 0
    assert child.heap.system["awaiting"].count == 0
    assert world.ask(a, "log") == []
    assert b.heap.system["promises"].count == 1
    assert_restores(world, child)
