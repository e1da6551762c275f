"""Request ids: the same request with the same content answers the same; with other content it is refused."""

from __future__ import annotations

from typing import Any

import pytest
from vatmaker import World, assert_restores, dump

from vat.crank.vat import RequestConflict
from vat.errors import NoSuchMethod
from vat.heap.messages import Asker, Call, Outcome
from vat.heap.refs import Ref
from vat.host.births import forked_record
from vat.objects.actor import Actor, actor
from vat.objects.collections import List
from vat.objects.types import read


@actor("requests.desk", version=1)
class Desk(Actor):
    count: int = 0
    log: List[Any]

    def add(self, n: Any = 1) -> int:
        self.count += 1
        self.log.append(n)
        return self.count

    def fail(self) -> None:
        raise ValueError("no")

    def ask(self) -> Any:
        return self.device("d").call().then(self.answered)

    def chain(self) -> Any:
        return self.ref.add("x")

    def answered(self, value: Any) -> Any:
        self.log.append(value)
        return {"got": value, "me": self.ref, "made": self.spawn(Desk)}

    @read
    def look(self) -> int:
        return self.count


@pytest.fixture
def world():
    return World(Desk)


@pytest.fixture
def desk(world):
    return world.spawn(Desk)


def test_the_same_request_answers_the_same(world, desk):
    """Invariant 30."""
    assert world.ask(desk, "add", "a", request="r1") == 1
    head = desk.vat.seq
    for session in (desk, world.reload(desk)):
        assert world.ask(session, "add", "a", request="r1") == 1
        assert session.vat.seq == head
    assert world.ask(desk, "count") == 1
    assert_restores(world, desk)


def test_twenty_at_once_make_one(world, desk):
    """Invariant 30."""
    assert [world.ask(desk, "add", "a", request="r1") for _ in range(20)] == [1] * 20
    assert world.ask(desk, "log") == ["a"]


def test_the_same_request_with_other_content_is_refused(world, desk):
    """Invariant 30."""
    world.ask(desk, "add", {"x": 1, "y": 2}, request="r1")
    before = dump(desk.heap)
    for args in (["b"], [{"x": 1, "y": 3}], []):
        with pytest.raises(RequestConflict, match="'r1' to session 's1' was already made with other content"):
            world.ask(desk, "add", *args, request="r1")
    with pytest.raises(RequestConflict):
        world.ask(desk, "ask", request="r1")
    assert dump(desk.heap) == before
    assert world.ask(desk, "add", {"y": 2, "x": 1}, request="r1") == 1, "the order of keys does not count"


def test_a_failure_is_the_answer_too(world, desk):
    first = world.tell(desk, "fail", request="r1")
    assert not first.succeeded
    head = desk.vat.seq
    assert world.tell(world.reload(desk), "fail", request="r1") == first
    assert desk.vat.seq == head


def test_a_request_belongs_to_who_made_it(world, desk):
    assert world.ask(desk, "add", request="r1", by="ann") == 1
    assert world.ask(desk, "add", request="r1", by="bob") == 2
    assert world.ask(desk, "add", request="r1", by="ann") == 1


def test_a_request_without_an_id_is_new_each_time(world, desk):
    assert [world.ask(desk, "add") for _ in range(2)] == [1, 2]


def test_while_the_first_one_runs_a_repetition_waits_with_it(world, desk):
    assert world.tell(desk, "ask", request="r1") is None
    first = desk.answers
    assert world.tell(desk, "ask", request="r1") is None
    second = desk.answers
    assert desk.heap.system["effects"].count == 1
    world.settle(desk, "v")
    assert first == second
    assert first[0].payload["got"] == "v"
    assert world.ask(desk, "log") == ["v"]


def test_it_waits_over_a_restart_and_answers_after_it(world, desk):
    assert world.tell(desk, "ask", request="r1") is None
    again = world.reload(desk)
    assert world.tell(again, "ask", request="r1") is None
    answers = again.answers
    world.settle(again, "v")
    uid = desk.vat.uid
    assert answers[0] == Outcome(True, {"got": "v", "me": Ref(uid, 1), "made": Ref(uid, 2)})
    third = world.reload(again)
    assert world.tell(third, "ask", request="r1") == answers[0]
    assert third.heap.system["handed"].contains(2), "what the answer refers to stays"
    assert_restores(world, third)


def test_a_promise_that_settles_in_the_same_crank_is_an_answer(world, desk):
    assert world.ask(desk, "chain", request="r1") == 1
    assert world.ask(world.reload(desk), "chain", request="r1") == 1
    assert world.ask(desk, "log") == ["x"]


def test_a_fork_does_not_inherit_requests(world, desk):
    world.ask(desk, "add", request="r1")
    assert world.tell(desk, "ask", request="r2") is None
    child = world.fork(desk)
    assert world.ask(child, "add", request="r1") == 2
    assert child.heap.find("requests", "local\0r2") is None
    assert_restores(world, child)


def test_a_call_that_is_refused_is_no_request(world, desk):
    """Invariant 43: a refusal holds no key."""
    with pytest.raises(NoSuchMethod):
        world.ask(desk, "nope", request="r1")
    assert world.ask(desk, "add", request="r1") == 1


def test_a_read_is_read_anew(world, desk):
    assert world.ask(desk, "look", request="r1") == 0
    world.ask(desk, "add")
    assert world.ask(desk, "look", request="r1") == 1


def test_the_record_of_a_fork_answers_the_request_for_it(world, desk):
    call = Call(1, "fork", asker=Asker("local", "test", "r1"), digest=b"d")
    vat = desk.vat
    born = forked_record(vat, call.asker, b"c" * 16, "child", vat.seq, vat.hash, 0, world.powers)
    desk.keep(vat.forked(call, born, "child", vat.seq))
    again = world.reload(desk)
    got = []
    step = again.vat.repeated(Call(1, "fork", asker=Asker("local", "test", "r1"), digest=b"d", reply=got.append))
    [(reply, outcome)] = step.replies
    reply(outcome)
    assert got == [Outcome(True, Ref(b"c" * 16, 1))]
    assert_restores(world, desk)


def test_what_was_carried_out_beside_the_actors_is_answered_by_the_same_rules(world, desk):
    call = Call(1, "snapshot", asker=world_asker("r1"), digest=b"d")
    assert desk.vat.repeated(call) is None
    desk.keep(desk.vat.answer(call, Outcome(True, {"seq": 2})))
    got = []
    again = Call(1, "snapshot", asker=world_asker("r1"), digest=b"d", reply=got.append)
    step = desk.vat.repeated(again)
    assert step.record is None
    [(reply, outcome)] = step.replies
    reply(outcome)
    assert got == [Outcome(True, {"seq": 2})]
    with pytest.raises(RequestConflict):
        desk.vat.repeated(Call(1, "fork", asker=world_asker("r1"), digest=b"other"))
    assert_restores(world, desk)


def world_asker(request):
    return Asker("local", "test", request)
