"""What a crash leaves at the end of a log: cut, and nothing else with it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from logmaker import (
    SMALL,
    A,
    B,
    LogMaker,
    body_of,
    closed_log,
    judged,
    small_log,
    two_segments,
    with_byte,
)

from dataspace.log.frames import (
    SEGMENT_SIZE,
    commit_frame,
)
from dataspace.log.recovery import judge
from dataspace.log.verdicts import (
    Outcome,
    SegmentBytes,
    Span,
)
from dataspace.records import STORE_UID, Kind

# Torn tails


def test_a_last_batch_cut_at_every_byte_loses_only_itself():
    """Invariant 4: a torn last batch, cut at every byte offset."""
    before = judged(SMALL.data[: SMALL.ends[-2]])
    for length in range(SMALL.ends[-2] + 1, SMALL.ends[-1]):
        verdict = judged(SMALL.data[:length])
        assert verdict.outcome is Outcome.TORN
        assert verdict.end == before.end
        assert verdict.heads == before.heads
        assert verdict.cut is not None
        assert verdict.cut[:2] == (1, SMALL.ends[-2])
        assert not any(SMALL.data[SMALL.ends[-2] + verdict.cut.length : length])


def test_every_flipped_byte_of_an_open_window_loses_only_that_batch():
    for at in range(SMALL.ends[-2], SMALL.ends[-1]):
        verdict = judged(with_byte(SMALL.data, at))
        assert verdict.outcome in (Outcome.TORN, Outcome.CLEAN)  # clean: a byte of padding
        assert verdict.end.offset in (SMALL.ends[-2], SMALL.ends[-1])
        assert (verdict.end.offset == SMALL.ends[-1]) is (verdict.outcome is Outcome.CLEAN)


@given(st.sets(st.integers(0, 40)), st.sampled_from([b"\0", b"\xa5", b"old"]))
def test_a_last_batch_with_any_sectors_missing_is_torn(lost: set[int], filler: bytes):
    """A power cut may keep any sectors of the write in flight, its commit frame too."""
    start = SMALL.ends[-2]
    data = bytearray(SMALL.data)
    for sector in lost:
        begin, end = start + 16 * sector, min(start + 16 * sector + 16, len(data))
        data[begin:end] = (filler * 16)[: max(0, end - begin)]
    verdict = judged(bytes(data))
    if verdict.outcome is Outcome.CLEAN:
        assert verdict.end.offset == (len(SMALL.data) if any(data[start:]) else start)
    else:
        assert verdict.outcome is Outcome.TORN
        assert verdict.end.offset == start


def test_a_cut_leaves_out_the_zeros_after_it():
    start = SMALL.ends[-2]
    verdict = judged(SMALL.data[: start + 100] + bytes(5000))
    assert verdict.cut is not None
    assert verdict.cut.length <= 100


def test_a_torn_first_frame_cuts_the_whole_segment():
    log = small_log()
    log.roll()
    verdict = judge([log.segments()[0], SegmentBytes(2, log.data[:50])])
    assert verdict.outcome is Outcome.TORN
    assert verdict.cut is not None
    assert verdict.cut[:2] == (2, 0)
    assert verdict.end.segment == 1


def test_a_torn_first_batch_leaves_the_segments_first_frame():
    log = two_segments()
    torn = log.data[: SEGMENT_SIZE + 64]
    verdict = judge([log.segments()[0], SegmentBytes(2, torn)])
    assert verdict.outcome is Outcome.TORN
    assert verdict.cut == Span(2, SEGMENT_SIZE, 64 - (len(torn) - len(torn.rstrip(b"\0"))))


@pytest.mark.parametrize("length", [1, 20, SEGMENT_SIZE, SEGMENT_SIZE + 100])
def test_a_creation_that_was_interrupted_begins_again(length: int):
    log = LogMaker()
    log.batch(log.record(STORE_UID, kind=Kind.CREATED))
    verdict = judged(log.data[:length])
    assert verdict.outcome.writable
    assert verdict.end.position == 0


def test_a_torn_tail_and_damage_before_it_are_both_told():
    log = small_log()
    at = body_of(log, log.records[1])
    log.batch(log.record(B, "in flight"))
    verdict = judged(with_byte(log.data, at)[:-90])
    assert verdict.outcome is Outcome.DAMAGED
    assert verdict.cut is not None
    assert set(verdict.damaged) == {A}


def test_what_recovery_leaves_is_clean():
    """Invariant 10: recovery itself may be killed between any two of its steps."""
    for length in range(SMALL.ends[-2] + 1, SMALL.ends[-1], 13):
        data = SMALL.data[:length]
        torn = judged(data)
        assert torn.cut is not None
        for kept in range(torn.cut.offset, length, 8):  # a truncation that has come only so far
            assert judged(data[:kept]).end == torn.end
        assert judged(data[: torn.cut.offset]).outcome is Outcome.CLEAN


def test_a_closed_window_turns_a_wrong_body_into_damage():
    at = body_of(SMALL, SMALL.records[-1])
    assert judged(with_byte(SMALL.data, at)).outcome is Outcome.TORN
    assert judged(with_byte(closed_log().data, at)).outcome is Outcome.DAMAGED


def test_the_commit_in_flight_proves_the_batch_before_it():
    """Its own frames did not all get there, but nobody would have written it before the other was durable."""
    log = small_log()
    at = body_of(log, log.records[-1])
    log.batch(log.record(B, "in flight"))
    data = bytearray(with_byte(log.data, at))
    data[log.ends[-2] : log.ends[-2] + 16] = bytes(16)
    verdict = judged(bytes(data))
    assert verdict.outcome is Outcome.DAMAGED
    assert verdict.end.offset == log.ends[-2]
    assert verdict.cut is not None


# Quoted bytes


def test_frames_quoted_in_a_body_are_never_frames():
    quoted = SMALL.data.decode("latin-1")
    log = small_log()
    log.batch(log.record(A, quoted, cells=[quoted]))
    assert judged(log.data).records == 7
    for cut in range(log.ends[-2] + 8, len(log.data), 16):
        verdict = judged(log.data[:cut])
        assert (verdict.outcome, verdict.end.offset) == (Outcome.TORN, log.ends[-2])


def test_a_commit_that_is_not_aligned_is_none():
    log = small_log()
    log.batch(log.record(A, "x" * 300))
    at = body_of(log, log.records[-1]) + 101
    quoted, _ = commit_frame(50, 50, [1], b"x" * 32, 1, at)
    torn = log.data[:at] + quoted + log.data[at + len(quoted) : -80]
    assert at % 8
    assert judged(torn).outcome is Outcome.TORN
