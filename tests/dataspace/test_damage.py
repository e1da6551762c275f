"""A wrong body damages its session, and nobody else."""

from __future__ import annotations

from logmaker import (
    SMALL,
    A,
    B,
    body_of,
    closed_log,
    frames_of,
    judged,
    small_log,
    with_byte,
)

from dataspace.log.frames import (
    Type,
    erased,
)
from dataspace.log.verdicts import (
    Outcome,
    SessionDamaged,
)
from dataspace.records import Kind


def test_a_wrong_body_damages_its_session_alone():
    log = closed_log()
    record = log.records[3]
    verdict = judged(with_byte(log.data, body_of(log, record)))
    assert verdict.outcome is Outcome.DAMAGED
    assert verdict.error() is None
    assert verdict.heads == log.heads
    assert set(verdict.damaged) == {A}
    assert verdict.damaged[A][:3] == (record.seq, record.position, record.address)


def test_a_wrong_cell_damages_the_session_that_it_belongs_to():
    log = closed_log()
    verdict = judged(with_byte(log.data, body_of(log, log.records[4], part=0)))
    assert {uid: damage.seq for uid, damage in verdict.damaged.items()} == {B: 2}


def test_the_first_damage_of_a_session_is_the_one_that_counts():
    log = closed_log()
    data = with_byte(log.data, body_of(log, log.records[3]))
    data = with_byte(data, body_of(log, log.records[1]))
    assert judged(data).damaged[A].seq == 1


def test_a_wrong_page_is_lost_and_damages_nobody():
    log = closed_log()
    verdict = judged(with_byte(log.data, body_of(log, log.records[3], part=2)))
    assert verdict.outcome is Outcome.CLEAN
    assert [(uid, lost.seq) for uid, lost in verdict.lost] == [(A, 2)]


def test_a_wrong_page_of_a_base_damages_nobody_either():
    """What it stands for is there, or in an archive, which is asked for by its name."""
    log = small_log()
    log.batch(log.record(A, kind=Kind.BASE, pages=[b"page" * 5]))
    log.batch()
    verdict = judged(with_byte(log.data, body_of(log, log.records[-1], part=0)))
    assert (verdict.outcome, len(verdict.lost)) == (Outcome.CLEAN, 1)


def test_a_wrong_checkpoint_is_lost_and_damages_nobody():
    log = small_log()
    log.batch(extra=[(Type.CHECKPOINT, (6).to_bytes(8, "little") + b"r" * 32, b"note")])
    log.batch()
    at = next(each for each in frames_of(log.data) if each.type == Type.CHECKPOINT).body_offset
    verdict = judged(with_byte(log.data, at))
    assert verdict.outcome is Outcome.CLEAN
    assert len(verdict.lost) == 1


def test_damage_names_the_session_the_seq_and_the_remedy():
    log = closed_log()
    verdict = judged(with_byte(log.data, body_of(log, log.records[3])))
    error = SessionDamaged.of(A, verdict.damaged[A])
    assert (error.session, error.seq) == (A.hex(), 2)
    assert "seq 2" in str(error)
    assert "fork it before seq 2" in str(error)
    assert "keeve salvage" in str(error)


def test_an_erased_body_is_no_damage():
    data = closed_log().data
    for found in list(frames_of(data)):
        if found.type in (Type.RECORD, Type.CELL, Type.PAGE):
            stub = erased(found, 1)
            data = data[: found.offset] + stub + bytes(found.size - len(stub)) + data[found.offset + found.size :]
    verdict = judged(data)
    assert verdict.outcome is Outcome.CLEAN
    assert verdict.heads == SMALL.heads
