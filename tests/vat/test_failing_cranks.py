"""What goes wrong in a crank is undone to where it began, and leaves nothing but its record."""

from __future__ import annotations

from contextlib import suppress

import pytest
from clerks import Clerk, run, script
from vatmaker import ROOT, World, assert_restores, dump, everything, operations, said

from dataspace.interrupts import is_interrupt
from dataspace.values import NotAValue
from vat.crank import crank as cranks
from vat.errors import BadCall, CrankOverrun, Failed, NoSuchActor, NoSuchMethod, OtherParameters
from vat.heap.messages import Call
from vat.heap.opcodes import Op
from vat.heap.refs import near


class OutOfStock(Exception):
    def __init__(self, item: str, left: int) -> None:
        super().__init__(item, left)

    def __str__(self) -> str:
        raise RuntimeError("cannot be shown")


@pytest.fixture
def world():
    return World(Clerk)


@pytest.fixture
def clerk(world):
    return world.spawn(Clerk)


def test_a_failed_delivery_leaves_nothing_but_its_record(world, clerk):
    """Invariant 5: no state, message, effect or fact, no content, and the hash of the next crank is that without it."""
    world.ask(clerk, "add")
    before = dump(clerk.heap)
    outcome = world.tell(clerk, "fail", "no such thing")
    assert not outcome.succeeded
    after, record = dump(clerk.heap), clerk.records[-1]
    assert after["actors"] == before["actors"]
    assert after["system"] == before["system"]
    assert b"canary" not in everything(record)
    assert record.statements == []
    assert not world.sent
    assert not world.wanted
    kinds = [op[0] for op in operations(record)]
    assert kinds == [Op.BEGIN, Op.COUNTED, Op.COUNTED, Op.COUNTED, Op.FAILED]
    assert said(record)["method"] == "fail", "the input is not lost"
    assert_restores(world, clerk)


def test_a_number_that_was_given_is_not_given_again(world, clerk):
    given = []

    def go(me):
        given.append(me.spawn(Clerk).actor)
        raise ValueError("in vain")

    for _ in range(2):
        with pytest.raises(ValueError, match="in vain"):
            run(world, clerk, go=go)
    assert run(world, clerk, go=lambda me: me.spawn(Clerk)).actor not in given
    assert len(set(given)) == 2
    assert_restores(world, clerk)


def test_the_error_is_the_same_now_and_after_a_restart(world, clerk):
    outcome = world.tell(clerk, "fail", "gone", request="r1")
    assert outcome.payload["error"] == "ValueError"
    assert outcome.payload["message"] == "gone"
    assert outcome.payload["at"].startswith("at clerks.py:")
    assert "session 's1' at seq 2" in outcome.payload["in"]
    again = world.reload(clerk)
    assert world.tell(again, "fail", "gone", request="r1") == outcome


def test_an_error_whose_message_cannot_be_shown_is_still_recorded(world, clerk):
    def go(me):
        raise OutOfStock("tea", 3)

    with pytest.raises(Failed, match=r"OutOfStock: \(its message cannot be shown: RuntimeError\)"):
        run(world, clerk, go=go)


def test_a_long_error_message_is_content_of_the_record(world, clerk):
    def go(me):
        raise ValueError("long " * 1000)

    with pytest.raises(ValueError, match="long long"):
        run(world, clerk, go=go)
    assert len(clerk.records[-1].cells) == 1
    assert_restores(world, clerk)


def test_a_near_call_that_raises_is_undone_and_its_error_is_the_callers(world, clerk):
    def go(me):
        me.log.append("before")
        try:
            near(me.ref).fail("inside")
        except ValueError as error:
            me.log.append(str(error))
        return me.count

    assert run(world, clerk, go=go) == 0
    assert world.ask(clerk, "log") == ["before", "inside"]
    record = clerk.records[-1]
    assert b"canary" not in everything(record)
    assert [op[1:3] for op in operations(record) if op[0] == Op.UNDONE] == [[ROOT, "fail"]]
    assert not world.wanted
    assert len(dump(clerk.heap)["actors"]) == 1
    assert_restores(world, clerk)


def test_near_calls_within_near_calls_are_undone_each_to_where_it_began(world, clerk):
    def go(me):
        with suppress(KeyError):
            near(me.ref).run("outer")
        return me.count

    def outer(me):
        near(me.ref).add(1)
        try:
            near(me.ref).run("inner")
        except ValueError:
            near(me.ref).add(10)
        if me.count == 11:
            raise KeyError("all of it")

    def inner(me):
        me.add(100)
        raise ValueError

    assert run(world, clerk, go=go, outer=outer, inner=inner) == 0
    assert world.ask(clerk, "log") == []
    assert_restores(world, clerk)


def test_what_failed_is_undone_and_the_rest_of_the_crank_goes_on(world, clerk):
    def go(me):
        me.ref.fail()
        me.ref.add(5)
        return "done"

    assert run(world, clerk, go=go) == "done"
    assert world.ask(clerk, "count") == 5
    assert_restores(world, clerk)


def test_a_crank_that_does_not_end_is_undone_whole(world, clerk, monkeypatch):
    monkeypatch.setattr(cranks, "DELIVERIES", 50)
    outcome = world.tell(clerk, "again", request="r1")
    assert not outcome.succeeded
    assert outcome.payload["error"] == "CrankOverrun"
    assert world.ask(clerk, "count") == 0
    kinds = [op[0] for op in operations(clerk.records[-1])]
    assert kinds == [Op.COUNTED, Op.FAILED, Op.ANSWERED]
    assert len(everything(clerk.records[-1])) < 1000
    assert_restores(world, clerk)
    assert world.tell(world.reload(clerk), "again", request="r1") == outcome


def test_the_limit_is_ten_thousand_deliveries():
    assert cranks.DELIVERIES == 10_000


def test_those_who_wait_for_a_crank_that_does_not_end_learn_of_it(world, clerk, monkeypatch):
    """Invariant 15: the promise that the effect settles stays settled, and what its reaction was to give breaks."""
    monkeypatch.setattr(cranks, "DELIVERIES", 50)

    def go(me):
        return me.device("d").call().then(me.run, broken=me.run)

    def loop(me):
        me.count += 1
        me.ref.run("loop")

    script.clear()
    script.update(go=go, loop=loop)
    assert world.tell(clerk, "run", "go") is None
    world.settle(clerk, "loop")
    assert [answer.payload["error"] for answer in clerk.answers] == ["CrankOverrun"]
    assert world.ask(clerk, "count") == 0
    assert clerk.heap.system["promises"].count == 0
    assert_restores(world, clerk)


def test_the_handler_of_an_overrun_runs_and_may_overrun_too(world, clerk, monkeypatch):
    monkeypatch.setattr(cranks, "DELIVERIES", 50)

    def loop(me):
        me.ref.run("loop")

    script.clear()
    script.update(go=lambda me: me.device("d").call().then(me.run).then(None, "loop", broken=me._handle), loop=loop)
    assert world.tell(clerk, "run", "go") is None
    world.settle(clerk, "loop")
    assert clerk.answers[0].payload["error"] == "CrankOverrun"
    assert [op[2] for op in operations(clerk.records[-1]) if op[0] == Op.BEGIN] == [], "all of it is undone"
    assert clerk.heap.system["promises"].count == 0
    assert_restores(world, clerk)


@pytest.mark.parametrize(
    "interruption", [KeyboardInterrupt, lambda: BaseExceptionGroup("both", [ValueError(), KeyboardInterrupt()])]
)
def test_an_interrupt_ends_the_crank_as_if_it_had_never_been(world, clerk, interruption):
    world.ask(clerk, "add")
    before, head, hash = dump(clerk.heap), clerk.vat.seq, clerk.vat.hash

    def go(me):
        me.ref.add(1)
        me.count += 1
        me.spawn(Clerk)
        near(me.ref).run("inner")

    def inner(me):
        me.log.append("canary")
        raise interruption()

    script.update(go=go, inner=inner)
    with pytest.raises((KeyboardInterrupt, BaseExceptionGroup)) as raised:
        world.tell(clerk, "run")
    assert is_interrupt(raised.value)
    assert dump(clerk.heap) == before
    assert (clerk.vat.seq, clerk.vat.hash) == (head, hash)
    assert clerk.heap.mark() == 0
    assert world.ask(clerk, "add") == 2
    assert_restores(world, clerk)


@pytest.mark.parametrize(
    ("method", "to", "error"),
    [
        ("nope", ROOT, NoSuchMethod),
        ("_crank", ROOT, NoSuchMethod),
        ("spawn", ROOT, NoSuchMethod),
        ("add", 9, NoSuchActor),
    ],
)
def test_what_a_caller_outside_did_wrong_leaves_no_trace(world, clerk, method, to, error):
    """Invariant 43."""
    before, head = dump(clerk.heap), clerk.vat.seq
    with pytest.raises(error):
        world.ask(clerk, method, to=to)
    assert (dump(clerk.heap), clerk.vat.seq) == (before, head)


def test_a_message_that_is_no_value_leaves_no_trace(world, clerk):
    head = clerk.vat.seq
    for args in ([object()], [{"a": {1}}], ["canary " * 99, float]):
        with pytest.raises(NotAValue, match="argument"):
            clerk.vat.take(Call(ROOT, "add", args))
    assert clerk.vat.seq == head
    assert clerk.heap.mark() == 0
    assert world.ask(clerk, "add") == 1
    assert clerk.records[-1].cells == []


def test_wrong_arguments_are_refused_with_what_is_taken_and_leave_no_trace(world, clerk):
    head = clerk.vat.seq
    with pytest.raises(OtherParameters, match=r"cranks.clerk has add\(n=…\), .*too many positional arguments"):
        world.ask(clerk, "add", 1, 2, 3)
    with pytest.raises(BadCall, match=r"cranks.clerk.count is a field, which takes no arguments"):
        world.ask(clerk, "count", 1)
    assert clerk.vat.seq == head


def test_wrong_arguments_among_actors_fail_the_delivery(world, clerk):
    """What an actor has sent is done with, and its promise has the error."""
    world.ask(clerk, "add")
    before = len(clerk.records)
    with pytest.raises(TypeError, match="positional"):
        run(world, clerk, go=lambda me: near(me.ref).add(1, 2, 3))
    assert len(clerk.records) == before + 1
    assert operations(clerk.records[-1])[-1][0] == Op.FAILED


def test_a_result_that_is_no_value_fails_the_delivery(world, clerk):
    def go(me):
        me.count += 1
        return {"a": object()}

    with pytest.raises(NotAValue, match=r"the result of Clerk\.run\.a: object is not a value"):
        run(world, clerk, go=go)
    assert world.ask(clerk, "count") == 0


def test_names_that_cannot_be_written_never_reach_the_record(world, clerk):
    def names(me):
        for attempt in (
            lambda: getattr(me.ref, "x\ud800")(1),
            lambda: me.ref.add(**{"n\ud800": 1}),
            lambda: getattr(me.device("d\ud800"), "m\ud800")(**{"k\ud800": "v\ud800"}),
            lambda: me.narrow("a\ud800"),
        ):
            attempt()

    run(world, clerk, go=names)
    assert b"\xed\xa0\x80" not in clerk.records[-1].deeds
    assert_restores(world, clerk)
    with pytest.raises(TypeError, match="is named by a str"):
        run(world, clerk, go=lambda me: me.device(5).call())


def test_what_cannot_be_read_ends_the_crank_whatever_user_code_made_of_it(world, clerk):
    """Invariant 22: a failed read is an error, never an empty history."""
    run(world, clerk, go=lambda me: me.log.extend(f"line {n}" for n in range(100)))
    clerk.snapshot()
    again = world.reload(clerk)
    before = dump(again.heap)
    fresh = world.reload(again)

    class Damaged(Exception):
        pass

    def broken(ref):
        raise Damaged

    def go(me):
        me.count = 50
        try:
            return list(me.log)
        except Damaged:
            return []

    assert world.ask(fresh, "look") == 0
    fresh.heap.memory = type("Broken", (), {"page": staticmethod(broken), "cell": staticmethod(broken)})()
    script.clear()
    script.update(go=go)
    with pytest.raises(Damaged):
        world.tell(fresh, "run", "go")
    assert fresh.heap.mark() == 0
    fresh.heap.memory = fresh.log
    assert dump(fresh.heap) == before


def test_an_overrun_is_an_error_of_the_runtime(world):
    assert issubclass(CrankOverrun, RuntimeError)


def test_what_only_an_undone_delivery_touched_is_not_written_at_the_next_snapshot(world, clerk):
    """Invariant 8: a vat that lived on and one that was restored write the same pages."""
    world.ask(clerk, "add")
    clerk.snapshot()
    world.tell(clerk, "fail", "in vain")
    restored = world.reload(clerk)
    pages = [len(session.vat.snapshot()[0].record.pages) for session in (clerk, restored)]
    assert pages[0] == pages[1]
