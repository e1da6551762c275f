"""Whatever vats do, the heap rebuilt from the records is the live one; and what failed has never been.

Programs are drawn, and after each of them every heap is rebuilt, from the beginning and from each snapshot.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from programs import Drawn, Run, programs, steps
from vatmaker import dump, everything, operations

from vat.heap.opcodes import Op


@settings(max_examples=150, deadline=None)
@given(programs)
def test_the_heap_that_is_rebuilt_is_the_live_one(program):
    """Invariants 5, 8 and 21."""
    run = Run()
    for move in program:
        run.move(*move)
    run.check()


@settings(max_examples=60, deadline=None)
@given(programs, st.lists(steps, max_size=5), st.sampled_from(["fail", "bad"]))
def test_a_failed_delivery_leaves_nothing_but_its_record(program, steps, how):
    """Invariant 5: what there is afterwards differs by the numbers that were given, and by nothing else."""
    run = Run()
    for move in program:
        run.move(*move)
    session = run.session(0)
    before = dump(session.heap)
    sent, wanted = len(run.world.sent), len(run.world.wanted)
    acked = bool(session.vat.acked)
    outcome = run.world.tell(session, "do", [*steps, [how]])
    assert not outcome.succeeded
    after = dump(session.heap)
    kept = ("actors", "types", "life") if acked else ("actors", "types", "life", "system")
    assert {name: after[name] for name in kept} == {name: before[name] for name in kept}
    assert (len(run.world.sent), len(run.world.wanted)) == (sent, wanted)
    record = session.records[-1]
    assert record.statements == []
    assert b"canary" not in everything(record)
    run.check()


@settings(max_examples=40, deadline=None)
@given(programs, st.randoms(use_true_random=False))
def test_a_run_with_restarts_ends_as_one_without(program, random):
    """Invariant 8."""
    plain, restarted = Run(), Run()
    for move in program:
        plain.move(*move)
        restarted.move(*move)
        restarted.reload(restarted.session(random.randrange(4)))
    for uid in plain.uids:
        one, other = plain.world.sessions[uid], restarted.world.sessions[uid]
        assert dump(one.heap) == dump(other.heap)
        assert [record.hash for record in one.records] == [record.hash for record in other.records]


def test_a_promise_that_was_awaited_where_the_heap_has_it_is_kept_for_no_local():
    """Invariant 8: the object that a field gave is in memory as long as the heap has it, and another one after that."""
    steps = [("wait", 0), ("both", 0), ("wait", 0)]
    calls = [("call", 0, [("send", 0, [], True), ("begin", 0, steps)], None), ("call", 0, [("set", "text", "x")], None)]
    plain, restarted = Run(), Run()
    for call in calls:
        for move in (call, ("settle", "value")):
            plain.move(*move)
            restarted.move(*move)
            restarted.reload(restarted.session(0))
    for uid in plain.uids:
        one, other = plain.world.sessions[uid], restarted.world.sessions[uid]
        assert [record.hash for record in one.records] == [record.hash for record in other.records]


@pytest.mark.parametrize("seed", range(30))
def test_long_programs_are_rebuilt_as_well(seed):
    """Invariants 5, 8 and 21."""
    run = Run()
    for move in Drawn(seed).program(30):
        run.move(*move)
    run.check()


def test_everything_that_can_be_recorded_comes_up():
    seen = set()
    for seed in range(40):
        run = Run()
        for move in Drawn(seed).program(30):
            run.move(*move)
        seen.update(
            op[0] for uid in run.uids for record in run.world.sessions[uid].records for op in operations(record)
        )
    others = {Op.UPGRADED, Op.CLOCKED, Op.LOOKED}
    assert seen == set(Op) - others, "these need another code, a clock that was set back, and a host that knows"


@pytest.mark.parametrize("upto", [2, 5, 9])
def test_a_heap_can_be_rebuilt_as_of_any_seq(upto):
    run = Run()
    session = run.session(0)
    seen = {}
    for n in range(10):
        seen[session.vat.seq] = dump(session.heap)
        run.world.tell(session, "do", [["append", n], ["spawn"], ["want", True, True]])
        if n == 4:
            session.snapshot()
    at = sorted(seen)[min(upto, len(seen) - 1)]
    assert dump(run.world.restored(session, upto=at)) == seen[at]
