"""What no crash can have done to a log: named, and never cut."""

from __future__ import annotations

import pytest
from logmaker import (
    SMALL,
    A,
    B,
    LogMaker,
    body_of,
    closed_log,
    frames_of,
    judged,
    newest,
    small_log,
    two_segments,
    with_byte,
)

from dataspace.log import scan
from dataspace.log.frames import (
    SEGMENT_SIZE,
    SegmentHead,
    Type,
    frame,
    parse,
    segment_frame,
)
from dataspace.log.recovery import FIRST_WRITE, judge
from dataspace.log.verdicts import (
    Evidence,
    LogCorrupt,
    Outcome,
    SegmentBytes,
)
from dataspace.records import STORE_UID, ZERO_HASH, Kind


def test_no_flipped_byte_before_the_end_is_skipped_or_cut():
    """Invariant 4: damage before the end is named, and never shortens a history in silence."""
    log = closed_log()
    sound = judged(log.data)
    padding = set()
    for found in frames_of(log.data):
        padding |= set(range(found.body_offset + found.body_length, found.offset + found.size))
    for at in range(log.ends[-2]):
        verdict = judged(with_byte(log.data, at))
        assert verdict.cut is None
        if verdict.outcome.writable:
            assert verdict.end == sound.end
            assert verdict.damaged or verdict.lost or at in padding
        else:
            assert verdict.outcome is Outcome.CORRUPT
            assert isinstance(verdict.error(), LogCorrupt)


@pytest.mark.parametrize("span", [(0, 8), (104, 240), (300, 800), (250, 1400)])
def test_a_hole_before_a_commit_is_corrupt(span: tuple[int, int]):
    log = closed_log()
    data = bytearray(log.data)
    data[span[0] : span[1]] = bytes(span[1] - span[0])
    verdict = judged(bytes(data))
    assert verdict.outcome is Outcome.CORRUPT
    assert verdict.cut is None


def test_corruption_is_named_by_segment_and_offset():
    log = closed_log()
    error = judged(with_byte(log.data, log.ends[0] + 4)).error()
    assert isinstance(error, LogCorrupt)
    assert (error.segment, error.offset) == (1, log.ends[0])
    assert "read-only" in str(error)


def test_bytes_taken_out_are_noticed_by_who_saw_what_followed():
    """No frame after them lies where it says, so by itself the rest looks like a torn write."""
    log = closed_log()
    data = log.data[: log.ends[0]] + log.data[log.ends[1] :]
    assert judged(data).outcome is Outcome.TORN
    assert judged(data, Evidence(seen=(newest(log),))).outcome is Outcome.TRUNCATED


@pytest.mark.parametrize("nth", range(3))
def test_a_batch_written_again_after_the_end_is_torn(nth: int):
    """Its frames say that they lie elsewhere."""
    log = closed_log()
    ends = [SEGMENT_SIZE, *log.ends]
    verdict = judged(log.data + log.data[ends[nth] : ends[nth + 1]])
    assert verdict.outcome is Outcome.TORN
    assert verdict.end.offset == len(log.data)


def test_two_swapped_batches_are_corrupt():
    log = LogMaker()
    log.batch(log.record(STORE_UID, kind=Kind.CREATED))
    log.batch(log.record(A, "first"))
    log.batch(log.record(B, "other"))
    log.batch()
    one, two, three = log.ends[:3]
    data = log.data[:one] + log.data[two:three] + log.data[one:two] + log.data[three:]
    assert judged(data).outcome is Outcome.CORRUPT


def test_a_gap_in_positions_is_corrupt():
    log = small_log()
    log.position += 1
    log.batch(log.record(A))
    assert judged(log.data).outcome is Outcome.CORRUPT


def test_a_gap_in_a_chain_is_corrupt():
    log = small_log()
    log.record(A, "never written")
    log.batch(log.record(A))
    verdict = judged(log.data)
    assert verdict.outcome is Outcome.CORRUPT
    assert A.hex() in verdict.what


def test_a_seq_that_skips_is_corrupt_though_the_hash_fits():
    log = small_log()
    log.batch(log.record(A, after=(7, log.heads[A][1])))
    assert judged(log.data).outcome is Outcome.CORRUPT


def test_a_record_on_another_past_is_corrupt():
    log = small_log()
    log.batch(log.record(A, after=(log.heads[A][0], b"x" * 32)))
    assert judged(log.data).outcome is Outcome.CORRUPT


@pytest.mark.parametrize("after", [(4, b"x" * 32), (0, b"x" * 32), (4, ZERO_HASH)])
def test_a_session_that_does_not_begin_at_its_beginning_is_corrupt(after: tuple[int, bytes]):
    log = small_log()
    log.batch(log.record(b"session-c-------", after=after))
    assert judged(log.data).outcome is Outcome.CORRUPT


def test_a_fork_begins_after_the_seq_of_its_parent():
    log = small_log()
    log.batch(log.record(b"session-c-------", kind=Kind.FORKED, after=(2, log.records[3].hash)))
    assert judged(log.data).outcome is Outcome.CLEAN


def test_a_stale_owners_record_is_corrupt():
    log = small_log()
    log.epoch = 3
    log.batch(log.record(A))
    log.epoch = 2
    log.batch(log.record(A))
    verdict = judged(log.data)
    assert verdict.outcome is Outcome.CORRUPT
    assert "stale" in verdict.what


def test_without_the_chain_check_another_past_would_pass(monkeypatch: pytest.MonkeyPatch):
    """Invariant 45: the control of the two tests above."""
    log = small_log()
    log.batch(log.record(A, after=(log.heads[A][0], b"x" * 32)))
    admit = scan.Trail._admit
    monkeypatch.setattr(scan.Trail, "_admit", lambda self, header, hash: admit(self, header, hash) and "")
    assert judged(log.data).outcome is Outcome.CLEAN


@pytest.mark.parametrize("change", [{"crcs": [1]}, {"count": 2}], ids=str)
def test_a_commit_that_covers_other_frames_is_not_followed(change):
    log = small_log()
    start = len(log.data)
    log.forge(log.whole(log.record(A)), 7, 7, **change)
    verdict = judged(log.data)
    assert (verdict.outcome, verdict.end.offset) == (Outcome.TORN, start)
    log.batch()
    verdict = judged(log.data)
    assert (verdict.outcome, verdict.end.offset) == (Outcome.CORRUPT, start)


@pytest.mark.parametrize(("first", "last", "at"), [(6, 7, 7), (7, 8, 7), (7, 9, 9), (7, 6, 7)])
def test_a_commit_of_other_positions_is_corrupt(first: int, last: int, at: int):
    log = small_log()
    record = log.record(A)
    record.position = at
    log.forge(log.whole(record), first, last)
    assert judged(log.data).outcome is Outcome.CORRUPT


def test_a_commit_of_another_past_is_corrupt():
    log = small_log()
    log.forge(log.whole(log.record(A)), 7, 7, previous=b"x" * 32)
    assert judged(log.data).outcome is Outcome.CORRUPT
    log.roll()
    assert judge(log.segments()).outcome is Outcome.CORRUPT


def test_a_record_with_a_part_missing_is_corrupt():
    log = small_log()
    record, _ = log.whole(log.record(A, cells=["cell"]))
    log.forge([record], 7, 7)
    assert judged(log.data).outcome is Outcome.CORRUPT


def test_a_record_with_a_part_missing_before_another_is_corrupt():
    log = small_log()
    record, _ = log.whole(log.record(A, cells=["cell"]))
    other = log.record(B)
    other.position = 8
    log.forge([record, *log.whole(other)], 7, 8)
    assert judged(log.data).outcome is Outcome.CORRUPT


def test_a_part_of_another_record_is_corrupt():
    log = small_log()
    record, (kind, head, body) = log.whole(log.record(A, cells=["cell"]))
    log.forge([record, (kind, (6).to_bytes(8, "little") + head[8:], body)], 7, 7)
    assert judged(log.data).outcome is Outcome.CORRUPT


def test_a_part_elsewhere_than_its_record_says_is_corrupt():
    log = small_log()
    (kind, head, body), cell = log.whole(log.record(A, cells=["cell"]))
    start = int.from_bytes(head[-4:], "little") + 8
    log.forge([(kind, head[:-4] + start.to_bytes(4, "little"), body), cell], 7, 7)
    assert judged(log.data).outcome is Outcome.CORRUPT


@pytest.mark.parametrize("kind", [Type.RECORD, Type.CELL, Type.CHECKPOINT])
def test_a_head_of_another_length_is_corrupt(kind: Type):
    log = small_log()
    log.forge([(kind, b"short", b"")], 7, 6)
    assert judged(log.data).outcome is Outcome.CORRUPT


@pytest.mark.parametrize("kind", [Type.SEGMENT, Type.ERASED])
def test_a_frame_that_does_not_belong_here_is_corrupt(kind: Type):
    log = small_log()
    log.forge([(kind, b"", b"")], 7, 6)
    log.batch()
    assert judged(log.data).outcome is Outcome.CORRUPT


def test_a_checkpoint_ahead_of_the_log_is_corrupt():
    log = small_log()
    log.batch(extra=[(Type.CHECKPOINT, (7).to_bytes(8, "little") + bytes(32), b"")])
    assert judged(log.data).outcome is Outcome.CORRUPT


@pytest.mark.parametrize("missing", [0, 1])
def test_a_missing_segment_is_corrupt(missing: int):
    log = two_segments()
    log.roll()
    log.batch(log.record(B))
    segments = log.segments()
    del segments[missing]
    verdict = judge(segments)
    assert verdict.outcome is Outcome.CORRUPT
    assert "missing" in verdict.what


def test_a_missing_last_segment_is_noticed_by_who_saw_its_records():
    log = two_segments()
    assert judge(log.segments()[:1]).outcome is Outcome.CLEAN
    assert judge(log.segments()[:1], Evidence(seen=(newest(log),))).outcome is Outcome.TRUNCATED


def test_an_unsound_frame_in_a_sealed_segment_is_corrupt():
    """Even in its last batch: the next segment proves that it was durable."""
    log = small_log()
    log.roll()
    first, second = log.segments()
    data = with_byte(first.data, log.ends[-2])
    verdict = judge([SegmentBytes(1, data), second])
    assert verdict.outcome is Outcome.CORRUPT
    assert "sealed" in verdict.what


def test_a_wrong_body_at_the_end_of_a_sealed_segment_is_damage():
    log = small_log()
    at = body_of(log, log.records[-1])
    log.roll()
    first, second = log.segments()
    assert judge([SegmentBytes(1, with_byte(first.data, at)), second]).outcome is Outcome.DAMAGED


def test_a_sealed_segment_cut_anywhere_is_corrupt():
    log = two_segments()
    first, second = log.segments()
    for length in range(0, len(first.data), 24):
        assert judge([SegmentBytes(1, first.data[:length]), second]).outcome is Outcome.CORRUPT


def test_something_after_the_seal_is_corrupt():
    log = two_segments()
    first, second = log.segments()
    assert judge([SegmentBytes(1, first.data + b"\0\0more"), second]).outcome is Outcome.CORRUPT


@pytest.mark.parametrize(
    "change",
    [
        {"log_id": b"another-log's-id"},
        {"first_position": 9},
        {"previous_length": 8},
        {"previous_commit": b"c" * 32},
        {"id": 3},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_segment_head_that_does_not_fit_is_corrupt(change):
    log = small_log()
    log.roll()
    head = SegmentHead(1, 2, log.log_id, 7, len(log.done[0]), log.commit)._replace(**change)
    written = parse(segment_frame(head), 0, head.id)
    assert written is not None
    data, _ = frame(Type.SEGMENT, written.head, b"", 2, 0)
    assert judge([log.segments()[0], SegmentBytes(2, data)]).outcome is Outcome.CORRUPT


def test_a_first_segment_that_goes_on_from_another_is_corrupt():
    head = SegmentHead(1, 1, SMALL.log_id, 7, 0, ZERO_HASH)
    assert judged(segment_frame(head)).outcome is Outcome.CORRUPT


def test_a_segment_under_another_name_is_not_cut():
    log = two_segments()
    first, second = log.segments()
    verdict = judge([first, SegmentBytes(2, first.data)])
    assert verdict.outcome is Outcome.CORRUPT
    assert judge([SegmentBytes(1, second.data)]).outcome is Outcome.CORRUPT


def test_what_is_no_log_is_not_cut():
    """Invariant 22: nothing starts afresh over what it could not read."""
    assert judged(b"somebody's file\n" * FIRST_WRITE).outcome is Outcome.CORRUPT


def test_a_torn_tail_before_another_segment_is_corrupt():
    log = small_log()
    log.roll()
    first, second = log.segments()
    assert judge([SegmentBytes(1, first.data[:-8]), SegmentBytes(2, second.data[:50])]).outcome is Outcome.CORRUPT
